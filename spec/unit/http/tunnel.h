/* A way under TLS for tests that know of plain sockets only: what they write comes out encrypted, what they
 * shut is a farewell (close_notify, no FIN), and the other way round. */
#ifndef SPEC_HTTP_TUNNEL_H
#define SPEC_HTTP_TUNNEL_H

/* Takes the connected socket; gives the plain end. The handshake happens behind it: when it fails, that end
 * ends. */
int tunnel_through(int net_fd);
/* When all plain ends are closed: waits for the threads behind them. */
void tunnel_join_all(void);

#endif
