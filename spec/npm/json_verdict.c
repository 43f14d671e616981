/* Is a body JSON, and which lane key stands at a path of it? Reads "PATH_BYTES BODY_BYTES\n", the path and
 * the body, as often as they come, and answers each with a line: {"json":true,"found":"a
 * string","key":"cus_1"}. The key is null where it is missing; "refused" says that the path itself is wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "order/order.h"
#include "util/jsonw.h"
#include "util/mem.h"
#include "json/json.h"

enum { PART_MAX_BYTES = 64 << 20 };

static struct bytes read_part(size_t len)
{
    char *at = mem_alloc(len + 1);
    if (fread(at, 1, len, stdin) != len) {
        fputs("json_verdict: the input ends in the middle\n", stderr);
        exit(1);
    }
    return bytes_of(at, len);
}

static void write_key(struct jsonw *w, const struct json_found *found)
{
    struct bytes key = BYTES_NONE;
    struct arena *arena = arena_new(found->raw.len + 256);
    if (found->kind == JSON_KIND_STRING && !found->lone_surrogate && found->raw.len > 0) {
        char *text = arena_alloc(arena, found->raw.len);
        key = order_key_stamp(bytes_of(text, json_string_decode(found, text)), arena);
    }
    jsonw_bytes(w, "key", key);
    arena_free(arena);
}

static void judge(struct bytes path, struct bytes body, struct jsonw *w)
{
    struct bytes segments[JSON_PATH_SEGMENTS_MAX];
    struct json_path one = {.segments = segments};
    bool refused = path.len > 0 && json_path_split(path, segments, &one.segment_count, NULL) != STATUS_OK;
    struct json_paths *paths = json_paths_new(&one, 1);
    struct json_found found;
    bool is_json = json_walk(body, paths, &found);
    json_paths_free(paths);

    jsonw_object(w, NULL);
    jsonw_bool(w, "json", is_json);
    if (refused) {
        jsonw_bool(w, "refused", true);
    } else {
        jsonw_str(w, "found", json_kind_name(found.kind));
        write_key(w, &found);
    }
    jsonw_end_object(w);
}

int main(void)
{
    struct buf line = {0};
    size_t path_len, body_len;
    while (scanf("%zu %zu", &path_len, &body_len) == 2 && getchar() == '\n' && path_len <= PART_MAX_BYTES &&
           body_len <= PART_MAX_BYTES) {
        struct bytes path = read_part(path_len), body = read_part(body_len);
        buf_clear(&line);
        struct jsonw w = jsonw_on(&line);
        judge(path, body, &w);
        puts(line.at);
        free((void *)path.at);
        free((void *)body.at);
    }
    buf_free(&line);
    return feof(stdin) ? 0 : 1;
}
