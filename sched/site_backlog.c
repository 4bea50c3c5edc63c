/* The backlog of a site: ids of messages that wait on disk for it, oldest
 * first. */
#include "sched/site.h"

enum { REPEATED_MIN = 64 };

void
site_backlog_add(struct site *site, enum flow_age age, struct id id)
{
    id_queue_add(&site->backlog[age].ids, id);
    site->backlog[age].added++;
}

void
site_backlog_repeat(struct site *site, enum flow_age age, struct id id)
{
    struct site_backlog *p = &site->backlog[age];
    if (id_queue_has(&p->ids, id)) {
        p->added++;
        return;
    }
    site_backlog_add(site, age, id);
    p->repeated++;
    if (p->repeated >= REPEATED_MIN && p->repeated > p->ids.count / 2) {
        id_queue_unite(&p->ids);
        p->repeated = 0;
    }
}

bool
site_backlog_first(const struct site *site, enum flow_age age, struct id *id)
{
    return id_queue_first(&site->backlog[age].ids, id);
}

bool
site_backlog_take(struct site *site, enum flow_age age, struct id *id)
{
    struct site_backlog *p = &site->backlog[age];
    bool taken = id_queue_take(&p->ids, id);
    if (p->repeated > p->ids.count)
        p->repeated = p->ids.count;
    return taken;
}

void
site_backlog_drop(struct site *site, enum flow_age age)
{
    struct site_backlog *p = &site->backlog[age];
    struct id id;
    if (site_backlog_take(site, age, &id))
        p->repeated -= p->repeated > 0;
}

size_t
site_backlog_count(const struct site *site)
{
    size_t count = 0;
    for (int age = 0; age < FLOW_AGES; age++)
        count += site->backlog[age].ids.count - site->backlog[age].repeated;
    return count;
}

bool
site_has_backlog(const struct site *site)
{
    for (int age = 0; age < FLOW_AGES; age++)
        if (site->backlog[age].ids.count > 0)
            return true;
    return false;
}
