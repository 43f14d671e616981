/* How fast is a walk beside jansson's decode?
 *
 *     bench_json_walk [FILE...]
 *
 * Without files it measures three bodies of its own: GitHub-like ones (objects in objects, many URLs), one
 * large flat body, and the flat one indented. A file is one JSON body, or a list of them, one a line. Prints
 * MB/s of both and the ratio. */
#include <stdio.h>
#include <stdlib.h>

#include "util/buf.h"
#include "util/check.h"
#include "util/clock.h"
#include "util/vec.h"
#include "json/json.h"
#include "json/tree.h"

enum { MEASURE_MS = 700 };

struct bodies {
    struct bytes *at;
    size_t len, size;
    size_t total;
};

static void add_body(struct bodies *bodies, struct bytes body)
{
    char *copy = mem_alloc(body.len);
    memcpy(copy, body.at, body.len);
    VEC_PUSH(bodies, bytes_of(copy, body.len));
    bodies->total += body.len;
}

static void free_bodies(struct bodies *bodies)
{
    VEC_EACH (body, bodies)
        free((void *)body->at);
    VEC_FREE(bodies);
    bodies->total = 0;
}

static void add_account(struct buf *out, const char *name, int n)
{
    static const char *const links[] = {"followers", "following",       "gists",
                                        "starred",   "subscriptions",   "repos",
                                        "events",    "received_events", "orgs"};
    buf_putf(out, "\"%s\":{\"login\":\"octo-user-%d\",\"id\":%d,\"node_id\":\"MDQ6VXNlcjIxMDMxMDY3\"", name,
             n, 21031067 + n);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        buf_putf(out, ",\"%s_url\":\"https://api.github.example/users/octo-user-%d/%s\"", links[i], n,
                 links[i]);
    buf_puts(out, ",\"type\":\"User\",\"site_admin\":false}");
}

/* About 12 KB: the proportions of a GitHub "issues" hook. */
static void add_github_like(struct bodies *bodies, int n)
{
    struct buf out = {0};
    buf_putf(
        &out,
        "{\"action\":\"edited\",\"issue\":{\"number\":%d,\"title\":\"Spelling error in the README file\",",
        n);
    add_account(&out, "user", n);
    buf_puts(&out,
             ",\"labels\":[{\"id\":1362934389,\"name\":\"bug\",\"color\":\"d73a4a\",\"default\":true}],"
             "\"state\":\"open\",\"locked\":false,\"assignee\":null,\"comments\":0,"
             "\"created_at\":\"2019-05-15T15:20:18Z\",\"body\":\"It looks like you accidentally spelled "
             "\\\"commit\\\" with two \\\"t\\\"s.\\r\\n\"},\"repository\":{");
    for (int i = 0; i < 40; i++)
        buf_putf(&out,
                 "\"resource_%d_url\":\"https://api.github.example/repos/octo-user/hello-world/%d{/sha}\",",
                 i, i);
    for (int i = 0; i < 12; i++)
        buf_putf(&out, "\"count_%d\":%d,\"has_%d\":%s,\"field_%d\":null,", i, i * 977, i,
                 i & 1 ? "true" : "false", i);
    add_account(&out, "owner", n + 1);
    buf_puts(&out, ",\"full_name\":\"octo-user/hello-world\"},");
    add_account(&out, "sender", n + 2);
    buf_puts(&out, "}");
    add_body(bodies, buf_bytes(&out));
    buf_free(&out);
}

/* 8 MB of members side by side, the wanted one last. */
static void add_flat(struct bodies *bodies, const char *gap)
{
    struct buf out = {0};
    buf_puts(&out, "{");
    for (int i = 0; out.len < 8 << 20; i++)
        buf_putf(&out, "%s\"field_%d\": \"some ordinary text of a usual length, number %d\",%s\"n%d\": %d,",
                 gap, i, i, gap, i, i);
    buf_putf(&out, "%s\"id\": \"cus_1\"}", gap);
    add_body(bodies, buf_bytes(&out));
    buf_free(&out);
}

