/* Keeps sets of fragments: takes them, gives them up, remembers them.
 *
 * A set is open, then closed: DONE (all its messages were reassembled) or GIVEN_UP.
 * Both lists are in order, so that the oldest make space. Nothing here calls out.
 * Releases, closures and reassemblies are queued, and the channel takes them between
 * two calls, so no callback can change a set that is being worked on.
 *
 * A set with a reassembly under way is busy: the reassembly borrows its parts and
 * addresses. Such a set is not given up but doomed, and given up when the last of its
 * reassemblies has ended. */
#include "defrag/set/set.h"

#include "base/memory.h"
#include "defrag/set/set_internal.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- Quotas: open sets of each sender and each client; SET_NOBODY has none ----------- */

static size_t
set_quota_used(struct quota *quotas, uint64_t whose)
{
    struct quota *q;
    HASH_FIND(hh, quotas, &whose, sizeof(whose), q);
    return q == NULL ? 0 : q->sets;
}

static void
set_quota_take(struct quota **quotas, uint64_t whose)
{
    struct quota *q;
    if (whose == SET_NOBODY)
        return;
    HASH_FIND(hh, *quotas, &whose, sizeof(whose), q);
    if (q == NULL) {
        q = memory_new(sizeof(*q));
        q->whose = whose;
        HASH_ADD(hh, *quotas, whose, sizeof(whose), q);
    }
    q->sets++;
}

static void
set_quota_give(struct quota **quotas, uint64_t whose)
{
    struct quota *q;
    if (whose == SET_NOBODY)
        return;
    HASH_FIND(hh, *quotas, &whose, sizeof(whose), q);
    assert(q != NULL && q->sets > 0);
    if (--q->sets > 0)
        return;
    HASH_DEL(*quotas, q);
    free(q);
}

/* --- Reassembly ---------------------------------------------------------------------
 *
 * Fragments may be for different recipients, so a set can be reassembled more than
 * once: recipients that become complete with the same fragment share one message, and
 * later ones get another. `served` marks a recipient, and its share of each message, as
 * soon as a reassembly has begun, so that no second one takes it. */

static bool
set_reassembly_is_complete(const struct set *set, const struct wanted *w)
{
    return set->total > 0 && w->count == set->total && !w->served;
}

/* Only a message that this reassembly serves: it lives until the reassembly ends, which
 * others of the same number may not. */
static void
keep_part(struct completed *j, const struct part *p)
{
    static const struct id none = {0};
    struct id *part = &j->parts[p->slot->number - 1];
    if (id_compare(*part, none) != 0)
        return;
    *part = p->id;
    j->sizes[p->slot->number - 1] = p->size;
}

static void
collect_served(const struct set *set, struct completed *j, size_t space)
{
    struct part *p;
    j->served = memory_array(space, sizeof(j->served[0]));
    j->served_parts = memory_array(space, sizeof(j->served_parts[0]));
    DL_FOREACH2 (set->parts, p, set_next) {
        for (size_t i = 0; i < p->count; i++) {
            struct wanted *w = p->needs[i].wanted;
            if (p->needs[i].served || !set_reassembly_is_complete(set, w))
                continue;
            j->served[j->view.served_count] = (struct set_served){
                .id = p->id, .recipient = text_of(w->address, w->hh.keylen)};
            j->served_parts[j->view.served_count++] = p;
            keep_part(j, p);
            p->needs[i].served = true;
        }
    }
}

