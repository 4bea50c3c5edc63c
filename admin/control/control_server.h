/* The control socket: operators' questions to the running daemon.
 *
 * A request is one line of JSON. {"command": "status"} is answered by one line: see
 * status.h. {"command": "sites", "from": N} is answered by one line with sites: up to
 * 200 as in site_view.h, but for the first N; none at the end. {"command": "fragments",
 * "from": N} likewise, with sets: up to 100 as in questions.h.
 * {"command": "state", "id": ...} is answered by one line: place ("gone" when the
 * message has ended), due_ms, attempts and reasons (one a recipient while the message
 * is active, else one). {"command": "states", "ids": [...]} is answered by one line
 * with states of the first ids, at least one and at most 500. {"command": "why",
 * "id": ...} is answered like "state", with the members that why.h adds.
 * {"command": "adopt", "slice": N} is answered when queue_adopt() is done, by
 * {"ok": true, "end": true, "messages": N}, and before that every five seconds by
 * {"seen": 0}. A command of request.h is answered by one line for each message
 * ({"id", "ok", "code", "text"}; code is of sysexits), {"seen": N} as signs of life,
 * and one line with "ok" and "end" when all changes are durable. A refused request
 * gets {"ok": false, "error": ...}. Commands of trace_answer.h, list_answer.h and
 * message_answer.h are answered by lines, too, and one with "ok" and "end". A client
 * that disconnects cancels its request between two messages. {"command": "http"}: see
 * control_server_on_http().
 * {"command": "test", "to": ..., "from": ...} is answered as in trial.h.
 * {"command": "page", "access": "read"} (or "operate", the default) is answered by a key
 * for POST /api/session of HTTP, valid once and for five minutes, and urls, where HTTP is
 * answered. Mode 0600: root and the daemon's user may connect. */
#ifndef ADMIN_CONTROL_CONTROL_SERVER_H
#define ADMIN_CONTROL_CONTROL_SERVER_H

#include "admin/control/control_session.h"
#include "base/net/net.h"
#include "queue/manager/manager.h"

struct control_server;

/* path of the Unix socket. NULL with one line in error. */
struct control_server *control_server_new(struct loop *loop, struct net *net,
                                          struct log *log, struct manager *manager,
                                          const char *path, char *error,
                                          size_t error_size);
/* To all clients that wait for the answer of the question with that name: those for
 * whom questions_answer() had none. Takes the answer. */
void control_server_answer(struct control_server *control, const char *name,
                           json_t *answer);
/* {"command": "http"} is answered by {"ok": true}, and from then on the connection is of
 * HTTP: take() attaches it and keeps it, or says in a sentence why not. NULL: nobody
 * does. */
void control_server_on_http(struct control_server *control,
                            const char *(*take)(void *context,
                                                struct net_connection *connection),
                            void *context);
/* The sender of test messages; NULL, as without it: there is none. */
void control_server_on_trials(struct control_server *control, struct trials *trials);
/* Its socket, and the counts of its clients. */
const struct net_address *control_server_address(const struct control_server *control,
                                                 struct net_listener_counts *counts);
/* The source of its answers; HTTP asks the same. */
struct questions *control_server_questions(const struct control_server *control);
/* Where sessions with other transports begin; they end before it. */
struct control_service *control_server_service(struct control_server *control);
/* A history_on_line(): wakes clients that follow the message. */
void control_server_on_line(void *control, struct id id, struct text line);
void control_server_free(struct control_server **control);

#endif
