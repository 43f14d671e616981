/* Every refusal, and how it is written. */
#include "ingest/ingest_priv.h"

#include <inttypes.h>
#include <stdio.h>

#include "util/check.h"
#include "util/jsonw.h"

static const struct {
    const char *code;
    int status;
    int retry_after_s;
} rows[] = {
#define REFUSAL_ROW(id, code, status, retry) {code, status, retry},
    REFUSALS(REFUSAL_ROW)
#undef REFUSAL_ROW
};

const char *refusal_code(enum refusal refusal)
{
    return rows[refusal].code;
}

enum refusal refusal_of(enum status status)
{
    switch (status) {
    case STATUS_FULL:
        return REFUSE_OVERLOAD;
    case STATUS_SHARE_FULL:
        return REFUSE_TENANT_OVERLOAD;
    case STATUS_BACKLOG_FULL:
        return REFUSE_BACKLOG_FULL;
    case STATUS_DLQ_FULL:
        return REFUSE_DLQ_FULL;
    case STATUS_PEN_FULL:
        return REFUSE_QUARANTINE_FULL;
    case STATUS_DISK_FULL:
        return REFUSE_DISK_FULL;
    case STATUS_UNAVAILABLE:
        return REFUSE_STORE_UNAVAILABLE;
    case STATUS_DRAINING:
        return REFUSE_DRAINING;
    default:
        UNREACHABLE();
    }
}

void refusal_body(enum refusal refusal, const struct refusal_detail *detail, struct buf *out)
{
    struct jsonw w = jsonw_on(out);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "error", rows[refusal].code);
    if (detail && detail->value.at)
        jsonw_bytes_percent(&w, detail->name, detail->value);
    else if (detail && detail->name)
        jsonw_int(&w, detail->name, detail->number);
    jsonw_end_object(&w);
}

void refuse(struct http_exchange *exchange, enum refusal refusal, const struct refusal_detail *detail)
{
    struct buf body = {0};
    refusal_body(refusal, detail, &body);
    struct http_header headers[2];
    size_t count = 0;
    char seconds[24];
    int64_t retry_after_s =
        detail && detail->retry_after_s ? detail->retry_after_s : rows[refusal].retry_after_s;
    if (retry_after_s) {
        snprintf(seconds, sizeof seconds, "%" PRId64, retry_after_s);
        headers[count++] = (struct http_header){BYTES("retry-after"), bytes_str(seconds)};
    }
    if (refusal == REFUSE_METHOD_NOT_ALLOWED)
        headers[count++] = (struct http_header){BYTES("allow"), BYTES("POST")};
    http_answer(exchange, &(struct http_answer){.status = rows[refusal].status,
                                                .body = buf_bytes(&body),
                                                .headers = headers,
                                                .header_count = count,
                                                .close = refusal == REFUSE_DRAINING});
    buf_free(&body);
}
