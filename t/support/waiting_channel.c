/* A channel whose sessions take no mail until the end, and a page of metrics. */
#include "t/support/waiting_channel.h"

#include <stdio.h>

struct sched_session *waiting_sessions[WAITING_MAX];
size_t waiting_count;

void
waiting_open(void *context, struct sched_session *session, const struct target *target,
             const char *domain)
{
    (void)context, (void)target, (void)domain;
    if (waiting_count == WAITING_MAX)
        abort();
    waiting_sessions[waiting_count++] = session;
}

bool
page_says(const char *page, const char *line)
{
    char whole[300];
    snprintf(whole, sizeof(whole), "\n%s\n", line);
    if (strstr(page, whole) != NULL)
        return true;
    printf("# not there: %s\n", line);
    return false;
}
