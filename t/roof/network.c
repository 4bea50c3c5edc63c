/* The network of a run: connections, and the ends of actors. */
#include "t/roof/network_internal.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/roof/roof.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>
struct network net;

bool
network_is_dead(void)
{
    net.calls++;
    return net.process != 0 && net.is_dead != NULL && net.is_dead();
}

struct network_end *
network_end_of(int descriptor)
{
    int index = descriptor - NETWORK_FIRST;
    return index >= 0 && (size_t)index < net.end_count ? net.ends[index] : NULL;
}

struct network_end *
network_end_new(unsigned process)
{
    struct network_end *e = memory_new(sizeof(*e));
    e->process = process;
    e->descriptor = -1;
    buffer_init(&e->in, BYTES_MAX);
    DL_APPEND2(net.all, e, all_prev, all_next);
    if (process == 0)
        return e;
    /* As the kernel does: the lowest free one. */
    size_t index = 0;
    while (index < net.end_count && net.ends[index] != NULL)
        index++;
    if (index == net.end_count) {
        net.ends = memory_resize(net.ends, (index + 1) * sizeof(*net.ends));
        net.end_count++;
    }
    net.ends[index] = e;
    e->descriptor = NETWORK_FIRST + (int)index;
    return e;
}

static void
drop_segments(struct network_end *e)
{
    struct segment *s, *next;
    DL_FOREACH_SAFE (e->segments, s, next) {
        DL_DELETE(e->segments, s);
        free(s);
    }
}

/* Nobody has it any more; who was its peer keeps nothing of it. */
static void
end_free(struct network_end *e)
{
    roof_timer_stop(&e->timer);
    if (e->peer != NULL && e->peer->peer == e)
        e->peer->peer = NULL;
    if (e->descriptor >= 0)
        net.ends[e->descriptor - NETWORK_FIRST] = NULL;
    drop_segments(e);
    buffer_free(&e->in);
    DL_DELETE2(net.all, e, all_prev, all_next);
    free(e);
}

static void
emit(struct network_end *e, enum network_event event)
{
    if (e->on_event != NULL)
        e->on_event(e->context, event);
}

static void on_segment(void *context);

static void
wait_segment(struct network_end *e)
{
    if (e->segments != NULL)
        roof_timer_start(&e->timer, e->segments->at_ms - roof_now_ms(), on_segment, e);
}

static void
broken(struct network_end *e)
{
    e->state = BROKEN;
    e->error = ECONNRESET;
    drop_segments(e);
    roof_timer_stop(&e->timer);
    e->arrived = e->taken = 0;
    buffer_clear(&e->in);
    emit(e, NETWORK_BROKEN);
}

static bool
is_cut(const struct network_end *e)
{
    return net.is_cut != NULL && e->peer_address.family != NET_UNIX &&
           net.is_cut(&e->local, &e->peer_address);
}

static void
on_segment(void *context)
{
    struct network_end *e = context;
    if (is_cut(e)) {
        roof_timer_start(&e->timer, CUT_AGAIN_MS, on_segment, e);
        return;
    }
    struct segment *s = e->segments;
    size_t size = s->size;
    bool reset = s->reset;
    DL_DELETE(e->segments, s);
    free(s);
    wait_segment(e);
    if (reset) {
        broken(e);
    } else if (size > 0) {
        e->arrived += size;
        emit(e, NETWORK_INPUT);
    } else {
        e->ended = true;
        emit(e, NETWORK_ENDED);
    }
}

/* On its way to e. */
void
network_send_segment(struct network_end *e, struct text bytes, bool reset)
{
    const struct network_path *path = &e->path;
    struct segment *s = memory_new(sizeof(*s));
    int64_t at_ms = roof_now_ms() + path->latency_ms;
    if (path->bytes_a_ms > 0) /* bytes wait for those before them */
        at_ms = (at_ms > e->last_at_ms ? at_ms : e->last_at_ms) +
                (int64_t)bytes.length / path->bytes_a_ms;
    if (at_ms < e->last_at_ms)
        at_ms = e->last_at_ms;
    e->last_at_ms = at_ms;
    *s = (struct segment){.at_ms = at_ms, .size = bytes.length, .reset = reset};
    bool fits = buffer_add(&e->in, bytes);
    assert(fits);
    bool first = e->segments == NULL;
    DL_APPEND(e->segments, s);
    if (first && e->state != CONNECTING) /* on_connected() */
        wait_segment(e);
}

