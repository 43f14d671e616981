/* lanegate store backup: one file that is the whole store. */
#include <stdio.h>
#include <sys/resource.h>

#include "cli/args.h"
#include "cli/store_tools.h"
#include "util/clock.h"
#include "util/units.h"

static void print(const struct store_copied *copied, const char *file, int64_t took_ms, bool json)
{
    char size[32], took[32], epoch[UUID_TEXT];
    if (json) {
        struct buf text = {0};
        struct jsonw w = jsonw_on(&text);
        jsonw_object(&w, NULL);
        jsonw_str(&w, "file", file);
        jsonw_int(&w, "bytes", copied->bytes);
        jsonw_uint(&w, "hooks", copied->verdict.hooks);
        jsonw_uint(&w, "rows", copied->verdict.rows);
        store_write_id(&w, "epoch", &copied->epoch);
        jsonw_bool(&w, "online", copied->served);
        jsonw_bool(&w, "same_disk", copied->same_disk);
        jsonw_int(&w, "took_ms", took_ms);
        jsonw_end_object(&w);
        printf("%s\n", text.at);
        buf_free(&text);
        return;
    }
    units_format_bytes(copied->bytes, size);
    units_format_ms(took_ms, took);
    uuid_format(&copied->epoch, epoch);
    printf("%s: %s, %llu hooks and %llu rows of epoch %s, checked, in %s\n", file, size,
           (unsigned long long)copied->verdict.hooks, (unsigned long long)copied->verdict.rows, epoch, took);
    if (copied->same_disk)
        fputs("it is on the same disk as the store: copy it to another machine\n", stderr);
}

int store_backup_run(int argc, char **argv)
{
    const char *dir = NULL, *config = NULL, *file = NULL;
    bool json = false;
    const struct arg args[] = {{"data-dir", ARG_TEXT, {.text = &dir}},
                               {"config", ARG_TEXT, {.text = &config}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct store_place place = {0};
    int code = cli_args(&verb_store, argc, argv, args, &file, 1, &count);
    if (code == CLI_OK && !count)
        code = cli_usage(&verb_store, "which file? lanegate store backup FILE");
    if (code == CLI_OK)
        code = store_place_of(dir, config, &place);
    if (code != CLI_OK) {
        store_place_free(&place);
        return code;
    }

    setpriority(PRIO_PROCESS, 0, 10); /* a gateway may want the processor */
    struct store_faults faults = {.json = false};
    struct store_backup ask = {.data_dir = place.dir,
                               .file = file,
                               .min_free_bytes = place.min_free_bytes,
                               .judge = store_judge_for(&faults)};
    struct store_copied copied;
    struct error err = {""};
    int64_t started_ms = clock_mono_ms();
    enum status status = store_backup(&ask, &copied, &err);
    store_watch_over();
    if (status == STATUS_OK)
        print(&copied, file, clock_mono_ms() - started_ms, json);
    else
        code = store_failed(status, &err);
    store_place_free(&place);
    return code;
}
