/* Asks the registry once for each set, and keeps the answer.
 *
 * A struct owned lasts until the set closes here, or its claim expires: each fragment
 * until then finds the same owner without asking again. A fragment does not wait for
 * the answer: ASKED and ALONE sets begin here. If the set turns out to be another
 * host's, setup.other is called, and its fragments leave for that host. */
#include "defrag/registry/claims.h"

#include "base/heap.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* Claims that have expired may stay for that long: one timer serves all of them. */
enum { SWEEP_MS = 60 * 1000 };

struct owned {
    UT_hash_handle hh;
    unsigned char key[REGISTRY_KEY_SIZE];
    struct claims *claims;
    struct registry_claim claim;
    enum owner owner;
    char *host;
    int64_t ttl_ms;
    bool is_closed; /* ASKED: close the claim when it is granted */
    int64_t memory_ms;
    struct owned *prev, *next; /* ALONE */
    struct heap_due timer;     /* monotonic */
};

struct claims {
    struct claims_setup setup;
    struct owned *by_key, *alone;
    size_t alone_count;
    struct heap timers;
    struct loop_timer sweep, recover;
};

static struct owned *
claims_find_claim(const struct claims *o, const unsigned char key[REGISTRY_KEY_SIZE])
{
    struct owned *found = NULL;
    HASH_FIND(hh, o->by_key, key, REGISTRY_KEY_SIZE, found);
    return found;
}

static void
leave_alone(struct owned *e)
{
    if (e->owner != OWNER_ALONE)
        return;
    DL_DELETE(e->claims->alone, e);
    e->claims->alone_count--;
}

static void
claims_forget(struct owned *e)
{
    struct claims *o = e->claims;
    leave_alone(e);
    registry_cancel(o->setup.registry, &e->claim);
    heap_remove(&o->timers, &e->timer.node);
    HASH_DEL(o->by_key, e);
    free(e->host);
    free(e);
}

static void
claims_sweep(void *context)
{
    struct claims *o = context;
    struct heap_node *n;
    int64_t now = loop_monotonic_ms(o->setup.loop);
    while ((n = heap_first(&o->timers)) != NULL) {
        struct owned *e = memory_container(n, struct owned, timer.node);
        if (e->timer.due_ms > now)
            break;
        claims_forget(e);
    }
    if (o->by_key != NULL)
        loop_timer_start(o->setup.loop, &o->sweep, SWEEP_MS, claims_sweep, o);
}

/* --- Claims ----------------------------------------------------------------------- */

static void
answered_ours(struct owned *e)
{
    struct claims *o = e->claims;
    e->owner = OWNER_US;
    if (!e->is_closed)
        return;
    registry_close(o->setup.registry, e->key, e->memory_ms);
    claims_forget(e);
}

/* A set that has closed meanwhile has no fragments to send on. */
static void
answered_other(struct owned *e, const char *host)
{
    struct claims *o = e->claims;
    if (e->is_closed) {
        claims_forget(e);
        return;
    }
    e->owner = OWNER_OTHER;
    free(e->host);
    e->host = memory_string(host);
    o->setup.other(o->setup.context, e->key, e->host);
}

/* The set was begun here unclaimed: claims_recover() asks again. */
static void
answered_nothing(struct owned *e)
{
    struct claims *o = e->claims;
    if (e->is_closed) {
        claims_forget(e);
        return;
    }
    e->owner = OWNER_ALONE;
    DL_APPEND(o->alone, e);
    o->alone_count++;
}

static void
on_claimed(void *context, enum registry_answer answer, const char *host)
{
    switch (answer) {
    case REGISTRY_OWN:
        answered_ours(context);
        break;
    case REGISTRY_OTHER:
        answered_other(context, host);
        break;
    case REGISTRY_UNAVAILABLE:
        answered_nothing(context);
        break;
    }
}

/* For the time that is left, so that the registry and this host forget the claim
 * together. */
static void
claims_ask(struct owned *e)
{
    struct claims *o = e->claims;
    int64_t left = e->timer.due_ms - loop_monotonic_ms(o->setup.loop);
    e->owner = OWNER_ASKED;
    registry_claim(o->setup.registry, &e->claim, e->key, left > 0 ? left : 1,
                   on_claimed, e);
}