/* --- Connections --- */

static bool
addresses_match(const struct net_address *at, const struct net_address *to)
{
    if (at->family != to->family)
        return false;
    if (at->family == NET_UNIX)
        return strcmp(at->path, to->path) == 0;
    return net_address_equal(at, to) ||
           (at->port == to->port && net_address_is_wildcard(at));
}

struct network_end *
network_listener_at(const struct net_address *to)
{
    struct network_end *e, *found[PROCESSES];
    unsigned count = 0;
    DL_FOREACH2 (net.all, e, all_next)
        if (e->state == LISTENING && addresses_match(&e->local, to) &&
            count < PROCESSES)
            found[count++] = e;
    if (count > 1) /* they share it: the kernel takes one by a hash */
        return found[roof_below_of(&net.shared, count)];
    return count > 0 ? found[0] : NULL;
}

static struct network_service *
service_at(const struct net_address *to)
{
    struct network_service *s;
    LL_FOREACH (net.services, s)
        if (addresses_match(&s->at, to))
            return s;
    return NULL;
}

static void
draw_path(struct network_end *e)
{
    if (e->peer_address.family == NET_UNIX)
        e->path = (struct network_path){.window = 200 * 1024};
    else if (net.draw != NULL)
        net.draw(&e->peer_address, &e->path);
    else
        e->path = (struct network_path){.latency_ms = 1, .window = 64 * 1024};
    if (e->path.window == 0)
        e->path.window = 64 * 1024;
}

static void
join(struct network_end *client, struct network_end *server)
{
    server->state = CONNECTED;
    server->path = client->path;
    server->local = client->peer_address;
    server->peer_address = client->local;
    server->peer = client;
    client->peer = server;
}

/* The answer to a connection is back at the client. */
static void
on_connected(void *context)
{
    struct network_end *e = context;
    if (e->state != CONNECTING)
        return;
    if (e->error != 0) {
        e->state = BROKEN;
        emit(e, NETWORK_REFUSED);
        return;
    }
    e->state = CONNECTED;
    wait_segment(e);
    emit(e, NETWORK_CONNECTED);
}

/* The question has come to the server. */
static void
on_asked(void *context)
{
    struct network_end *e = context, *l = network_listener_at(&e->peer_address);
    struct network_service *s = l == NULL ? service_at(&e->peer_address) : NULL;
    if ((s != NULL && s->answer == NETWORK_SILENT) || is_cut(e)) {
        roof_timer_start(&e->timer, ASK_AGAIN_MS, on_asked, e);
        return;
    }
    if ((s == NULL || s->answer == NETWORK_REFUSES) &&
        (l == NULL || l->waiting_count >= BACKLOG)) {
        e->error = ECONNREFUSED;
        roof_timer_start(&e->timer, e->path.latency_ms, on_connected, e);
        return;
    }
    roof_timer_start(&e->timer, e->path.latency_ms, on_connected, e);
    struct network_end *server = network_end_new(l != NULL ? l->process : 0);
    join(e, server);
    if (l != NULL) {
        server->listed = true;
        server->context = l;
        DL_APPEND(l->waiting, server);
        l->waiting_count++;
    } else {
        s->on_accept(s->context, server);
    }
}

void
network_begin_connecting(struct network_end *e, const struct net_address *to)
{
    e->peer_address = *to;
    e->state = CONNECTING;
    e->error = 0;
    draw_path(e);
    roof_timer_start(&e->timer, e->path.latency_ms, on_asked, e);
}

/* --- Both sides --- */

/* Bytes that its owner has not read, and those on their way to it. */
static size_t
held_for(const struct network_end *e)
{
    return e->in.length - e->taken;
}

