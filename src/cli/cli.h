/* The command line: one file per verb, one table (cli.c). A verb parses its own arguments (args.h), prints,
 * and gives the exit code. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_UNREACHABLE = 69, /* EX_UNAVAILABLE of sysexits.h */
    CLI_BAD_CONFIG = 78,  /* EX_CONFIG */
};

struct cli_verb {
    const char *name;
    const char *summary;               /* one line of `lanegate --help` */
    const char *help;                  /* what `lanegate VERB --help` prints, whole */
    int (*run)(int argc, char **argv); /* argv[0] is the verb's name */
};

extern const struct cli_verb verb_serve, verb_init, verb_check, verb_config, verb_reload, verb_verify,
    verb_sinks, verb_lanes, verb_hooks, verb_dlq, verb_replay, verb_quarantine, verb_key, verb_spec,
    verb_store, verb_tail, verb_receive, verb_verify_order, verb_version;

/* From main: finds the verb and runs it. */
int cli_main(int argc, char **argv);

/* Prints the verb's help on stdout. */
int cli_help(const struct cli_verb *verb);
/* One line on stderr, "lanegate VERB: ...", then where to read more; gives CLI_USAGE. */
int cli_usage(const struct cli_verb *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A verb of several acts: the first word says which. The table ends with {0}. */
struct cli_act {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the act's name */
};
/* The act that argv[1] names, run; a usage error that lists them when it names none. */
int cli_run_act(const struct cli_verb *verb, const struct cli_act *acts, int argc, char **argv);

/* CLI_OK, or a usage error, for what should be the id of a hook; NULL is for `what` ("show") to ask for. */
int cli_check_id(const struct cli_verb *verb, const char *what, const char *id);

#endif
