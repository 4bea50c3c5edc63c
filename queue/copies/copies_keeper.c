/* Messages on their way into the engine.
 *
 * One that has something to be said to the engine is an item, in one line at a time: `wants`
 * are not in a batch yet, `in_batch` is. An item whose batch is acknowledged and that wants
 * nothing more is freed; one whose batch has failed goes back, for what was sent may or may not
 * have been done, and each operation may be repeated. Ends wait while our own mail is not in the
 * engine: it replaces what ends. */
#include "queue/copies/copies_keeper.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/copies/copies_batch.h"
#include "queue/copies/copies_ends.h"
#include "queue/copies/copies_scripts.h"
#include "queue/manager/manager.h"
#include "queue/queue_copier.h"
#include "queue/queue_operator.h"
#include "queue/queue_walk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

enum {
    ITEMS_MAX = 200000, /* nobody waits for them; then all messages are walked over */
    FLUSH_MS = 100,     /* changes and ends wait for others */
    ENDS_MS = 1000,     /* from one sync of lock/ended to the next */
    GRACE_MS = 1000,    /* mail waits for an engine that has gone */
    REST_MS = 1000,     /* after a refusal */
    CHECK_MS = 5000,    /* from one try of a walk to the next */
    WALK_NAMES = 500,   /* read in a turn */
    WALK_AHEAD = 500,   /* items of a walk */
    FORM_MS = 100,      /* a change of a large envelope waits, for each */
    FORM_BYTES = 64 * 1024,
    READS_MAX = 100, /* messages that are read for a batch */
    SAY_MS = 60 * 1000
};

enum want { WANT_STORE = 1, WANT_CHANGE = 2, WANT_END = 4 };

enum line {
    LINE_OWN,     /* our own mail, and what sendmail(1) left here: first */
    LINE_WAITING, /* its client waits */
    LINE_CHANGE,
    LINE_END,
    LINE_BEHIND,    /* oldest first */
    LINE_GATHERING, /* in the next batch */
    LINE_FLYING,    /* in the batch under way */
    LINES
};

struct copies_item {
    struct id id;
    struct commit *waiter;
    unsigned wants;    /* not in a batch */
    unsigned in_batch; /* one of these, or 0 */
    enum line line;
    bool is_own;
    bool is_there;         /* perhaps: a batch had it */
    bool is_noted;         /* its end, in lock/ended */
    uint32_t at;           /* the next piece of a message in pieces */
    int64_t not_before_ms; /* of a large envelope's change; monotonic */
    struct copies_item *prev, *next;
    UT_hash_handle hh;
};

struct copies_keeper {
    struct copies_keeper_setup setup;
    struct copies_client client;
    struct copies_place place;
    struct copies_item *items, *lines[LINES];
    size_t counts[LINES];
    struct copies_batch batch;
    uint64_t number, known;     /* of the last batch sent, and acknowledged */
    uint64_t durable;           /* of the last one that is durable here, too */
    uint64_t settling, settles; /* the next one, when that batch of the journal is */
    bool is_met;                /* our copies are ours, on this connection */
    bool is_flying;             /* a batch is under way */
    bool refuses;               /* new mail; why has the reason */
    bool is_full;               /* because the engine has refused a batch */
    bool is_closed, is_due, is_overflown;
    bool is_slow;      /* some cannot be read now */
    bool is_recovered; /* the queue has found all that was there at startup */
    unsigned reads;    /* for the next batch */
    int64_t said_ms;
    char why[COPIES_WHY_MAX];
    int64_t away_since_ms;
    struct queue_walk *walk;
    bool walk_is_read;
    bool walk_checks; /* whether copies are there: changes are said */
    bool is_checked;
    uint64_t walk_left;
    struct copies_ends ends;
    struct loop_timer flush, away, check, ends_sync;
    struct loop_task task, walk_task;
    struct copies_state counted;
};

/* --- Items ------------------------------------------------------------------------ */

static struct copies_item *
keeper_find(const struct copies_keeper *k, struct id id)
{
    struct copies_item *item = NULL;
    HASH_FIND(hh, k->items, &id, sizeof(id), item);
    return item;
}

static void
keeper_enter(struct copies_keeper *k, struct copies_item *item, enum line line)
{
    item->line = line;
    DL_APPEND(k->lines[line], item);
    k->counts[line]++;
}

static void
keeper_leave(struct copies_keeper *k, struct copies_item *item)
{
    DL_DELETE(k->lines[item->line], item);
    k->counts[item->line]--;
}

static void
keeper_free_item(struct copies_keeper *k, struct copies_item *item)
{
    keeper_leave(k, item);
    HASH_DEL(k->items, item);
    free(item);
}

