/* The control socket: operators' questions to the running daemon.
 *
 * A request is one line of JSON. {"command": "status"} is answered by one line: see
 * status.h. {"command": "sites", "from": N} is answered by one line with sites: up to
 * 500 as in site_view.h, but for the first N; none at the end.
 * {"command": "state", "id": ...} is answered by one
 * line: place ("gone" when
 * it is over), due_ms, attempts and reasons (one a recipient while the message is
 * active, else one). {"command": "states",
 * "ids": [...]} is answered by one line with states: the same of the first of these,
 * 500 at most and at least one, for who asks of many. {"command": "why", "id": ...} by
 * the same and what why.h adds.
 * {"command": "adopt", "slice": N} is answered when queue_adopt()
 * is:
 * {"ok": true, "end": true, "messages": N}; in between, every five seconds, comes
 * {"seen": 0}. A command of request.h is answered by a line for each message, as it
 * comes
 * ({"id", "ok", "code", "text"}; code is of sysexits), some {"seen": N} as signs of
 * life, and one line with "ok" and "end" when all is done and durable. Whatever is
 * refused gets
 * {"ok": false, "error": ...}. A client that leaves before the end stops what it has
 * asked for between two messages, and nothing is begun for one that has left. Mode
 * 0600: root and the daemon's user may connect. */
#ifndef ADMIN_CONTROL_SERVER_H
#define ADMIN_CONTROL_SERVER_H

#include "base/net/net.h"
#include "queue/manager/manager.h"

struct control_server;
struct sandbox;

/* path of the Unix socket. NULL with one line in error. */
struct control_server *control_server_new(struct loop *loop, struct net *net,
                                          struct log *log, struct manager *manager,
                                          const char *path, char *error,
                                          size_t error_size);
/* The sessions in, for the status; without it there are none. */
void control_server_on_count(struct control_server *control,
                             size_t (*count)(void *context, bool *stressed),
                             void *context);
/* What the status says of the sandbox; without it nothing. */
void control_server_on_sandbox(struct control_server *control,
                               const struct sandbox *sandbox);
void control_server_free(struct control_server **control);

#endif