/* Complete recipients get one message together: see sets_next_reassembly(). */
static void
set_reassembly_complete(struct sets *s, struct set *set)
{
    struct wanted *w, *next;
    size_t complete = 0, needs = 0;
    struct part *p;
    HASH_ITER (hh, set->wanted, w, next)
        complete += set_reassembly_is_complete(set, w);
    if (complete == 0)
        return;
    /* An upper bound: one array, filled once. */
    DL_FOREACH2 (set->parts, p, set_next)
        needs += p->count;
    struct completed *j = memory_new(sizeof(*j));
    j->set = set;
    j->parts = memory_array(set->total, sizeof(j->parts[0]));
    j->sizes = memory_array(set->total, sizeof(j->sizes[0]));
    /* Before the recipients are marked: a served one does not count as complete. */
    collect_served(set, j, needs);
    j->recipients = memory_array(complete, sizeof(j->recipients[0]));
    HASH_ITER (hh, set->wanted, w, next) {
        if (!set_reassembly_is_complete(set, w))
            continue;
        w->served = true;
        j->recipients[j->view.recipient_count++] = text_of(w->address, w->hh.keylen);
    }
    memcpy(j->view.key, set->key, SET_KEY_SIZE);
    j->view.parts = j->parts;
    j->view.sizes = j->sizes;
    j->view.count = set->total;
    j->view.recipients = j->recipients;
    j->view.served = j->served;
    set->reassemblies++;
    DL_APPEND(s->reassemblies, j);
}

static void
set_reassembly_free(struct completed *j)
{
    free(j->parts);
    free(j->sizes);
    free(j->recipients);
    free(j->served);
    free(j->served_parts);
    free(j);
}

static struct completed *
set_reassembly_of(const struct set_reassembly *view)
{
    /* The view is const for the channel; its owner may change it. */
    return (struct completed *)((char *)(uintptr_t)view -
                                offsetof(struct completed, view));
}

enum {
    /* Bytes that closed sets may use for each recipient that open sets may have. */
    CLOSED_BYTES = 8,
    SETS_PER_TICK = 1000,
    SET_RELEASES_MAX = 1000 /* of those that wait: no more sets are given up then */
};

/* --- Sets --------------------------------------------------------------------------- */

const char *
set_reason_text(enum set_reason reason)
{
    static const char *const texts[] = {
        [SET_REASSEMBLED] = "the others were reassembled before it arrived",
        [SET_TIMEOUT] = "the others did not come in time",
        [SET_CONFLICT] = "the fragments contradict each other",
        [SET_LIMIT] = "there are too many",
        [SET_TROUBLE] = "they cannot be reassembled",
    };
    return texts[reason];
}

/* --- Sets ------------------------------------------------------------------------- */

static void
set_release(struct sets *s, struct part *p, enum set_reason reason)
{
    struct release *r = memory_new(sizeof(*r));
    r->view = (struct set_released){.id = p->id, .reason = reason};
    memcpy(r->view.key, p->set->key, SET_KEY_SIZE);
    DL_APPEND(s->releases, r);
    s->release_count++;
    set_part_free(s, p);
}

static void
set_free(struct sets *s, struct set *set)
{
    assert(set->parts == NULL && set->reassemblies == 0);
    if (set->state == SET_OPEN) {
        DL_DELETE(s->open, set);
        s->open_count--;
        set_quota_give(&s->senders, set->sender);
        set_quota_give(&s->clients, set->client);
    } else {
        DL_DELETE(s->closed, set);
        s->closed_count--;
        s->closed_bytes -= set->closed_bytes;
    }
    if (heap_has(&set->timer.node))
        heap_remove(&s->timers, &set->timer.node);
    set_forget_numbers(set);
    HASH_DEL(s->by_key, set);
    free(set);
}

static struct set *
set_new(struct sets *s, const struct fragment *f)
{
    struct set *set = memory_new(sizeof(*set));
    memcpy(set->key, f->key, SET_KEY_SIZE);
    set->timer.due_ms = f->until_ms;
    set->memory_ms = f->memory_ms;
    set->birth_ms = (int64_t)f->id.time_ms;
    set->sender = f->sender;
    set->client = f->client;
    HASH_ADD(hh, s->by_key, key, SET_KEY_SIZE, set);
    DL_APPEND(s->open, set);
    s->open_count++;
    set_quota_take(&s->senders, set->sender);
    set_quota_take(&s->clients, set->client);
    heap_add(&s->timers, &set->timer.node);
    return set;
}

static void
set_note_closed(struct sets *s, const struct set *set, int64_t memory_ms)
{
    struct closure *closure = memory_new(sizeof(*closure));
    memcpy(closure->view.key, set->key, SET_KEY_SIZE);
    closure->view.memory_ms = memory_ms;
    closure->view.reason = set->reason;
    /* Their order does not matter, and LL_APPEND would walk the list. */
    LL_PREPEND(s->closures, closure);
}