/* Into the line of what it wants. Freed if that is nothing. */
static void
keeper_line_up(struct copies_keeper *k, struct copies_item *item)
{
    enum line line = LINE_BEHIND;
    if (item->in_batch != 0)
        return;
    if (item->wants == 0) {
        keeper_free_item(k, item);
        return;
    }
    if ((item->wants & WANT_END) != 0)
        line = LINE_END;
    else if ((item->wants & WANT_STORE) == 0)
        line = LINE_CHANGE;
    else if (item->waiter != NULL)
        line = LINE_WAITING;
    else if (item->is_own)
        line = LINE_OWN;
    if (line != item->line)
        item->at = 0;
    keeper_leave(k, item);
    keeper_enter(k, item, line);
}

/* NULL: there are too many, and a walk makes up for it. Its caller lines it up. */
static struct copies_item *
keeper_take(struct copies_keeper *k, struct id id, bool is_waited_for)
{
    struct copies_item *item = keeper_find(k, id);
    if (item != NULL)
        return item;
    if (!is_waited_for && HASH_COUNT(k->items) >= ITEMS_MAX) {
        k->is_overflown = true;
        return NULL;
    }
    item = memory_new(sizeof(*item));
    item->id = id;
    item->is_there = true;
    HASH_ADD(hh, k->items, id, sizeof(item->id), item);
    keeper_enter(k, item, LINE_BEHIND);
    return item;
}

/* --- Ends that the engine does not hear ------------------------------------------- */

static void
keeper_note_end(struct copies_keeper *k, struct copies_item *item)
{
    if (((item->wants | item->in_batch) & WANT_END) == 0 || item->is_noted)
        return;
    item->is_noted = true;
    copies_ends_note(&k->ends, item->id);
}

static void
keeper_on_ends_sync(void *context)
{
    struct copies_keeper *k = context;
    copies_ends_sync(&k->ends);
}

static void
keeper_write_ends(struct copies_keeper *k)
{
    if (copies_ends_write(&k->ends) && !heap_has(&k->ends_sync.node))
        loop_timer_start(k->setup.loop, &k->ends_sync, ENDS_MS, keeper_on_ends_sync, k);
}

/* An end of an earlier run. A message whose end was not durable is here, and has a copy. */
static void
keeper_met_end(void *context, struct id id)
{
    struct copies_keeper *k = context;
    struct copies_item *item =
        queue_lacks(k->setup.queue, id) ? keeper_take(k, id, false) : NULL;
    if (item == NULL)
        return;
    item->wants = WANT_END;
    item->is_noted = true;
    keeper_line_up(k, item);
}

/* --- Refusals --------------------------------------------------------------------- */

static bool
keeper_refuse(const struct copies_keeper *k, struct outcome *refusal)
{
    char text[COPIES_WHY_MAX + 64];
    const char *away = copies_engine_why(k->setup.engine);
    snprintf(text, sizeof(text), "No second copy of mail can be kept: %s",
             k->is_closed || k->is_met || away[0] == '\0' ? k->why : away);
    return outcome_refuse(refusal, 451, "4.3.0", text);
}

static void
keeper_answer(struct copies_keeper *k, struct copies_item *item)
{
    struct commit *waiter = item->waiter;
    item->waiter = NULL;
    if (waiter != NULL)
        queue_copied(k->setup.queue, waiter, NULL);
}

/* Without copies_required it goes on with one copy. */
static void
keeper_give_up(struct copies_keeper *k, struct copies_item *item)
{
    struct outcome refusal;
    if (!k->setup.settings->required && !k->is_closed) {
        keeper_answer(k, item);
        keeper_line_up(k, item);
        return;
    }
    /* It ends, now or when it is durable. */
    struct commit *waiter = item->waiter;
    item->waiter = NULL;
    item->wants = item->is_there ? WANT_END : 0;
    keeper_line_up(k, item);
    (void)keeper_refuse(k, &refusal);
    k->counted.refused++;
    queue_copied(k->setup.queue, waiter, &refusal);
}

static void
keeper_give_up_all(struct copies_keeper *k)
{
    while (k->lines[LINE_WAITING] != NULL)
        keeper_give_up(k, k->lines[LINE_WAITING]);
}

/* Messages that are gathered, or were sent in vain, go back, and are read again. */
static void
keeper_scatter(struct copies_keeper *k, enum line line)
{
    struct copies_item *item;
    /* A message in pieces is the first of its line. */
    for (enum line i = LINE_OWN; i <= LINE_BEHIND; i++)
        if (k->lines[i] != NULL)
            k->lines[i]->at = 0;
    while ((item = k->lines[line]) != NULL) {
        item->wants |= item->in_batch;
        item->in_batch = 0;
        keeper_line_up(k, item);
    }
}

