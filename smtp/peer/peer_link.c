/* Those whom we call: a connection is made when something is to be said, kept alive while
 * it is of use, and made again after a pause when it has failed. */
#include "smtp/peer/peer_internal.h"

#include "base/dns/dns.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void peer_link_on_timer(void *context);

/* --- When something is to be done ----------------------------------------------------- */

static int64_t
peer_link_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void
peer_link_schedule(struct peer_link *l)
{
    struct loop *loop = l->host->peer->setup.loop;
    int64_t now_ms = loop_monotonic_ms(loop);
    int64_t next_ms = peer_client_next_ms(&l->machine);
    bool is_idle = peer_client_is_idle(&l->machine);
    if (l->connection != NULL)
        next_ms = peer_link_earlier(next_ms, l->said_ms + PEER_NOOP_MS);
    else if (l->state == PEER_LINK_IDLE && (!is_idle || l->retry_ms > now_ms))
        next_ms = peer_link_earlier(next_ms, l->retry_ms);
    else if (l->state == PEER_LINK_IDLE) /* then nothing of it is left */
        next_ms = peer_link_earlier(next_ms, now_ms + PEER_NOOP_MS);
    if (next_ms == INT64_MAX)
        loop_timer_stop(loop, &l->timer);
    else
        loop_timer_start(loop, &l->timer, next_ms - now_ms, peer_link_on_timer, l);
}

/* --- Ends --------------------------------------------------------------------------- */

static void
peer_link_close(struct peer_link *l, bool is_good)
{
    dns_cancel(&l->query);
    if (l->connection != NULL && is_good)
        net_close(&l->connection);
    else if (l->connection != NULL)
        net_abort(&l->connection);
    l->state = PEER_LINK_IDLE;
}

static void
peer_link_back_off(struct peer_link *l)
{
    struct loop *loop = l->host->peer->setup.loop;
    int64_t pause_ms = PEER_RETRY_MS;
    for (unsigned i = 0; i < l->failures && pause_ms < PEER_RETRY_MAX_MS; i++)
        pause_ms *= 2;
    pause_ms = peer_link_earlier(pause_ms, PEER_RETRY_MAX_MS);
    pause_ms = pause_ms / 2 + (int64_t)(loop_random(loop) % (uint64_t)pause_ms) / 2;
    l->retry_ms = loop_monotonic_ms(loop) + pause_ms;
    l->failures++;
}

/* It is logged when it begins, and once a minute for a host that comes back and fails. */
static bool
peer_link_is_news(struct peer_link *l)
{
    int64_t now_ms = loop_monotonic_ms(l->host->peer->setup.loop);
    if (l->failures > 0 || now_ms < l->quiet_until_ms)
        return false;
    l->quiet_until_ms = now_ms + PEER_QUIET_MS;
    return true;
}

static void
peer_link_fail(struct peer_link *l, const char *why)
{
    struct peer *p = l->host->peer;
    char reason[PEER_WHY_MAX];
    bool is_goodbye = l->machine.is_left ||
                      (l->machine.is_over && strcmp(l->machine.why, "goodbye") == 0);
    snprintf(reason, sizeof(reason), "%s", l->machine.is_over ? l->machine.why : why);
    peer_link_close(l, is_goodbye);
    if (!is_goodbye && peer_link_is_news(l))
        log_say(p->setup.log, LOG_LEVEL_WARNING, "peer", NULL, "%s: %s", l->host->name,
                reason);
    if (!is_goodbye)
        peer_link_back_off(l);
    peer_client_lose(&l->machine, reason);
    peer_link_schedule(l);
}

/* --- Bytes -------------------------------------------------------------------------- */

static int64_t
peer_link_clock_ms(const struct peer_link *l)
{
    struct loop *loop = l->host->peer->setup.loop;
    return loop_now_ms(loop) - loop_monotonic_ms(loop);
}

