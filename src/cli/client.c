#include "cli/client.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "util/mem.h"

enum {
    CONNECT_TIMEOUT_MS = 5000,
    TIMEOUT_MS = 30000,
    ACT_TIMEOUT_MS = 600000,      /* what is done to many takes its time */
    PAGE_MAX = 1000,              /* entries, the API's own bound */
    ANSWER_MAX_BYTES = 256 << 20, /* a body of any size a gateway would take */
};

struct client {
    const struct cli_verb *verb;
    CURL *curl;
    struct curl_slist *headers;
    struct buf url; /* of the gateway, no slash at its end */
    char curl_error[CURL_ERROR_SIZE];
};

static int failed(const struct client *client, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int failed(const struct client *client, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "lanegate %s: ", client->verb->name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

/* The configuration's admin.listen; the default one when there is no file and none was named. */
static int url_from_config(struct client *client, const char *path)
{
    struct buf faults = {0};
    struct config *config = NULL;
    enum status status = config_load(path, CONFIG_CLIENT, &config, &faults);
    int code = CLI_OK;
    if (status == STATUS_OK) {
        client_url_from_listen(config->admin.listen[0], &client->url);
        config_unref(config);
    } else if (status == STATUS_NOT_FOUND && !path) {
        client_url_from_listen("127.0.0.1:4002", &client->url);
    } else {
        fputs(faults.len ? faults.at : status_text(status), stderr);
        code =
            failed(client, CLI_BAD_CONFIG,
                   "the configuration does not say where the gateway is; --admin URL or LANEGATE_ADMIN can");
    }
    buf_free(&faults);
    return code;
}

static int find_gateway(struct client *client, const struct client_where *where)
{
    const char *environment = getenv("LANEGATE_ADMIN");
    if (where->admin) {
        if (client_url_from_text(where->admin, &client->url))
            return CLI_OK;
        return cli_usage(client->verb, "--admin must be a URL such as http://127.0.0.1:4002, got \"%s\"",
                         where->admin);
    }
    if (!where->config && environment && *environment) {
        if (client_url_from_text(environment, &client->url))
            return CLI_OK;
        return cli_usage(client->verb,
                         "LANEGATE_ADMIN must be a URL such as http://127.0.0.1:4002, got \"%s\"",
                         environment);
    }
    return url_from_config(client, where->config);
}

static int add_token(struct client *client)
{
    const char *token = getenv("LANEGATE_TOKEN");
    if (!token || !*token)
        return CLI_OK;
    for (const char *c = token; *c; c++)
        if (*c <= 0x20 || *c >= 0x7f)
            return cli_usage(client->verb, "LANEGATE_TOKEN holds a blank or a control character");
    char *header = mem_format("Authorization: Bearer %s", token);
    client->headers = curl_slist_append(client->headers, header);
    free(header);
    return CLI_OK;
}

static size_t receive(char *at, size_t size, size_t count, void *ctx)
{
    struct buf *out = ctx;
    buf_put(out, at, size * count);
    return out->overflow ? 0 : size * count;
}

int client_open(const struct cli_verb *verb, const struct client_where *where, struct client **out)
{
    struct client *client = mem_zalloc(sizeof *client);
    client->verb = verb;
    client->curl = curl_easy_init();
    int code =
        client->curl ? find_gateway(client, where) : failed(client, CLI_FAILED, "libcurl does not start");
    if (code == CLI_OK)
        code = add_token(client);
    if (code != CLI_OK) {
        client_close(client);
        return code;
    }
    curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, client->headers);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->curl_error);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(client->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(client->curl, CURLOPT_PROXY, ""); /* a token is for the gateway, not for a proxy */
    curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(client->curl, CURLOPT_USERAGENT, "lanegate/" LANEGATE_VERSION);
    *out = client;
    return CLI_OK;
}

void client_close(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    buf_free(&client->url);
    free(client);
}

static const char *member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* An answer that is not 200, as a sentence. */
static int refused(const struct client *client, long status, const struct buf *body)
{
    json_t *answer = json_loadb(body->at ? body->at : "", body->len, 0, NULL);
    const char *error = member(answer, "error"), *expected = member(answer, "expected");
    int code = CLI_FAILED;
    if (!*error)
        failed(client, code, "what answers at %s is no gateway's admin API (status %ld)", client->url.at,
               status);
    else if (strcmp(error, "bad_filter") == 0)
        code = failed(client, CLI_USAGE, "%s must be %s", member(answer, "filter"), expected);
    else if (status == 401)
        failed(client, code, "the gateway wants a token: set LANEGATE_TOKEN to one of admin.tokens");
    else if (status == 403 && *member(answer, "scope"))
        failed(client, code, "this token lacks the scope \"%s\"", member(answer, "scope"));
    else if (status == 404 && *member(answer, "what"))
        failed(client, code, "no such %s%s%s", member(answer, "what"), *expected ? "; name " : "", expected);
    else if (strcmp(error, "head_changed") == 0)
        failed(client, code, "the lane has another head by now: nothing was done");
    else if (strcmp(error, "in_flight") == 0)
        failed(client, code, "an attempt is running: nothing was done; try again when it has ended");
    else if (strcmp(error, "rekey_running") == 0)
        failed(client, code,
               "a rekey moves the sink's hooks to other lanes: nothing was done; try again when it is over");
    else if (strcmp(error, "busy") == 0 || strcmp(error, "draining") == 0)
        failed(client, code, "the gateway is %s: nothing was done", error);
    else if (strcmp(error, "replay_running") == 0)
        failed(client, code, "replay %s is running or paused at one of these sinks: nothing was done",
               member(answer, "id"));
    else if (strcmp(error, "replay_over") == 0)
        failed(client, code, "this replay is done or cancelled: nothing was changed");
    else if (strcmp(error, "backlog_full") == 0)
        failed(client, code, "the gateway has more to deliver than its memory takes now; go on later");
    else if (status == 503)
        failed(client, code, "the gateway can't read its store now (%s); its log says why", error);
    else
        failed(client, code, "the gateway answered %ld %s%s%s", status, error, *expected ? ": " : "",
               expected);
    json_decref(answer);
    return code;
}

static int unreachable(const struct client *client, CURLcode result)
{
    const char *why = client->curl_error[0] ? client->curl_error : curl_easy_strerror(result);
    return failed(client, CLI_UNREACHABLE,
                  "no gateway answers at %s (%s); is it running? --admin URL or LANEGATE_ADMIN names another",
                  client->url.at, why);
}

bool client_answers(struct client *client)
{
    char *url = mem_format("%s/health", client->url.at);
    struct buf body = {.max = ANSWER_MAX_BYTES};
    long status = 0;
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &body);
    if (curl_easy_perform(client->curl) == CURLE_OK)
        curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    buf_free(&body);
    free(url);
    return status == 200;
}