static void
keeper_drop_batch(struct copies_keeper *k)
{
    keeper_scatter(k, LINE_GATHERING);
    copies_batch_free(&k->batch);
}

static void
keeper_complain(struct copies_keeper *k)
{
    k->said_ms = loop_monotonic_ms(k->setup.loop);
    log_say(k->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
            "no copies can be kept, %s: %s",
            k->setup.settings->required ? "new mail is refused" : "mail has one copy",
            k->why);
}

static void
keeper_rest_over(void *context)
{
    struct copies_keeper *k = context;
    if (k->is_met) {
        k->refuses = k->is_full = false;
        return;
    }
    if (!k->is_closed && copies_engine_why(k->setup.engine)[0] != '\0')
        snprintf(k->why, sizeof(k->why), "%s", copies_engine_why(k->setup.engine));
    if (!k->refuses || k->is_full)
        keeper_complain(k);
    k->refuses = true;
    k->is_full = false;
    keeper_give_up_all(k);
}

static void
keeper_rest(struct copies_keeper *k, const char *why)
{
    snprintf(k->why, sizeof(k->why), "%s", why);
    if (!k->refuses && loop_monotonic_ms(k->setup.loop) - k->said_ms >= SAY_MS)
        keeper_complain(k);
    k->refuses = k->is_full = true;
    loop_timer_start(k->setup.loop, &k->away, REST_MS, keeper_rest_over, k);
}

static void
keeper_fence(struct copies_keeper *k, struct text owner)
{
    char name[GROUP_HOST_MAX + 1];
    (void)text_copy(name, sizeof(name), text_before(owner, GROUP_HOST_MAX));
    if (k->is_met)
        k->setup.fenced(k->setup.context, name);
}

/* --- Filling a batch -------------------------------------------------------------- */

enum put { PUT_DONE, PUT_PART, PUT_FULL, PUT_GONE, PUT_LATER };

static uint32_t
keeper_pieces(size_t bytes, size_t whole)
{
    return bytes <= whole ? 0 : (uint32_t)((bytes + COPIES_CHUNK - 1) / COPIES_CHUNK);
}

static bool
keeper_put_content(struct copies_keeper *k, struct copies_item *item,
                   const struct queue_copy *copy, uint32_t chunk, size_t size)
{
    bool is_chunk = copy->content_size > k->setup.settings->message_max;
    struct copies_mark before = copies_batch_mark(&k->batch);
    copies_batch_operation(&k->batch, is_chunk ? 'L' : 'C', item->id);
    if (is_chunk)
        copies_batch_number(&k->batch, chunk);
    char *to = copies_batch_reserve(&k->batch, size);
    int64_t offset = (int64_t)chunk * COPIES_CHUNK, got = 0;
    while (size > 0 && (got = queue_content_read(k->setup.queue, copy->content, offset,
                                                 to, size)) > 0) {
        offset += got;
        to += got;
        size -= (size_t)got;
    }
    /* The content that is there is better. */
    if (size > 0)
        copies_batch_return(&k->batch, before);
    return size == 0;
}

/* The next pieces, as many as there is room for: chunks of the content, parts of the envelope,
 * then the envelope, or its parts, count. */
static enum put
keeper_put_pieces(struct copies_keeper *k, struct copies_item *item, bool is_change,
                  const struct queue_copy *copy)
{
    struct text form = buffer_text(&copy->form);
    size_t content = is_change ? 0 : (size_t)copy->content_size;
    uint32_t chunks = keeper_pieces(content, (size_t)k->setup.settings->message_max),
             parts = keeper_pieces(form.length, COPIES_CHUNK);
    size_t last = (chunks == 0 ? content : 0) + (parts == 0 ? form.length : 0);
    for (; item->at < chunks + parts; item->at++) {
        if (!copies_batch_has_room(&k->batch, COPIES_CHUNK))
            return item->at > 0 ? PUT_PART : PUT_FULL;
        if (item->at < chunks) {
            size_t from = (size_t)item->at * COPIES_CHUNK, rest = content - from;
            if (!keeper_put_content(k, item, copy, item->at,
                                    rest < COPIES_CHUNK ? rest : COPIES_CHUNK))
                return PUT_LATER;
            continue;
        }
        uint32_t part = item->at - chunks;
        struct text piece =
            text_before(text_after(form, (size_t)part * COPIES_CHUNK), COPIES_CHUNK);
        copies_batch_operation(&k->batch, 'P', item->id);
        copies_batch_number(&k->batch, part);
        if (part == 0)
            copies_batch_form(&k->batch, k->number + 1, piece);
        else
            copies_batch_word(&k->batch, piece);
    }
    if (!copies_batch_has_room(&k->batch, last))
        return item->at > 0 ? PUT_PART : PUT_FULL;
    if (!is_change && chunks == 0 && !keeper_put_content(k, item, copy, 0, content))
        return PUT_LATER;
    copies_batch_operation(&k->batch, is_change ? 'M' : 'S', item->id);
    if (parts == 0)
        copies_batch_form(&k->batch, k->number + 1, form);
    else
        copies_batch_word(&k->batch, TEXT(""));
    return PUT_DONE;
}

