/* Complete sets become messages of the queue, in steps, each durable before the next:
 * the message is committed with the list of its parts, its parts are settled, it is
 * accepted and delivered. So a crash finds either the parts alone, which are
 * reassembled again, or the list, from which startup ends the parts that are left
 * (doc/defragment.md "Crashes").
 *
 * A struct reassembling goes through the lists of the channel: `making` (its content is
 * streamed), `storing` (its commit is under way), `settled` and `waiting` (for the
 * barrier of its parts' ends). A refused one is in `refused` until the timer moves it
 * to `renewed`, from where it begins anew. */
#include "defrag/channel_internal.h"

#include "base/memory.h"
#include "defrag/reassembly/parts_list.h"
#include "queue/queue_fragments.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS_PER_TURN = 100, /* ended; each is read */
    AGAIN_MS = 60 * 1000  /* after the queue has refused a message */
};

static void
tell_reassembled(const struct defragmenter *c, const struct envelope *e,
                 const struct set_reassembly *j)
{
    struct fragment_event f;
    channel_event_start(&f, e->id, j->key);
    channel_event_add_number(&f, "fragments", j->count);
    channel_event_add_number(&f, "recipients", (int64_t)j->recipient_count);
    channel_event_add(&f, "status", EVENT_TEXT, TEXT("reassembled"));
    event_tell(c->events, &f.event);
    event_tell(c->events, &(struct event){.kind = EVENT_MADE,
                                          .program = "defrag",
                                          .id = e->id,
                                          .sender = e->sender,
                                          .size = e->content_size,
                                          .recipients = e->count,
                                          .reason = "reassembled",
                                          .text = TEXT("reassembled message stored")});
}

/* --- Its parts -------------------------------------------------------------------- */

/* A reassembled message of an earlier run lists its parts by name, and names can be
 * forged or reused: a part is ended only if it is a fragment. */
static bool
completion_is_fragment(struct defragmenter *c, struct id id)
{
    struct examine examine;
    struct examine_setup setup = c->examine;
    const struct envelope *active = manager_active(c->manager, id);
    struct envelope *loaded = active == NULL ? queue_load_envelope(c->queue, id) : NULL;
    if (active == NULL && loaded == NULL)
        return false;
    struct id before = queue_enter(c->queue, id);
    /* The header alone decides: the body is not read to its end. */
    setup.parts_max = SET_NUMBER_MAX; /* the limit may have been another one */
    enum examine_result result =
        examine_start(&examine, &setup, active != NULL ? active : loaded, 1);
    examine_end(&examine);
    queue_leave(c->queue, before);
    envelope_free(&loaded);
    return result == EXAMINE_MORE || result == EXAMINE_DONE;
}

/* Ends the next part of *rest as delivered: the reassembled message has taken it over.
 * is_new: this run has examined the parts itself. False: there is none. */
static bool
settle_part(struct defragmenter *c, const struct envelope *reassembled,
            struct text *rest, bool is_new)
{
    struct id id;
    unsigned *indexes;
    size_t count;
    if (!parts_list_next(rest, &id, &indexes, &count))
        return false;
    struct id before = queue_enter(c->queue, reassembled->id); /* it names them */
    struct outcome outcome =
        outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0",
                     "reassembled: continues in %s", ID_TEXT(reassembled->id));
    outcome.notifies = true; /* the reassembled message answers for it */
    /* A part that cannot be read is offered again, and absorbed as a repetition. */
    bool ends = is_new || completion_is_fragment(c, id);
    if (!ends || !manager_settle_awaiting(c->manager, id, indexes, count, &outcome))
        (void)manager_resume(c->manager, id);
    free(indexes);
    queue_leave(c->queue, before);
    return true;
}

void
completion_settle_parts(struct defragmenter *c, const struct envelope *reassembled,
                        bool is_new)
{
    struct text rest = reassembled->fragment.made_of;
    while (settle_part(c, reassembled, &rest, is_new))
        continue;
}

/* Forgets the parts that are in no set any more. */
static void
forget_parts(struct defragmenter *c, const struct envelope *reassembled)
{
    struct text rest = reassembled->fragment.made_of;
    struct set_view view;
    struct id id;
    unsigned *indexes;
    size_t count;
    while (parts_list_next(&rest, &id, &indexes, &count)) {
        struct held *h = channel_find(c, id);
        if (h && h->state == HELD_WAITING && !sets_find(c->sets, id, &view))
            channel_forget(c, h);
        free(indexes);
    }
}

/* --- Those of earlier runs -------------------------------------------------------- */

bool
completion_are_unfinished(const struct defragmenter *c)
{
    return c->finishing.ids != NULL || c->adoptions != queue_adoptions(c->queue);
}

bool
completion_may_end(const struct defragmenter *c, struct id id)
{
    if (c->adoptions != queue_adoptions(c->queue))
        return true;
    return c->finishing.ids != NULL && (int64_t)id.time_ms < c->finishing.since_ms;
}

