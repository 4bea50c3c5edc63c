/* The defragment channel: construction, its timer, releases.
 *
 * A channel owns no mail. Its sets are memory alone, and each message stays in the spool
 * until it is delivered or reassembled. So a restart may forget all of this: every
 * fragment is offered again then. A release is no more than HELD_LEAVING and
 * manager_resume(): the next offer answers "pass", or bounces it. */
#include "defrag/channel.h"

#include "base/memory.h"
#include "defrag/channel_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAKE_MAX_MS = 60 * 1000 /* a clock that is set cannot delay it for longer */
};

struct held *
channel_find(const struct defragmenter *c, struct id id)
{
    struct held *h = NULL;
    HASH_FIND(hh, c->held, &id, sizeof(id), h);
    return h;
}

void
channel_forget(struct defragmenter *c, struct held *h)
{
    if (h->is_overdue)
        DL_DELETE(c->overdue, h);
    else if (h->is_withdrawn)
        DL_DELETE(c->withdrawn, h);
    else if (h->state == HELD_LOOKING && h->examining)
        DL_DELETE(c->examining, h);
    fragment_redirect_ends(c, h);
    channel_examining_free(h);
    HASH_DEL(c->held, h);
    free(h);
}

/* --- The log ---------------------------------------------------------------------- */

static void
channel_name_set(const unsigned char key[DIGEST_SIZE], char out[CHANNEL_SET_NAME])
{
    text_hex(key, (CHANNEL_SET_NAME - 1) / 2, out);
}

void
channel_event_start(struct fragment_event *f, struct id id,
                    const unsigned char key[DIGEST_SIZE])
{
    static const unsigned char unknown[DIGEST_SIZE];
    f->event = (struct event){
        .kind = EVENT_FRAGMENT, .program = "defrag", .id = id, .fields = f->fields};
    if (memcmp(key, unknown, sizeof(unknown)) == 0)
        return;
    channel_name_set(key, f->set);
    channel_event_add(f, "set", EVENT_TEXT, text_from(f->set));
}

static struct event_field *
fragment_event_next(struct fragment_event *f, const char *key)
{
    assert(f->event.field_count < FRAGMENT_FIELDS_MAX);
    struct event_field *field = &f->fields[f->event.field_count++];
    *field = (struct event_field){.key = key};
    return field;
}

void
channel_event_add(struct fragment_event *f, const char *key, enum event_field_kind kind,
                  struct text value)
{
    struct event_field *field = fragment_event_next(f, key);
    field->kind = kind;
    field->value = value;
}

void
channel_event_add_number(struct fragment_event *f, const char *key, int64_t number)
{
    struct event_field *field = fragment_event_next(f, key);
    field->kind = EVENT_NUMBER;
    field->number = number;
}

/* --- Releases --------------------------------------------------------------------- */

static void
count_release(struct defragmenter *c, enum set_reason reason)
{
    switch (reason) {
    case SET_TIMEOUT:
        c->figures.timed_out++;
        break;
    case SET_CONFLICT:
        c->figures.conflicts++;
        break;
    case SET_LIMIT:
        c->figures.limited++;
        break;
    case SET_TROUBLE:
        c->figures.failed++;
        break;
    case SET_REASSEMBLED:
        break;
    }
}

/* As an operator would: the channel forgets it then. */
static bool
channel_hold(struct defragmenter *c, struct id id)
{
    char why[MANAGER_WHY_MAX];
    enum manager_result result = manager_hold(c->manager, id, "defrag_on_timeout", why);
    if (result == MANAGER_REFUSED)
        log_say(c->log, LOG_LEVEL_ERROR, "defrag", ID_TEXT(id), "cannot hold: %s", why);
    return result != MANAGER_REFUSED;
}

static void
tell_release(const struct defragmenter *c, struct id id,
             const unsigned char key[DIGEST_SIZE], struct text status,
             enum set_reason reason)
{
    struct fragment_event f;
    channel_event_start(&f, id, key);
    channel_event_add(&f, "status", EVENT_TEXT, status);
    f.event.text = text_from(set_reason_text(reason));
    event_tell(c->events, &f.event);
}