/* The set that has just been closed stays: it used no less when it was open. */
static bool
remembers_too_much(const struct sets *s)
{
    const struct set_limits *l = &s->limits;
    return (l->sets > 0 && s->closed_count > l->sets) ||
           (l->recipients > 0 && s->closed_bytes > l->recipients * CLOSED_BYTES &&
            s->closed_count > 1);
}

/* A closed set is remembered for a while; beyond the limit the oldest are forgotten. */
static void
set_remember(struct sets *s, struct set *set, int64_t ended_ms)
{
    set->timer.due_ms = ended_ms + set->memory_ms;
    heap_add(&s->timers, &set->timer.node);
    DL_APPEND(s->closed, set);
    s->closed_count++;
    set->closed_bytes = set_compact(set);
    s->closed_bytes += set->closed_bytes;
    while (remembers_too_much(s))
        set_free(s, s->closed);
}

static void
set_close(struct sets *s, struct set *set, enum set_reason reason, int64_t now_ms)
{
    enum set_state state = reason == SET_REASSEMBLED ? SET_DONE : SET_GIVEN_UP;
    assert(set->state == SET_OPEN && set->parts == NULL && set->reassemblies == 0);
    set->reason = reason;
    DL_DELETE(s->open, set);
    s->open_count--;
    /* Quotas count open sets: a closed one takes no place of its sender. */
    set_quota_give(&s->senders, set->sender);
    set_quota_give(&s->clients, set->client);
    if (heap_has(&set->timer.node))
        heap_remove(&s->timers, &set->timer.node);
    set->state = state;
    /* A fragment for a set that was given up passes: its numbers are not needed. */
    if (state == SET_GIVEN_UP)
        set_forget_numbers(set);
    set_note_closed(s, set, set->memory_ms);
    set_remember(s, set, now_ms);
}

static int
by_number(const struct part *a, const struct part *b)
{
    return (a->slot->number > b->slot->number) - (a->slot->number < b->slot->number);
}

/* By number, since the channel has them loaded in the order of their releases. A set
 * without messages was reassembled for all recipients but forgotten ones. */
static void
set_give_up(struct sets *s, struct set *set, enum set_reason reason, int64_t now_ms)
{
    enum set_reason why = set->parts == NULL ? SET_REASSEMBLED : reason;
    assert(set->state == SET_OPEN && set->reassemblies == 0);
    /* cppcheck-suppress nullPointer */
    DL_SORT2(set->parts, by_number, set_prev, set_next);
    while (set->parts != NULL)
        set_release(s, set->parts, reason);
    set_close(s, set, why, now_ms);
}

/* Now, or when its reassemblies under way have ended. */
static void
set_doom(struct sets *s, struct set *set, enum set_reason reason, int64_t now_ms)
{
    if (set->reassemblies == 0) {
        set_give_up(s, set, reason, now_ms);
        return;
    }
    set->is_doomed = true;
    set->doom = reason;
    /* A due timer that stays would keep sets_tick() from ending. */
    if (heap_has(&set->timer.node))
        heap_remove(&s->timers, &set->timer.node);
}

/* --- Fragments ----------------------------------------------------------------- */

/* Which of the two is right cannot be known, so such a set as a whole is released. A
 * total may come after a number above it: then `highest` contradicts. */
static bool
contradicts(struct set *set, const struct fragment *f)
{
    const struct slot *slot = set_slot_find(set, f->number);
    if (slot != NULL && memcmp(slot->digest, f->digest, TAG_SIZE) != 0)
        return true;
    if (f->total > 0 && set->total > 0 && f->total != set->total)
        return true;
    uint32_t total = f->total > 0 ? f->total : set->total;
    return total > 0 && (f->number > total || set->highest > total);
}

static bool
is_too_large(const struct sets *s, int64_t bytes)
{
    return (s->limits.bytes > 0 && bytes > s->limits.bytes) ||
           (s->limits.set_bytes > 0 && bytes > s->limits.set_bytes);
}

static bool
is_too_much(const struct sets *s, const struct fragment *f)
{
    const struct set_limits *l = &s->limits;
    return (l->recipients > 0 && s->recipients + f->count > l->recipients) ||
           is_too_large(s, f->size);
}

