/* The scheduler's machine: providers that limit the mail of our account in a day, and
 * our own quotas of next hops.
 *
 * Such a refusal is about the account, so no mail leaves for that target until the
 * limit may be over. Waiting mail has no attempts meanwhile. */
#include "sched/sched_internal.h"

#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"

#include <string.h>

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

/* A day of the quota is a day also when the clock is set: it would have passed twice, or
 * not at all. */
void
sched_quota_tick(struct sched *s)
{
    struct hop_quotas *hops = &s->destinations.sites.transports.hops;
    struct transport *transport, *next;
    if (s->steady_ms == NULL)
        return;
    int64_t ahead_ms = s->now_ms - s->steady_ms(s->steady_context);
    int64_t by_ms = ahead_ms - hops->shift_ms;
    if (by_ms > -QUOTA_SLACK_MS && by_ms < QUOTA_SLACK_MS)
        return;
    hops->shift_ms = ahead_ms;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        if (transport->hop != NULL) {
            (void)hop_quota_update(hops, transport);
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

void
sched_quota_moved(struct sched *s, int64_t by_ms)
{
    if (s->stepped == NULL || (by_ms < SCHED_STEP_MS && by_ms > -SCHED_STEP_MS))
        return;
    message_index_each(&s->known, move_birth, &by_ms);
    s->stepped(s->steady_context, by_ms);
}

void
sched_quota_step(struct sched *s)
{
    int64_t shift_ms = s->destinations.sites.transports.hops.shift_ms;
    if (s->stepped != NULL)
        sched_quota_moved(s, s->now_ms - s->steady_ms(s->steady_context) - shift_ms);
}

void
sched_on_step(struct sched *s, void (*stepped)(void *context, int64_t by_ms))
{
    assert(s->steady_ms != NULL);
    s->stepped = stepped;
}

void
sched_quota_clock(struct sched *s, int64_t now_ms, int64_t (*steady_ms)(void *context),
                  void *context)
{
    s->steady_ms = steady_ms;
    s->steady_context = context;
    sched_tick(s, now_ms);
}

static const struct quota *
find_quota_of(const struct sched *s, const struct hop_quota *hop)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        if (transport->hop == hop && !transport->is_gone)
            return &transport->target.transport.quota;
    return NULL;
}

void
sched_quotas(const struct sched *s,
             void (*each)(void *context, const struct sched_quota *quota),
             void *context)
{
    const struct hop_quotas *hops = &s->destinations.sites.transports.hops;
    struct hop_quota *hop, *next;
    HASH_ITER (hh, hops->by_key, hop, next)
        each(context,
             &(struct sched_quota){hop->key, find_quota_of(s, hop), &hop->use});
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
sched_quota_reset(struct sched *s, int64_t now_ms, struct text key)
{
    struct sites *sites = &s->destinations.sites;
    struct transport *transport, *next;
    sched_tick(s, now_ms);
    if (!hop_quota_reset(&sites->transports.hops, key))
        return false;
    HASH_ITER (hh, sites->transports.by_target, transport, next)
        if (transport->hop != NULL &&
            hop_quota_update(&sites->transports.hops, transport))
            sites_update(sites, transport, s->now_ms);
    return true;
}
