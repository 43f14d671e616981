/* The whole process: rooms opened in the order of flow, closed in reverse. One a process. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include "config/config.h"
#include "util/status.h"

/* Serves until SIGTERM or SIGINT, then drains. Takes a reference of its own to `config`, until a reload
 * replaces it. OK after a clean end. REFUSED when the configuration does not fit what is stored: `faults`
 * says why, one line each, as config_load does. Else `err` says which room did not open and why. Called from
 * main's thread before any other thread exists, since it blocks signals for all of them. */
enum status gateway_run(struct config *config, struct buf *faults, struct error *err);

#endif