/* Quotas count sets, and only their beginning is refused: a sender at the limit can
 * still complete the sets that are open. */
static bool
may_begin(const struct sets *s, const struct fragment *f)
{
    const struct set_limits *l = &s->limits;
    return (l->sender_sets == 0 ||
            set_quota_used(s->senders, f->sender) < l->sender_sets) &&
           (l->client_sets == 0 ||
            set_quota_used(s->clients, f->client) < l->client_sets);
}

static bool
sets_have_space(const struct sets *s)
{
    const struct set_limits *l = &s->limits;
    return (l->sets == 0 || s->open_count <= l->sets) &&
           (l->bytes == 0 || s->bytes <= l->bytes);
}

/* Gives up sets that are not busy, oldest first, except `kept`: the fragment that was
 * just added to it is answered with SET_HOLDS. sets_tick() continues. */
static void
set_make_space(struct sets *s, const struct set *kept, int64_t now_ms)
{
    struct set *set, *next;
    DL_FOREACH_SAFE (s->open, set, next) {
        if (sets_have_space(s) || s->release_count >= SET_RELEASES_MAX)
            return;
        if (set != kept && set->reassemblies == 0)
            set_give_up(s, set, SET_LIMIT, now_ms);
    }
}

/* Recipients that have this number need no second copy. */
static size_t
note_absorbed(struct set *set, const struct fragment *f, struct set_answer *answer)
{
    for (size_t i = 0; i < f->count; i++) {
        struct wanted *w = set_wanted_find(set, f->recipients[i]);
        if (w != NULL && set_wanted_has(w, f->number))
            answer->absorbed[answer->absorbed_count++] = (unsigned)i;
    }
    return answer->absorbed_count;
}

/* The same of a closed set. */
static size_t
set_note_served(const struct set *set, const struct fragment *f,
                struct set_answer *answer)
{
    for (size_t i = 0; i < f->count; i++)
        if (set_has_served(set, f->recipients[i]))
            answer->absorbed[answer->absorbed_count++] = (unsigned)i;
    return answer->absorbed_count;
}

static void
pass(struct set_answer *answer, enum set_reason reason)
{
    answer->verdict = SET_PASSES;
    answer->reason = reason;
    answer->absorbed_count = 0;
}

/* Adds to a closed set. A fragment of other content, or for a recipient not served, is
 * not a repetition: it passes, since no second set could become complete. A set of an
 * earlier run has no digests: nothing repeats it. */
static void
come_late(struct set *set, const struct fragment *f, struct set_answer *answer)
{
    const struct slot *slot = set_slot_find(set, f->number);
    if (set->state == SET_DONE && slot != NULL &&
        memcmp(slot->digest, f->digest, TAG_SIZE) == 0 &&
        set_note_served(set, f, answer) == f->count)
        answer->verdict = SET_ABSORBS;
    else
        pass(answer, set->reason);
}

/* A set ends with the earliest time of its fragments. These do not always come in the
 * order of their births. */
static void
set_hurry(struct sets *s, struct set *set, int64_t until_ms)
{
    bool runs = heap_has(&set->timer.node);
    if (until_ms >= set->timer.due_ms)
        return;
    if (runs)
        heap_remove(&s->timers, &set->timer.node);
    set->timer.due_ms = until_ms;
    if (runs)
        heap_add(&s->timers, &set->timer.node);
}

void
sets_shorten(struct sets *s, struct id id, int64_t until_ms)
{
    struct part *p;
    HASH_FIND(hh, s->by_id, &id, sizeof(id), p);
    if (p != NULL)
        set_hurry(s, p->set, until_ms);
}

static void
set_take(struct sets *s, struct set *set, const struct fragment *f, int64_t now_ms,
         struct set_answer *answer)
{
    if (note_absorbed(set, f, answer) == f->count) {
        answer->verdict = SET_ABSORBS;
        return;
    }
    set_part_keep(s, set, f, answer->absorbed, answer->absorbed_count);
    set_hurry(s, set, f->until_ms);
    answer->verdict = SET_HOLDS;
    answer->have = set->have;
    answer->total = set->total;
    set_make_space(s, set, now_ms);
    set_reassembly_complete(s, set);
}

