/* The scheduler's machine: providers that limit what our account may send in a day.
 *
 * Such a refusal is about the account, so no mail leaves for that target until the
 * limit may be over. What waits has no attempts meanwhile. */
#include "sched/sched_internal.h"

#include "sched/limits/refusal.h"
#include "sched/limits/reply_class.h"

/* The share keeps the transport while its sites, of which the last may free itself, are
 * updated. */
static void
update_sites(struct sched *s, struct transport *transport)
{
    struct sites *sites = &s->destinations.sites;
    struct site *site, *next;
    transport_share(transport);
    HASH_ITER (hh, transport->sites, site, next)
        site_update(sites, site, s->now_ms);
    transport_close(&sites->transports, transport);
}

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
        sched_site_settle(s, site, NULL, &later);
}

static void
quota_end(struct sched *s, struct transport *transport)
{
    if (transport->quota_until_ms == 0)
        return;
    transport_share(transport);
    transport_quota_end(&s->destinations.sites.transports, transport);
    update_sites(s, transport);
    transport_close(&s->destinations.sites.transports, transport);
}

void
sched_quota_settled(struct sched *s, struct site *site, const struct outcome *outcome)
{
    struct transport *transport = site->transport;
    if (!target_has_user(&transport->target))
        return;
    if (outcome->verdict == VERDICT_DELIVERED) {
        quota_end(s, transport);
    } else if (outcome->verdict == VERDICT_DEFERRED && outcome->code != 0 &&
               refusal_classify(outcome->text) == REFUSAL_QUOTA) {
        transport_quota_used_up(transport, s->now_ms, reply_class_asked_ms(outcome));
        suspend(s, transport, outcome);
        update_sites(s, transport);
    }
}

void
sched_quota_forget(struct sched *s)
{
    struct transport *transport, *next;
    HASH_ITER (hh, s->destinations.sites.transports.by_target, transport, next)
        quota_end(s, transport);
}
