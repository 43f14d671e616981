/* argv to a verb. The table is what `lanegate --help` shows. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/buf.h"
#include "util/uuid.h"

/* clang-format off */
static const struct cli_verb *const verbs[] = {
    &verb_serve,
    &verb_init,
    &verb_check,
    &verb_config,
    &verb_reload,
    &verb_verify,
    &verb_sinks,
    &verb_lanes,
    &verb_hooks,
    &verb_dlq,
    &verb_replay,
    &verb_quarantine,
    &verb_store,
    &verb_key,
    &verb_spec,
    &verb_tail,
    &verb_receive,
    &verb_verify_order,
    &verb_version,
};
/* clang-format on */

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

static int top_help(FILE *out)
{
    fputs("lanegate: a webhook gateway with ordered lanes\n\n"
          "usage: lanegate VERB [options]; lanegate VERB --help says more\n\n",
          out);
    for (size_t i = 0; i < VERB_COUNT; i++)
        fprintf(out, "  %-13s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs("\nexit codes: 0 ok, 1 failed, 2 usage, 69 gateway unreachable, 78 bad configuration\n", out);
    return out == stdout ? CLI_OK : CLI_USAGE;
}

int cli_help(const struct cli_verb *verb)
{
    fputs(verb->help, stdout);
    return CLI_OK;
}

int cli_usage(const struct cli_verb *verb, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "lanegate %s: ", verb->name);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\nsee: lanegate %s --help\n", verb->name);
    va_end(args);
    return CLI_USAGE;
}

/* "list, show and erase" */
static void put_names(struct buf *out, const struct cli_act *acts, const char *last)
{
    for (const struct cli_act *act = acts; act->name; act++)
        buf_putf(out, "%s%s", act == acts ? "" : act[1].name ? ", " : last, act->name);
}

int cli_run_act(const struct cli_verb *verb, const struct cli_act *acts, int argc, char **argv)
{
    for (const struct cli_act *act = acts; argc > 1 && act->name; act++)
        if (strcmp(argv[1], act->name) == 0)
            return act->run(argc - 1, argv + 1);
    struct buf names = {0};
    put_names(&names, acts, argc > 1 ? " and " : " or ");
    int code = argc > 1 ? cli_usage(verb, "no act \"%s\"; there are %s", argv[1], names.at)
                        : cli_usage(verb, "what to do is missing: %s", names.at);
    buf_free(&names);
    return code;
}

int cli_check_id(const struct cli_verb *verb, const char *what, const char *id)
{
    struct uuid uuid;
    if (!id)
        return cli_usage(verb, "%s needs the id of a hook", what);
    if (uuid_parse(bytes_str(id), &uuid))
        return CLI_OK;
    return cli_usage(verb, "an id looks like 01890a5d-ac96-774b-bcce-b302099a8057, got \"%s\"", id);
}

static const struct cli_verb *find(const char *name)
{
    for (size_t i = 0; i < VERB_COUNT; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int run(int argc, char **argv)
{
    if (argc < 2)
        return top_help(stderr);
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return top_help(stdout);
    if (strcmp(name, "help") == 0) {
        const struct cli_verb *about = argc > 2 ? find(argv[2]) : NULL;
        return about ? cli_help(about) : top_help(stdout);
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    const struct cli_verb *verb = find(name);
    if (!verb) {
        fprintf(stderr, "lanegate: no verb \"%s\"; lanegate --help lists them\n", name);
        return CLI_USAGE;
    }
    if (asks_help(argc - 1, argv + 1))
        return cli_help(verb);
    return verb->run(argc - 1, argv + 1);
}

/* Half a list in a file is worse than none, so what did not arrive is a failure. A reader that has seen
 * enough is no news to anybody. */
static int printed(int code)
{
    bool failed = ferror(stdout);
    if (fflush(stdout) == 0 && !failed)
        return code;
    if (errno != EPIPE)
        fprintf(stderr, "lanegate: can't write to the standard output: %s\n", strerror(errno));
    return code == CLI_OK ? CLI_FAILED : code;
}

int cli_main(int argc, char **argv)
{
    return printed(run(argc, argv));
}
