/* A message of recipients that are all there. */
#ifndef T_SUPPORT_MESSAGE_NOW_H
#define T_SUPPORT_MESSAGE_NOW_H

#include "sched/message.h"

#include <stdlib.h>

struct sched_message * message_new(struct destinations *set, const struct sched_mail *mail, const struct sched_recipient *recipients, size_t count, int64_t now_ms);

#endif
