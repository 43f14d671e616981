/* lanegate init: a folder that works at once: a configuration, a key module with its spec, a signed request.
 * The modules, specs and payloads are the ones of lua/keys and spec/keys, so what is written here was tested
 * there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/init_files.h"
#include "envelope/raw.h"
#include "util/check.h"
#include "util/digest.h"
#include "util/mem.h"
#include "util/uuid.h"

/* How a provider signs: what is fed to HMAC-SHA256, and how the result stands in the header. */
enum signing { SIGN_STRIPE, SIGN_GITHUB, SIGN_SHOPIFY };

struct provider {
    const char *name, *variable; /* of the secret */
    const char *call;            /* in keys.NAME */
    const char *payload;         /* the one that becomes the sample */
    const char *header;          /* of the signature */
    enum signing signing;
    const char *sign; /* shell: from $secret and the file $body to $signature */
};

static const struct provider providers[] = {
    {"stripe", "STRIPE_WHSEC", "by_customer", "stripe_invoice_paid", "Stripe-Signature", SIGN_STRIPE,
     "now=$(date +%s)\n"
     "signature=t=$now,v1=$({ printf '%s.' \"$now\"; cat \"$body\"; } | openssl dgst -sha256 -hmac "
     "\"$secret\" -r | cut -d' ' -f1)\n"},
    {"github", "GITHUB_SECRET", "by_repository", "github_push", "X-Hub-Signature-256", SIGN_GITHUB,
     "signature=sha256=$(openssl dgst -sha256 -hmac \"$secret\" -r \"$body\" | cut -d' ' -f1)\n"},
    {"shopify", "SHOPIFY_SECRET", "by_order", "shopify_order_create", "X-Shopify-Hmac-Sha256", SIGN_SHOPIFY,
     "signature=$(openssl dgst -sha256 -hmac \"$secret\" -binary \"$body\" | base64)\n"},
};
enum { PROVIDER_COUNT = sizeof providers / sizeof providers[0] };

/* ---- files ---- */

struct writing {
    const char *folder;
    int code;
};

static void make_folders(const char *path)
{
    char *copy = mem_format("%s", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(copy, 0777); /* one that can't be made is found out when the file is written */
        *slash = '/';
    }
    free(copy);
}

