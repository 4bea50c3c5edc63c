/* Answers the questions of other hosts of the group: the part `ask` of sibling_service.
 *
 * Each question is a session of control_session.h, as one of the control socket is, with the
 * rights of a sibling and lines of bounded length. It waits while the asker is full. Beyond
 * SIBLING_ANSWER_MAX bytes an answer ends with a refusal; a list takes a limit of its own
 * (list_answer.h), and does not come so far. */
#ifndef ADMIN_CONTROL_SIBLING_ASK_H
#define ADMIN_CONTROL_SIBLING_ASK_H

#include "admin/control/control_session.h"
#include "queue/group/siblings.h"

enum { SIBLING_ASKED_MAX = 64 /* questions at a time, of all siblings */ };

/* Never NULL; one too many is answered by a refusal. asker is copied, the data it
 * points to outlive the question. All questions are dropped before the service ends. */
struct asking *sibling_ask(struct control_service *service, struct text line,
                           const struct sibling_asker *asker);
void sibling_ask_resume(struct asking *asking);
/* After end(), within it, or because the caller has gone. *asking becomes NULL. */
void sibling_ask_drop(struct asking **asking);

#endif