void
channel_let_leave(struct defragmenter *c, struct held *h, enum set_reason reason,
                  int64_t delay_ms)
{
    struct id id = h->id;
    unsigned char key[DIGEST_SIZE];
    memcpy(key, h->key, sizeof(key));
    h->state = HELD_LEAVING;
    h->expired = reason == SET_TIMEOUT;
    channel_examining_free(h); /* its set's answer is void */
    bool bounces = h->expired && c->settings.on_timeout == CHANNEL_BOUNCE;
    bool holds = h->expired && c->settings.on_timeout == CHANNEL_HOLD;
    /* withdrawn() frees h if it is held. One that cannot be held goes on. */
    holds = holds && channel_hold(c, id);
    tell_release(c, id, key,
                 holds     ? TEXT("held")
                 : bounces ? TEXT("returned")
                           : TEXT("released"),
                 reason);
    /* A message that is gone is not offered again: nobody else would free h. */
    h = channel_find(c, id);
    if (!manager_resume_after(c->manager, id, delay_ms) && h != NULL)
        channel_forget(c, h);
}

/* Late fragments then find their host only as long as this host remembers the set. */
static void
close_sets(struct defragmenter *c)
{
    struct set_closed closed;
    while (sets_next_closed(c->sets, &closed)) {
        closed_file_note(&c->closed, &closed, loop_now_ms(c->loop));
        if (c->claims)
            claims_close(c->claims, closed.key, closed.memory_ms);
    }
    closed_file_flush(&c->closed, c->sets);
}

/* In the order of their numbers, 1 ms apart: the manager then loads them in that
 * order. True: there are more. */
static bool
release_some(struct defragmenter *c)
{
    struct set_released released;
    int64_t now = loop_monotonic_ms(c->loop);
    if (c->release_ms < now)
        c->release_ms = now;
    for (int i = 0; i < CHANNEL_RELEASES; i++) {
        if (!sets_next_released(c->sets, &released))
            return false;
        struct held *h = channel_find(c, released.id);
        if (h != NULL && h->is_withdrawn) {
            channel_forget(c, h); /* an operator was faster */
            continue;
        }
        count_release(c, released.reason);
        if (h != NULL)
            channel_let_leave(c, h, released.reason, c->release_ms++ - now);
    }
    return true;
}

/* An operator's command for a waiting fragment. During reassembly it is too late: the
 * reassembly fails, or has the fragment. But the rest of the set must not count the
 * fragment any more, nor absorb a repetition of it. */
static void
withdrawn(void *context, struct id id)
{
    struct defragmenter *c = context;
    struct held *h = channel_find(c, id);
    if (h == NULL || h->is_withdrawn)
        return;
    if (h->state != HELD_WAITING || sets_forget(c->sets, id)) {
        channel_forget(c, h);
    } else {
        h->is_withdrawn = true;
        DL_APPEND(c->withdrawn, h);
    }
    channel_stir(c);
}

void
channel_forget_withdrawn(struct defragmenter *c)
{
    struct held *h, *next;
    DL_FOREACH_SAFE (c->withdrawn, h, next)
        if (sets_forget(c->sets, h->id))
            channel_forget(c, h);
}

static bool
channel_reassembles(void *context, struct id id)
{
    const struct defragmenter *c = context;
    const struct held *h = channel_find(c, id);
    return h != NULL && h->state == HELD_WAITING && completion_is_making(c, h);
}

static uint64_t
channel_set_number(void *context, struct id id)
{
    const struct defragmenter *c = context;
    const struct held *h = channel_find(c, id);
    uint64_t number = 0;
    if (h != NULL && (h->state == HELD_WAITING || h->state == HELD_SENT))
        memcpy(&number, h->key, sizeof(number));
    return number;
}

/* Fragments whose time was over at startup: the offer bounces them, this holds them.
 * True: there are more. */
