/* A ring of changes. */
#include "sched/site_change.h"

#include "base/memory.h"

#include <stdlib.h>

struct site_changes {
    struct site_change ring[SITE_CHANGES_MAX];
    size_t first, count;
};

void
site_changes_add(struct site_changes **changes, const char *site, int64_t dead_ms,
                 const struct outcome *why)
{
    struct site_changes *all = *changes;
    if (all == NULL)
        all = *changes = memory_new(sizeof(*all));
    if (all->count == SITE_CHANGES_MAX)
        return;
    struct site_change *c = &all->ring[(all->first + all->count++) % SITE_CHANGES_MAX];
    *c = (struct site_change){.is_dead = why != NULL, .dead_ms = dead_ms};
    text_copy(c->site, sizeof(c->site),
              text_before(text_from(site), sizeof(c->site) - 1));
    if (why != NULL)
        c->why = *why;
}

bool
site_changes_take(struct site_changes *all, struct site_change *out)
{
    if (all == NULL || all->count == 0)
        return false;
    *out = all->ring[all->first];
    all->first = (all->first + 1) % SITE_CHANGES_MAX;
    all->count--;
    return true;
}

void
site_changes_free(struct site_changes **changes)
{
    free(*changes);
    *changes = NULL;
}
