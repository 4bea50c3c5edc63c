/* Races connections to the addresses of a destination. */
#include "smtp/client/dialing.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS = 2 }; /* one a family */

struct attempt {
    struct dialing *dialing;
    struct net_connection *connection; /* NULL: not under way */
    size_t at;                         /* of order */
    int64_t started_ms;
    struct loop_timer deadline;
};

struct dialing {
    struct dialing_settings settings;
    const struct exchange_host *hosts;
    const size_t *order;
    size_t count;
    dialing_happened *on_event;
    void *context;
    net_happened *on_net; /* of attempts, as is the next */
    void (*on_deadline)(void *attempt);
    struct attempt attempts[ATTEMPTS];
    bool tried[EXCHANGE_ADDRESS_MAX];
    bool freed;
    struct loop_timer head_start;
};

static const struct exchange_host *
host_at(const struct dialing *d, size_t at)
{
    return &d->hosts[d->order[at]];
}

static void
dialing_tell(struct attempt *a, enum dialing_event_kind kind,
             struct net_connection *connection, const char *why)
{
    struct dialing *d = a->dialing;
    struct dialing_event event = {.kind = kind,
                                  .which = d->order[a->at],
                                  .connection = connection,
                                  .started_ms = a->started_ms,
                                  .why = why};
    d->on_event(d->context, &event);
}

static struct attempt *
under_way(struct dialing *d)
{
    for (size_t i = 0; i < ATTEMPTS; i++)
        if (d->attempts[i].connection != NULL)
            return &d->attempts[i];
    return NULL;
}

/* The next address that may be tried beside `beside` (NULL: alone); count: none. */
static size_t
next_for(const struct dialing *d, const struct attempt *beside)
{
    size_t at = 0;
    for (; at < d->count; at++) {
        if (d->tried[at])
            continue;
        if (beside == NULL)
            break;
        const struct exchange_host *other = host_at(d, beside->at);
        if (host_at(d, at)->preference == other->preference &&
            host_at(d, at)->address.family != other->address.family)
            break;
    }
    return at;
}

static void
dialing_stop(struct attempt *a)
{
    loop_timer_stop(a->dialing->settings.loop, &a->deadline);
    net_abort(&a->connection);
}

static void
dialing_start(struct dialing *d, size_t at)
{
    struct attempt *a = &d->attempts[d->attempts[0].connection != NULL];
    const struct net_address *address = &host_at(d, at)->address;
    assert(a->connection == NULL && !d->tried[at]);
    d->tried[at] = true;
    a->dialing = d;
    a->at = at;
    a->started_ms = loop_monotonic_ms(d->settings.loop);
    dialing_tell(a, DIALING_TRYING, NULL, NULL);
    a->connection =
        net_connect(d->settings.net, address,
                    sources_for(d->settings.sources, address->family), d->on_net, a);
    loop_timer_start(d->settings.loop, &a->deadline, d->settings.timeout_ms,
                     d->on_deadline, a);
}

static void
on_head_start_over(void *context)
{
    struct dialing *d = context;
    struct attempt *first = under_way(d);
    size_t at = next_for(d, first);
    assert(first != NULL);
    if (at < d->count)
        dialing_start(d, at);
}

/* After an attempt has failed, or at the start. */
static void
dialing_advance(struct dialing *d)
{
    struct attempt *first = under_way(d);
    size_t at = next_for(d, first);
    if (at < d->count) {
        dialing_start(d, at);
    } else if (first == NULL) {
        struct dialing_event event = {.kind = DIALING_OVER};
        d->on_event(d->context, &event);
        return;
    }
    loop_timer_stop(d->settings.loop, &d->head_start);
    if (first == NULL)
        loop_timer_start(d->settings.loop, &d->head_start, d->settings.head_start_ms,
                         on_head_start_over, d);
}

static void
failed(struct attempt *a, const char *why)
{
    struct dialing *d = a->dialing;
    dialing_tell(a, DIALING_FAILED, NULL, why);
    if (d->freed)
        return;
    dialing_stop(a); /* now: why was the connection's */
    dialing_advance(d);
}

static void
dialing_on_deadline(void *context)
{
    failed(context, "timed out");
}

static void
connected(struct attempt *a)
{
    struct dialing *d = a->dialing;
    struct net_connection *connection = a->connection;
    a->connection = NULL;
    loop_timer_stop(d->settings.loop, &a->deadline);
    loop_timer_stop(d->settings.loop, &d->head_start);
    struct attempt *other = under_way(d);
    if (other != NULL) {
        dialing_stop(other);
        d->tried[other->at] = false;
        if (other->started_ms < a->started_ms)
            dialing_tell(other, DIALING_BEATEN, NULL, NULL);
    }
    if (d->freed)
        net_abort(&connection);
    else
        dialing_tell(a, DIALING_CONNECTED, connection, NULL);
}

/* Without what net.c says first: the peer's address, which is told already. */
static const char *
bare_reason(const char *why)
{
    const char *end = text_starts(text_from(why), TEXT("cannot connect to "))
                          ? strstr(why, ": ")
                          : NULL;
    return end ? end + 2 : why;
}

static void
dialing_on_net(void *context, enum net_event event)
{
    struct attempt *a = context;
    const char *why = NULL;
    switch (event) {
    case NET_CONNECTED:
        connected(a);
        return;
    case NET_FAILED:
        why = bare_reason(net_error(a->connection));
        break;
    case NET_ENDED:
    case NET_TIMED_OUT:
    case NET_INPUT:
    case NET_DRAINED:
    case NET_SECURED:
        break; /* nothing of these comes before NET_CONNECTED but the end */
    }
    failed(a, why != NULL ? why : "closed");
}

struct dialing *
dialing_new(const struct dialing_settings *settings, const struct exchange_host *hosts,
            const size_t *order, size_t count, dialing_happened *on_event,
            void *context)
{
    struct dialing *d = memory_new(sizeof *d);
    assert(count > 0 && count <= EXCHANGE_ADDRESS_MAX && settings->timeout_ms > 0);
    d->settings = *settings;
    d->hosts = hosts;
    d->order = order;
    d->count = count;
    d->on_event = on_event;
    d->context = context;
    d->on_net = dialing_on_net;
    d->on_deadline = dialing_on_deadline;
    return d;
}

bool
dialing_go_on(struct dialing *d)
{
    assert(!d->freed && under_way(d) == NULL);
    bool left = next_for(d, NULL) < d->count;
    if (left)
        dialing_advance(d);
    return left;
}

bool
dialing_now(const struct dialing *d, size_t *which, int64_t *started_ms)
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
dialing_free(struct dialing **dialing)
{
    struct dialing *d = *dialing;
    *dialing = NULL;
    if (d == NULL)
        return;
    d->freed = true;
    loop_timer_stop(d->settings.loop, &d->head_start);
    for (struct attempt *a; (a = under_way(d)) != NULL;)
        dialing_stop(a);
    loop_release(d->settings.loop, free, d);
}