/* CLI_OK with whatever was answered; CLI_UNREACHABLE. */
static int perform(struct client *client, const char *path, struct buf *out, long *status)
{
    char *url = mem_format("%s%s", client->url.at, path);
    buf_clear(out);
    out->max = ANSWER_MAX_BYTES;
    client->curl_error[0] = 0;
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, out);
    CURLcode result = curl_easy_perform(client->curl);
    free(url);
    if (result != CURLE_OK)
        return unreachable(client, result);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, status);
    return CLI_OK;
}

int client_get_bytes(struct client *client, const char *path, struct buf *out)
{
    long status = 0;
    int code = perform(client, path, out, &status);
    return code != CLI_OK || status == 200 || status == 201 ? code : refused(client, status, out);
}

/* ---- an answer that goes on ---- */

struct streaming {
    struct client *client;
    struct buf line; /* what came of the one that is not whole */
    struct buf body; /* of an answer that is not 200 */
    bool (*each)(void *ctx, struct bytes line);
    void *ctx;
    bool enough;
};

static size_t stream_came(char *at, size_t size, size_t count, void *ctx)
{
    struct streaming *streaming = ctx;
    size_t len = size * count;
    long status = 0;
    curl_easy_getinfo(streaming->client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        buf_put(&streaming->body, at, len);
        return len;
    }
    for (size_t i = 0; i < len && !streaming->enough; i++) {
        if (at[i] != '\n') {
            buf_putc(&streaming->line, at[i]);
            continue;
        }
        streaming->enough = !streaming->each(streaming->ctx, buf_bytes(&streaming->line));
        buf_clear(&streaming->line);
    }
    return streaming->enough || streaming->line.overflow ? 0 : len;
}