void
sets_add(struct sets *s, const struct fragment *f, int64_t now_ms,
         struct set_answer *answer)
{
    struct set *set;
    struct part *known;
    assert(f->number >= 1 && f->number <= SET_NUMBER_MAX && f->count > 0);
    assert(f->total == 0 || f->number <= f->total);
    answer->absorbed_count = 0;
    answer->have = answer->total = 0;
    HASH_FIND(hh, s->by_id, &f->id, sizeof(f->id), known);
    assert(known == NULL);
    HASH_FIND(hh, s->by_key, f->key, SET_KEY_SIZE, set);
    if (set != NULL && set->state != SET_OPEN) {
        come_late(set, f, answer);
    } else if (set != NULL && contradicts(set, f)) {
        pass(answer, SET_CONFLICT);
        set_doom(s, set, SET_CONFLICT, now_ms);
    } else if (is_too_much(s, f) || (set == NULL && !may_begin(s, f))) {
        pass(answer, SET_LIMIT);
    } else if (set != NULL && (is_too_large(s, set->bytes + f->size) ||
                               set->messages >= SET_MESSAGES_MAX)) {
        pass(answer, SET_LIMIT);
        set_doom(s, set, SET_LIMIT, now_ms);
    } else {
        set_take(s, set != NULL ? set : set_new(s, f), f, now_ms, answer);
    }
}

/* --- Actions ------------------------------------------------------------------- */

bool
sets_next_released(struct sets *s, struct set_released *released)
{
    struct release *r = s->releases;
    if (r == NULL)
        return false;
    *released = r->view;
    DL_DELETE(s->releases, r);
    s->release_count--;
    free(r);
    return true;
}

/* A set that is not remembered may have begun anew: then its key is in use. */
bool
sets_next_closed(struct sets *s, struct set_closed *closed)
{
    struct closure *first;
    bool found = false;
    while (!found && (first = s->closures) != NULL) {
        struct set *set;
        *closed = first->view;
        HASH_FIND(hh, s->by_key, closed->key, SET_KEY_SIZE, set);
        found = set == NULL || set->state != SET_OPEN;
        LL_DELETE(s->closures, first);
        free(first);
    }
    return found;
}

void
sets_recall(struct sets *s, const struct set_closed *closed, int64_t ended_ms)
{
    struct set *set;
    HASH_FIND(hh, s->by_key, closed->key, SET_KEY_SIZE, set);
    if (set != NULL && set->state != SET_OPEN)
        set_free(s, set);
    else if (set != NULL)
        return;
    set = memory_new(sizeof(*set));
    memcpy(set->key, closed->key, SET_KEY_SIZE);
    set->reason = closed->reason;
    set->state = closed->reason == SET_REASSEMBLED ? SET_DONE : SET_GIVEN_UP;
    set->memory_ms = closed->memory_ms;
    HASH_ADD(hh, s->by_key, key, SET_KEY_SIZE, set);
    set_remember(s, set, ended_ms);
}

void
sets_each_closed(const struct sets *s, size_t most,
                 void (*each)(void *context, const struct set_closed *closed,
                              int64_t ended_ms),
                 void *context)
{
    struct set *set;
    size_t skipped = s->closed_count > most ? s->closed_count - most : 0;
    DL_FOREACH (s->closed, set) {
        if (skipped > 0) {
            skipped--;
            continue;
        }
        struct set_closed closed = {.memory_ms = set->memory_ms, .reason = set->reason};
        memcpy(closed.key, set->key, SET_KEY_SIZE);
        each(context, &closed, set->timer.due_ms - set->memory_ms);
    }
}

const struct set_reassembly *
sets_next_reassembly(struct sets *s)
{
    struct completed *j = s->reassemblies;
    if (j == NULL)
        return NULL;
    DL_DELETE(s->reassemblies, j);
    DL_APPEND(s->taken, j);
    return &j->view;
}