static void
on_parts_durable(void *context)
{
    struct defragmenter *c = context;
    c->is_ending = false;
}

static void
finishing_end(struct defragmenter *c)
{
    bool found = c->finishing.found;
    free(c->finishing.ids);
    envelope_free(&c->finishing.envelope);
    c->finishing = (struct finishing){0};
    /* Nothing has changed: offers need not wait for a barrier. */
    if (!found)
        return;
    c->is_ending = true;
    queue_barrier_cancel(&c->parts_ended); /* parts that ended now need another one */
    queue_barrier(c->queue, &c->parts_ended, on_parts_durable, c);
}

/* Only messages of our slices: the others belong to another process, which ends their
 * parts. False: no more. */
static bool
finishing_next(struct defragmenter *c)
{
    struct finishing *f = &c->finishing;
    if (f->at == f->count)
        return false;
    struct id id = f->ids[f->at++];
    if (manager_handles(c->manager, id))
        f->envelope = queue_load_envelope(c->queue, id);
    if (f->envelope != NULL)
        f->rest = f->envelope->fragment.made_of;
    f->found = f->found || f->rest.length > 0;
    return true;
}

void
completion_finish(struct defragmenter *c)
{
    struct finishing *f = &c->finishing;
    if (f->ids == NULL) {
        f->since_ms = loop_now_ms(c->loop);
        f->count = queue_made(c->queue, &f->ids);
        c->has_adopted = c->has_adopted || c->adoptions != queue_adoptions(c->queue);
        c->adoptions = queue_adoptions(c->queue);
    }
    for (int i = 0; i < PARTS_PER_TURN && f->ids != NULL; i++) {
        if (f->envelope == NULL && !finishing_next(c))
            finishing_end(c);
        else if (f->envelope != NULL && !settle_part(c, f->envelope, &f->rest, false))
            envelope_free(&f->envelope);
    }
}

/* --- Acceptance, when the ends of the parts are durable --------------------------- */

static void
accept_all(struct defragmenter *c, struct reassembling **list)
{
    struct reassembling *j, *next;
    DL_FOREACH_SAFE (*list, j, next) {
        DL_DELETE(*list, j);
        /* The manager owns the envelope from here on. */
        manager_accept(c->manager, &j->envelope);
        free(j);
    }
}

static void on_durable(void *context);

/* Messages that are settled while a barrier is under way take the next one together. */
static void
await_durable(struct defragmenter *c)
{
    if (c->waiting != NULL || c->settled == NULL)
        return;
    c->waiting = c->settled;
    c->settled = NULL;
    queue_barrier(c->queue, &c->ends, on_durable, c);
}

static void
on_durable(void *context)
{
    struct defragmenter *c = context;
    accept_all(c, &c->waiting);
    await_durable(c);
}

/* --- Storing ---------------------------------------------------------------------- */

static void
reassembling_free(struct reassembling *j)
{
    reassembled_free(&j->message);
    envelope_free(&j->envelope);
    free(j);
}

/* Its parts are released as they came: no failure of reassembly loses mail. */
static void
completion_give_up(struct defragmenter *c, struct reassembling *j, const char *why)
{
    log_say(c->log, LOG_LEVEL_WARNING, "defrag", ID_TEXT(j->reassembly->parts[0]),
            "%u fragments cannot be reassembled: %s", (unsigned)j->reassembly->count,
            why);
    sets_failed(c->sets, j->reassembly, loop_now_ms(c->loop));
    reassembling_free(j);
    channel_stir(c);
}

static void
renew(void *context)
{
    struct defragmenter *c = context;
    DL_CONCAT(c->renewed, c->refused);
    c->refused = NULL;
    channel_stir(c);
}

/* The disk may be full: tries again, as long as the set has time left. */
static void
completion_put_off(struct defragmenter *c, struct reassembling *j, const char *why)
{
    struct set_view view;
    bool found = sets_find(c->sets, j->reassembly->parts[0], &view);
    if (!found || view.until_ms <= loop_now_ms(c->loop) + AGAIN_MS) {
        completion_give_up(c, j, why);
        return;
    }
    log_say(c->log, LOG_LEVEL_WARNING, "defrag", ID_TEXT(j->reassembly->parts[0]),
            "%u fragments are not reassembled yet, retry in 60 s: %s",
            (unsigned)j->reassembly->count, why);
    /* The draft goes, and with it the space that it takes; the parts remain. */
    reassembled_free(&j->message);
    DL_APPEND(c->refused, j);
    if (!heap_has(&c->again.node))
        loop_timer_start(c->loop, &c->again, AGAIN_MS, renew, c);
}

static void
completion_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct reassembling *j = context;
    struct defragmenter *c = j->channel;
    DL_DELETE(c->storing, j);
    if (refusal) {
        completion_put_off(c, j, refusal->text);
        return;
    }
    j->envelope = e;
    c->figures.reassembled++;
    tell_reassembled(c, e, j->reassembly);
    completion_settle_parts(c, e, true);
    /* This frees j->reassembly. */
    sets_reassembled(c->sets, j->reassembly, loop_now_ms(c->loop));
    j->reassembly = NULL;
    forget_parts(c, e);
    channel_forget_withdrawn(c);
    DL_APPEND(c->settled, j);
    await_durable(c);
    channel_stir(c);
}

