/* Limits of a group. */
#include "t/roof/law_group.h"

#include "base/memory.h"
#include "t/roof/hop.h"
#include "t/roof/redis.h"
#include "t/roof/roof.h"

#include <inttypes.h>

enum {
    WINDOW_MS = MINUTE_MS,
    PERIODS = 12,               /* of the bank, in a minute */
    PASSING_MS = 5 * SECOND_MS, /* the end of one is on its way */
    DOUBT_MS = 40 * SECOND_MS   /* a bank that was away (doc/cluster.md) */
};

static struct site {
    struct law_group_limits limits;
    bool is_on;
    unsigned number;
    struct roof_timer over; /* too many are open */
    bool is_over;
    unsigned doubtful; /* sessions that are open and may have begun in doubt */
    int64_t *begun_ms;       /* of transactions */
    size_t count;
} sites[LAW_GROUP_SITES];

void
law_group_begin(unsigned site, const struct law_group_limits *limits)
{
    sites[site] = (struct site){.limits = *limits, .is_on = true, .number = site};
    roof_note("group: site %u has %u/m, burst %u, %u sessions", site,
              limits->rate_a_minute, limits->burst, limits->sessions);
}

static bool
was_in_doubt(int64_t ago_ms)
{
    int64_t trouble_ms = redises_trouble_ms();
    return trouble_ms != INT64_MIN && roof_now_ms() - ago_ms - trouble_ms < DOUBT_MS;
}

/* Without a bank those that cannot be divided go from host to host, and one that lasts long
 * is open beyond its turn. While it is in doubt a host begins with its part of what others
 * still have. Sessions that began then may outlast the doubt. */
static unsigned
most_sessions(const struct site *s)
{
    const struct law_group_limits *l = &s->limits;
    unsigned parts = (l->sessions + l->hosts - 1) / l->hosts * l->hosts;
    if (roof_breaks("shared sessions"))
        return 0;
    if (!l->has_bank)
        return parts;
    if (was_in_doubt(0))
        return l->sessions + parts;
    return s->doubtful > l->sessions ? s->doubtful : l->sessions;
}

static void
site_on_over(void *context)
{
    struct site *s = context;
    unsigned open = hops_shared_sessions(s->number), most = most_sessions(s);
    s->is_over = open > s->limits.sessions;
    if (open > most)
        roof_break("bounds", NULL,
                   "%u sessions of all hosts at shared site %u for a while, with a "
                   "limit of %u",
                   open, s->number, most);
    if (s->is_over) /* until the doubt ends */
        roof_timer_start(&s->over, roof_breaks("shared sessions") ? 0 : PASSING_MS,
                         site_on_over, s);
}

void
law_group_session(unsigned site)
{
    struct site *s = &sites[site];
    if (!s->is_on || s->limits.is_forgiven || s->limits.is_slow)
        return;
    bool was_over = s->is_over;
    unsigned most = roof_breaks("shared sessions") ? 0 : s->limits.sessions,
             open = hops_shared_sessions(site);
    if (was_in_doubt(0) || s->doubtful > open)
        s->doubtful = open;
    s->is_over = open > most;
    if (!s->is_over)
        roof_timer_stop(&s->over);
    else if (!was_over)
        roof_timer_start(&s->over, roof_breaks("shared sessions") ? 0 : PASSING_MS,
                         site_on_over, s);
}

/* One transaction more for each host, and the rest of a period. A host that left, and came
 * back without a bank, has its part beside those of the others, who do not know of it. */
static size_t
most_transactions(const struct site *s)
{
    const struct law_group_limits *l = &s->limits;
    unsigned most = l->rate_a_minute + l->rate_a_minute * 7 / 100 +
                    l->rate_a_minute / PERIODS + l->burst + l->hosts + 1;
    if (roof_breaks("shared rate"))
        return 0;
    return was_in_doubt(WINDOW_MS) ? most + l->rate_a_minute / l->hosts : most;
}

void
law_group_transaction(unsigned site)
{
    struct site *s = &sites[site];
    size_t most = most_transactions(s);
    if (!s->is_on || s->limits.is_forgiven || s->limits.rate_a_minute == 0)
        return;
    s->begun_ms = memory_resize(s->begun_ms, (s->count + 1) * sizeof(*s->begun_ms));
    s->begun_ms[s->count++] = roof_now_ms();
    if (s->count <= most)
        return;
    int64_t first_ms = s->begun_ms[s->count - 1 - most];
    if (roof_now_ms() - first_ms < WINDOW_MS)
        roof_break("bounds", NULL,
                   "more than %zu transactions of all hosts at shared site %u within "
                   "%" PRId64 " s, with a rate of %u a minute",
                   most, s->number, (roof_now_ms() - first_ms) / SECOND_MS,
                   s->limits.rate_a_minute);
}