/* A large envelope whose recipients are done one by one is not sent ten times in a second. */
static bool
keeper_is_early(const struct copies_keeper *k, struct copies_item *item, size_t size)
{
    int64_t now_ms = loop_monotonic_ms(k->setup.loop);
    if (item->not_before_ms == 0 && size > FORM_BYTES)
        item->not_before_ms = now_ms + (int64_t)(size / FORM_BYTES) * FORM_MS;
    return item->not_before_ms > now_ms;
}

static enum put
keeper_put_message(struct copies_keeper *k, struct copies_item *item, bool is_change)
{
    struct queue_copy copy;
    enum put put = PUT_LATER;
    if (is_change && item->not_before_ms > loop_monotonic_ms(k->setup.loop))
        return PUT_LATER;
    switch (queue_copy_open(k->setup.queue, item->id, is_change, &copy)) {
    case QUEUE_COPY_GONE:
        return PUT_GONE;
    case QUEUE_COPY_LATER:
        return PUT_LATER;
    case QUEUE_COPY_OPEN:
        break;
    }
    if (!is_change || !keeper_is_early(k, item, copy.form.length))
        put = keeper_put_pieces(k, item, is_change, &copy);
    queue_copy_close(k->setup.queue, &copy);
    return put;
}

static void
keeper_gather(struct copies_keeper *k, struct copies_item *item, enum want what)
{
    item->wants &= ~(unsigned)what;
    if (what == WANT_STORE)
        item->wants &= ~(unsigned)WANT_CHANGE;
    item->in_batch = what;
    item->is_there = true;
    item->at = 0;
    item->not_before_ms = 0;
    keeper_leave(k, item);
    keeper_enter(k, item, LINE_GATHERING);
}

/* False: the batch is full, or the first has more pieces than fit. */
static bool
keeper_fill(struct copies_keeper *k, enum line line, enum want what)
{
    size_t left = k->counts[line];
    while (left-- > 0 && k->reads < READS_MAX) {
        struct copies_item *item = k->lines[line];
        k->reads++;
        switch (keeper_put_message(k, item, what == WANT_CHANGE)) {
        case PUT_DONE:
            keeper_gather(k, item, what);
            break;
        case PUT_PART:
            item->is_there = true;
            return false;
        case PUT_FULL:
            return false;
        case PUT_GONE:
            item->wants &= ~(unsigned)(WANT_STORE | WANT_CHANGE);
            if (item->waiter != NULL) /* it cannot be read any more */
                keeper_give_up(k, item);
            else
                keeper_line_up(k, item);
            break;
        case PUT_LATER: /* pieces in the batch do no harm */
            item->at = 0;
            k->is_slow = true;
            if (item->waiter != NULL)
                keeper_give_up(k, item);
            else
                keeper_line_up(k, item);
            break;
        }
    }
    return true;
}

static void
keeper_fill_ends(struct copies_keeper *k)
{
    while (k->lines[LINE_END] != NULL && copies_batch_has_room(&k->batch, ID_LENGTH)) {
        struct copies_item *item = k->lines[LINE_END];
        copies_batch_operation(&k->batch, 'E', item->id);
        keeper_gather(k, item, WANT_END);
    }
}

/* A full engine takes a batch that begins with an end: our own mail, and changes, are small, and
 * let other mail end. */
static void
keeper_fill_all(struct copies_keeper *k)
{
    const struct id nobody = {0};
    k->reads = 0;
    k->is_slow = false;
    if (k->is_full && k->counts[LINE_OWN] + k->counts[LINE_CHANGE] > 0)
        copies_batch_operation(&k->batch, 'E', nobody);
    if (!keeper_fill(k, LINE_OWN, WANT_STORE))
        return;
    if (!k->is_full && !keeper_fill(k, LINE_WAITING, WANT_STORE))
        return;
    if (!keeper_fill(k, LINE_CHANGE, WANT_CHANGE))
        return;
    if (k->counts[LINE_OWN] == 0)
        keeper_fill_ends(k);
    if (!k->is_full)
        (void)keeper_fill(k, LINE_BEHIND, WANT_STORE);
}

