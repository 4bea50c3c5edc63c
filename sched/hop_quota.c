/* Quotas of next hops: our own, by the recipients that were sent, and those of providers
 * that refuse more mail of our account. */
#include "sched/hop_quota.h"

#include "base/memory.h"
#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"
#include "sched/sched_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t
steady_ms(const struct hop_quotas *set)
{
    return set->now_ms - set->shift_ms;
}

static void
hop_quota_free(struct hop_quotas *set, struct hop_quota *hop)
{
    assert(hop->holders == 0);
    HASH_DEL(set->by_key, hop);
    free(hop);
}

/* Rare: after a thousand changes of the routes. */
static void
forget_least_hop(struct hop_quotas *set)
{
    struct hop_quota *hop, *next, *least = NULL;
    uint32_t least_used = 0;
    HASH_ITER (hh, set->by_key, hop, next) {
        uint32_t used = quota_used(&hop->use, QUOTA_DAY, steady_ms(set));
        if (hop->holders > 0 || hop->use.reserved > 0 ||
            (least != NULL && used >= least_used))
            continue;
        least = hop;
        least_used = used;
    }
    if (least != NULL)
        hop_quota_free(set, least);
}

/* Made if it is missing. */
static struct hop_quota *
hop_quota_recall(struct hop_quotas *set, struct text key)
{
    struct hop_quota *hop;
    HASH_FIND(hh, set->by_key, key.at, key.length, hop);
    if (hop != NULL)
        return hop;
    if (HASH_COUNT(set->by_key) >= HOP_QUOTAS_MAX)
        forget_least_hop(set);
    hop = memory_new(sizeof(*hop) + key.length + 1);
    memcpy(hop->key, key.at, key.length);
    HASH_ADD_KEYPTR(hh, set->by_key, hop->key, key.length, hop);
    return hop;
}

static bool
hop_quota_reset(struct hop_quotas *set, struct text key)
{
    struct hop_quota *hop;
    HASH_FIND(hh, set->by_key, key.at, key.length, hop);
    if (hop != NULL)
        hop->use = (struct quota_use){.reserved = hop->use.reserved};
    return hop != NULL;
}

struct hop_quota *
hop_quota_share(struct hop_quotas *set, const struct target *target)
{
    char key[ROUTE_KEY_MAX];
    struct target plain;
    if (quota_is_none(&target->transport.quota))
        return NULL;
    /* One quota, whatever senders ask. */
    memcpy(&plain, target, sizeof(plain));
    plain.asks = TARGET_ASKS_NOTHING;
    struct hop_quota *hop =
        hop_quota_recall(set, text_of(key, route_key(&plain, TEXT(""), key)));
    hop->holders++;
    return hop;
}

void
hop_quota_close(struct hop_quota *hop)
{
    assert(hop == NULL || hop->holders > 0);
    if (hop != NULL)
        hop->holders--;
}

void
hop_quotas_free(struct hop_quotas *set)
{
    struct hop_quota *hop, *next;
    HASH_ITER (hh, set->by_key, hop, next)
        hop_quota_free(set, hop);
}

uint32_t
hop_quota_left(const struct hop_quotas *set, const struct transport *c)
{
    struct quota quota = quota_on(&c->target.transport.quota, set->now_ms);
    return c->hop == NULL ? QUOTA_AMOUNT_MAX
                          : quota_left(&c->hop->use, &quota, steady_ms(set));
}

struct hop_quota *
hop_quota_begin(struct transport *c, uint32_t count)
{
    if (c->hop != NULL)
        quota_reserve(&c->hop->use, count);
    return c->hop;
}

void
hop_quota_end(struct hop_quotas *set, struct hop_quota *hop, uint32_t count,
              uint32_t sent)
{
    if (hop != NULL)
        quota_settle(&hop->use, count, sent, steady_ms(set));
}

/* On a later day of a ramp more may be sent than now, and so earlier. */
static int64_t
hop_quota_ramp(const struct hop_quotas *set, const struct transport *c, int64_t ready)
{
    const struct quota *ramp = &c->target.transport.quota;
    int64_t grows = quota_grows_ms(ramp, set->now_ms);
    while (grows != INT64_MAX && grows - set->shift_ms < ready) {
        struct quota quota = quota_on(ramp, grows);
        enum quota_period unused;
        int64_t day = grows - set->shift_ms;
        int64_t then = quota_ready_ms(&c->hop->use, &quota, 1, steady_ms(set), &unused);
        then = then > day ? then : day;
        ready = then < ready ? then : ready;
        grows = quota_grows_ms(ramp, grows);
    }
    return ready;
}

bool
hop_quota_update(const struct hop_quotas *set, struct transport *c)
{
    bool was_spent = set->now_ms < c->spent_until_ms;
    c->spent_until_ms = 0;
    if (c->hop == NULL)
        return was_spent;
    int64_t now = steady_ms(set);
    struct quota quota = quota_on(&c->target.transport.quota, set->now_ms);
    int64_t ready = quota_ready_ms(&c->hop->use, &quota, 1, now, &c->spent_period);
    if (ready > now)
        c->spent_until_ms = hop_quota_ramp(set, c, ready) + set->shift_ms;
    return was_spent != (ready > now);
}

/* --- The provider's limit of an account ------------------------------------------ */

/* Such a refusal is about the account, so no mail leaves for that target until the limit may
 * be over. Waiting mail has no attempts meanwhile. */
enum { QUOTA_SLACK_MS = 1000 };

