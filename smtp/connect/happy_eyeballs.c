/* Races connections to the addresses of a destination.
 *
 * attempts[] has at most one attempt of each family: next_for() finds nothing else
 * beside one that is under way. tried[] is by place in order[]; the loser of a race is
 * marked as not tried, so that it gets its turn if the winner proves unusable. The
 * owner may free the race within each event but TRYING: `freed` is checked after FAILED
 * and BEATEN, and the other events are the last act of their function. */
#include "smtp/connect/happy_eyeballs.h"

#include "base/memory.h"
#include "base/net/net.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 2 }; /* one a family */

struct attempt {
    struct happy_eyeballs *race;
    struct net_connection *connection; /* NULL: not under way */
    size_t at;                         /* of order */
    int64_t started_ms;
    struct loop_timer deadline;
};

struct happy_eyeballs {
    struct happy_eyeballs_settings settings;
    const struct mx_lookup_host *hosts;
    const size_t *order;
    size_t count;
    happy_eyeballs_happened *on_event;
    void *context;
    net_happened *on_net; /* for attempts, like on_deadline */
    void (*on_deadline)(void *attempt);
    struct attempt attempts[ATTEMPTS];
    bool tried[MX_LOOKUP_ADDRESS_MAX];
    bool freed;
    struct loop_timer head_start;
};

static const struct mx_lookup_host *
host_at(const struct happy_eyeballs *d, size_t at)
{
    return &d->hosts[d->order[at]];
}

static void
happy_eyeballs_report(struct attempt *a, enum happy_eyeballs_event_kind kind,
                      struct net_connection *connection, const char *why, int error)
{
    struct happy_eyeballs *d = a->race;
    struct happy_eyeballs_event event = {.kind = kind,
                                         .which = d->order[a->at],
                                         .connection = connection,
                                         .started_ms = a->started_ms,
                                         .why = why,
                                         .error = error};
    d->on_event(d->context, &event);
}

static struct attempt *
under_way(struct happy_eyeballs *d)
{
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (d->attempts[i].connection != NULL)
            return &d->attempts[i];
    return NULL;
}

/* The next address that may be tried in parallel with `beside` (NULL: alone); count:
 * none. A backup host must not win against a main one that is only slower. */
static size_t
next_for(const struct happy_eyeballs *d, const struct attempt *beside)
{
    size_t at = 0;
    for (; at < d->count; at++) {
        if (d->tried[at])
            continue;
        if (beside == NULL)
            break;
        const struct mx_lookup_host *other = host_at(d, beside->at);
        if (host_at(d, at)->preference == other->preference &&
            host_at(d, at)->address.family != other->address.family)
            break;
    }
    return at;
}

static void
happy_eyeballs_stop(struct attempt *a)
{
    loop_timer_stop(a->race->settings.loop, &a->deadline);
    net_abort(&a->connection);
}

/* The first attempt has place 0 unless it is taken: at most one of each family is under
 * way. */
static void
happy_eyeballs_start(struct happy_eyeballs *d, size_t at)
{
    struct attempt *a = &d->attempts[d->attempts[0].connection != NULL];
    const struct net_address *address = &host_at(d, at)->address;
    assert(a->connection == NULL && !d->tried[at]);
    d->tried[at] = true;
    a->race = d;
    a->at = at;
    a->started_ms = loop_monotonic_ms(d->settings.loop);
    happy_eyeballs_report(a, HAPPY_EYEBALLS_TRYING, NULL, NULL, 0);
    struct net_address source;
    bool is_bound = bind_address_for(d->settings.sources, address->family, &source);
    a->connection =
        net_connect(d->settings.net, address, is_bound ? &source : NULL, d->on_net, a);
    loop_timer_start(d->settings.loop, &a->deadline, d->settings.timeout_ms,
                     d->on_deadline, a);
}

/* The first address had its time; the other family may win now. */
static void
on_head_start_over(void *context)
{
    struct happy_eyeballs *d = context;
    struct attempt *first = under_way(d);
    size_t at = next_for(d, first);
    assert(first != NULL);
    if (at < d->count)
        happy_eyeballs_start(d, at);
}

/* After an attempt has failed, or at the start. A failure does not wait for the rest of
 * the head start (RFC 8305 §5): the timer runs only beside a first attempt. */
static void
happy_eyeballs_advance(struct happy_eyeballs *d)
{
    struct attempt *first = under_way(d);
    size_t at = next_for(d, first);
    if (at < d->count) {
        happy_eyeballs_start(d, at);
    } else if (first == NULL) {
        struct happy_eyeballs_event event = {.kind = HAPPY_EYEBALLS_OVER};
        d->on_event(d->context, &event);
        return;
    }
    loop_timer_stop(d->settings.loop, &d->head_start);
    if (first == NULL)
        loop_timer_start(d->settings.loop, &d->head_start, d->settings.head_start_ms,
                         on_head_start_over, d);
}