static double walk_rate(const struct bodies *bodies, const struct json_paths *paths)
{
    struct json_found found[8];
    CHECK(!paths || json_paths_count(paths) <= 8);
    size_t bytes = 0;
    int64_t start = clock_mono_us(), us;
    do {
        for (size_t i = 0; i < bodies->len; i++)
            CHECK(json_walk(bodies->at[i], paths, found));
        bytes += bodies->total;
    } while ((us = clock_mono_us() - start) < MEASURE_MS * 1000);
    return (double)bytes / (double)us;
}

static double jansson_rate(const struct bodies *bodies)
{
    size_t bytes = 0;
    int64_t start = clock_mono_us(), us;
    do {
        for (size_t i = 0; i < bodies->len; i++) {
            json_t *tree = json_loadb(bodies->at[i].at, bodies->at[i].len,
                                      JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
            CHECK(tree);
            json_decref(tree);
            bytes += bodies->at[i].len;
        }
    } while ((us = clock_mono_us() - start) < MEASURE_MS * 1000);
    return (double)bytes / (double)us;
}

static void measure(const char *name, const struct bodies *bodies)
{
    static const char *const wanted[] = {"id", "action", "repository.full_name", "issue.labels.0.name"};
    struct bytes segments[4][JSON_PATH_SEGMENTS_MAX];
    struct json_path paths[4];
    for (size_t i = 0; i < 4; i++) {
        paths[i].segments = segments[i];
        CHECK(json_path_split(bytes_str(wanted[i]), segments[i], &paths[i].segment_count, NULL) == STATUS_OK);
    }
    struct json_paths *prepared = json_paths_new(paths, 4);
    double bare = walk_rate(bodies, NULL), walk = walk_rate(bodies, prepared), jansson = jansson_rate(bodies);
    printf("%-24s %8.2f MB  walk %6.0f MB/s  (validation only %6.0f)  jansson %4.0f MB/s  ratio %.1f\n", name,
           (double)bodies->total / 1e6, walk, bare, jansson, walk / jansson);
    json_paths_free(prepared);
}

/* Lines that are JSON on their own are bodies each; else the file is one. */
static void add_file(struct bodies *bodies, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    struct buf text = {0};
    char chunk[65536];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        buf_put(&text, chunk, n);
    fclose(file);
    struct bytes all = buf_bytes(&text);
    const char *line = memchr(all.at, '\n', all.len);
    if (line && json_walk(bytes_of(all.at, (size_t)(line - all.at)), NULL, NULL)) {
        for (const char *at = all.at, *end = at + all.len; at < end; at = line + 1) {
            line = memchr(at, '\n', (size_t)(end - at));
            line = line ? line : end;
            if (json_walk(bytes_of(at, (size_t)(line - at)), NULL, NULL))
                add_body(bodies, bytes_of(at, (size_t)(line - at)));
        }
    } else if (json_walk(all, NULL, NULL)) {
        add_body(bodies, all);
    }
    buf_free(&text);
}

int main(int argc, char **argv)
{
    struct bodies bodies = {0};
    for (int i = 1; i < argc; i++) {
        add_file(&bodies, argv[i]);
        if (bodies.len)
            measure(argv[i], &bodies);
        else
            printf("%s: no JSON in it\n", argv[i]);
        free_bodies(&bodies);
    }
    if (argc > 1)
        return 0;

    for (int i = 0; i < 100; i++)
        add_github_like(&bodies, i);
    measure("github-like", &bodies);
    free_bodies(&bodies);
    add_flat(&bodies, "");
    measure("flat", &bodies);
    free_bodies(&bodies);
    add_flat(&bodies, "\n        ");
    measure("flat, indented", &bodies);
    free_bodies(&bodies);
    return 0;
}