/* --- Given to another host -------------------------------------------------------- */

static bool
completion_is_of(const struct reassembling *j, const struct held *h)
{
    return j->reassembly != NULL &&
           memcmp(j->reassembly->key, h->key, sizeof(h->key)) == 0;
}

bool
completion_is_making(const struct defragmenter *c, const struct held *h)
{
    const struct reassembling *j;
    if (c->making != NULL && completion_is_of(c->making, h))
        return true;
    DL_FOREACH (c->storing, j)
        if (completion_is_of(j, h))
            return true;
    return false;
}

/* Another host may get it, and make the whole. */
static bool
completion_has_lent(const struct defragmenter *c, const struct reassembling *j)
{
    for (uint32_t i = 0; i < j->reassembly->count; i++)
        if (manager_is_lent(c->manager, j->reassembly->parts[i]))
            return true;
    return false;
}

/* --- Reassembly ------------------------------------------------------------------- */

static struct reassembling *
next_reassembling(struct defragmenter *c)
{
    struct reassembling *j = c->renewed;
    if (j != NULL) {
        DL_DELETE(c->renewed, j);
        return j;
    }
    const struct set_reassembly *reassembly = sets_next_reassembly(c->sets);
    if (reassembly == NULL)
        return NULL;
    /* The set stays busy until sets_reassembled() or sets_failed(). */
    j = memory_new(sizeof(*j));
    j->channel = c;
    j->reassembly = reassembly;
    return j;
}

static bool
completion_begin(struct defragmenter *c)
{
    struct reassembling *j = c->making ? NULL : next_reassembling(c);
    if (j == NULL)
        return c->making != NULL;
    if (completion_has_lent(c, j)) {
        completion_put_off(c, j, "another host may have taken a fragment");
        return true;
    }
    struct reassembled_setup setup = {.manager = c->manager,
                                      .loop = c->loop,
                                      .hostname = c->settings.hostname,
                                      .keeps_subject = c->settings.keeps_subject,
                                      .reassembly = j->reassembly};
    j->message = reassembled_new(&setup);
    c->making = j;
    return true;
}

static void
completion_store(struct defragmenter *c, struct reassembling *j)
{
    struct queue_draft *draft;
    struct envelope *e;
    reassembled_take(j->message, &draft, &e);
    reassembled_free(&j->message);
    DL_APPEND(c->storing, j);
    queue_commit(&draft, &e, completion_stored, j);
}

bool
completion_go_on(struct defragmenter *c)
{
    if (!completion_begin(c))
        return false;
    struct reassembling *j = c->making;
    if (j == NULL)
        return true;
    /* After repeated crashes in here the guard quarantines this part: no reassembly. */
    struct id before = queue_enter(c->queue, j->reassembly->parts[0]);
    enum reassembled_result result = reassembled_go(j->message, CHANNEL_BUDGET);
    queue_leave(c->queue, before);
    switch (result) {
    case REASSEMBLED_MORE:
        break;
    case REASSEMBLED_DONE:
        c->making = NULL;
        completion_store(c, j);
        break;
    case REASSEMBLED_FAILED: {
        char why[OUTCOME_TEXT_MAX];
        snprintf(why, sizeof(why), "%s", reassembled_trouble(j->message));
        c->making = NULL;
        /* Space on the disk may return; parts that are missing or damaged do not. */
        if (reassembled_is_refused(j->message))
            completion_put_off(c, j, why);
        else
            completion_give_up(c, j, why);
        break;
    }
    }
    return true;
}

/* The next startup finds the reassemblies under way. */
static void
completion_drop(struct defragmenter *c, struct reassembling **list)
{
    struct reassembling *j, *next;
    DL_FOREACH_SAFE (*list, j, next) {
        DL_DELETE(*list, j);
        if (j->reassembly != NULL)
            sets_failed(c->sets, j->reassembly, loop_now_ms(c->loop));
        reassembling_free(j);
    }
}

void
completion_stop(struct defragmenter *c)
{
    struct reassembling *j;
    queue_barrier_cancel(&c->ends);
    queue_barrier_cancel(&c->parts_ended);
    free(c->finishing.ids);
    envelope_free(&c->finishing.envelope);
    loop_timer_stop(c->loop, &c->again);
    /* Their callbacks would find j freed. */
    DL_FOREACH (c->storing, j)
        queue_commit_ignore(c->queue, j);
    if (c->making)
        DL_APPEND(c->storing, c->making);
    completion_drop(c, &c->storing);
    completion_drop(c, &c->refused);
    completion_drop(c, &c->renewed);
    completion_drop(c, &c->settled);
    completion_drop(c, &c->waiting);
}