/* The other host goes by our time in XPEER for the ages of mail. */
static bool
peer_link_clock_was_set(const struct peer_link *l)
{
    int64_t by_ms = peer_link_clock_ms(l) - l->clock_ms;
    return by_ms >= PEER_CLOCK_MS || by_ms <= -PEER_CLOCK_MS;
}

static void
peer_link_send(struct peer_link *l)
{
    size_t unsent = net_unsent(l->connection);
    int64_t now_ms = loop_monotonic_ms(l->host->peer->setup.loop);
    if (unsent < NET_HIGH_WATER)
        peer_client_fill(&l->machine, NET_HIGH_WATER - unsent, now_ms);
    if (l->machine.out.length == 0)
        return;
    net_send(l->connection, buffer_text(&l->machine.out));
    buffer_clear(&l->machine.out);
    l->said_ms = now_ms;
}

static void peer_link_call_next(struct peer_link *l, const char *why);

static void
peer_link_go(struct peer_link *l)
{
    if (l->connection == NULL)
        return;
    if (peer_link_clock_was_set(l)) {
        peer_link_fail(l, "the clock was set here");
        return;
    }
    struct text input = net_input(l->connection);
    size_t before = input.length;
    bool was_ready = l->machine.is_ready;
    peer_client_read(&l->machine, &input);
    net_consume(l->connection, before - input.length);
    if (l->machine.is_ready && !was_ready) {
        if (l->failures > 0)
            log_say(l->host->peer->setup.log, LOG_LEVEL_INFO, "peer", NULL,
                    "%s: is back", l->host->name);
        l->failures = 0;
        l->retry_ms = 0;
        peer_accept_note(l->host->peer, net_peer(l->connection));
    }
    if (!l->machine.is_over)
        peer_link_send(l);
    if (l->machine.is_over)
        peer_link_call_next(l, "");
    else
        peer_link_schedule(l);
}

/* --- Connecting --------------------------------------------------------------------- */

static void
peer_link_on_event(void *context, enum net_event event)
{
    struct peer_link *l = context;
    switch (event) {
    case NET_CONNECTED:
        net_set_timeout(l->connection, PEER_SILENCE_MS);
        break;
    case NET_SECURED:
    case NET_INPUT:
        l->heard_ms = loop_monotonic_ms(l->host->peer->setup.loop);
        peer_link_go(l);
        break;
    case NET_DRAINED: /* it reads: that is a sign of life, too */
        l->heard_ms = loop_monotonic_ms(l->host->peer->setup.loop);
        peer_link_go(l);
        break;
    case NET_ENDED:
        peer_link_call_next(l, "it ended the connection");
        break;
    case NET_TIMED_OUT:
        peer_link_call_next(l, "no answer in time");
        break;
    case NET_FAILED:
        peer_link_call_next(l, net_error(l->connection));
        break;
    }
}

static void
peer_link_call(struct peer_link *l, const struct net_address *to)
{
    struct peer *p = l->host->peer;
    const struct net_tls tls = {.client = p->tls_client,
                                .options = {.level = TLS_LEVEL_NONE}};
    l->state = PEER_LINK_CALLING;
    l->heard_ms = l->said_ms = loop_monotonic_ms(p->setup.loop);
    l->clock_ms = peer_link_clock_ms(l);
    l->connection = net_connect(p->setup.net, to, NULL, peer_link_on_event, l);
    net_set_timeout(l->connection, PEER_CONNECT_MS);
    net_start_tls(l->connection, &tls);
    peer_client_start(&l->machine);
    peer_link_send(l);
    if (l->machine.is_over)
        loop_post(p->setup.loop, &l->task, peer_link_on_timer, l);
    peer_link_schedule(l);
}

