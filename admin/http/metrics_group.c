/* Figures of the group of hosts. Where there is none, there are none. */
#include "admin/http/metrics_internal.h"

static bool
metrics_group_read(const struct metrics *m, struct metrics_group *out)
{
    *out = (struct metrics_group){.is_up = false};
    return m->setup.group != NULL && m->setup.group(m->setup.group_context, out);
}

void
metrics_write_group_bank(const struct metrics *m, struct metrics_writer *w)
{
    struct metrics_group g;
    if (metrics_group_read(m, &g) && g.has_bank)
        metrics_write(w, "", g.is_up);
}

void
metrics_write_group_hosts(const struct metrics *m, struct metrics_writer *w)
{
    struct metrics_group g;
    if (!metrics_group_read(m, &g))
        return;
    metrics_write_count(w, "state=\"member\"", g.members);
    metrics_write_count(w, "state=\"lost\"", g.lost);
}

void
metrics_write_group_fallback(const struct metrics *m, struct metrics_writer *w)
{
    struct metrics_group g;
    if (metrics_group_read(m, &g))
        metrics_write(w, "", (double)g.fallback_sites);
}

void
metrics_write_group_asks(const struct metrics *m, struct metrics_writer *w)
{
    struct metrics_group g;
    if (!metrics_group_read(m, &g))
        return;
    metrics_write_count(w, "result=\"answered\"",
                        g.asks > g.failures ? g.asks - g.failures : 0);
    metrics_write_count(w, "result=\"failed\"", g.failures);
}