static bool
hold_overdue(struct defragmenter *c)
{
    for (int i = 0; i < CHANNEL_RELEASES && c->overdue != NULL; i++) {
        struct held *h = c->overdue;
        DL_DELETE(c->overdue, h);
        h->is_overdue = false;
        count_release(c, SET_TIMEOUT);
        channel_let_leave(c, h, SET_TIMEOUT, 0);
    }
    return c->overdue != NULL;
}

/* --- Turns ------------------------------------------------------------------------ */

static void
channel_work(void *context)
{
    struct defragmenter *c = context;
    if (completion_are_unfinished(c))
        completion_finish(c);
    /* Both below may release and close sets, so the lists of these are emptied after
     * them. */
    sets_tick(c->sets, loop_now_ms(c->loop));
    bool more = channel_examine_on(c);
    more = completion_are_unfinished(c) || completion_go_on(c) || more;
    more = release_some(c) || more;
    close_sets(c);
    more = hold_overdue(c) || more;
    int64_t wake = sets_wake_ms(c->sets);
    int64_t redirect = fragment_redirect_tick(c, loop_now_ms(c->loop));
    wake = redirect < wake ? redirect : wake;
    int64_t delay = wake - loop_now_ms(c->loop);
    more = more || delay <= 0;
    loop_timer_stop(c->loop, &c->wake);
    /* A turn has a budget, CHANNEL_BUDGET: the rest waits, so that the loop serves
     * others. */
    if (more)
        loop_post(c->loop, &c->task, channel_work, c);
    else if (wake < INT64_MAX)
        loop_timer_start(c->loop, &c->wake, delay < WAKE_MAX_MS ? delay : WAKE_MAX_MS,
                         channel_work, c);
}

void
channel_stir(struct defragmenter *c)
{
    loop_post(c->loop, &c->task, channel_work, c);
}

/* --- The list ---------------------------------------------------------------------- */

static_assert((int)CHANNEL_SET_NAME == sizeof((struct manager_set){0}.name),
              "the same");

struct channel_listing {
    const struct defragmenter *channel;
    manager_set_saw *each;
    void *context;
};

static void
channel_list_numbers(const struct defragmenter *c, const struct set_info *set,
                     struct manager_set *out)
{
    uint32_t last = set->total > 0 ? set->total : set->highest;
    for (uint32_t n = 1; n <= last && n <= MANAGER_SET_LOOKS; n++)
        if (!sets_has(c->sets, set->key, n)) {
            if (out->missing_count < MANAGER_SET_NUMBERS)
                out->missing[out->missing_count++] = n;
        } else if (out->there_count < MANAGER_SET_NUMBERS) {
            out->there[out->there_count++] = n;
        }
}

static void
channel_list_one(void *context, const struct set_info *set)
{
    const struct channel_listing *l = context;
    struct manager_set view = {.first = set->first,
                               .recipient = set->recipient,
                               .owner = channel_owner(l->channel, set->key),
                               .recipients = set->recipients,
                               .messages = set->messages,
                               .have = set->have,
                               .total = set->total,
                               .bytes = set->bytes,
                               .since_ms = set->birth_ms,
                               .until_ms = set->until_ms,
                               .is_reassembling = set->reassembling};
    channel_name_set(set->key, view.name);
    channel_list_numbers(l->channel, set, &view);
    l->each(l->context, &view);
}

/* manager_defragment's. */
static size_t
channel_list(void *context, size_t from, size_t count, manager_set_saw *each,
             void *each_context)
{
    const struct defragmenter *c = context;
    struct channel_listing listing = {c, each, each_context};
    return sets_list(c->sets, from, count, channel_list_one, &listing);
}

/* --- Construction ----------------------------------------------------------------- */

static void
channel_count(void *context, struct manager_fragments *out)
{
    const struct defragmenter *c = context;
    struct sets_count sets = sets_count(c->sets);
    *out = c->figures;
    out->sets = sets.open;
    out->messages = sets.messages;
    out->bytes = sets.bytes;
    out->oldest_ms = sets.oldest_ms;
    if (c->claims == NULL)
        return;
    out->is_shared = true;
    out->is_down = !registry_is_up(c->settings.registry);
    out->alone = claims_count(c->claims).alone;
    out->namesakes = registry_counts(c->settings.registry).namesakes;
}

