/* Looks up the hosts of a fail-over list together. */
#include "smtp/client/relays.h"

#include "base/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct relay {
    struct relays *relays;
    char host[TARGET_HOST_MAX];
    struct exchange *exchange;
    const struct exchange_answer *answer; /* NULL: it is looked up */
};

struct relays {
    struct loop *loop;
    exchange_found *done;
    void *context;
    size_t count, waiting;
    struct relay list[TARGET_HOSTS_MAX];
    struct loop_timer patience;
    bool told;
    struct exchange_host *hosts;
    struct exchange_answer answer;
};

static void
add_hosts(struct relays *r, size_t at)
{
    const struct exchange_answer *found = r->list[at].answer;
    for (size_t i = 0; i < found->count && r->answer.count < EXCHANGE_ADDRESS_MAX;
         i++) {
        struct exchange_host *host = &r->hosts[r->answer.count++];
        *host = found->hosts[i];
        host->preference =
            (unsigned)at * RELAYS_PREFERENCES + host->preference % RELAYS_PREFERENCES;
    }
}

static void
relays_tell(struct relays *r)
{
    assert(!r->told);
    r->told = true;
    loop_timer_stop(r->loop, &r->patience);
    for (size_t at = 0; at < r->count; at++) {
        if (r->list[at].answer == NULL)
            continue;
        add_hosts(r, at);
        r->answer.outcome = r->list[at].answer->outcome;
    }
    r->answer.hosts = r->hosts;
    r->done(r->context, &r->answer);
}

static void
on_patience(void *context)
{
    relays_tell(context);
}

static void
relays_on_found(void *context, const struct exchange_answer *answer)
{
    struct relay *relay = context;
    struct relays *r = relay->relays;
    assert(relay->answer == NULL && r->waiting > 0);
    relay->answer = answer;
    r->waiting--;
    if (r->told)
        return;
    if (r->waiting == 0)
        relays_tell(r);
    else if (answer->count > 0 && !heap_has(&r->patience.node))
        loop_timer_start(r->loop, &r->patience, RELAYS_PATIENCE_MS, on_patience, r);
}

/* As the first of a list it has the addresses that it would have alone. */
static int
limit_of(const struct target *target, int address_limit)
{
    int share = EXCHANGE_ADDRESS_MAX / (int)target_host_count(target);
    return address_limit < share ? address_limit : share;
}

struct relays *
relays_find(struct loop *loop, struct net *net, struct dns *dns,
            const struct target *target, uint16_t default_port, int address_limit,
            exchange_found *done, void *context)
{
    struct relays *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->done = done;
    r->context = context;
    r->hosts = memory_array(EXCHANGE_ADDRESS_MAX, sizeof(*r->hosts));
    r->count = r->waiting = target_host_count(target);
    assert(r->count > 0 && r->count <= TARGET_HOSTS_MAX && address_limit > 0);
    for (size_t at = 0; at < r->count; at++) {
        struct target_host host = target_host(target, at);
        struct relay *relay = &r->list[at];
        relay->relays = r;
        text_copy(relay->host, sizeof(relay->host), host.host);
        struct exchange_query query = {.name = relay->host,
                                       .by_mx = target->look_up_mx,
                                       .smarthost = true,
                                       .port = host.port ? host.port : default_port,
                                       .address_limit =
                                           limit_of(target, address_limit)};
        relay->exchange = exchange_find(loop, net, dns, &query, relays_on_found, relay);
    }
    return r;
}

static void
relays_release(void *object)
{
    struct relays *r = object;
    free(r->hosts);
    free(r);
}

void
relays_free(struct relays **relays)
{
    struct relays *r = *relays;
    if (r == NULL)
        return;
    for (size_t at = 0; at < r->count; at++)
        exchange_free(&r->list[at].exchange);
    loop_timer_stop(r->loop, &r->patience);
    loop_release(r->loop, relays_release, r);
    *relays = NULL;
}

size_t
relays_place(const struct exchange_host *host)
{
    return host->preference / RELAYS_PREFERENCES;
}
