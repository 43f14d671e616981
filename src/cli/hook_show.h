/* One hook, as GET /v1/hooks/{id} gives it, on a screen or as the request it was. */
#ifndef CLI_HOOK_SHOW_H
#define CLI_HOOK_SHOW_H

#include <stdio.h>

#include "json/tree.h"

/* A readable block: the envelope, its headers, then a table of deliveries. */
void hook_show(const json_t *hook, FILE *out);

/* Its last failures, as GET /v1/hooks/{id}/attempts gives them; nothing when there are none. */
void hook_show_attempts(const json_t *attempts, FILE *out);

/* Request line, headers and the blank line, CR LF, for a body of that many bytes behind it. A
 * Transfer-Encoding is left out and a missing Content-Length added: the stored body is the decoded one. */
void hook_show_head(const json_t *hook, size_t body_len, FILE *out);

#endif
