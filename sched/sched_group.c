/* The scheduler's machine: the bank of a group of hosts. */
#include "sched/sched_internal.h"

#include "sched/site_lease.h"

void
sched_members(struct sched *s, int64_t now_ms, const struct sched_group *group)
{
    sched_tick(s, now_ms);
    site_group_set(&s->destinations.sites, group, s->now_ms);
}

static void
sched_group_count(void *context, struct site *site)
{
    size_t *count = context;
    *count += site->lease != NULL;
}

size_t
sched_shared_sites(const struct sched *s)
{
    size_t count = 0;
    sites_each(&s->destinations.sites, sched_group_count, &count);
    return count;
}

size_t
sched_wishes(struct sched *s, int64_t now_ms, size_t most,
             void (*each)(void *context, const struct sched_wish *wish), void *context)
{
    struct sites *sites = &s->destinations.sites;
    struct bank_question question;
    size_t count = 0;
    sched_tick(s, now_ms);
    for (; count < most; count++) {
        struct site_lease *lease = site_lease_next(sites, s->now_ms, &question);
        if (!lease)
            break;
        struct site *site = lease->site;
        struct sched_wish wish = {.site = lease->name,
                                  .is_account =
                                      target_has_user(&site->transport->target),
                                  .question = &question};
        each(context, &wish);
        site_update(sites, site, s->now_ms);
    }
    return count;
}

void
sched_granted(struct sched *s, int64_t now_ms, const char *site,
              const struct bank_grant *grant)
{
    sched_tick(s, now_ms);
    site_lease_granted(&s->destinations.sites, site, s->now_ms, grant);
}