static size_t
space_for(const struct network_end *e)
{
    const struct network_end *to = e->peer;
    if (to == NULL)
        return SIZE_MAX; /* sent into the void, or answered by a reset */
    size_t held = held_for(to);
    return held < e->path.window ? e->path.window - held : 0;
}

ssize_t
network_write_end(struct network_end *e, struct text bytes)
{
    if (e->state == BROKEN) {
        int error = e->error != 0 ? e->error : EPIPE;
        e->error = 0;
        return -error;
    }
    if (e->state == CONNECTING)
        return -EAGAIN;
    if (e->state != CONNECTED)
        return -ENOTCONN;
    if (e->shut)
        return -EPIPE;
    size_t space = space_for(e);
    if (space == 0)
        return -EAGAIN;
    if (bytes.length > space)
        bytes.length = space;
    if (e->path.choppy && bytes.length > 1)
        bytes.length = 1 + roof_below((unsigned)bytes.length);
    if (e->peer != NULL)
        network_send_segment(e->peer, bytes, false);
    else if (!e->vanished) { /* to nobody: a reset comes back */
        network_send_segment(e, TEXT(""), true);
    }
    return (ssize_t)bytes.length;
}

struct text
network_input(const struct network_end *e)
{
    return e->in.at != NULL ? text_of(e->in.at + e->taken, e->arrived) : TEXT("");
}

void
network_taken(struct network_end *e, size_t size)
{
    bool was_full = held_for(e) >= e->path.window;
    e->taken += size;
    e->arrived -= size;
    if (e->taken > e->in.length / 2) {
        buffer_take(&e->in, e->taken);
        e->taken = 0;
    }
    struct network_end *from = e->peer;
    if (from != NULL && was_full && from->wants_space) {
        from->wants_space = false;
        emit(from, NETWORK_SPACE);
    }
}

/* A close with unread input resets, as TCP does. */
void
network_close_end(struct network_end *e, bool reset)
{
    struct network_end *peer = e->peer;
    if (peer != NULL && !e->vanished && e->state != BROKEN) {
        bool rude = reset || held_for(e) > 0;
        if (rude)
            network_send_segment(peer, TEXT(""), true);
        else if (!e->shut)
            network_send_segment(peer, TEXT(""), false);
    }
    if (peer != NULL)
        peer->peer = NULL;
    if (peer != NULL && e->vanished)
        peer->vanished = true;
    e->peer = NULL;
    end_free(e);
}

void
network_forget_waiting(struct network_end *listener)
{
    struct network_end *e, *next;
    DL_FOREACH_SAFE (listener->waiting, e, next) {
        DL_DELETE(listener->waiting, e);
        e->listed = false;
        network_close_end(e, true);
    }
}

/* --- The driver --- */

int
network_ask(int descriptor)
{
    const struct network_end *e = network_end_of(descriptor);
    if (e == NULL)
        return 0;
    switch (e->state) {
    case LISTENING:
        return e->waiting != NULL ? LOOP_READ : 0;
    case BROKEN:
        return LOOP_READ | LOOP_WRITE;
    case CONNECTED:
        return (e->arrived > 0 || e->ended ? LOOP_READ : 0) |
               (space_for(e) > 0 ? LOOP_WRITE : 0);
    case FRESH:
    case CONNECTING:
        break;
    }
    return 0;
}

void
network_enter(unsigned process)
{
    net.process = process;
}

void
network_add_address(unsigned process, const char *ip)
{
    struct net_address a = {0};
    bool good = net_address_parse_ip(text_from(ip), &a);
    assert(good && process < PROCESSES && net.address_count[process] < ADDRESSES);
    net.addresses[process][net.address_count[process]++] = a;
}

void
network_end_process(unsigned process, bool with_word)
{
    unsigned before = net.process;
    net.process = 0;
    for (size_t i = 0; i < net.end_count; i++) {
        struct network_end *e = net.ends[i];
        if (e == NULL || e->process != process || e->listed)
            continue;
        if (e->state == LISTENING)
            network_forget_waiting(e);
        e->vanished = !with_word;
        network_close_end(e, false);
    }
    net.process = before;
}

