#include "cli/confirm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/grid.h"
#include "util/buf.h"

static bool said_yes(void)
{
    char answer[16] = "";
    if (!fgets(answer, sizeof answer, stdin))
        return false;
    answer[strcspn(answer, "\r\n")] = 0;
    return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}

int cli_confirm(const struct cli_verb *verb, bool yes, const char *format, ...)
{
    if (yes)
        return CLI_OK;
    struct buf question = {0};
    va_list args;
    va_start(args, format);
    buf_putv(&question, format, args);
    va_end(args);
    int code = CLI_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        code = cli_usage(verb, "this would %s; without a terminal it needs --yes", question.at);
    } else {
        print_harmless(stderr, question.at);
        fputs("? [y/N] ", stderr);
        fflush(stderr);
        if (!said_yes()) {
            fputs("nothing was done\n", stderr);
            code = CLI_FAILED;
        }
    }
    buf_free(&question);
    return code;
}