/* --- A batch ---------------------------------------------------------------------- */

static void keeper_again(struct copies_keeper *k, struct id id);
static void keeper_walk_on(void *context);
static void keeper_walk(struct copies_keeper *k, bool checks);

/* In the engine now. */
static void
keeper_acknowledge(struct copies_keeper *k)
{
    struct copies_item *item;
    while ((item = k->lines[LINE_FLYING]) != NULL) {
        k->counted.stored += item->in_batch == WANT_STORE;
        k->counted.removed += item->in_batch == WANT_END;
        item->in_batch = 0;
        keeper_answer(k, item);
        keeper_line_up(k, item);
    }
}

static void
keeper_lose(struct copies_keeper *k, uint64_t was)
{
    k->counted.losses++;
    keeper_walk(k, false);
    log_say(k->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
            "the server has lost copies: its last batch was %" PRIu64 " and is %" PRIu64
            "; all mail is copied again",
            k->known, was);
}

/* Ends need no memory, but the number does. */
static bool
keeper_is_sound(const struct copies_keeper *k, const struct copies_answer *answer)
{
    const struct copies_item *item;
    bool stores = false;
    DL_FOREACH (k->lines[LINE_FLYING], item)
        stores = stores || item->in_batch != WANT_END;
    return answer->now == k->number || (answer->now == answer->was && !stores);
}

static void
keeper_on_answer(void *context, const struct redis_reply *reply, const char *why)
{
    struct copies_keeper *k = context;
    struct copies_answer answer;
    struct text owner;
    struct id id;
    k->is_flying = false;
    if (reply == NULL) {
        keeper_scatter(k, LINE_FLYING);
        if (copies_is_fenced(why, &owner))
            keeper_fence(k, owner);
        else if (strstr(why, COPIES_STALE) != NULL)
            copies_engine_fail(k->setup.engine, "another batch came late");
        else if (k->is_met && copies_engine_is_ready(k->setup.engine)) {
            keeper_rest(k, why);
            keeper_give_up_all(k);
        }
        return;
    }
    if (reply->kind != REDIS_TEXT || !copies_answer_read(reply->text, &answer) ||
        !keeper_is_sound(k, &answer)) {
        keeper_scatter(k, LINE_FLYING);
        copies_engine_fail(k->setup.engine, "an odd answer of the server");
        return;
    }
    k->counted.batches++;
    keeper_acknowledge(k);
    while (copies_answer_missing(&answer, &id))
        keeper_again(k, id);
    if (answer.was < k->known)
        keeper_lose(k, answer.was);
    if (answer.now == k->number)
        k->known = k->number;
    (void)copies_keeper_durable(k);
}

static bool
keeper_is_urgent(const struct copies_keeper *k)
{
    return k->is_due || k->counts[LINE_GATHERING] > 0 ||
           (!k->is_full && k->counts[LINE_WAITING] > 0) ||
           (!k->is_full && !k->is_slow &&
            k->counts[LINE_OWN] + k->counts[LINE_BEHIND] > 0);
}

static void
keeper_on_flush(void *context)
{
    struct copies_keeper *k = context;
    k->is_due = true;
}

/* Some had no item: all messages are stored again, and those that have ended are looked for. */
static void
keeper_make_up(struct copies_keeper *k)
{
    k->is_overflown = false;
    k->counted.gaps++;
    keeper_walk(k, false);
}

/* One at a time: the next one gathers what comes meanwhile. */
static void
keeper_at_end(void *context)
{
    struct copies_keeper *k = context;
    bool is_lazy = k->counts[LINE_OWN] + k->counts[LINE_CHANGE] + k->counts[LINE_END] +
                       k->counts[LINE_BEHIND] >
                   0;
    if (!k->is_recovered && queue_has_found_all(k->setup.queue)) {
        k->is_recovered = true;
        copies_ends_read(&k->ends, keeper_met_end, k);
    }
    keeper_write_ends(k);
    if (k->walk != NULL && k->is_recovered &&
        k->counts[LINE_BEHIND] + k->counts[LINE_CHANGE] < WALK_AHEAD)
        loop_post(k->setup.loop, &k->walk_task, keeper_walk_on, k);
    if (!k->is_met || k->is_flying)
        return;
    if (k->is_recovered && k->counts[LINE_END] == 0)
        copies_ends_drop(&k->ends);
    if (!keeper_is_urgent(k)) {
        if (is_lazy && !heap_has(&k->flush.node))
            loop_timer_start(k->setup.loop, &k->flush, FLUSH_MS, keeper_on_flush, k);
        return;
    }
    loop_timer_stop(k->setup.loop, &k->flush);
    k->is_due = false;
    keeper_fill_all(k);
    if (k->batch.words == 0) { /* what is early, or cannot be read now */
        if (is_lazy)
            loop_timer_start(k->setup.loop, &k->flush, FLUSH_MS, keeper_on_flush, k);
        return;
    }
    k->counted.bytes += k->batch.bytes.length;
    DL_CONCAT(k->lines[LINE_FLYING], k->lines[LINE_GATHERING]);
    k->lines[LINE_GATHERING] = NULL;
    k->counts[LINE_FLYING] += k->counts[LINE_GATHERING];
    k->counts[LINE_GATHERING] = 0;
    for (struct copies_item *item = k->lines[LINE_FLYING]; item != NULL;
         item = item->next)
        item->line = LINE_FLYING;
    k->is_flying = true;
    copies_batch_send(&k->batch, k->setup.engine, &k->place, ++k->number,
                      keeper_on_answer, k);
}