/* The last reassembly under way has ended. */
static void
set_settle(struct sets *s, struct set *set, int64_t now_ms)
{
    if (set->reassemblies > 0)
        return;
    if (set->parts == NULL)
        set_close(s, set, SET_REASSEMBLED, now_ms);
    else if (set->is_doomed)
        set_give_up(s, set, set->doom, now_ms);
}

void
sets_reassembled(struct sets *s, const struct set_reassembly *view, int64_t now_ms)
{
    struct completed *j = set_reassembly_of(view);
    struct set *set = j->set;
    DL_DELETE(s->taken, j);
    set->reassemblies--;
    for (size_t i = 0; i < view->served_count; i++)
        /* A message for several recipients may be a part of several reassemblies. */
        if (--j->served_parts[i]->left == 0)
            set_part_free(s, j->served_parts[i]);
    set_reassembly_free(j);
    set_settle(s, set, now_ms);
}

void
sets_failed(struct sets *s, const struct set_reassembly *view, int64_t now_ms)
{
    struct completed *j = set_reassembly_of(view);
    struct set *set = j->set;
    DL_DELETE(s->taken, j);
    set->reassemblies--;
    set_reassembly_free(j);
    set_doom(s, set, SET_TROUBLE, now_ms);
}

/* --- Time, and the operator ---------------------------------------------------- */

static struct set *
next_timer(const struct sets *s)
{
    struct heap_node *n = heap_first(&s->timers);
    return n == NULL ? NULL : memory_container(n, struct set, timer.node);
}

int64_t
sets_wake_ms(const struct sets *s)
{
    const struct set *set = next_timer(s);
    return set == NULL ? INT64_MAX : set->timer.due_ms;
}

void
sets_tick(struct sets *s, int64_t now_ms)
{
    struct set *set;
    for (int i = 0; i < SETS_PER_TICK && s->release_count < SET_RELEASES_MAX; i++) {
        set = next_timer(s);
        if (set == NULL || set->timer.due_ms > now_ms)
            break;
        if (set->state == SET_OPEN)
            set_doom(s, set, SET_TIMEOUT, now_ms);
        else
            set_free(s, set);
    }
    set_make_space(s, NULL, now_ms);
}

/* A message for some of those recipients has been reassembled: they have the number. */
static bool
slot_is_needed(const struct set *set, const struct slot *slot)
{
    if (slot->parts != NULL)
        return true;
    for (const struct wanted *w = set->wanted; w != NULL; w = w->hh.next)
        if (set_wanted_has(w, slot->number))
            return true;
    return false;
}

/* A total that nobody states any more must not contradict later fragments. That of a
 * reassembled message is certain. */
static void
set_reread_totals(struct set *set)
{
    const struct part *p;
    set->highest = set->total = 0;
    for (const struct slot *slot = set->slots; slot != NULL; slot = slot->hh.next)
        set->highest = slot->number > set->highest ? slot->number : set->highest;
    DL_FOREACH2 (set->parts, p, set_next)
        set->total = p->total > 0 ? p->total : set->total;
}

static bool
set_was_reassembled(const struct set *set)
{
    for (const struct wanted *w = set->wanted; w != NULL; w = w->hh.next)
        if (w->served)
            return true;
    return false;
}

bool
sets_forget(struct sets *s, struct id id)
{
    struct part *p;
    HASH_FIND(hh, s->by_id, &id, sizeof(id), p);
    /* A reassembly under way borrows the part. */
    if (p == NULL || p->set->reassemblies > 0)
        return false;
    struct set *set = p->set;
    struct slot *slot = p->slot;
    for (size_t i = 0; i < p->count; i++)
        /* So a repetition that comes later is taken, not absorbed. */
        if (!p->needs[i].served)
            set_wanted_put(p->needs[i].wanted, slot->number, false);
    set_part_free(s, p);
    if (!slot_is_needed(set, slot)) {
        HASH_DEL(set->slots, slot);
        free(slot);
        set->have--;
    }
    if (set_was_reassembled(set))
        return true; /* also without messages: it knows for whom, until its time is over */
    set_reread_totals(set);
    if (set->parts == NULL) {
        set_note_closed(s, set, 0);
        set_free(s, set); /* not remembered: its fragments may come again */
    }
    return true;
}

