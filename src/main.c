/* argv to the command line, and nothing else. */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* A parent may have closed 0, 1 or 2. The next file to be opened would get that number, and what is meant for
 * people would go into it. Nothing can be written to 1 then, which is found out at the end; 2 swallows. */
static bool hold_standard_files(void)
{
    static const int flags[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd]) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    return hold_standard_files() ? cli_main(argc, argv) : CLI_FAILED;
}
