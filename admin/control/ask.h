/* The operator's end of the control socket: one question, one answer, blocking. */
#ifndef ADMIN_ASK_H
#define ADMIN_ASK_H

#include "base/loop.h"

#include <jansson.h>

struct ask;

/* NULL with one line in error: no daemon answers at path; errno is EACCES where asking
 * again is no use, since the caller may not. The loop is the caller's,
 * otherwise idle. */
struct ask *ask_new(struct loop *loop, const char *path, char *error,
                    size_t error_size);
void ask_free(struct ask **ask);
/* Takes the request. The answer is the caller's; NULL when the daemon went away, or
 * said nothing for 10 seconds (a stopped one takes connections, too): then and from
 * then on. */
json_t *ask_question(struct ask *ask, json_t *request);
/* The next line of an answer that has several; the same, but for 30 seconds: there come
 * signs of life. */
json_t *ask_next(struct ask *ask);
/* After NULL: why, in words. */
const char *ask_trouble(const struct ask *ask);

#endif