/* Another address of the same name: until the host is there, nothing but XPEER was said. */
static void
peer_link_call_next(struct peer_link *l, const char *why)
{
    if (l->machine.is_ready || l->address + 1 >= l->address_count) {
        peer_link_fail(l, why);
        return;
    }
    net_abort(&l->connection);
    peer_client_restart(&l->machine);
    peer_link_call(l, &l->addresses[++l->address]);
}

static void
peer_link_on_addresses(void *context, const struct dns_answer *answer)
{
    struct peer_link *l = context;
    l->query = NULL;
    if (answer->status != DNS_FOUND || answer->count == 0) {
        peer_link_fail(l, answer->status != DNS_FOUND ? answer->reason
                                                      : "its name has no address");
        return;
    }
    l->address = 0;
    l->address_count = 0;
    for (size_t i = 0; i < answer->count && i < PEER_ADDRESSES_MAX; i++) {
        l->addresses[i] = answer->addresses[i];
        l->addresses[i].port = l->port;
        l->address_count++;
    }
    peer_link_call(l, &l->addresses[0]);
}

/* NAME:PORT. */
static bool
peer_link_look_up(struct peer_link *l, const char *address)
{
    struct peer *p = l->host->peer;
    struct text whole = text_from(address);
    size_t colon = text_find_last(whole, ':');
    char name[DNS_NAME_MAX];
    uint64_t port;
    if (colon == TEXT_NONE || colon == 0 ||
        !text_number(text_after(whole, colon + 1), UINT16_MAX, &port) || port == 0 ||
        !text_copy(name, sizeof(name), text_before(whole, colon)))
        return false;
    l->port = (uint16_t)port;
    l->state = PEER_LINK_LOOKUP;
    l->query = dns_find_addresses(p->setup.dns, name, peer_link_on_addresses, l);
    return true;
}

/* In a turn of its own, so it may call back. */
static void
peer_link_connect(struct peer_link *l)
{
    struct peer *p = l->host->peer;
    const char *address = p->setup.address(p->setup.context, l->host->name);
    struct net_address to;
    l->address = l->address_count = 0;
    if (p->tls_client == NULL)
        peer_link_fail(l, "cluster_secret is not set here");
    else if (address == NULL || address[0] == '\0')
        peer_link_fail(l, "its address is not known");
    else if (net_address_parse(text_from(address), 0, &to) && to.port != 0)
        peer_link_call(l, &to);
    else if (!peer_link_look_up(l, address))
        peer_link_fail(l, "its address is no ADDRESS:PORT");
}

/* --- The timer ------------------------------------------------------------------------ */

/* One that has failed is remembered for a while: whoever asks again then makes no news of
 * the same trouble. */
static bool
peer_link_is_of_use(const struct peer_link *l, int64_t now_ms)
{
    int64_t until_ms = l->retry_ms + (l->failures > 0 ? PEER_IDLE_MS : 0);
    return l->state != PEER_LINK_IDLE || !peer_client_is_idle(&l->machine) ||
           until_ms > now_ms || l->task.queued;
}

/* False: something of it is of use. */
static bool
peer_link_forget_host(struct peer_host *h)
{
    struct peer *p = h->peer;
    int64_t now_ms = loop_monotonic_ms(p->setup.loop);
    for (int i = 0; i < PEER_LINKS; i++)
        if (peer_link_is_of_use(&h->links[i], now_ms))
            return false;
    for (int i = 0; i < PEER_LINKS; i++) {
        loop_timer_stop(p->setup.loop, &h->links[i].timer);
        peer_client_free(&h->links[i].machine);
    }
    HASH_DEL(p->hosts, h);
    loop_release(p->setup.loop, free, h);
    return true;
}

/* Nothing may be said before it is ready, nor while a NOOP has no answer; that is tried
 * again as late. */
static void
peer_link_say_something(struct peer_link *l, int64_t now_ms)
{
    l->said_ms = now_ms;
    if (!l->machine.is_ready)
        return;
    if (peer_client_is_idle(&l->machine) && now_ms - l->used_ms >= PEER_IDLE_MS)
        peer_client_quit(&l->machine);
    else
        peer_client_noop(&l->machine);
}

