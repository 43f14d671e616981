/* The http room answering every request at once with what ingest would say, without a store behind it: the
 * floor that durable ingest is measured against. Prints its address, ends on SIGTERM or SIGINT. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/http.h"

static void answer(void *ctx, const struct http_request *request)
{
    (void)ctx;
    static const char body[] = "{\"id\":\"01890a5d-ac96-774b-bcce-b302099a8057\",\"status\":\"accepted\"}";
    http_answer(request->exchange,
                &(struct http_answer){.status = 201, .body = bytes_of(body, sizeof body - 1)});
}

int main(int argc, char **argv)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL);

    const char *listen = "127.0.0.1:0";
    struct http_options options = {
        .listen = &listen,
        .listen_count = 1,
        .threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2,
        .name = "bare",
        .max_body_bytes = 25 << 20,
        .max_buffered_bytes = 256 << 20,
        .header_timeout_ms = 10000,
        .body_timeout_ms = 30000,
        .idle_timeout_ms = 60000,
        .max_connections = 10000,
        .handler = answer,
    };
    struct http_server *server;
    struct error err;
    if (http_open(&options, &server, &err) != STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    printf("%s\n", http_address(server, 0));
    fflush(stdout);
    int signal;
    sigwait(&set, &signal);
    http_drain(server);
    http_close(server);
    return 0;
}
