/* lanegate store: how the store of the running gateway is; and what is done to one as files. */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/show.h"
#include "cli/store_tools.h"
#include "util/units.h"

static const char *member(const json_t *answer, const char *object, const char *name, char out[32])
{
    const json_t *value = json_object_get(json_object_get(answer, object), name);
    snprintf(out, 32, "-");
    if (json_is_integer(value) && strstr(name, "bytes"))
        units_format_bytes(json_integer_value(value), out);
    else if (json_is_integer(value) && (strstr(name, "_at") || strcmp(name, "at") == 0))
        show_time(json_integer_value(value), out);
    else if (json_is_integer(value))
        snprintf(out, 32, "%lld", (long long)json_integer_value(value));
    return out;
}

static const char *state_of(const json_t *answer)
{
    const json_t *commit = json_object_get(answer, "commit");
    if (json_is_true(json_object_get(answer, "available")))
        return "takes hooks";
    if (json_is_true(json_object_get(json_object_get(answer, "disk"), "full")))
        return "takes no hooks: the disk is too full";
    if (json_is_true(json_object_get(commit, "hung")))
        return "takes no hooks: a write does not come to an end";
    if (json_is_integer(json_object_get(commit, "undecided_since")))
        return "takes no hooks: nobody knows whether the last commit is on the disk";
    return json_is_true(json_object_get(commit, "failing")) ? "takes no hooks: the last write failed"
                                                            : "takes no hooks: the gateway is going down";
}

static void print_end(const json_t *answer, const char *name)
{
    const json_t *end = json_object_get(json_object_get(answer, "hooks"), name);
    char at[32];
    if (!json_is_object(end))
        return;
    show_time(show_int(end, "received_at"), at);
    printf("%-13s %s, received %s, seq %lld\n", name, show_text(end, "id"), at,
           (long long)show_int(end, "seq"));
}

static void print(const json_t *answer)
{
    char a[32], b[32], c[32], d[32], e[32];
    printf("%-13s %s (layout %lld)\n", "epoch", show_text(answer, "epoch"),
           (long long)show_int(answer, "layout"));
    printf("%-13s %s\n", "state", state_of(answer));
    printf("%-13s %s stored, last seq %s\n", "hooks", member(answer, "hooks", "count", a),
           member(answer, "hooks", "last_seq", b));
    print_end(answer, "oldest");
    print_end(answer, "newest");
    printf("%-13s %s pending, %s running, %s waiting for another attempt, %s dead; %s lanes held\n", "rows",
           member(answer, "rows", "pending", a), member(answer, "rows", "running", b),
           member(answer, "rows", "retrying", c), member(answer, "rows", "dead", d),
           member(answer, "rows", "held_lanes", e));
    printf("%-13s %s in %s rows\n", "dead letters", member(answer, "dead_letters", "bytes", a),
           member(answer, "dead_letters", "rows", b));
    printf("%-13s %s in %s hooks\n", "quarantine", member(answer, "quarantine", "bytes", a),
           member(answer, "quarantine", "hooks", b));
    printf("%-13s %s, of which the log %s; free %s, kept free %s, at most %s\n", "disk",
           member(answer, "disk", "bytes", a), member(answer, "disk", "log_bytes", b),
           member(answer, "disk", "free_bytes", c), member(answer, "disk", "min_free_bytes", d),
           member(answer, "disk", "max_bytes", e));
    units_format_ms(show_int(answer, "retention_ms"), a);
    printf("%-13s delivered hooks stay %s\n", "retention", a);
    printf("%-13s %s, took %s us; %s hooks wait\n", "last commit", member(answer, "commit", "last_at", a),
           member(answer, "commit", "last_us", b), member(answer, "commit", "waiting_hooks", c));
    printf("%-13s %s, %s left to copy\n", "checkpoint", member(answer, "checkpoint", "last_at", a),
           member(answer, "checkpoint", "left_bytes", b));
    if (json_is_object(json_object_get(answer, "restored")))
        printf("%-13s %s, from a backup of epoch %s\n", "restored", member(answer, "restored", "at", a),
               show_text(json_object_get(answer, "restored"), "from_epoch"));
}

static int show(int argc, char **argv)
{
    struct client_where where = {0};
    bool json = false;
    const struct arg args[] = {CLIENT_ARGS(where), {"json", ARG_FLAG, {.flag = &json}}, {0}};
    struct client *client = NULL;
    json_t *answer = NULL;
    size_t count;
    int code = cli_args(&verb_store, argc, argv, args, NULL, 0, &count);
    if (code == CLI_OK)
        code = client_open(&verb_store, &where, &client);
    if (code == CLI_OK)
        code = client_get(client, "/v1/store", &answer);
    client_close(client);
    if (code == CLI_OK && json)
        show_json(answer);
    else if (code == CLI_OK)
        print(answer);
    else if (code == CLI_UNREACHABLE)
        fputs("a store that nobody serves: lanegate store inspect\n", stderr);
    json_decref(answer);
    return code;
}

static int run(int argc, char **argv)
{
    static const struct {
        const char *word;
        int (*run)(int argc, char **argv);
    } words[] = {
        {"show", show},
        {"backup", store_backup_run},
        {"restore", store_restore_run},
        {"check", store_check_run},
        {"inspect", store_inspect_run},
    };
    for (size_t i = 0; argc > 1 && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(argv[1], words[i].word) == 0)
            return words[i].run(argc - 1, argv + 1);
    return show(argc, argv);
}

const struct cli_verb verb_store = {
    .name = "store",
    .summary = "how the store is; backup, restore, check, inspect",
    .help = "usage: lanegate store [show] [options]\n"
            "       lanegate store backup FILE [--data-dir DIR]\n"
            "       lanegate store restore FILE [--to DIR] [--replace] [--damaged] [--yes]\n"
            "       lanegate store check [PATH]\n"
            "       lanegate store inspect [PATH] [--limit N]\n"
            "\n"
            "show asks the running gateway. The others work on files, on this machine and as the gateway's "
            "user;\n"
            "a DIR or PATH that is not given is the configuration's data_dir.\n"
            "\n"
            "backup: one file, 0600, that is the store as it was at one moment, while hooks are taken and\n"
            "delivered. It is checked, and sealed with a digest, before it has its name; nothing is "
            "overwritten.\n"
            "With a gateway running or without.\n"
            "restore: puts the store of a backup into DIR (made when missing), after every page, rule and "
            "hook in\n"
            "it was checked. It begins a new epoch: receivers compare seqs within one epoch only.\n"
            "check: a data directory that nobody serves, or a backup: every page, what must always be true, "
            "every\n"
            "hook. Exit code 1, and what was found, what was expected, and what to do.\n"
            "It says too when a store.db is by itself, since what only its log had is not in it.\n"
            "inspect: counts, lanes, dead letters and quarantine of one that nobody serves, or of a backup.\n"
            "check and inspect change nothing, and read a log that was never copied into the database too.\n"
            "\n"
            "  --data-dir DIR   what is backed up\n"
            "  --to DIR         where it is restored\n"
            "  --replace        move the store that is there into a folder beside; asks, or takes --yes\n"
            "  --damaged        restore although there are faults (told), unless it was cut off\n"
            "  --limit N        lanes, the deepest first; default 20\n"
            "  --yes            do not ask\n"
            "  --json           one JSON document\n" CLIENT_HELP "\n"
            "examples:\n"
            "  lanegate store backup /backup/lanegate-$(date +%F).db\n"
            "  lanegate store restore /backup/lanegate-2026-12-01.db --to /var/lib/lanegate\n",
    .run = run,
};