/* The owner may free the race in its callback. */
static void
failed(struct attempt *a, const char *why, int error)
{
    struct happy_eyeballs *d = a->race;
    happy_eyeballs_report(a, HAPPY_EYEBALLS_FAILED, NULL, why, error);
    if (d->freed)
        return;
    happy_eyeballs_stop(a); /* only now: why belongs to the connection */
    happy_eyeballs_advance(d);
}

static void
happy_eyeballs_on_deadline(void *context)
{
    failed(context, "timed out", ETIMEDOUT);
}

/* The loser is reported only if it had a head start: an attempt that began later has
 * not shown that its address is bad. */
static void
connected(struct attempt *a)
{
    struct happy_eyeballs *d = a->race;
    struct net_connection *connection = a->connection;
    a->connection = NULL;
    loop_timer_stop(d->settings.loop, &a->deadline);
    loop_timer_stop(d->settings.loop, &d->head_start);
    struct attempt *other = under_way(d);
    if (other != NULL) {
        happy_eyeballs_stop(other);
        d->tried[other->at] = false;
        if (other->started_ms < a->started_ms)
            happy_eyeballs_report(other, HAPPY_EYEBALLS_BEATEN, NULL, NULL, 0);
    }
    if (d->freed)
        net_abort(&connection);
    else
        happy_eyeballs_report(a, HAPPY_EYEBALLS_CONNECTED, connection, NULL, 0);
}

/* Without the prefix of net.c, which repeats the peer's address. */
static const char *
bare_reason(const char *why)
{
    const char *end = text_starts(text_from(why), TEXT("cannot connect to "))
                          ? strstr(why, ": ")
                          : NULL;
    return end ? end + 2 : why;
}

static void
happy_eyeballs_on_net(void *context, enum net_event event)
{
    struct attempt *a = context;
    const char *why = NULL;
    int error = 0;
    switch (event) {
    case NET_CONNECTED:
        connected(a);
        return;
    case NET_FAILED:
        why = bare_reason(net_error(a->connection));
        error = net_errno(a->connection);
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
    case NET_INPUT:
    case NET_DRAINED:
    case NET_SECURED:
        break; /* of these only NET_ENDED comes before NET_CONNECTED */
    }
    failed(a, why != NULL ? why : "closed", error);
}

struct happy_eyeballs *
happy_eyeballs_new(const struct happy_eyeballs_settings *settings,
                   const struct mx_lookup_host *hosts, const size_t *order,
                   size_t count, happy_eyeballs_happened *on_event, void *context)
{
    struct happy_eyeballs *d = memory_new(sizeof(*d));
    assert(count > 0 && count <= MX_LOOKUP_ADDRESS_MAX && settings->timeout_ms > 0);
    d->settings = *settings;
    d->hosts = hosts;
    d->order = order;
    d->count = count;
    d->on_event = on_event;
    d->context = context;
    d->on_net = happy_eyeballs_on_net;
    d->on_deadline = happy_eyeballs_on_deadline;
    return d;
}

/* After a connection that did not greet: the addresses that were not tried are left. */
bool
happy_eyeballs_go_on(struct happy_eyeballs *d)
{
    assert(!d->freed && under_way(d) == NULL);
    bool left = next_for(d, NULL) < d->count;
    if (left)
        happy_eyeballs_advance(d);
    return left;
}

/* An operator sees the older attempt as that of the session. */
bool
happy_eyeballs_now(const struct happy_eyeballs *d, size_t *which, int64_t *started_ms)
{
    const struct attempt *oldest = NULL;
    for (size_t i = 0; i < ATTEMPTS; i++) {
        const struct attempt *a = &d->attempts[i];
        if (a->connection != NULL &&
            (oldest == NULL || a->started_ms < oldest->started_ms))
            oldest = a;
    }
    if (oldest == NULL)
        return false;
    *which = d->order[oldest->at];
    *started_ms = oldest->started_ms;
    return true;
}

void
happy_eyeballs_free(struct happy_eyeballs **race)
{
    struct happy_eyeballs *d = *race;
    *race = NULL;
    if (d == NULL)
        return;
    d->freed = true;
    loop_timer_stop(d->settings.loop, &d->head_start);
    for (struct attempt *a; (a = under_way(d)) != NULL;)
        happy_eyeballs_stop(a);
    loop_release(d->settings.loop, free, d);
}
