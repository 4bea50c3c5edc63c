/* Walks over the sites in steps. A walk stands at a site; if that is freed, at the next. */
#include "sched/site_walk.h"

#include "base/memory.h"

#include <stdlib.h>
#include <utlist.h>

static struct site *
site_first_from(struct transport *transport)
{
    while (transport != NULL && transport->sites == NULL)
        transport = transport->hh.next;
    return transport != NULL ? transport->sites : NULL;
}

static struct site *
site_behind(const struct site *site)
{
    struct site *next = site->hh.next;
    return next != NULL ? next : site_first_from(site->transport->hh.next);
}

struct site_walk *
site_walk_begin(struct sites *set)
{
    struct site_walk *walk = memory_new(sizeof(*walk));
    walk->set = set;
    walk->site = site_first_from(set->transports.by_target);
    DL_APPEND(set->walks, walk);
    return walk;
}

bool
site_walk_step(struct site_walk *walk, size_t most,
               void (*each)(void *context, struct site *site), void *context)
{
    for (size_t i = 0; i < most && walk->site != NULL; i++) {
        struct site *site = walk->site;
        walk->site = site_behind(site);
        each(context, site);
    }
    return walk->site != NULL;
}

void
site_walk_pass(struct site_walk *walk)
{
    walk->site = site_behind(walk->site);
}

void
site_walk_end(struct site_walk **walk)
{
    struct site_walk *w = *walk;
    *walk = NULL;
    if (w == NULL)
        return;
    if (w->set != NULL)
        DL_DELETE(w->set->walks, w);
    free(w);
}

void
site_walks_leave(struct sites *set, const struct site *site)
{
    struct site_walk *walk;
    DL_FOREACH (set->walks, walk)
        if (walk->site == site)
            walk->site = site_behind(site);
}

void
site_walks_forget(struct sites *set)
{
    struct site_walk *walk, *next;
    DL_FOREACH_SAFE (set->walks, walk, next) {
        DL_DELETE(set->walks, walk);
        walk->set = NULL;
        walk->site = NULL;
    }
}
