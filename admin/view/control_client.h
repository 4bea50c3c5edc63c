/* The operator's end of the control socket: one question, one answer, blocking. */
#ifndef ADMIN_VIEW_CONTROL_CLIENT_H
#define ADMIN_VIEW_CONTROL_CLIENT_H

#include "base/loop/loop.h"

#include <jansson.h>

struct control_client;

/* NULL with one line in error: no daemon answers at path; errno is EACCES where asking
 * again is no use, since the caller may not. The loop is the caller's,
 * otherwise idle. */
struct control_client *control_client_new(struct loop *loop, const char *path,
                                          char *error, size_t error_size);
/* Immediately after NULL: says so on standard error, in the name of program. EX_NOPERM
 * for EACCES, where a daemon may well run, else EX_UNAVAILABLE. */
int control_client_refused(const char *program, const char *error);
/* As control_client_new(); NULL: so it was said, and *code is its exit code. */
struct control_client *control_client_reach(struct loop *loop, const char *path,
                                            const char *program, int *code);
/* Takes the request, and waits for the last line of its answer, the caller's. NULL: it was
 * refused, or there was none, which was said; *code is EX_CONFIG or EX_UNAVAILABLE. A request
 * of NULL, whose texts are no UTF-8, is refused without words. */
json_t *control_client_ask(struct control_client *client, const char *program,
                           json_t *request, int *code);
/* Questions wait 3 seconds for their answer, not 10. */
void control_client_be_brief(struct control_client *client);
void control_client_free(struct control_client **client);
/* Takes the request, whose answer control_client_next() returns. */
void control_client_send(struct control_client *client, json_t *request);
/* Takes the request. The answer is the caller's. NULL, also for all later questions,
 * when the daemon closed the connection or was silent for 10 seconds (a stopped one
 * still accepts connections). */
json_t *control_client_question(struct control_client *client, json_t *request);
/* The next line of an answer that has several. NULL as above, but after 30 seconds: the
 * daemon sends signs of life. */
json_t *control_client_next(struct control_client *client);
/* After NULL: why, in words. */
const char *control_client_trouble(const struct control_client *client);

#endif