static void
peer_link_tend(struct peer_link *l, int64_t now_ms)
{
    if (now_ms - l->heard_ms >= PEER_SILENCE_MS && net_is_secured(l->connection)) {
        peer_link_call_next(l, "it is silent");
        return;
    }
    if (now_ms - l->said_ms >= PEER_NOOP_MS)
        peer_link_say_something(l, now_ms);
    peer_link_go(l);
}

static void
peer_link_on_timer(void *context)
{
    struct peer_link *l = context;
    int64_t now_ms = loop_monotonic_ms(l->host->peer->setup.loop);
    peer_client_expire(&l->machine, now_ms);
    if (l->connection != NULL)
        peer_link_tend(l, now_ms);
    else if (l->state == PEER_LINK_IDLE && !peer_client_is_idle(&l->machine) &&
             l->retry_ms <= now_ms)
        peer_link_connect(l);
    else if (l->state != PEER_LINK_IDLE || !peer_client_is_idle(&l->machine) ||
             !peer_link_forget_host(l->host))
        peer_link_schedule(l);
}

/* --- For peer.c ----------------------------------------------------------------------- */

struct peer_link *
peer_link_find(struct peer *p, const char *host, enum peer_link_kind kind)
{
    struct peer_host *h;
    HASH_FIND_STR(p->hosts, host, h);
    return h != NULL ? &h->links[kind] : NULL;
}

struct peer_link *
peer_link_get(struct peer *p, const char *host, enum peer_link_kind kind)
{
    struct peer_link *found = peer_link_find(p, host, kind);
    if (found != NULL)
        return found;
    struct peer_host *h = memory_new(sizeof(*h));
    h->peer = p;
    (void)!text_copy(h->name, sizeof(h->name), text_from(host));
    for (int i = 0; i < PEER_LINKS; i++) {
        struct peer_link *l = &h->links[i];
        l->host = h;
        l->machine.service = p->setup.service;
        (void)!text_copy(l->machine.host, sizeof(l->machine.host), text_from(host));
        peer_client_init(&l->machine);
    }
    HASH_ADD_STR(p->hosts, name, h);
    return &h->links[kind];
}

void
peer_link_begin(struct peer_link *l)
{
    struct loop *loop = l->host->peer->setup.loop;
    l->used_ms = loop_monotonic_ms(loop);
    if (!l->task.queued)
        loop_post(loop, &l->task, peer_link_on_timer, l);
}

void
peer_link_ignore_all(struct peer *p, const void *context)
{
    struct peer_host *h, *next;
    HASH_ITER (hh, p->hosts, h, next)
        for (int i = 0; i < PEER_LINKS; i++)
            if (!peer_client_ignore(&h->links[i].machine, context))
                peer_link_begin(&h->links[i]);
}

void
peer_link_end_all(struct peer *p, const char *why)
{
    struct peer_host *h, *next;
    HASH_ITER (hh, p->hosts, h, next)
        for (int i = 0; i < PEER_LINKS; i++)
            if (h->links[i].connection != NULL)
                peer_link_fail(&h->links[i], why);
}

void
peer_link_free_all(struct peer *p)
{
    struct peer_host *h, *next;
    HASH_ITER (hh, p->hosts, h, next) {
        for (int i = 0; i < PEER_LINKS; i++) {
            struct peer_link *l = &h->links[i];
            if (l->connection != NULL && l->machine.is_ready)
                net_send(l->connection, TEXT("QUIT\r\n"));
            peer_link_close(l, l->machine.is_ready && peer_client_is_idle(&l->machine));
            loop_timer_stop(p->setup.loop, &l->timer);
            loop_unpost(p->setup.loop, &l->task);
            peer_client_free(&l->machine);
        }
        HASH_DEL(p->hosts, h);
        free(h);
    }
}
