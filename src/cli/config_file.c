#include "cli/config_file.h"

#include <stdio.h>

#include "cli/cli.h"

int config_file_load(const char *path, enum config_mode mode, struct config **out)
{
    struct buf faults = {0};
    enum status status = config_load(path, mode, out, &faults);
    if (status != STATUS_OK)
        fputs(faults.len ? faults.at : status_text(status), stderr);
    buf_free(&faults);
    return status == STATUS_OK ? CLI_OK : CLI_BAD_CONFIG;
}
