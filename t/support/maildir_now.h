/* A delivery into a Maildir in one go. */
#ifndef T_SUPPORT_MAILDIR_NOW_H
#define T_SUPPORT_MAILDIR_NOW_H

#include "queue/manager/maildir.h"

#include <stdlib.h>

struct outcome maildir_deliver(struct queue *queue, struct loop *loop, const struct target *target, const char *hostname, const struct envelope *e, unsigned recipient);

#endif