/* --- The engine comes and goes ---------------------------------------------------- */

/* number: of the last batch that it has. was_closed: another host has perhaps adopted all. */
static void
keeper_meet(struct copies_keeper *k, uint64_t number, bool was_closed)
{
    if (number < k->known && !was_closed)
        keeper_lose(k, number);
    else if (number < k->known || !k->is_checked)
        keeper_walk(k, number > 0 && !k->is_checked);
    k->is_checked = true;
    k->known = number;
    if (number > k->number)
        k->number = number;
}

void
copies_keeper_open(struct copies_keeper *k, uint64_t number, uint64_t least)
{
    bool was_refusing = k->refuses, was_closed = k->is_closed;
    loop_timer_stop(k->setup.loop, &k->away);
    k->is_met = true;
    k->refuses = k->is_full = k->is_closed = false;
    keeper_meet(k, number, was_closed);
    if (least > k->number)
        k->number = least;
    if (was_refusing)
        log_say(k->setup.log, LOG_LEVEL_INFO, "copies", NULL,
                "copies are kept again after %" PRId64 " s; behind: %" PRIu64,
                (loop_monotonic_ms(k->setup.loop) - k->away_since_ms) / 1000,
                copies_keeper_state(k).behind);
    loop_wake(k->setup.loop, &k->task);
}

void
copies_keeper_close(struct copies_keeper *k, const char *why)
{
    snprintf(k->why, sizeof(k->why), "%s", why);
    k->is_met = false;
    k->refuses = k->is_closed = true;
    keeper_drop_batch(k);
    keeper_give_up_all(k);
}

/* Batches are settled in order: with a later batch of the journal all before it are. */
uint64_t
copies_keeper_durable(struct copies_keeper *k)
{
    if (queue_batch_durable(k->setup.queue) < k->settles)
        return k->durable;
    k->durable = k->settling;
    k->settling = k->number;
    k->settles = queue_batch(k->setup.queue);
    return k->durable;
}

static void
keeper_on_farewell(void *context, const struct redis_reply *reply, const char *why)
{
    (void)context;
    (void)reply;
    (void)why;
}

static void
keeper_say_farewell(struct copies_keeper *k)
{
    const struct text words[] = {TEXT("2"), text_from(k->place.owner),
                                 text_from(k->place.copies), text_from(k->place.host),
                                 text_from(k->place.name)};
    copies_engine_run(k->setup.engine, copies_script_farewell, words,
                      sizeof(words) / sizeof(words[0]), false, keeper_on_farewell, k);
}

static void
keeper_on_ready(void *context)
{
    struct copies_keeper *k = context;
    if (!k->is_closed)
        snprintf(k->why, sizeof(k->why), "it is not known yet whose the copies are");
}

static void
keeper_on_lost(void *context)
{
    struct copies_keeper *k = context;
    k->is_met = k->is_full = false;
    k->away_since_ms = loop_monotonic_ms(k->setup.loop);
    keeper_drop_batch(k);
    struct copies_item *item;
    DL_FOREACH (k->lines[LINE_END], item)
        keeper_note_end(k, item);
    if (!k->refuses)
        loop_timer_start(k->setup.loop, &k->away, GRACE_MS, keeper_rest_over, k);
}

static void
keeper_on_check(void *context)
{
    struct copies_keeper *k = context;
    if (k->is_met && k->is_overflown && HASH_COUNT(k->items) < ITEMS_MAX / 2)
        keeper_make_up(k);
    if (k->walk != NULL)
        loop_post(k->setup.loop, &k->walk_task, keeper_walk_on, k);
    loop_timer_start(k->setup.loop, &k->check, CHECK_MS, keeper_on_check, k);
}

/* --- Messages of the queue ---------------------------------------------------------- */