/* Never over a file that is there. */
static void put_file(struct writing *writing, const char *name, struct bytes text, mode_t mode)
{
    if (writing->code != CLI_OK)
        return;
    char *path = mem_format("%s/%s", writing->folder, name);
    make_folders(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    if (fd >= 0)
        written = close(fd) == 0 && written;
    if (written) {
        printf("%s\n", path);
    } else {
        fprintf(stderr, "lanegate init: can't write %s: %s%s\n", path, strerror(errno),
                errno == EEXIST ? "; nothing is written over: choose another folder" : "");
        writing->code = CLI_FAILED;
    }
    free(path);
}

static const struct script_embedded *file_named(const char *name)
{
    for (const struct script_embedded *file = init_files; file->module; file++)
        if (strcmp(file->module, name) == 0)
            return file;
    return NULL;
}

/* ---- what is made anew ---- */

static void random_secret(char secret[33])
{
    struct uuid a = uuid_new(0), b = uuid_new(0);
    uint8_t digest[SHA256_SIZE];
    struct bytes parts[] = {bytes_of(a.bytes + 6, 10), bytes_of(b.bytes + 6, 10)};
    sha256(parts, 2, digest);
    hex_encode(digest, 16, secret);
}

static void put_config(struct buf *out, const struct provider *provider, const char *secret)
{
    buf_putf(
        out,
        "-- Made by `lanegate init`. It runs as it is:  lanegate serve\n"
        "-- `lanegate check` says what is wrong with this file, `lanegate reload` puts a changed one in "
        "force.\n"
        "return {\n"
        "  data_dir = \"data\",\n"
        "  http = { listen = \"127.0.0.1:4000\" }, -- POST /webhooks/%s\n"
        "  admin = { listen = \"127.0.0.1:4002\" }, -- lanegate lanes, lanegate hooks list ...\n"
        "\n"
        "  sources = {\n"
        "    %s = {\n"
        "      -- The second is a secret to try things with; the provider's own comes from the environment.\n"
        "      verify = { type = \"%s\", secret = env(\"%s\", \"%s\") },\n"
        "      sinks = {\n"
        "        -- A line in the log for each hook. Your service in its place:\n"
        "        --   { type = \"http\", name = \"app\", url = \"https://app.example.com/hooks\", ordered = "
        "true, ... },\n"
        "        { type = \"log\", name = \"app\", ordered = true,\n"
        "          ordering_key = { \"keys.%s\", \"%s\" } }, -- lua/keys/%s.lua\n"
        "      },\n"
        "    },\n"
        "  },\n"
        "}\n",
        provider->name, provider->name, provider->name, provider->variable, secret, provider->name,
        provider->call, provider->name);
}

static void put_signature(struct buf *out, const struct provider *provider, const char *secret,
                          struct bytes body)
{
    char now[24], hex[2 * SHA256_SIZE + 1];
    uint8_t mac[SHA256_SIZE];
    snprintf(now, sizeof now, "%lld", (long long)time(NULL));
    struct bytes stamped[] = {bytes_str(now), BYTES("."), body};
    bool stripe = provider->signing == SIGN_STRIPE;
    hmac_sha256(bytes_str(secret), stripe ? stamped : &body, stripe ? 3 : 1, mac);
    hex_encode(mac, sizeof mac, hex);
    if (stripe)
        buf_putf(out, "t=%s,v1=%s", now, hex);
    else if (provider->signing == SIGN_GITHUB)
        buf_putf(out, "sha256=%s", hex);
    else
        base64_encode(out, bytes_of(mac, sizeof mac));
}

/* The payload's request with a signature of now. */
static void put_sample(struct buf *out, const struct provider *provider, const char *secret,
                       const struct envelope *payload)
{
    buf_putf(out, "POST /webhooks/%s HTTP/1.1\r\nHost: 127.0.0.1:4000\r\n", provider->name);
    for (size_t i = 0; i < payload->header_count; i++) {
        struct bytes name = payload->headers[i].name;
        if (bytes_eq_nocase(name, BYTES("host")) || bytes_eq_nocase(name, BYTES("content-length")) ||
            bytes_eq_nocase(name, bytes_str(provider->header)))
            continue;
        buf_putf(out, "%.*s: %.*s\r\n", BYTES_ARG(name), BYTES_ARG(payload->headers[i].value));
    }
    buf_putf(out, "%s: ", provider->header);
    put_signature(out, provider, secret, payload->body);
    buf_putf(out, "\r\nContent-Length: %zu\r\n\r\n", payload->body.len);
    buf_putb(out, payload->body);
}

/* A script that signs and sends the sample anew, as often as one likes. */
static void put_sender(struct buf *out, const struct provider *provider, const char *secret,
                       const struct envelope *payload)
{
    buf_putf(out,
             "#!/bin/sh\n"
             "# Signs the sample's body as the provider does, and posts it.\n"
             "set -eu\n"
             "cd \"$(dirname \"$0\")\"\n"
             "secret=${%s:-%s}\n"
             "body=$(mktemp)\n"
             "trap 'rm -f \"$body\"' EXIT\n"
             "sed '1,/^\\r$/d' sample.http >\"$body\"\n"
             "%s"
             "curl -sS -w '\\n' \"${1:-http://127.0.0.1:4000}/webhooks/%s\" --data-binary @\"$body\" \\\n",
             provider->variable, secret, provider->sign, provider->name);
    for (size_t i = 0; i < payload->header_count; i++) {
        struct bytes name = payload->headers[i].name;
        if (bytes_starts_nocase(name, BYTES("x-")) || bytes_eq_nocase(name, BYTES("content-type")))
            if (!bytes_eq_nocase(name, bytes_str(provider->header)))
                buf_putf(out, "  -H '%.*s: %.*s' \\\n", BYTES_ARG(name),
                         BYTES_ARG(payload->headers[i].value));
    }
    buf_putf(out, "  -H \"%s: $signature\"\n", provider->header);
}

/* ---- the verb ---- */

static void put_tested(struct writing *writing, const struct provider *provider)
{
    for (const struct script_embedded *file = init_files; file->module; file++) {
        const char *base = strrchr(file->module, '/') + 1;
        size_t len = strlen(provider->name);
        if (strncmp(base, provider->name, len) == 0 && (base[len] == '_' || base[len] == '.'))
            put_file(writing, file->module, bytes_of(file->text, file->len), 0666);
    }
}

static int make(const struct provider *provider, const char *folder)
{
    char secret[33];
    random_secret(secret);
    char *name = mem_format("spec/keys/payloads/%s.http", provider->payload);
    const struct script_embedded *file = file_named(name);
    struct envelope *payload = NULL;
    struct error err;
    struct buf config = {0}, sample = {0}, sender = {0};
    CHECK(file && envelope_from_raw(bytes_of(file->text, file->len), &payload, &err) == STATUS_OK);
    put_config(&config, provider, secret);
    put_sample(&sample, provider, secret, payload);
    put_sender(&sender, provider, secret, payload);

    struct writing writing = {.folder = folder};
    put_file(&writing, "config.lua", buf_bytes(&config), 0666);
    put_tested(&writing, provider);
    put_file(&writing, "sample.http", buf_bytes(&sample), 0666);
    put_file(&writing, "send-sample", buf_bytes(&sender), 0777);
    if (writing.code == CLI_OK)
        fprintf(stderr,
                "\nnow, in %s:\n"
                "  lanegate check                                        is the configuration right?\n"
                "  lanegate spec                                         do the specs of the key hold?\n"
                "  lanegate key --source %s --hook sample.http%*s which lane would this hook take?\n"
                "  lanegate serve                                        and then, in another terminal: "
                "./send-sample\n",
                folder, provider->name, (int)(15 - strlen(provider->name)), "");
    envelope_unref(payload);
    buf_free(&config);
    buf_free(&sample);
    buf_free(&sender);
    free(name);
    return writing.code;
}

static int run(int argc, char **argv)
{
    const char *source = NULL, *folder = ".";
    const struct arg args[] = {{"source", ARG_TEXT, {.text = &source}}, {0}};
    size_t count;
    int code = cli_args(&verb_init, argc, argv, args, &folder, 1, &count);
    if (code != CLI_OK)
        return code;
    if (!count)
        folder = ".";
    if (!*folder)
        return cli_usage(&verb_init, "the folder's name is empty; \".\" is here");
    for (size_t i = 0; source && i < PROVIDER_COUNT; i++)
        if (strcmp(providers[i].name, source) == 0)
            return make(&providers[i], folder);
    return cli_usage(&verb_init, "--source must be one of stripe, github and shopify, got %s",
                     source ? source : "nothing");
}

const struct cli_verb verb_init = {
    .name = "init",
    .summary = "writes a configuration, a key module with its spec, and a signed request, ready to try",
    .help = "usage: lanegate init --source stripe|github|shopify [DIR]\n"
            "\n"
            "Writes into DIR (default: here) what works at once: config.lua with a source of that provider "
            "and one ordered\n"
            "sink, lua/keys/NAME.lua with its key function, spec/keys with the function's spec and real "
            "payloads,\n"
            "sample.http with a signed request, and send-sample, which signs and posts it anew. No file is "
            "written over.\n"
            "\n"
            "  --source NAME   stripe, github or shopify\n"
            "\n"
            "example:\n"
            "  lanegate init --source stripe hooks && cd hooks && lanegate spec && lanegate serve\n",
    .run = run,
};
