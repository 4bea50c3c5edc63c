/* Fragments on their way to the host that owns their set (HELD_SENT). To the scheduler
 * that host is a destination like any other: while it does not answer the fragment is
 * retried, and the message stays in this spool until the host has taken it. A host that
 * refuses the fragment, or the end of its time, only ends the detour: the fragment goes
 * on from here as it is. */
#include "defrag/channel_internal.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct target *
way_to(const struct defragmenter *c, const char *host)
{
    return c->settings.peers ? peers_find(c->settings.peers, text_from(host)) : NULL;
}

/* --- Departures ------------------------------------------------------------------- */

/* A fragment from a peer stays: so there are no loops, with any answer of the
 * registry. */
static void
depart(struct defragmenter *c, struct held *h, const char *host, int64_t until_ms)
{
    assert(!h->by_peer && !heap_has(&h->timer.node));
    h->state = HELD_SENT;
    h->host = memory_string(host);
    h->timer.due_ms = until_ms;
    heap_add(&c->redirects, &h->timer.node);
    c->figures.redirected++;
    struct fragment_event f;
    channel_event_start(&f, h->id, h->key);
    channel_event_add(&f, "host", EVENT_TEXT, text_from(host));
    channel_event_add(&f, "status", EVENT_TEXT, TEXT("redirected"));
    f.event.text = TEXT("that host owns its set");
    event_tell(c->events, &f.event);
    channel_stir(c);
}

void
fragment_redirect_ends(struct defragmenter *c, struct held *h)
{
    if (h->host == NULL)
        return;
    heap_remove(&c->redirects, &h->timer.node);
    free(h->host);
    h->host = NULL;
}

/* Fragments for a host that does not answer stay in memory. */
static bool
are_too_many(const struct defragmenter *c)
{
    size_t limit = c->settings.limits.recipients;
    return limit > 0 && c->redirects.count >= limit;
}

/* A host that is not in defrag_peers is ignored: each host reassembles its own
 * fragments. The key is claimed in any case, so that the other hosts find this one. */
static const char *
elsewhere(struct defragmenter *c, const struct held *h, int64_t ttl_ms)
{
    struct owner_view view = claims_claim(c->claims, h->key, ttl_ms);
    bool known = view.owner == OWNER_OTHER && way_to(c, view.host) != NULL;
    return known && !h->by_peer && !are_too_many(c) ? view.host : NULL;
}

bool
fragment_redirect_starts(struct defragmenter *c, struct held *h, int64_t until_ms,
                         int64_t ttl_ms)
{
    const char *host = c->claims ? elsewhere(c, h, ttl_ms) : NULL;
    if (host != NULL)
        depart(c, h, host, until_ms);
    return host != NULL;
}

void
fragment_redirect_shorten(struct defragmenter *c, struct held *h, int64_t until_ms)
{
    assert(h->state == HELD_SENT);
    if (until_ms >= h->timer.due_ms)
        return;
    heap_remove(&c->redirects, &h->timer.node);
    h->timer.due_ms = until_ms;
    heap_add(&c->redirects, &h->timer.node);
}

/* --- Underway --------------------------------------------------------------------- */

enum manager_offered
fragment_redirect_goes_on(struct defragmenter *c, struct held *h,
                          struct manager_offer *o)
{
    const struct target *target = way_to(c, h->host);
    int64_t now = loop_now_ms(c->loop);
    /* The peers or the routes were reloaded, or an operator released it. */
    if (target == NULL || o->count == 0 || o->envelope->delivery.released) {
        channel_forget(c, h);
        return MANAGER_PASS;
    }
    if (h->timer.due_ms <= now) { /* fragment_redirect_tick() decides about it */
        o->until_ms = now + CHANNEL_MOMENT_MS;
        channel_stir(c);
        return MANAGER_AWAIT;
    }
    /* The birth goes along, so that its time does not start anew at the other host. */
    struct set_mark mark = {.depth = h->depth,
                            .epoch_s = o->envelope->birth_ms / 1000,
                            .ours = o->envelope->ours};
    memcpy(mark.key, h->key, sizeof(mark.key));
    set_mark_write(&mark, c->mark);
    /* Each recipient of the attempt is answered alone: fragment_redirect_answered(). */
    h->untaken = o->count;
    o->target = target;
    o->set_mark = text_from(c->mark);
    return MANAGER_REDIRECT;
}

void
fragment_redirect_answered(void *context, struct id id, bool taken)
{
    struct defragmenter *c = context;
    struct held *h = channel_find(c, id);
    if (h == NULL)
        return;
    assert(h->state == HELD_SENT || h->state == HELD_LEAVING);
    assert(h->untaken > 0);
    if (taken) {
        h->untaken--;
        if (h->untaken == 0) /* also if its time ended meanwhile */
            channel_forget(c, h);
    } else if (h->state == HELD_SENT) {
        /* The manager offers the recipient again immediately: the fragment passes. */
        c->figures.returned++;
        fragment_redirect_ends(c, h);
        h->state = HELD_LEAVING;
    }
}

int64_t
fragment_redirect_tick(struct defragmenter *c, int64_t now_ms)
{
    struct heap_node *n;
    for (int i = 0; (n = heap_first(&c->redirects)) != NULL; i++) {
        struct held *h = memory_container(n, struct held, timer.node);
        if (h->timer.due_ms > now_ms || i == CHANNEL_RELEASES)
            return h->timer.due_ms;
        c->figures.timed_out++;
        fragment_redirect_ends(c, h);
        channel_let_leave(c, h, SET_TIMEOUT, 0);
    }
    return INT64_MAX;
}

/* --- Another host owns a set that was begun here ---------------------------------- */

struct leaving {
    struct defragmenter *channel;
    const char *host;
};

static void
send_on(void *context, struct id id)
{
    struct leaving *l = context;
    struct defragmenter *c = l->channel;
    struct held *h = channel_find(c, id);
    struct set_view view;
    bool found = sets_find(c->sets, id, &view);
    assert(found);
    if (h == NULL || h->state != HELD_WAITING || h->by_peer || are_too_many(c))
        return;
    if (!sets_forget(c->sets, id))
        return; /* reassembly has begun: all fragments were here */
    channel_examining_free(h);
    depart(c, h, l->host, view.until_ms);
    if (!manager_resume(c->manager, id))
        channel_forget(c, h);
}

/* The set was begun here before the registry answered: a fragment does not wait for
 * that. */
void
fragment_redirect_other(void *context, const unsigned char key[DIGEST_SIZE],
                        const char *host)
{
    struct defragmenter *c = context;
    struct leaving l = {.channel = c, .host = host};
    if (way_to(c, host) != NULL)
        sets_each_part(c->sets, key, send_on, &l);
    else
        log_say(c->log, LOG_LEVEL_WARNING, "defrag", NULL,
                "host '%s' owns a set of fragments but is not in defrag_peers: they "
                "stay here",
                host);
}