/* A new key at each startup: digests are in memory only. */
static void
make_examine_setup(struct defragmenter *c)
{
    static_assert(sizeof(c->examine.key) % sizeof(uint64_t) == 0, "whole numbers");
    unsigned char *key = (unsigned char *)&c->examine.key;
    c->examine.queue = c->queue;
    c->examine.parts_max = c->settings.limits.parts;
    for (size_t at = 0; at < sizeof(c->examine.key); at += sizeof(uint64_t)) {
        uint64_t chance = loop_random(c->loop);
        memcpy(key + at, &chance, sizeof(chance));
    }
}

struct defragmenter *
channel_new(struct loop *loop, struct event_hub *events, struct manager *manager,
            const struct channel_settings *settings)
{
    struct defragmenter *c = memory_new(sizeof(*c));
    c->loop = loop;
    c->events = events;
    c->log = event_hub_log(events);
    c->manager = manager;
    c->queue = manager_queue(manager);
    c->settings = *settings;
    make_examine_setup(c);
    c->sets = sets_new(&settings->limits);
    c->started_ms = loop_now_ms(loop);
    c->retention = manager_retention_mark(manager);
    closed_file_start(&c->closed, manager, c->log, c->sets, c->started_ms);
    heap_init(&c->redirects, heap_due_before);
    if (settings->registry) {
        struct claims_setup setup = {.loop = loop,
                                     .registry = settings->registry,
                                     .other = fragment_redirect_other,
                                     .context = c};
        c->claims = claims_new(&setup);
    }
    c->plug = (struct manager_defragment){.offer = channel_offer,
                                          .withdrawn = withdrawn,
                                          .explain = channel_explain,
                                          .redirected = fragment_redirect_answered,
                                          .count = channel_count,
                                          .list = channel_list,
                                          .reassembles = channel_reassembles,
                                          .set = channel_set_number,
                                          .context = c};
    manager_set_defragment(manager, &c->plug);
    /* The last run may have reassembled messages without ending their parts. */
    completion_finish(c);
    channel_stir(c);
    return c;
}

/* Offers every waiting fragment again. It passes if no route asks for reassembly any more;
 * otherwise its time may be another one. */
static void
channel_offer_all(struct defragmenter *c)
{
    struct held *h, *next;
    HASH_ITER (hh, c->held, h, next)
        if (!manager_resume(c->manager, h->id) && h->state == HELD_LEAVING)
            channel_forget(c, h);
}

void
channel_reload(struct defragmenter *c, const struct channel_settings *settings)
{
    /* A change of defrag_registry needs a restart: options_need_restart(). */
    assert(c->settings.registry == settings->registry);
    c->settings = *settings;
    c->examine.parts_max = settings->limits.parts;
    sets_limit(c->sets, &settings->limits);
    uint64_t retention = manager_retention_mark(c->manager);
    if (retention != c->retention || !manager_defragments(c->manager))
        channel_offer_all(c);
    c->retention = retention;
}

void
channel_recover(struct defragmenter *c, bool is_empty)
{
    if (c->claims)
        claims_recover(c->claims, is_empty);
}

void
channel_free(struct defragmenter **channel)
{
    struct defragmenter *c = *channel;
    struct held *h, *next;
    if (c == NULL)
        return;
    *channel = NULL;
    /* No offer comes from here on. */
    manager_set_defragment(c->manager, NULL);
    loop_unpost(c->loop, &c->task);
    loop_timer_stop(c->loop, &c->wake);
    /* Before the sets: reassemblies borrow from them. */
    completion_stop(c);
    HASH_ITER (hh, c->held, h, next)
        channel_forget(c, h);
    closed_file_end(&c->closed);
    sets_free(&c->sets);
    claims_free(&c->claims);
    heap_free(&c->redirects);
    free(c);
}
