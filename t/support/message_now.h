/* A message of recipients that are all there. */
#ifndef T_SUPPORT_MESSAGE_NOW_H
#define T_SUPPORT_MESSAGE_NOW_H

#include "sched/message.h"
#include "sched/sched.h"

#include <stdlib.h>

struct sched_message * message_new(struct destinations *set, const struct sched_mail *mail, const struct sched_recipient *recipients, size_t count, int64_t now_ms);

/* sched_loaded() in one piece. */
struct sched_message *sched_loaded_now(struct sched *s, struct id id, const struct sched_mail *mail, const struct sched_recipient *recipients, size_t count);

#endif
