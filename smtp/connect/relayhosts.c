/* Looks up the hosts of a fail-over list together.
 *
 * One host of the list is enough to send mail, so that a name server which is silent
 * about another one must not delay it: the wait begins when the first host is found.
 * There is one answer; look-ups that end later are ignored, since the owner already
 * uses the hosts. */
#include "smtp/connect/relayhosts.h"

#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct relay {
    struct relayhosts *relays;
    char host[TARGET_HOST_MAX];
    struct mx_lookup *lookup;
    const struct mx_lookup_answer *answer; /* NULL: it is looked up */
};

struct relayhosts {
    struct loop *loop;
    mx_lookup_found *done;
    void *context;
    size_t count, waiting;
    struct relay list[TARGET_HOSTS_MAX];
    struct loop_timer wait;
    bool answered;
    struct mx_lookup_host *hosts;
    struct mx_lookup_answer answer;
};

/* The preference of an MX has 16 bits, so that hosts of two places never mix. */
static void
add_hosts(struct relayhosts *r, size_t at)
{
    const struct mx_lookup_answer *found = r->list[at].answer;
    for (size_t i = 0; i < found->count && r->answer.count < MX_LOOKUP_ADDRESS_MAX;
         i++) {
        struct mx_lookup_host *host = &r->hosts[r->answer.count++];
        *host = found->hosts[i];
        host->preference = (unsigned)at * RELAYHOSTS_PREFERENCES +
                           host->preference % RELAYHOSTS_PREFERENCES;
    }
}

/* The outcome counts only if no host was found at all; it is that of the last one in
 * the list that has answered. */
static void
relayhosts_answer(struct relayhosts *r)
{
    assert(!r->answered);
    r->answered = true;
    loop_timer_stop(r->loop, &r->wait);
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
on_wait_over(void *context)
{
    relayhosts_answer(context);
}

static void
relayhosts_on_found(void *context, const struct mx_lookup_answer *answer)
{
    struct relay *relay = context;
    struct relayhosts *r = relay->relays;
    assert(relay->answer == NULL && r->waiting > 0);
    relay->answer = answer;
    r->waiting--;
    if (r->answered)
        return;
    if (r->waiting == 0)
        relayhosts_answer(r);
    else if (answer->count > 0 && !heap_has(&r->wait.node))
        loop_timer_start(r->loop, &r->wait, RELAYHOSTS_WAIT_MS, on_wait_over, r);
}

/* All addresses of a long list must fit into the answer. */
static int
limit_of(const struct target *target, int address_limit)
{
    int share = MX_LOOKUP_ADDRESS_MAX / (int)target_host_count(target);
    return address_limit < share ? address_limit : share;
}

struct relayhosts *
relayhosts_find(struct loop *loop, struct net *net, struct dns *dns,
                const struct target *target, const struct mx_lookup_query *query,
                mx_lookup_found *done, void *context)
{
    struct relayhosts *r = memory_new(sizeof(*r));
    r->loop = loop;
    r->done = done;
    r->context = context;
    r->hosts = memory_array(MX_LOOKUP_ADDRESS_MAX, sizeof(*r->hosts));
    r->count = r->waiting = target_host_count(target);
    assert(r->count > 0 && r->count <= TARGET_HOSTS_MAX);
    for (size_t at = 0; at < r->count; at++) {
        struct target_host host = target_host(target, at);
        struct relay *relay = &r->list[at];
        relay->relays = r;
        text_copy(relay->host, sizeof(relay->host), host.host);
        struct mx_lookup_query one = *query;
        one.name = relay->host;
        one.port = host.port ? host.port : query->port;
        one.address_limit = limit_of(target, query->address_limit);
        relay->lookup =
            mx_lookup_find(loop, net, dns, &one, relayhosts_on_found, relay);
    }
    return r;
}

static void
relayhosts_release(void *object)
{
    struct relayhosts *r = object;
    free(r->hosts);
    free(r);
}

void
relayhosts_free(struct relayhosts **relays)
{
    struct relayhosts *r = *relays;
    if (r == NULL)
        return;
    for (size_t at = 0; at < r->count; at++)
        mx_lookup_free(&r->list[at].lookup);
    loop_timer_stop(r->loop, &r->wait);
    loop_release(r->loop, relayhosts_release, r);
    *relays = NULL;
}

size_t
relayhosts_place(const struct mx_lookup_host *host)
{
    return host->preference / RELAYHOSTS_PREFERENCES;
}
