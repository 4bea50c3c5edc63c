/* Transports: shared targets, and the pauses between deliveries.
 *
 * A target is compared as bytes, so its memory is zeroed before it is filled. Routes
 * with equal targets share one transport, with its rate delay and its turn. */
#include "sched/transport.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define QUOTA_LEAST_MS   INT64_C(60000)
#define QUOTA_FIRST_MS   (60 * QUOTA_LEAST_MS)
#define QUOTA_LONGEST_MS (6 * QUOTA_FIRST_MS)
#define QUOTA_DAY_MS     (24 * QUOTA_FIRST_MS)

struct transport *
transport_open(struct transports *set, const struct target *target)
{
    struct transport *c = set->last;
    /* A comparison is much cheaper than a hash, and most mail uses one transport. */
    if (c && memcmp(&c->target, target, sizeof(*target)) == 0)
        return transport_share(c);
    HASH_FIND(hh, set->by_target, target, sizeof(*target), c);
    if (!c) {
        c = memory_new(sizeof(*c));
        memcpy(&c->target, target, sizeof(*target));
        const char *why;
        c->token = token_table_find(&set->tokens, target, &why);
        c->hop = hop_quota_share(&set->hops, target);
        (void)hop_quota_update(&set->hops, c);
        HASH_ADD(hh, set->by_target, target, sizeof(c->target), c);
    }
    set->last = c;
    return transport_share(c);
}

bool
transport_change(struct transports *set, struct transport *c,
                 const struct target *target, int64_t now_ms)
{
    struct transport *other;
    HASH_FIND(hh, set->by_target, target, sizeof(*target), other);
    if (other)
        return false;
    HASH_DELETE(hh, set->by_target, c);
    memcpy(&c->target, target, sizeof(*target));
    HASH_ADD(hh, set->by_target, target, sizeof(c->target), c);
    int64_t longest_ms = now_ms + target->transport.transport_rate_delay_ms;
    if (c->pause_until_ms > longest_ms)
        c->pause_until_ms = longest_ms;
    struct hop_quota *hop = hop_quota_share(&set->hops, target);
    hop_quota_close(c->hop);
    c->hop = hop;
    (void)hop_quota_update(&set->hops, c);
    return true;
}

struct transport *
transport_share(struct transport *c)
{
    c->holders++;
    return c;
}

void
transport_close(struct transports *set, struct transport *c)
{
    assert(c->holders > 0);
    if (--c->holders > 0)
        return;
    assert(!c->sites && !c->is_ready);
    if (set->last == c)
        set->last = NULL;
    HASH_DELETE(hh, set->by_target, c);
    hop_quota_close(c->hop);
    free(c);
}

bool
transport_pauses(const struct transport *c, int64_t now_ms)
{
    return now_ms < c->quota_until_ms || now_ms < c->spent_until_ms ||
           (c->target.transport.transport_rate_delay_ms > 0 &&
            (c->carrying > 0 || now_ms < c->pause_until_ms));
}

/* Several sessions may be refused for one limit: only the first of them counts. */
void
transport_quota_used_up(struct transport *c, int64_t now_ms, int64_t asked_ms)
{
    if (now_ms < c->quota_until_ms)
        return;
    if (c->quota_until_ms == 0)
        transport_share(c); /* its mail may all be on disk meanwhile */
    int64_t pause = asked_ms < QUOTA_DAY_MS ? asked_ms : QUOTA_DAY_MS;
    if (asked_ms == 0) {
        pause = c->quota_pause_ms == 0 ? QUOTA_FIRST_MS : 2 * c->quota_pause_ms;
        pause = pause < QUOTA_LONGEST_MS ? pause : QUOTA_LONGEST_MS;
        c->quota_pause_ms = pause;
    }
    c->quota_until_ms = now_ms + (pause > QUOTA_LEAST_MS ? pause : QUOTA_LEAST_MS);
}

void
transport_quota_end(struct transports *set, struct transport *c)
{
    if (c->quota_until_ms == 0)
        return;
    c->quota_until_ms = c->quota_pause_ms = 0;
    transport_close(set, c);
}

void
transport_begin(struct transport *c, int64_t now_ms)
{
    c->carrying++;
    if (c->target.transport.transport_rate_delay_ms > 0)
        c->pause_until_ms = now_ms + c->target.transport.transport_rate_delay_ms;
}

void
transport_end(struct transport *c)
{
    assert(c->carrying > 0);
    c->carrying--;
}
