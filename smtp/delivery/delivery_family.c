/* Sites that refuse our IPv6 address: their mail goes over IPv4 for a day.
 *
 * Receivers demand more of IPv6: a PTR record, SPF or DKIM. Such a refusal says nothing
 * about the mail, which IPv4 may carry. So it is deferred for a moment, and the site's
 * sessions over IPv6 end. */
#include "sched/limits/refusal.h"
#include "smtp/delivery/delivery_internal.h"

#include <errno.h>

#define REST_MS    (INT64_C(24) * 60 * 60 * 1000)
#define NO_IPV4_MS (INT64_C(60) * 60 * 1000)

/* NULL: the site may be asked over IPv6. */
static struct ipv6_rest *
find_rest(struct delivery *d, uint64_t site, int64_t now_ms)
{
    for (size_t i = 0; i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms > now_ms && d->ipv6_rests[i].site == site)
            return &d->ipv6_rests[i];
    return NULL;
}

/* The slot of the site, else the one that ends first: a rest that ends early costs one
 * refusal. */
static struct ipv6_rest *
rest_slot(struct delivery *d, uint64_t site, int64_t now_ms)
{
    struct ipv6_rest *best = find_rest(d, site, now_ms);
    for (size_t i = 0; best == NULL && i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms <= now_ms)
            best = &d->ipv6_rests[i];
    if (best != NULL)
        return best;
    best = &d->ipv6_rests[0];
    for (size_t i = 1; i < DELIVERY_IPV6_RESTS_MAX; i++)
        if (d->ipv6_rests[i].until_ms < best->until_ms)
            best = &d->ipv6_rests[i];
    return best;
}

/* Without a route for IPv4 nothing but IPv6 can carry mail. */
static bool
site_rests(const struct delivery_session *s)
{
    struct delivery *d = s->delivery;
    int64_t now_ms = loop_monotonic_ms(d->loop);
    return now_ms < d->ipv6_rests_until_ms && now_ms >= d->no_ipv4_until_ms &&
           find_rest(d, s->site, now_ms) != NULL;
}

static bool
is_over_ipv6(const struct delivery_session *s)
{
    const struct mx_lookup_host *host = candidates_next(&s->candidates);
    return host != NULL && host->address.family == NET_IPV6;
}

bool
delivery_family_rests(const struct delivery_session *s)
{
    return s->connection != NULL && is_over_ipv6(s) && site_rests(s);
}

void
delivery_family_choose(struct delivery_session *s)
{
    if (site_rests(s) && candidates_have(&s->candidates, NET_IPV4))
        candidates_drop(&s->candidates, NET_IPV6);
}

/* No route, no address of ours, no IPv4 in the kernel. EHOSTUNREACH is not in it: a
 * router may say it of this host alone. */
static bool
is_without_ipv4(int error)
{
    return error == ENETUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

void
delivery_family_failed(struct delivery_session *s, const struct mx_lookup_host *host,
                       int error)
{
    struct delivery *d = s->delivery;
    if (host->address.family == NET_IPV4 && is_without_ipv4(error))
        d->no_ipv4_until_ms = loop_monotonic_ms(d->loop) + NO_IPV4_MS;
}

bool
delivery_family_refused(struct delivery_session *s, const struct outcome *outcome)
{
    struct delivery *d = s->delivery;
    int64_t now = loop_monotonic_ms(d->loop);
    if (outcome->verdict == VERDICT_DELIVERED || !is_over_ipv6(s) ||
        !candidates_have(&s->candidates, NET_IPV4) || now < d->no_ipv4_until_ms ||
        !refusal_is_of_ipv6(outcome))
        return false;
    if (!site_rests(s))
        log_say(d->log, LOG_LEVEL_INFO, "smtp", NULL,
                "%s refuses our IPv6 address: using IPv4", s->peer.where);
    d->ipv6_rests_until_ms = now + REST_MS;
    *rest_slot(d, s->site, now) = (struct ipv6_rest){s->site, now + REST_MS};
    return true;
}

/* A single address without a route made it look as if there were no IPv4. */
static void
note_ipv4(struct delivery_session *s, const struct outcome *outcome)
{
    const struct mx_lookup_host *host = candidates_next(&s->candidates);
    if (host != NULL && host->address.family == NET_IPV4 && outcome->code != 0)
        s->delivery->no_ipv4_until_ms = 0;
}

struct outcome
delivery_family_judge(struct delivery_session *s, const struct outcome *outcome)
{
    struct outcome judged = *outcome;
    note_ipv4(s, outcome);
    if (!delivery_family_refused(s, outcome))
        return judged;
    judged.verdict = VERDICT_DEFERRED;
    judged.blame = BLAME_ADDRESS;
    judged.enhanced[0] = '4';
    return judged;
}
