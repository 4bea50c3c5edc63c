/* A channel whose sessions take no mail until the end, and a page of metrics. */
#ifndef T_SUPPORT_WAITING_CHANNEL_H
#define T_SUPPORT_WAITING_CHANNEL_H

#include "t/support/control_world.h"

enum { WAITING_MAX = 50 };
extern struct sched_session *waiting_sessions[WAITING_MAX];
extern size_t waiting_count;

void waiting_open(void *context, struct sched_session *session,
                  const struct target *target, const char *domain);

/* Whether it is a line of the page. */
bool page_says(const char *page, const char *line);

#endif
