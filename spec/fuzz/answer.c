/* Answers that no receiver meant to give: known ones cut, doubled, mixed and with bytes changed. However the
 * bytes are cut into pieces, the reader says the same; it never looks beyond a piece (each has memory of its
 * own, for the address sanitizer), and it stops by its bound.
 *
 *     fuzz_answer SEED SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deliver/sinks/http_priv.h"
#include "random.h"
#include "util/clock.h"
#include "util/mem.h"

enum { TEXT_MAX = 4096 };

static const char *const starts[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.0 200\r\n", "HTTP/1.1 503 X\n",
                                     "HTTP/1.1 204 X\r\n", "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 201 X\r\n"};
static const char *const lines[] = {"Content-Length: 3\r\n",
                                    "Content-Length: 0\r\n",
                                    "content-length:18446744073709551616\r\n",
                                    "Content-Length: 3, 3\r\n",
                                    "Transfer-Encoding: chunked\r\n",
                                    "Transfer-Encoding: gzip,chunked\n",
                                    "Transfer-Encoding: x\r\n",
                                    "Retry-After: 5\r\n",
                                    "Retry-After: Fri, 31 Dec 2027 23:59:59 GMT\r\n",
                                    "Connection: close\r\n",
                                    "Transfer-Encoding : chunked\r\n",
                                    "Content-Length: 3\r\n 0\r\n",
                                    "X: y\rContent-Length: 3\r\n",
                                    "Connection: keep-alive, x\r\n",
                                    " folded\r\n"};
static const char *const bodies[] = {"abc",
                                     "3\r\nabc\r\n",
                                     "3;x=\"y\"\r\nabc\r\n",
                                     "0\r\n\r\n",
                                     "0\r\nA: b\r\n\r\n",
                                     "\n",
                                     "fffffffffffffff\r\n",
                                     ":",
                                     "\r\n"};
#define ANY_OF(dice, list) (list)[random_below(dice, sizeof(list) / sizeof *(list))]

static size_t make(struct random *dice, char text[TEXT_MAX])
{
    char *end = stpcpy(text, ANY_OF(dice, starts));
    for (size_t i = random_below(dice, 4); i > 0; i--)
        end = stpcpy(end, ANY_OF(dice, lines));
    end = stpcpy(end, "\r\n");
    for (size_t i = random_below(dice, 5); i > 0; i--)
        end = stpcpy(end, ANY_OF(dice, bodies));
    size_t len = (size_t)(end - text);
    for (size_t changes = random_below(dice, 3); changes > 0; changes--) {
        size_t at = random_below(dice, len);
        if (random_below(dice, 2))
            text[at] = (char)random_below(dice, 256);
        else
            memmove(text + at, text + at + 1, --len - at);
    }
    return len;
}

struct verdict {
    enum answer_state state, at_end;
    int status;
    bool keeps, has_retry_after;
    size_t response_len;
    char response[SINK_RESPONSE_KEPT];
};

/* `dice` NULL: as one piece. */
static void judge(struct answer *answer, const char *text, size_t len, struct random *dice,
                  struct verdict *verdict)
{
    static struct http_seen seen;
    memset(&seen, 0, sizeof seen);
    answer_begin(answer);
    enum answer_state state = ANSWER_GOES_ON;
    size_t at = 0;
    while (state == ANSWER_GOES_ON && at < len) {
        size_t size = dice ? 1 + random_below(dice, len - at < 40 ? len - at : 40) : len;
        char *piece = mem_alloc(size);
        memcpy(piece, text + at, size);
        state = answer_take(answer, &seen, bytes_of(piece, size));
        free(piece);
        at += size;
    }
    memset(verdict, 0, sizeof *verdict);
    verdict->state = state;
    verdict->at_end = state == ANSWER_GOES_ON ? answer_end(answer) : state;
    verdict->status = answer->status;
    verdict->keeps = state == ANSWER_COMPLETE && answer->keeps && at == len; /* what is left ends it too */
    verdict->has_retry_after = seen.has_retry_after;
    verdict->response_len = seen.response_len;
    memcpy(verdict->response, seen.response, seen.response_len);
}

int main(int argc, char **argv)
{
    struct random dice = {.state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
    int64_t until_ms = clock_mono_ms() + (argc > 2 ? atoi(argv[2]) : 10) * 1000L;
    static char text[TEXT_MAX];
    static struct verdict whole, pieces;
    struct answer answer = {0};
    size_t count = 0, complete = 0;
    for (; count % 1024 || clock_mono_ms() < until_ms; count++) {
        size_t len = make(&dice, text);
        judge(&answer, text, len, NULL, &whole);
        judge(&answer, text, len, &dice, &pieces);
        complete += whole.state == ANSWER_COMPLETE;
        if (memcmp(&whole, &pieces, sizeof whole) != 0) {
            printf("read in pieces it is another answer (state %d and %d, status %d and %d):\n%.*s\n",
                   whole.state, pieces.state, whole.status, pieces.status, (int)len, text);
            return 1;
        }
    }
    answer_free(&answer);
    printf("%zu answers, %zu of them complete\n", count, complete);
    return complete == 0; /* else nothing was tried */
}
