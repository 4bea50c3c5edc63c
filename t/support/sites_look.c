/* All sites of a scheduler, as sched_look() shows each. */
#include "t/support/sites_look.h"

struct sites_look {
    const struct sched *sched;
    void (*each)(void *context, const struct sched_site *site);
    void *context;
};

static void
look_at(void *context, const struct sched_glance *glance)
{
    const struct sites_look *look = context;
    sched_look(look->sched, glance->site, look->each, look->context);
}

void
sites_look(const struct sched *sched, void (*each)(void *context, const struct sched_site *site),
           void *context)
{
    struct sites_look look = {sched, each, context};
    sched_glance(sched, look_at, &look);
}