int client_stream(struct client *client, const char *path, bool quietly,
                  bool (*line)(void *ctx, struct bytes line), void *ctx)
{
    enum { SILENCE_S = 30 };
    struct streaming streaming = {.client = client, .each = line, .ctx = ctx};
    char *url = mem_format("%s%s", client->url.at, path);
    long status = 0;
    client->curl_error[0] = 0;
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, stream_came);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &streaming);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    CURLcode result = curl_easy_perform(client->curl);
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
    curl_easy_setopt(client->curl, CURLOPT_LOW_SPEED_TIME, 0L);
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    int code = CLI_OK;
    if (status && status != 200)
        code = refused(client, status, &streaming.body);
    else if (result != CURLE_OK && !streaming.enough && !status && quietly)
        code = CLI_UNREACHABLE;
    else if (result != CURLE_OK && !streaming.enough && !status)
        code = unreachable(client, result);
    buf_free(&streaming.line);
    buf_free(&streaming.body);
    free(url);
    return code;
}

static int no_gateway(const struct client *client)
{
    return failed(client, CLI_FAILED, "what answers at %s is no gateway's admin API", client->url.at);
}

int client_get(struct client *client, const char *path, json_t **out)
{
    struct buf body = {0};
    int code = client_get_bytes(client, path, &body);
    if (code == CLI_OK) {
        *out = json_loadb(body.at ? body.at : "", body.len, 0, NULL);
        if (!json_is_object(*out)) {
            json_decref(*out);
            code = no_gateway(client);
        }
    }
    buf_free(&body);
    return code;
}

/* Any program may answer 200 with an object. "no lanes" of the wrong one would be believed. */
int client_get_list(struct client *client, const char *path, const char *array, json_t **out)
{
    int code = client_get(client, path, out);
    if (code != CLI_OK || json_is_array(json_object_get(*out, array)))
        return code;
    json_decref(*out);
    return no_gateway(client);
}

static int get_page(struct client *client, const char *path, const char *array, int64_t limit,
                    const char *cursor, json_t **out)
{
    struct buf whole = {0};
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)(limit > PAGE_MAX ? PAGE_MAX : limit));
    buf_puts(&whole, path);
    client_query(&whole, "limit", bytes_str(number));
    client_query(&whole, "cursor", bytes_str(cursor));
    int code = client_get_list(client, whole.at, array, out);
    buf_free(&whole);
    return code;
}

int client_list(struct client *client, const char *path, const char *array, int64_t limit, const char *cursor,
                json_t **out)
{
    int code = get_page(client, path, array, limit, cursor, out);
    if (code != CLI_OK)
        return code;
    for (;;) {
        json_t *entries = json_object_get(*out, array);
        const char *next = json_string_value(json_object_get(*out, "next_cursor"));
        int64_t missing = limit - (int64_t)json_array_size(entries);
        if (!next || missing <= 0)
            return CLI_OK;
        json_t *page;
        code = get_page(client, path, array, missing, next, &page);
        if (code != CLI_OK) {
            json_decref(*out);
            return code;
        }
        json_array_extend(entries, json_object_get(page, array));
        json_object_set(*out, "next_cursor", json_object_get(page, "next_cursor"));
        json_decref(page);
    }
}

static void act_begin(struct client *client, const char *method)
{
    curl_easy_setopt(client->curl, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)ACT_TIMEOUT_MS);
}

static void act_end(struct client *client)
{
    curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, NULL);
    curl_easy_setopt(client->curl, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(client->curl, CURLOPT_TIMEOUT_MS, (long)TIMEOUT_MS);
}

static int act(struct client *client, const char *method, const char *path, json_t **out)
{
    act_begin(client, method);
    int code = client_get(client, path, out);
    act_end(client);
    return code;
}

int client_post_for(struct client *client, const char *path, const char *member_name, json_t **out)
{
    struct buf body = {0};
    long status = 0;
    act_begin(client, "POST");
    int code = perform(client, path, &body, &status);
    act_end(client);
    if (code == CLI_OK) {
        *out = json_loadb(body.at ? body.at : "", body.len, 0, NULL);
        if (!json_object_get(*out, member_name)) {
            code = status == 200 ? no_gateway(client) : refused(client, status, &body);
            json_decref(*out);
            *out = NULL;
        }
    }
    buf_free(&body);
    return code;
}

int client_post(struct client *client, const char *path, json_t **out)
{
    return act(client, "POST", path, out);
}

int client_patch(struct client *client, const char *path, json_t **out)
{
    return act(client, "PATCH", path, out);
}

int client_delete(struct client *client, const char *path, json_t **out)
{
    return act(client, "DELETE", path, out);
}
