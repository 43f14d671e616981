/* A stored hook of a running gateway, as the envelope it is there. Needs a token of scope payload where there
 * are tokens. */
#ifndef CLI_HOOK_FETCH_H
#define CLI_HOOK_FETCH_H

#include "cli/client.h"
#include "envelope/envelope.h"

/* CLI_OK with one reference in `out`; else what client_get gives. `*answer`, when it is not NULL, gets the
 * API's JSON (envelope and rows; json_decref it). */
int hook_fetch(struct client *client, const char *id, struct envelope **out, json_t **answer);

/* The envelope out of that JSON and the body. */
struct envelope *hook_from_json(const json_t *hook, struct bytes body);

/* Prints the request as it came on stdout: the head out of that JSON, the body from below `path`
 * ("/v1/hooks", "/v1/quarantine"). */
int hook_fetch_raw(struct client *client, const char *path, const json_t *hook);

#endif
