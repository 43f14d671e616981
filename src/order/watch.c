/* Telling people that a key is configured wrong. */
#include "order/order.h"

bool order_watch_hook(struct order_watch *watch, const struct order_lane *lane)
{
    if (lane->filtered || atomic_load(&watch->seen) >= ORDER_WATCH_HOOKS)
        return false;
    if (atomic_fetch_add(&watch->seen, 1) >= ORDER_WATCH_HOOKS || lane->missing == MISSING_NOTHING)
        return false;
    return atomic_fetch_add(&watch->missing, 1) + 1 == ORDER_WATCH_HOOKS / 2;
}

void key_spec_describe(const struct key_spec *spec, struct buf *out)
{
    switch (spec->kind) {
    case KEY_HEADER:
        buf_putf(out, "header \"%.*s\"", BYTES_ARG(spec->header));
        break;
    case KEY_HEADERS:
        buf_puts(out, "headers");
        for (size_t i = 0; i < spec->header_count; i++)
            buf_putf(out, " \"%.*s\"", BYTES_ARG(spec->headers[i]));
        break;
    case KEY_JSON:
        buf_puts(out, "json \"");
        for (size_t i = 0; i < spec->path.segment_count; i++)
            buf_putf(out, "%s%.*s", i ? "." : "", BYTES_ARG(spec->path.segments[i]));
        buf_puts(out, "\"");
        break;
    case KEY_SCRIPT:
        buf_putf(out, "lua %s.%s", spec->module, spec->function);
        break;
    case KEY_FIRST:
        buf_puts(out, "first of ");
        for (size_t i = 0; i < spec->item_count; i++) {
            buf_puts(out, i ? ", " : "");
            key_spec_describe(&spec->items[i], out);
        }
        break;
    }
}

const char *order_lane_instead(const struct order_lane *lane)
{
    switch (lane->missing) {
    case MISSING_NO_HEADER:
        return "no such header";
    case MISSING_EMPTY:
        return "an empty string";
    case MISSING_NOT_JSON:
        return "a body that is not JSON";
    case MISSING_TOO_LARGE:
        return "a body over ordering.max_body_bytes";
    case MISSING_NO_PATH:
        return "nothing";
    case MISSING_NOT_STRING:
        return lane->found == JSON_KIND_STRING ? "a string with half of a surrogate pair"
                                               : json_kind_name(lane->found);
    case MISSING_SCRIPT_ERROR:
        return "an error of the script";
    case MISSING_SCRIPT_BREACH:
        return "a script over its budget";
    case MISSING_SCRIPT_TYPE:
        return "a result that is not a string";
    default:
        return "a key";
    }
}
