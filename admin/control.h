/* The control socket: operators' questions to the running daemon.
 *
 * A request is one line of JSON, {"command": "state"|"retry"|"rm", "id": ...} or
 * {"command": "retry-all"}; the answer is one line of JSON with "ok" and, when that is
 * false, "error". Of state: place, due_ms, attempts and reasons (one a recipient while
 * the message is active, else one); of rm: busy. Mode 0600: root and the daemon's user
 * may connect. */
#ifndef ADMIN_CONTROL_H
#define ADMIN_CONTROL_H

#include "base/net.h"
#include "queue/manager.h"

struct control;

/* path of the Unix socket. NULL with one line in error. */
struct control *control_new(struct loop *loop, struct net *net, struct log *log,
                            struct manager *manager, const char *path, char *error,
                            size_t error_size);
void control_free(struct control **control);

#endif
