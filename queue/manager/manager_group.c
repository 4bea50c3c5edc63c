/* Questions of a group of hosts to the scheduler: only the present time is added. */
#include "queue/manager/manager.h"

#include "queue/manager/manager_internal.h"

void
manager_group(struct manager *m, const struct sched_group *group)
{
    sched_members(m->sched, loop_now_ms(m->loop), group);
    manager_stir(m);
}

/* A turn follows: the mail there wakes at another time now. */
size_t
manager_wishes(struct manager *m, size_t most,
               void (*each)(void *context, const struct sched_wish *wish),
               void *context)
{
    size_t count = m->has_actions ? 0
                                  : sched_wishes(m->sched, loop_now_ms(m->loop), most,
                                                 each, context);
    if (count > 0)
        manager_stir(m);
    return count;
}

void
manager_granted(struct manager *m, const char *site, const struct bank_grant *grant)
{
    sched_granted(m->sched, loop_now_ms(m->loop), site, grant);
    manager_stir(m);
}