static void
keeper_on_task(void *context)
{
    struct copies_keeper *k = context;
    if (k->refuses)
        keeper_give_up_all(k);
}

static bool
keeper_admits(void *context, struct outcome *refusal)
{
    const struct copies_keeper *k = context;
    bool must = k->setup.settings->required || k->is_closed;
    return !k->refuses || !must || keeper_refuse(k, refusal);
}

/* Answered in a later turn at the earliest. */
static struct copies_item *
keeper_want_stored(struct copies_keeper *k, struct id id, struct commit *waiter)
{
    bool is_new = keeper_find(k, id) == NULL;
    struct copies_item *item = keeper_take(k, id, waiter != NULL);
    if (item == NULL)
        return NULL;
    item->is_there = !is_new;
    item->wants |= WANT_STORE;
    item->waiter = waiter;
    item->is_own = waiter == NULL;
    keeper_line_up(k, item);
    if (k->refuses)
        loop_post(k->setup.loop, &k->task, keeper_on_task, k);
    return item;
}

static bool
keeper_store(void *context, struct id id, struct text form, struct text content,
             struct commit *waiter)
{
    struct copies_keeper *k = context;
    if (!k->is_met || k->refuses || form.length > COPIES_CHUNK ||
        content.length > (size_t)k->setup.settings->message_max ||
        !copies_batch_has_room(&k->batch, form.length + content.length))
        return false;
    struct copies_item *item = keeper_want_stored(k, id, waiter);
    if (item == NULL)
        return false;
    copies_batch_operation(&k->batch, 'C', id);
    copies_batch_word(&k->batch, content);
    copies_batch_operation(&k->batch, 'S', id);
    copies_batch_form(&k->batch, k->number + 1, form);
    keeper_gather(k, item, WANT_STORE);
    return true;
}

static void
keeper_stored(void *context, struct id id, struct commit *waiter)
{
    (void)keeper_want_stored(context, id, waiter);
}

/* All that startup finds is copied again, or compared. */
static void
keeper_found(void *context, struct id id)
{
    struct copies_keeper *k = context;
    if (k->is_recovered)
        (void)keeper_want_stored(k, id, NULL);
}

static void
keeper_changed(void *context, struct id id)
{
    struct copies_keeper *k = context;
    struct copies_item *item = keeper_take(k, id, false);
    if (item == NULL)
        return;
    item->at = 0; /* pieces of the old envelope are in no batch with those of the new */
    if ((item->wants & (WANT_STORE | WANT_END)) == 0)
        item->wants |= WANT_CHANGE;
    if (item->wants == WANT_CHANGE && item->line != LINE_CHANGE)
        keeper_line_up(k, item);
}

static void
keeper_ended(void *context, struct id id)
{
    struct copies_keeper *k = context;
    struct copies_item *item = keeper_find(k, id);
    if (item == NULL)
        item = keeper_take(k, id, false);
    if (item == NULL)
        return;
    item->waiter = NULL;
    item->wants = item->is_there ? WANT_END : 0;
    if (!k->is_met)
        keeper_note_end(k, item);
    keeper_line_up(k, item);
}

/* --- Catching up ------------------------------------------------------------------ */

/* The message is here, and its copy is missing. */
static void
keeper_again(struct copies_keeper *k, struct id id)
{
    struct copies_item *item = keeper_take(k, id, false);
    if (item == NULL || (item->wants & WANT_END) != 0)
        return;
    item->wants |= WANT_STORE;
    item->at = 0;
    keeper_line_up(k, item);
}

bool
copies_keeper_has(const struct copies_keeper *k, struct id id)
{
    return k->walk == NULL && !k->is_overflown && keeper_find(k, id) == NULL;
}

bool
copies_keeper_is_ending(const struct copies_keeper *k, struct id id)
{
    const struct copies_item *item = keeper_find(k, id);
    return item != NULL && ((item->wants | item->in_batch) & WANT_END) != 0;
}

void
copies_keeper_remove(struct copies_keeper *k, struct id id)
{
    keeper_ended(k, id);
}

static bool
keeper_walk_wants(void *context, struct id id)
{
    struct copies_keeper *k = context;
    if (!manager_handles(k->setup.manager, id))
        return false; /* other slices copy theirs, and hear of its end */
    k->walk_left++;
    return true;
}

