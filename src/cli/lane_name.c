#include "cli/lane_name.h"

#include <stdlib.h>

#include "util/jsonw.h"
#include "util/mem.h"

bool lane_name_parse(const char *text, struct lane_name *out)
{
    *out = (struct lane_name){0};
    const char *slash = strchrnul(text, '/');
    out->source = mem_format("%.*s", (int)(slash - text), text);
    bool good = *out->source != 0;
    if (*slash) {
        const char *sink = slash + 1;
        slash = strchrnul(sink, '/');
        out->sink = mem_format("%.*s", (int)(slash - sink), sink);
        good = good && *out->sink;
    }
    if (out->sink && *slash) {
        out->has_key = true;
        good = good && percent_decode(&out->key, bytes_str(slash + 1));
    }
    if (!good)
        lane_name_free(out);
    return good;
}

void lane_name_free(struct lane_name *name)
{
    free(name->source);
    free(name->sink);
    buf_free(&name->key);
    *name = (struct lane_name){0};
}
