/* lanegate store check: is it whole and sound? */
#include <stdio.h>

#include "cli/args.h"
#include "cli/store_tools.h"

static void print_json(const struct store_verdict *verdict, const char *path,
                       const struct store_faults *faults)
{
    struct buf text = {0};
    struct jsonw w = jsonw_on(&text);
    jsonw_object(&w, NULL);
    jsonw_bool(&w, "ok", verdict->faults == 0);
    jsonw_str(&w, "path", path);
    jsonw_uint(&w, "hooks", verdict->hooks);
    jsonw_uint(&w, "rows", verdict->rows);
    jsonw_bool(&w, "lacks_log", verdict->lacks_log);
    jsonw_array(&w, "faults");
    jsonw_raw(&w, NULL, buf_bytes(&faults->text));
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    printf("%s\n", text.at);
    buf_free(&text);
}

int store_check_run(int argc, char **argv)
{
    const char *config = NULL, *path = NULL;
    bool json = false;
    const struct arg args[] = {
        {"config", ARG_TEXT, {.text = &config}}, {"json", ARG_FLAG, {.flag = &json}}, {0}};
    size_t count;
    struct store_place place = {0};
    int code = cli_args(&verb_store, argc, argv, args, &path, 1, &count);
    if (code == CLI_OK)
        code = store_place_of(path, config, &place);
    if (code != CLI_OK) {
        store_place_free(&place);
        return code;
    }

    struct store_faults faults = {.json = json};
    struct store_judge judge = store_judge_for(&faults);
    struct store_verdict verdict = {0};
    struct error err = {""};
    enum status status = store_check(place.dir, &judge, &verdict, &err);
    store_watch_over();
    if (status != STATUS_OK) {
        code = store_failed(status, &err);
        if (status == STATUS_BUSY)
            fputs("what a gateway serves is checked by its backup: lanegate store backup FILE\n", stderr);
    } else if (json) {
        print_json(&verdict, place.dir, &faults);
    } else if (verdict.faults) {
        fprintf(stderr, "%s: %llu faults\n", place.dir, (unsigned long long)verdict.faults);
    } else {
        printf("%s: ok; %llu hooks, %llu rows\n", place.dir, (unsigned long long)verdict.hooks,
               (unsigned long long)verdict.rows);
    }
    if (code == CLI_OK && !json && verdict.lacks_log)
        fprintf(stderr, "it is the database of a data directory, without its log (store.db-wal): if a "
                        "gateway ran on it, or "
                        "was killed, what was answered last is not here\n");
    store_place_free(&place);
    buf_free(&faults.text);
    return code == CLI_OK && verdict.faults ? CLI_FAILED : code;
}