/* One message is refused after each pause. The others, which wait in memory, are
 * deferred then, or their lifetime would never end. That is no attempt. */
static void
suspend(struct sched *s, struct transport *transport, const struct outcome *outcome)
{
    struct site *site, *next;
    struct outcome later =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, REPLY_CLASS_TOKEN_ENHANCED,
                     "delivery temporarily suspended: %s", outcome->text);
    text_copy(later.remote, sizeof(later.remote), text_from(outcome->remote));
    HASH_ITER (hh, transport->sites, site, next)
        sched_site_settle(s, site, &later);
}

void
sched_quota_end(struct sched *s, struct transport *transport)
{
    if (transport->quota_until_ms == 0)
        return;
    transport_share(transport);
    transport_quota_end(&s->destinations.sites.transports, transport);
    sites_update(&s->destinations.sites, transport, s->now_ms);
    transport_close(&s->destinations.sites.transports, transport);
}

void
sched_quota_settled(struct sched *s, struct site *site, const struct outcome *outcome)
{
    struct transport *transport = site->transport;
    if (!target_has_user(&transport->target))
        return;
    if (outcome->verdict == VERDICT_DELIVERED) {
        sched_quota_end(s, transport);
    } else if (outcome->verdict == VERDICT_DEFERRED && outcome->code != 0 &&
               refusal_classify(outcome) == REFUSAL_QUOTA) {
        transport_quota_used_up(transport, s->now_ms, reply_class_asked_ms(outcome));
        suspend(s, transport, outcome);
        sites_update(&s->destinations.sites, transport, s->now_ms);
    }
}

void
sched_quota_forget(struct sched *s)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        sched_quota_end(s, transport);
}

void
sched_quota_pauses(const struct sched *s,
                   void (*each)(void *context, const char *target, int64_t left_ms),
                   void *context)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next) {
        char key[ROUTE_KEY_MAX];
        if (transport->quota_until_ms <= s->now_ms)
            continue;
        (void)route_key(&transport->target, TEXT(""), key);
        each(context, key, transport->quota_until_ms - s->now_ms);
    }
}

/* --- Our own quotas --------------------------------------------------------------- */

void
sched_quota_refresh(struct sched *s)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        if (transport->hop != NULL) {
            (void)hop_quota_update(&s->destinations.sites.transports.hops, transport);
            sites_update(&s->destinations.sites, transport, s->now_ms);
        }
}

static void
move_birth(void *context, struct message_index *k)
{
    const int64_t *by_ms = context;
    if (k->place == MESSAGE_INDEX_ACTIVE && k->message != NULL)
        k->message->birth_ms += *by_ms;
}

/* A day of the quota is a day also when the clock is set: it would have passed twice, or
 * not at all. A clock that went back may have moved all other times by some of the step. */
void
sched_quota_tick(struct sched *s, bool is_back)
{
    int64_t *shift_ms = &s->destinations.sites.transports.hops.shift_ms, by_ms = 0;
    if (s->steady_ms != NULL)
        by_ms = s->now_ms - s->steady_ms(s->steady_context) - *shift_ms;
    if (!is_back && by_ms > -QUOTA_SLACK_MS && by_ms < QUOTA_SLACK_MS)
        return;
    *shift_ms += by_ms;
    by_ms = s->stepped != NULL ? s->stepped(s->steady_context) : 0;
    if (by_ms != 0)
        message_index_each(&s->known, move_birth, &by_ms);
    sched_quota_refresh(s); /* an earlier day of a ramp has less */
}

void
sched_on_step(struct sched *s, int64_t (*stepped)(void *context))
{
    assert(s->steady_ms != NULL);
    s->stepped = stepped;
}

void
sched_quota_clock(struct sched *s, int64_t (*steady_clock)(void *context),
                  void *context)
{
    s->steady_ms = steady_clock;
    s->steady_context = context;
    sched_tick(s);
}

/* That of today. */
static const struct quota *
find_quota_of(const struct sched *s, const struct hop_quota *hop, struct quota *today)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        if (transport->hop == hop && !transport->is_gone) {
            *today = quota_on(&transport->target.transport.quota, s->now_ms);
            return today;
        }
    return NULL;
}

void
sched_quotas(const struct sched *s,
             void (*each)(void *context, const struct sched_quota *quota),
             void *context)
{
    const struct hop_quotas *hops = &s->destinations.sites.transports.hops;
    struct hop_quota *hop, *next;
    struct quota today;
    HASH_ITER (hh, hops->by_key, hop, next)
        each(context,
             &(struct sched_quota){hop->key, find_quota_of(s, hop, &today), &hop->use});
}

bool
sched_has_quotas(const struct sched *s)
{
    return s->destinations.sites.transports.hops.by_key != NULL;
}

int64_t
sched_quota_ahead_ms(const struct sched *s)
{
    return s->destinations.sites.transports.hops.shift_ms;
}

struct quota_use *
sched_quota_recall(struct sched *s, struct text key)
{
    return &hop_quota_recall(&s->destinations.sites.transports.hops, key)->use;
}

bool
sched_quota_reset(struct sched *s, struct text key)
{
    struct sites *sites = &s->destinations.sites;
    struct transport *transport, *next;
    sched_tick(s);
    if (!hop_quota_reset(&sites->transports.hops, key))
        return false;
    HASH_ITER (hh, sites->transports.by_target, transport, next)
        if (transport->hop != NULL &&
            hop_quota_update(&sites->transports.hops, transport))
            sites_update(sites, transport, s->now_ms);
    return true;
}
