/* Remembers which receivers refuse this host, or its mail for a lack of its own. */
#include "base/memory.h"
#include "queue/manager/manager_internal.h"

#include <stdio.h>

#define REFUSER_HOUR_MS    (INT64_C(60) * 60 * 1000)
#define REFUSER_LONGEST_MS (6 * REFUSER_HOUR_MS)

enum { REFUSER_NAME_MAX = 256 };

struct refusers {
    struct refuser {
        char name[REFUSER_NAME_MAX]; /* "": unused */
        char what[REFUSAL_HINT_MAX + 40];
        int64_t refused_ms; /* monotonic, the last time */
        bool took;          /* mail since then */
    } list[MANAGER_REFUSERS_MAX];
};

static bool
refuser_is_over(const struct refuser *r, int64_t now_ms)
{
    return now_ms - r->refused_ms >= (r->took ? REFUSER_HOUR_MS : REFUSER_LONGEST_MS);
}

/* That of the name, else one that is free, else that refused longest ago. */
static struct refuser *
refuser_find(struct refusers *all, struct text name)
{
    struct refuser *best = &all->list[0];
    for (struct refuser *r = all->list; r < all->list + MANAGER_REFUSERS_MAX; r++)
        if (text_equal(text_from(r->name), name))
            return r;
    for (struct refuser *r = all->list; r < all->list + MANAGER_REFUSERS_MAX; r++)
        if (best->name[0] != '\0' &&
            (r->name[0] == '\0' || r->refused_ms < best->refused_ms))
            best = r;
    return best;
}

/* Large receivers have many hosts, and one mind. */
static struct text
refuser_name(const struct outcome *outcome)
{
    struct text host = refusal_host(outcome);
    const char *receiver = refusal_receiver(host);
    return receiver != NULL ? text_from(receiver)
                            : text_before(host, REFUSER_NAME_MAX - 1);
}

static bool refuses_us(enum refusal_class class)
{
    return class == REFUSAL_AUTH || class == REFUSAL_PTR || class == REFUSAL_REPUTATION;
}

static void
refuser_took(struct refusers *all, struct text name)
{
    struct refuser *r = refuser_find(all, name);
    if (text_equal(text_from(r->name), name))
        r->took = true;
}

/* Mail that goes to IPv4 instead is not refused. */
void
refusers_note(struct manager *m, const struct outcome *outcome)
{
    char hint[REFUSAL_HINT_MAX];
    if (outcome->verdict == VERDICT_DELIVERED) {
        if (m->refusers != NULL && outcome->remote[0] != '\0')
            refuser_took(m->refusers, refuser_name(outcome));
        return;
    }
    enum refusal_class class = refusal_classify(outcome);
    if (!refuses_us(class) || outcome->blame == BLAME_ADDRESS ||
        !refusal_hint(outcome, hint))
        return;
    struct text name = refuser_name(outcome);
    if (name.length == 0)
        return;
    if (m->refusers == NULL)
        m->refusers = memory_new(sizeof(*m->refusers));
    struct refuser *r = refuser_find(m->refusers, name);
    *r = (struct refuser){.refused_ms = loop_monotonic_ms(m->loop)};
    (void)!text_copy(r->name, sizeof(r->name), name);
    snprintf(r->what, sizeof(r->what), "refuses mail (%s): %s", refusal_name(class),
             hint);
}

void
manager_refusers(const struct manager *m,
                 void (*each)(void *context, const char *receiver, const char *what),
                 void *context)
{
    for (size_t i = 0; m->refusers != NULL && i < MANAGER_REFUSERS_MAX; i++) {
        const struct refuser *r = &m->refusers->list[i];
        if (r->name[0] != '\0' && !refuser_is_over(r, loop_monotonic_ms(m->loop)))
            each(context, r->name, r->what);
    }
}