struct sets_count
sets_count(const struct sets *s)
{
    return (struct sets_count){.open = s->open_count,
                               .closed = s->closed_count,
                               .messages = s->messages,
                               .bytes = s->bytes,
                               .oldest_ms = s->open == NULL ? 0 : s->open->birth_ms};
}

static struct set_info
set_describe(const struct set *set)
{
    struct set_info info = {.recipients = HASH_COUNT(set->wanted),
                            .messages = set->messages,
                            .have = set->have,
                            .total = set->total,
                            .highest = set->highest,
                            .bytes = set->bytes,
                            .birth_ms = set->birth_ms,
                            .until_ms = set->timer.due_ms,
                            .reassembling = set->reassemblies > 0};
    memcpy(info.key, set->key, SET_KEY_SIZE);
    if (set->parts != NULL)
        info.first = set->parts->id;
    info.recipient = text_from(set->wanted != NULL ? set->wanted->address : "");
    return info;
}

size_t
sets_list(const struct sets *s, size_t from, size_t count,
          void (*each)(void *context, const struct set_info *set), void *context)
{
    const struct set *set;
    size_t listed = 0;
    DL_FOREACH (s->open, set) {
        if (from > 0) {
            from--;
            continue;
        }
        if (listed == count)
            break;
        struct set_info info = set_describe(set);
        each(context, &info);
        listed++;
    }
    return listed;
}

bool
sets_find(const struct sets *s, struct id id, struct set_view *view)
{
    struct part *p;
    HASH_FIND(hh, s->by_id, &id, sizeof(id), p);
    if (p == NULL)
        return false;
    const struct set *set = p->set;
    *view = (struct set_view){.have = set->have,
                              .total = set->total,
                              .highest = set->highest,
                              .until_ms = set->timer.due_ms,
                              .reassembling = set->reassemblies > 0};
    memcpy(view->key, set->key, SET_KEY_SIZE);
    return true;
}

void
sets_each_part(const struct sets *s, const unsigned char key[SET_KEY_SIZE],
               void (*each)(void *context, struct id id), void *context)
{
    struct set *set;
    struct part *p, *next;
    HASH_FIND(hh, s->by_key, key, SET_KEY_SIZE, set);
    if (set == NULL)
        return;
    for (p = set->parts; p != NULL; p = next) {
        next = p->set_next; /* the last part may end the set, too */
        each(context, p->id);
    }
}

bool
sets_have(const struct sets *s, const unsigned char key[SET_KEY_SIZE])
{
    struct set *set;
    HASH_FIND(hh, s->by_key, key, SET_KEY_SIZE, set);
    return set != NULL;
}

bool
sets_has(const struct sets *s, const unsigned char key[SET_KEY_SIZE], uint32_t number)
{
    struct set *set;
    HASH_FIND(hh, s->by_key, key, SET_KEY_SIZE, set);
    return set != NULL && set_slot_find(set, number) != NULL;
}

/* --- Life ---------------------------------------------------------------------- */

struct sets *
sets_new(const struct set_limits *limits)
{
    struct sets *s = memory_new(sizeof(*s));
    s->limits = *limits;
    heap_init(&s->timers, heap_due_before);
    return s;
}

void
sets_limit(struct sets *s, const struct set_limits *limits)
{
    s->limits = *limits;
}

void
sets_free(struct sets **sets)
{
    struct sets *s = *sets;
    struct set_released released;
    struct set_closed closed;
    struct completed *j, *j_next;
    struct part *p, *p_next;
    struct set *set, *set_next;
    if (s == NULL)
        return;
    /* Before the sets, which must not be busy then. */
    DL_CONCAT(s->reassemblies, s->taken);
    DL_FOREACH_SAFE (s->reassemblies, j, j_next) {
        j->set->reassemblies--;
        set_reassembly_free(j);
    }
    HASH_ITER (hh, s->by_id, p, p_next)
        set_part_free(s, p);
    HASH_ITER (hh, s->by_key, set, set_next)
        set_free(s, set);
    while (sets_next_released(s, &released))
        continue;
    while (sets_next_closed(s, &closed))
        continue;
    heap_free(&s->timers);
    free(s);
    *sets = NULL;
}
