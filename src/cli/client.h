/* Asks the admin API of a running gateway, one blocking request at a time. Whatever goes wrong is said on
 * stderr in a line that names the address and what to do; the functions give the verb's exit code. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/args.h"
#include "util/buf.h"
#include "json/tree.h"

/* Where the gateway is, as every client verb may be told; NULL: not said. */
struct client_where {
    const char *admin;  /* --admin URL */
    const char *config; /* --config FILE */
};

/* Rows for the verb's table of options, and lines for its help. */
#define CLIENT_ARGS(where)                                                                                   \
    {"admin", ARG_TEXT, {.text = &(where).admin}},                                                           \
    {                                                                                                        \
        "config", ARG_TEXT,                                                                                  \
        {                                                                                                    \
            .text = &(where).config                                                                          \
        }                                                                                                    \
    }
#define CLIENT_HELP                                                                                          \
    "  --admin URL      the gateway's admin address; default: LANEGATE_ADMIN, else what the\n"               \
    "                   configuration says as admin.listen\n"                                                \
    "  --config FILE    that configuration; default: ./config.lua, then /etc/lanegate/config.lua\n"          \
    "\n"                                                                                                     \
    "LANEGATE_TOKEN holds the token, where the gateway asks for one.\n"

struct client;

/* CLI_OK; CLI_USAGE for a URL that is none; CLI_BAD_CONFIG for a configuration that does not load. Nothing is
 * sent yet. `verb` is named in messages. */
int client_open(const struct cli_verb *verb, const struct client_where *where, struct client **out);
void client_close(struct client *client); /* NULL is fine */

/* Is a gateway there? Says nothing. */
bool client_answers(struct client *client);

/* GET of a path with its query. CLI_OK with the decoded answer (json_decref it); CLI_UNREACHABLE; CLI_USAGE
 * when the gateway refused a filter; CLI_FAILED for every other refusal. */
int client_get(struct client *client, const char *path, json_t **out);
/* The same of an answer that holds a list, its member `array`; CLI_FAILED when it does not. */
int client_get_list(struct client *client, const char *path, const char *array, json_t **out);
/* The same, bytes as they are. `out` is cleared first. */
int client_get_bytes(struct client *client, const char *path, struct buf *out);

/* GET of an answer that goes on: `line` sees each line of it, without its end, until it says false, the
 * answer ends (CLI_OK) or nothing came for half a minute (CLI_UNREACHABLE). Not said on stderr when `quietly`
 * and the gateway is only away. */
int client_stream(struct client *client, const char *path, bool quietly,
                  bool (*line)(void *ctx, struct bytes line), void *ctx);

/* POST, with everything in the path's query. */
int client_post(struct client *client, const char *path, json_t **out);
/* The same, of an answer of any status, as long as it has that member: CLI_OK with it. */
int client_post_for(struct client *client, const char *path, const char *member, json_t **out);
int client_patch(struct client *client, const char *path, json_t **out);
int client_delete(struct client *client, const char *path, json_t **out);

/* A list, page after page until it has `limit` entries of member `array` or ends: one document in the API's
 * shape, with the next_cursor behind its last page. `path` has no limit and no cursor of its own. */
int client_list(struct client *client, const char *path, const char *array, int64_t limit, const char *cursor,
                json_t **out);

/* Adds "?name=value" or "&name=value", URL-encoded; nothing when the value is absent. */
void client_query(struct buf *path, const char *name, struct bytes value);

/* --- pure, for client_open --- */

/* "http://host:port", "https://host/behind" or "host:port" to a URL without a slash at its end; false when it
 * is none of them. */
bool client_url_from_text(const char *text, struct buf *url);
/* admin.listen to a URL that reaches it from this machine: a wildcard address becomes the loopback one. */
void client_url_from_listen(const char *listen, struct buf *url);

#endif
