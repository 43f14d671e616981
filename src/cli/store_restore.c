/* lanegate store restore: a store out of a backup, in an epoch of its own. */
#include <stdio.h>

#include "cli/args.h"
#include "cli/confirm.h"
#include "cli/show.h"
#include "cli/store_tools.h"

static void print_json(const struct store_copied *copied, const char *dir, const struct store_faults *faults)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_str(&w, "data_dir", dir);
    jsonw_int(&w, "bytes", copied->bytes);
    jsonw_uint(&w, "hooks", copied->verdict.hooks);
    jsonw_uint(&w, "rows", copied->verdict.rows);
    store_write_id(&w, "epoch", &copied->epoch);
    store_write_id(&w, "from_epoch", &copied->old_epoch);
    store_write_time(&w, "backup_at", copied->backup_ms);
    jsonw_str(&w, "moved_aside", copied->aside ? copied->aside_path : NULL);
    jsonw_array(&w, "faults");
    jsonw_raw(&w, NULL, buf_bytes(&faults->text));
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    printf("%s\n", text.at);
    buf_free(&text);
}

static void print(const struct store_copied *copied, const char *dir)
{
    char epoch[UUID_TEXT], old_epoch[UUID_TEXT], at[32] = "an unknown time";
    uuid_format(&copied->epoch, epoch);
    uuid_format(&copied->old_epoch, old_epoch);
    if (copied->backup_ms)
        show_time(copied->backup_ms, at);
    printf("%s: %llu hooks and %llu rows, as of %s\n", dir, (unsigned long long)copied->verdict.hooks,
           (unsigned long long)copied->verdict.rows, at);
    printf("epoch %s (the backup's was %s)\n", epoch, old_epoch);
    if (copied->aside)
        printf("the store that was here is in %s\n", copied->aside_path);
    printf("\nWhat this means once lanegate serve runs:\n"
           "- hooks accepted after %s are not in it: ask the providers to send them again\n"
           "- hooks that were delivered after it are delivered once more: same id and idempotency key\n"
           "- seqs begin a new epoch: receivers compare them within one epoch only\n",
           at);
}

int store_restore_run(int argc, char **argv)
{
    const char *to = NULL, *config = NULL, *file = NULL;
    bool json = false, yes = false, replace = false, damaged = false;
    const struct arg args[] = {{"to", ARG_TEXT, {.text = &to}},
                               {"config", ARG_TEXT, {.text = &config}},
                               {"replace", ARG_FLAG, {.flag = &replace}},
                               {"damaged", ARG_FLAG, {.flag = &damaged}},
                               {"yes", ARG_FLAG, {.flag = &yes}},
                               {"json", ARG_FLAG, {.flag = &json}},
                               {0}};
    size_t count;
    struct store_place place = {0};
    int code = cli_args(&verb_store, argc, argv, args, &file, 1, &count);
    if (code == CLI_OK && !count)
        code = cli_usage(&verb_store, "which file? lanegate store restore FILE");
    if (code == CLI_OK)
        code = store_place_of(to, config, &place);
    if (code == CLI_OK && replace)
        code = cli_confirm(&verb_store, yes, "move the store in %s aside and put the one of %s in its place",
                           place.dir, file);
    if (code != CLI_OK) {
        store_place_free(&place);
        return code;
    }

    /* Without --damaged a fault is an error, and told as one: there is no document then. */
    struct store_faults faults = {.json = json && damaged};
    struct store_restore ask = {.file = file,
                                .data_dir = place.dir,
                                .replace = replace,
                                .damaged = damaged,
                                .judge = store_judge_for(&faults)};
    struct store_copied copied;
    struct error err = {""};
    enum status status = store_restore(&ask, &copied, &err);
    store_watch_over();
    if (status != STATUS_OK)
        code = store_failed(status, &err);
    else if (json)
        print_json(&copied, place.dir, &faults);
    else
        print(&copied, place.dir);
    store_place_free(&place);
    buf_free(&faults.text);
    return code;
}
