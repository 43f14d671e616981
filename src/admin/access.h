/* Who may ask? A bearer token when tokens are configured; without them, on a loopback listen, any program of
 * this machine, but no web page: a page of a stranger's name that resolves to 127.0.0.1 (DNS rebinding) sends
 * that name as Host, so Host must be "localhost" or a loopback literal. And a page may send a form to any
 * address it likes: what changes something must not come from a page of another origin. Pure; any thread. */
#ifndef ADMIN_ACCESS_H
#define ADMIN_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "admin/admin.h"

enum { SCOPES_ALL = ADMIN_SCOPE_READ | ADMIN_SCOPE_PAYLOAD | ADMIN_SCOPE_OPERATE | ADMIN_SCOPE_CONFIG };

/* "read", "payload", "operate", "config" for a single scope. */
const char *access_scope_name(unsigned scope);

/* "localhost", "127.0.0.1", "[::1]", each with or without ":port". */
bool access_host_is_loopback(struct bytes host);

/* True when every address listened on is a loopback one; true for none at all. */
bool access_listens_on_loopback(const char *const *listen, size_t count);

/* A browser says from where a page sends something: true when that is this server itself, at the name it was
 * asked by ("http://" or "https://" and the Host). */
bool access_origin_is_own(struct bytes origin, struct bytes host);

/* The scopes of the token in an Authorization value; 0 when it is not "Bearer" and a known token. Takes the
 * same time for every token that is not one. `name` is the token's, when there is one. */
unsigned access_scopes(const struct admin_token *tokens, size_t count, struct bytes authorization,
                       const char **name);

#endif