static struct owner_view
claims_view_of(const struct owned *e)
{
    return (struct owner_view){.owner = e ? e->owner : OWNER_UNKNOWN,
                               .host = e ? e->host : NULL};
}

struct owner_view
claims_claim(struct claims *o, const unsigned char key[REGISTRY_KEY_SIZE],
             int64_t ttl_ms)
{
    struct owned *e = claims_find_claim(o, key);
    assert(ttl_ms > 0);
    if (e != NULL) {
        e->is_closed = false; /* a new set of that key has begun */
        return claims_view_of(e);
    }
    /* Keys come from clients, so their number has a limit. */
    if (HASH_COUNT(o->by_key) >= CLAIMS_MAX)
        return claims_view_of(NULL);
    e = memory_new(sizeof(*e));
    memcpy(e->key, key, REGISTRY_KEY_SIZE);
    e->claims = o;
    e->timer.due_ms = loop_monotonic_ms(o->setup.loop) + ttl_ms;
    if (o->by_key == NULL)
        loop_timer_start(o->setup.loop, &o->sweep, SWEEP_MS, claims_sweep, o);
    HASH_ADD(hh, o->by_key, key, REGISTRY_KEY_SIZE, e);
    heap_add(&o->timers, &e->timer.node);
    claims_ask(e);
    return claims_view_of(e);
}

struct owner_view
claims_find(const struct claims *o, const unsigned char key[REGISTRY_KEY_SIZE])
{
    return claims_view_of(claims_find_claim(o, key));
}

void
claims_close(struct claims *o, const unsigned char key[REGISTRY_KEY_SIZE],
             int64_t memory_ms)
{
    struct owned *e = claims_find_claim(o, key);
    if (e == NULL)
        return;
    e->is_closed = true;
    e->memory_ms = memory_ms;
    switch (e->owner) {
    /* The answer closes it: the claim may have been granted by now. */
    case OWNER_ASKED:
        break;
    case OWNER_US:
        answered_ours(e);
        break;
    case OWNER_UNKNOWN:
    case OWNER_ALONE:
        claims_forget(e);
        break;
    case OWNER_OTHER: /* that host still owns it */
        e->is_closed = false;
        break;
    }
}

/* --- When it is back -------------------------------------------------------------- */

/* Not all in one turn: the registry has only just recovered. */
static void
recover(void *context)
{
    struct claims *o = context;
    bool is_up = registry_is_up(o->setup.registry);
    /* Down again: recovered() is called once more when it is back. */
    unsigned size = is_up ? CLAIMS_RECOVER_SIZE : 1;
    for (unsigned i = 0; o->alone != NULL && i < size; i++) {
        struct owned *e = o->alone;
        leave_alone(e);
        claims_ask(e);
    }
    if (o->alone != NULL && is_up)
        loop_timer_start(o->setup.loop, &o->recover, CLAIMS_RECOVER_MS, recover, o);
}

void
claims_recover(struct claims *o, bool is_empty)
{
    struct owned *e, *next;
    HASH_ITER (hh, o->by_key, e, next)
        if (is_empty && e->owner == OWNER_US)
            answered_nothing(e);
    loop_timer_start(o->setup.loop, &o->recover, 0, recover, o);
}

/* ---------------------------------------------------------------------------------- */

struct claims_count
claims_count(const struct claims *o)
{
    return (struct claims_count){.known = HASH_COUNT(o->by_key),
                                 .alone = o->alone_count};
}

struct claims *
claims_new(const struct claims_setup *setup)
{
    struct claims *o = memory_new(sizeof(*o));
    o->setup = *setup;
    heap_init(&o->timers, heap_due_before);
    return o;
}

void
claims_free(struct claims **claims)
{
    struct claims *o = *claims;
    struct owned *e, *next;
    if (o == NULL)
        return;
    loop_timer_stop(o->setup.loop, &o->sweep);
    loop_timer_stop(o->setup.loop, &o->recover);
    HASH_ITER (hh, o->by_key, e, next)
        claims_forget(e);
    heap_free(&o->timers);
    free(o);
    *claims = NULL;
}
