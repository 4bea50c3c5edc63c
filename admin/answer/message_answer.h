/* Shows one message to a client of the control socket or to another host, as far as this
 * host knows it; some of it each turn.
 *
 *   {"command": "show", "id": ID, "why": true}
 *
 * A message in the queue is a line as listing.h has it, with `reason` and `since` if it is
 * held or damaged, with `events`, its history (life.h), and with `why` as the question of
 * that name is answered, if that is asked for. For one that has gone, and that the history
 * still knows, the line has queue_name "gone", queue_id, state and events (life.h), and if
 * it was given to another host `given`: host, id (there) and time_ms. Without either there
 * is no line. At the end comes {"ok": true, "end": true}. */
#ifndef ADMIN_ANSWER_MESSAGE_ANSWER_H
#define ADMIN_ANSWER_MESSAGE_ANSWER_H

#include "admin/answer/answer.h"
#include "admin/answer/questions.h"
#include "queue/queue_operator.h"

struct loop;
struct message_answer;

/* NULL with a reason in *why. No callback before it returns. */
struct message_answer *message_answer_new(struct loop *loop, struct manager *manager,
                                          struct questions *questions,
                                          const json_t *request,
                                          const struct answer_events *events,
                                          const char **why);
void message_answer_free(struct message_answer **answer);

#endif
