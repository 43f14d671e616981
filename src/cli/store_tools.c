#include "cli/store_tools.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/config_file.h"
#include "cli/grid.h"
#include "order/order.h"
#include "util/mem.h"
#include "util/units.h"

int store_place_of(const char *named, const char *config_path, struct store_place *out)
{
    *out = (struct store_place){.dir = named ? mem_strdup(named) : NULL, .min_free_bytes = 1LL << 30};
    if (named && !config_path)
        return CLI_OK;
    struct config *config;
    int code = config_file_load(config_path, CONFIG_CLIENT, &config);
    if (code != CLI_OK)
        return code;
    if (!named)
        out->dir = mem_strdup(config->data_dir);
    out->min_free_bytes = config->store.min_free_bytes;
    config_unref(config);
    return CLI_OK;
}

void store_place_free(struct store_place *place)
{
    free(place->dir);
}

/* ---- watching ---- */

static volatile sig_atomic_t interrupted;
static bool on_screen;

static void interrupt(int signal)
{
    (void)signal;
    interrupted = 1;
}

static bool show_step(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    (void)ctx;
    if (isatty(STDERR_FILENO)) {
        on_screen = true;
        if (total)
            fprintf(stderr, "\r\x1b[K%s: %d%%", what, (int)(100.0 * (double)done / (double)total));
        else
            fprintf(stderr, "\r\x1b[K%s", what);
        fflush(stderr);
    }
    return !interrupted;
}

struct store_watch store_watch_terminal(void)
{
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND}; /* a second one ends it */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return (struct store_watch){.step = show_step};
}

void store_watch_over(void)
{
    if (on_screen)
        fputs("\r\x1b[K", stderr);
    on_screen = false;
}

/* ---- judging ---- */

void store_lane(struct bytes source, struct bytes sink, struct bytes key, uint8_t lane[16])
{
    struct lane_id id = lane_id_of(source, sink, key);
    memcpy(lane, id.bytes, sizeof id.bytes);
}

static void take_fault(void *ctx, const struct store_fault *fault)
{
    struct store_faults *faults = ctx;
    if (!faults->json) {
        struct buf line = {0};
        buf_putf(&line, "%s: %s; expected: %s. To do: %s", fault->what, fault->found, fault->expected,
                 fault->action);
        store_watch_over();
        print_harmless(stderr, line.at);
        fputc('\n', stderr);
        buf_free(&line);
        return;
    }
    struct jsonw w = jsonw_on(&faults->text);
    w.need_comma = faults->text.len > 0;
    jsonw_object(&w, NULL);
    jsonw_str(&w, "fault", fault->what);
    jsonw_str(&w, "found", fault->found);
    jsonw_str(&w, "expected", fault->expected);
    jsonw_str(&w, "action", fault->action);
    jsonw_end_object(&w);
}

struct store_judge store_judge_for(struct store_faults *faults)
{
    return (struct store_judge){
        .fault = take_fault, .ctx = faults, .lane_of = store_lane, .watch = store_watch_terminal()};
}

int store_failed(enum status status, const struct error *err)
{
    store_watch_over();
    fputs("lanegate store: ", stderr);
    print_harmless(stderr, *err->text ? err->text : status_text(status));
    fputc('\n', stderr);
    return CLI_FAILED;
}

/* ---- JSON ---- */

void store_write_id(struct jsonw *w, const char *name, const struct uuid *id)
{
    char text[UUID_TEXT];
    uuid_format(id, text);
    jsonw_str(w, name, text);
}

void store_write_time(struct jsonw *w, const char *name, int64_t unix_ms)
{
    if (unix_ms)
        jsonw_int(w, name, unix_ms);
    else
        jsonw_null(w, name);
}