void
network_end_silence(void)
{
    struct network_end *e;
    DL_FOREACH2 (net.all, e, all_next)
        if (e->vanished)
            network_send_segment(e, TEXT(""), true);
}

size_t
network_open(unsigned process)
{
    size_t count = 0;
    for (size_t i = 0; i < net.end_count; i++)
        count += net.ends[i] != NULL && net.ends[i]->process == process;
    return count;
}

size_t
network_streams(unsigned process)
{
    size_t count = 0;
    for (size_t i = 0; i < net.end_count; i++)
        count += net.ends[i] != NULL && net.ends[i]->process == process &&
                 net.ends[i]->state != LISTENING;
    return count;
}

void
network_fail_accepts(unsigned count)
{
    net.accepts_failing = count;
}

uint64_t
network_calls(void)
{
    return net.calls;
}

void
network_on_output(void (*take)(unsigned process, struct text bytes))
{
    net.take = take;
}

void
network_on_path(void (*draw)(const struct net_address *to, struct network_path *out))
{
    net.draw = draw;
}

void
network_on_cut(bool (*cut)(const struct net_address *a, const struct net_address *b))
{
    net.is_cut = cut;
}

void
network_on_dead(bool (*dead)(void))
{
    net.is_dead = dead;
}

/* --- Actors --- */

struct network_end *
network_connect(const struct net_address *from, const struct net_address *to,
                network_happened *on_event, void *context)
{
    struct network_end *e = network_end_new(0);
    e->local = *from;
    e->local.port = (uint16_t)(20000 + net.ports++ % 40000);
    e->on_event = on_event;
    e->context = context;
    network_begin_connecting(e, to);
    return e;
}

struct network_service *
network_serve(const struct net_address *at, network_accepted *on_accept, void *context)
{
    struct network_service *s = memory_new(sizeof(*s));
    s->at = *at;
    s->on_accept = on_accept;
    s->context = context;
    LL_APPEND(net.services, s);
    return s;
}

void
network_service_set(struct network_service *s, enum network_answer answer)
{
    s->answer = answer;
}

int64_t
network_round_ms(const struct network_end *e)
{
    return 2 * e->path.latency_ms + (e->path.window < 1500 ? 500 : 50);
}

const struct net_address *
network_from(const struct network_end *e)
{
    return &e->peer_address;
}

bool
network_has_peer(const struct network_end *e)
{
    return e->peer != NULL;
}

void
network_attach(struct network_end *e, network_happened *on_event, void *context)
{
    e->on_event = on_event;
    e->context = context;
}

struct text
network_read(struct network_end *e)
{
    return network_input(e);
}

void
network_consume(struct network_end *e, size_t size)
{
    if (size > 0)
        network_taken(e, size);
}

size_t
network_write(struct network_end *e, struct text bytes)
{
    size_t total = 0;
    while (bytes.length > 0) {
        ssize_t some = network_write_end(e, bytes);
        if (some <= 0)
            break;
        total += (size_t)some;
        bytes = text_after(bytes, (size_t)some);
    }
    e->wants_space = bytes.length > 0;
    return total;
}

void
network_shut(struct network_end *e)
{
    if (e->state == CONNECTED && !e->shut && e->peer != NULL)
        network_send_segment(e->peer, TEXT(""), false);
    e->shut = true;
}

static void
close_actor(struct network_end **end, bool reset, bool vanish)
{
    struct network_end *e = *end;
    *end = NULL;
    if (e == NULL)
        return;
    e->on_event = NULL;
    e->vanished = e->vanished || vanish;
    if (e->state == CONNECTING)
        e->vanished = true;
    network_close_end(e, reset);
}

bool
network_is_left(const struct network_end *e)
{
    return e->peer == NULL || e->peer->shut;
}

void
network_close(struct network_end **end)
{
    close_actor(end, false, false);
}

void
network_reset(struct network_end **end)
{
    close_actor(end, true, false);
}

void
network_vanish(struct network_end **end)
{
    close_actor(end, false, true);
}