/* Oldest first, some at a time: what is behind them is not in memory. */
static void
keeper_walk_on(void *context)
{
    struct copies_keeper *k = context;
    struct id id;
    enum queue_place place;
    if (k->walk == NULL || !k->is_recovered)
        return;
    if (!k->walk_is_read) {
        int more = queue_walk_read(k->walk, WALK_NAMES);
        k->walk_is_read = more == 0;
        if (more > 0)
            loop_post(k->setup.loop, &k->walk_task, keeper_walk_on, k);
        else if (more < 0) { /* another walk makes up for it */
            k->is_overflown = true;
            queue_walk_end(&k->walk);
        }
    }
    while (k->walk_is_read &&
           k->counts[LINE_BEHIND] + k->counts[LINE_CHANGE] < WALK_AHEAD) {
        if (!queue_walk_next(k->walk, &id, &place)) {
            queue_walk_end(&k->walk);
            k->walk_left = 0;
            break;
        }
        k->walk_left -= k->walk_left > 0;
        if (place != QUEUE_CORRUPT && k->walk_checks)
            keeper_changed(k, id);
        else if (place != QUEUE_CORRUPT)
            keeper_again(k, id);
    }
}

static void
keeper_walk(struct copies_keeper *k, bool checks)
{
    queue_walk_end(&k->walk);
    k->walk_checks = checks;
    k->walk_is_read = false;
    k->walk_left = 0;
    k->walk = queue_walk_begin(k->setup.queue, keeper_walk_wants, k);
    loop_post(k->setup.loop, &k->walk_task, keeper_walk_on, k);
}

/* --- Start and stop --------------------------------------------------------------- */

struct copies_keeper *
copies_keeper_new(const struct copies_keeper_setup *setup)
{
    struct copies_keeper *k = memory_new(sizeof(*k));
    k->setup = *setup;
    k->place.host = setup->who;
    k->said_ms = INT64_MIN / 2;
    copies_name(setup->settings->host, setup->identity, k->place.name);
    copies_key(setup->settings, k->place.name, k->place.copies);
    copies_key_owner(setup->settings, k->place.owner);
    snprintf(k->why, sizeof(k->why), "%s", copies_engine_why(setup->engine));
    k->client = (struct copies_client){
        .ready = keeper_on_ready, .lost = keeper_on_lost, .context = k};
    copies_engine_join(setup->engine, &k->client);
    queue_set_copier(setup->queue, &(struct queue_copier){.context = k,
                                                          .admits = keeper_admits,
                                                          .store = keeper_store,
                                                          .stored = keeper_stored,
                                                          .found = keeper_found,
                                                          .changed = keeper_changed,
                                                          .ended = keeper_ended});
    loop_at_end(setup->loop, LOOP_SEND_COPIES, keeper_at_end, k);
    loop_timer_start(setup->loop, &k->check, CHECK_MS, keeper_on_check, k);
    copies_ends_begin(&k->ends, setup->manager);
    k->away_since_ms = loop_monotonic_ms(setup->loop);
    loop_timer_start(setup->loop, &k->away, GRACE_MS, keeper_rest_over, k);
    return k;
}

void
copies_keeper_free(struct copies_keeper **keeper)
{
    struct copies_keeper *k = *keeper;
    struct copies_item *item, *next;
    if (k == NULL)
        return;
    *keeper = NULL;
    k->is_due = true; /* ends, for another host may adopt what we do not end */
    keeper_at_end(k);
    if (k->is_met)
        keeper_say_farewell(k);
    HASH_ITER (hh, k->items, item, next)
        keeper_note_end(k, item); /* the engine may not hear what was sent */
    (void)copies_ends_write(&k->ends);
    copies_ends_sync(&k->ends);
    copies_ends_free(&k->ends);
    queue_set_copier(k->setup.queue, NULL);
    copies_engine_leave(k->setup.engine, &k->client);
    queue_walk_end(&k->walk);
    loop_at_end_remove(k->setup.loop, LOOP_SEND_COPIES, keeper_at_end, k);
    loop_timer_stop(k->setup.loop, &k->flush);
    loop_timer_stop(k->setup.loop, &k->away);
    loop_timer_stop(k->setup.loop, &k->check);
    loop_timer_stop(k->setup.loop, &k->ends_sync);
    loop_unpost(k->setup.loop, &k->task);
    loop_unpost(k->setup.loop, &k->walk_task);
    HASH_ITER (hh, k->items, item, next)
        keeper_free_item(k, item);
    copies_batch_free(&k->batch);
    free(k);
}

struct copies_state
copies_keeper_state(const struct copies_keeper *k)
{
    struct copies_state state = k->counted;
    state.is_ready = k->is_met && !k->refuses;
    state.is_away = k->refuses;
    state.why = state.is_ready ? "" : k->why;
    state.behind = k->counts[LINE_OWN] + k->counts[LINE_BEHIND] +
                   (k->walk_checks ? 0 : k->walk_left);
    state.away_since_ms = k->is_met ? 0 : k->away_since_ms;
    return state;
}
