/* Recovery, comparison, delivery of the rest, and a look at what remains. */
#include "t/crash/judge.h"

#include "base/memory.h"
#include "queue/queue_operator.h"
#include "queue/spool/guard.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RECOVERY_MS =
        1100, /* what is quarantined may wait for a second (queue/recovery/recover.c) */
    DURABLE_MS = 250,
    SWEEP_MS = 40 * 3600 * 1000,
    HOUR_MS = 3600 * 1000
};

struct trial {
    const struct shadow *shadow;
    const struct setup *setup;
    const struct comeback *comeback;
    struct finding *finding;
    struct daemon daemons[SLICES_MAX];
    /* For each message: how often it was there, and its result now. */
    unsigned seen[MESSAGES_MAX];
    bool delivered[MESSAGES_MAX][RECIPIENTS_MAX];
    bool quarantined[MESSAGES_MAX];
    bool journaled[MESSAGES_MAX], notified[MESSAGES_MAX][RECIPIENTS_MAX];
    struct id fresh; /* accepted after the recovery */
    unsigned answers;
};

static void __attribute__((format(printf, 2, 0)))
blame(struct trial *t, const char *format, va_list arguments)
{
    if (t->finding->wrong++ == 0)
        vsnprintf(t->finding->what, sizeof(t->finding->what), format, arguments);
}

static void __attribute__((format(printf, 3, 4)))
expect(struct trial *t, bool good, const char *format, ...)
{
    va_list arguments;
    if (good)
        return;
    va_start(arguments, format);
    blame(t, format, arguments);
    va_end(arguments);
}

struct comeback
comeback_any(uint64_t chance, unsigned slices_max)
{
    static const unsigned slices[] = {1, 1, 2, 4};
    static const int64_t steps[] = {0, 0, -HOUR_MS, 24 * HOUR_MS};
    unsigned wanted = slices[chance & 3];
    return (struct comeback){.slices = wanted < slices_max ? wanted : slices_max,
                             .step_ms = steps[chance >> 2 & 3],
                             .copied = (chance >> 4 & 7) == 0,
                             .killed = (chance >> 7 & 1) == 0,
                             .seed = chance};
}

/* --- A message that was found ---------------------------------------------------- */

static void
check_content(struct trial *t, struct queue *q, const struct envelope *e, unsigned m)
{
    struct text want = shadow_content(t->shadow, m);
    char *got = memory_resize(NULL, want.length + 1);
    int file = queue_content_open(q, e);
    int64_t size =
        file < 0 ? file : queue_content_read(q, file, 0, got, want.length + 1);
    expect(t, size == (int64_t)want.length && memcmp(got, want.at, want.length) == 0,
           "message %u: T2: its content is another (%" PRId64 " bytes)", m, size);
    if (file >= 0)
        queue_content_close(q, file);
    free(got);
}

/* Its files go one by one, in no order that a power cut respects: any part may be left,
 * and what is left may say anything but what never was. With a journal an end is
 * durable before the first file goes. */
static bool
is_over(const struct trial *t, const struct message *s)
{
    return s->removed != NO || (s->retired != NO && !t->shadow->strict);
}

static void __attribute__((format(printf, 4, 5)))
expect_unless_over(struct trial *t, const struct message *s, bool good,
                   const char *format, ...)
{
    va_list arguments;
    if (good)
        return;
    if (is_over(t, s) && (!t->comeback->ordered || t->shadow->troubled)) {
        t->finding->excused++;
        return;
    }
    va_start(arguments, format);
    blame(t, format, arguments);
    va_end(arguments);
}

static bool
is_same(const struct failure *got, const struct failure *want)
{
    return got->outcome.verdict == want->outcome.verdict &&
           got->relayed == want->relayed &&
           strcmp(got->outcome.text, want->outcome.text) == 0;
}

static void
check_failures(struct trial *t, const struct envelope *e, unsigned m)
{
    const struct message *s = &t->shadow->messages[m];
    unsigned told[RECIPIENTS_MAX] = {0};
    for (unsigned i = 0; i < e->delivery.failure_count; i++) {
        unsigned r = e->delivery.failures[i].recipient;
        struct failure want = shadow_failure(m, r);
        if (r >= s->recipients) {
            expect(t, false, "message %u: T4: a failure of nobody", m);
            continue;
        }
        told[r]++;
        expect(t, s->failed[r] && s->marks[r] != NO,
               "message %u: T4: a failure that there was not", m);
        expect(t, is_same(&e->delivery.failures[i], &want),
               "message %u: T4: the text of a failure", m);
        bool notified = e->delivery.failures[i].notified;
        t->notified[m][r] = notified;
        expect(t, !notified || s->notified[r] != NO || t->shadow->troubled,
               "message %u: recipient %u counts as reported, and was not", m, r);
        expect_unless_over(t, s, notified || s->notified[r] != SURE,
                           "message %u: recipient %u is reported again", m, r);
    }
    for (unsigned r = 0; r < s->recipients; r++)
        expect_unless_over(
            t, s, told[r] == (s->failed[r] && e->recipients[r].done),
            "message %u: T4: recipient %u is %s, and its failure told %u times", m, r,
            e->recipients[r].done ? "done" : "open", told[r]);
}

static void
check_message(struct trial *t, struct queue *q, const struct envelope *e, unsigned m)
{
    const struct message *s = &t->shadow->messages[m];
    check_content(t, q, e, m);
    expect(t, text_equal(e->sender, TEXT("sender@example.org")),
           "message %u: T2: the sender", m);
    expect(t, e->count == s->recipients, "message %u: T2: %u recipients", m, e->count);
    if (e->count != s->recipients)
        return;
    for (unsigned r = 0; r < s->recipients; r++) {
        bool done = e->recipients[r].done;
        expect(t, text_equal(e->recipients[r].address, text_from(shadow_address(r))),
               "message %u: T2: recipient %u is another", m, r);
        expect(t,
               text_equal(envelope_origin_of(&e->recipients[r]),
                          s->is_alias ? text_from(shadow_alias()) : TEXT("")),
               "message %u: T2: recipient %u has another alias", m, r);
        expect(t, !done || s->marks[r] != NO,
               "message %u: T1: recipient %u is done, but was not served", m, r);
        /* Young mail that is retired never had its marks written. */
        expect_unless_over(
            t, s, done || s->marks[r] != SURE,
            "message %u: T3: recipient %u was served long ago, and is open", m, r);
        if (!done)
            t->delivered[m][r] = true;
    }
    /* The mark is never without its notice, which is a message as any other. */
    expect(t, e->delivery.warned_s == 0 || s->warned != NO,
           "message %u: its sender counts as warned, and was not", m);
    expect_unless_over(t, s, e->delivery.warned_s != 0 || s->warned != SURE,
                       "message %u: its sender was warned, and is to be again", m);
    check_failures(t, e, m);
}

/* Loads, compares, delivers and retires it. */
static void
take_message(struct trial *t, struct queue *q, struct id id, bool held)
{
    int m = shadow_find(t->shadow, id);
    struct envelope *e = queue_load(q, id);
    if (m >= 0 && e != NULL)
        shadow_expand(&t->shadow->messages[m], e);
    expect(t, m >= 0, "T2: a message that nobody sent");
    if (m < 0) {
        envelope_free(&e);
        return;
    }
    const struct message *s = &t->shadow->messages[m];
    t->seen[m]++;
    t->finding->found++;
    expect(t, t->seen[m] == 1, "message %d: T3: found twice", m);
    expect_unless_over(t, s, e != NULL, "message %d: T1: found, but not loaded", m);
    if (e == NULL)
        return;
    expect(t, s->retired != SURE, "message %d: T3: retired long ago, and back", m);
    expect(t, s->removed != SURE, "message %d: removed long ago, and back", m);
    expect(t, e->delivery.held == held, "message %d: reported, but held", m);
    expect_unless_over(t, s, s->held != SURE || held, "message %d: released by nobody",
                       m);
    expect(t, s->held != NO || !held, "message %d: held by nobody", m);
    t->finding->unasked += s->known != STORED;
    t->journaled[m] = t->setup->journal_size > 0 && !e->storage.preprocessed;
    check_message(t, q, e, (unsigned)m);
    bool settle = (t->comeback->seed + (unsigned)m) % 2 == 0;
    for (unsigned r = 0; r < e->count && settle; r++)
        if (!e->recipients[r].done)
            queue_settle(q, e, r, NULL);
    queue_retire(q, &e);
}

struct places {
    struct id *held, *guarded;
    size_t count, guarded_count;
    struct trial *trial;
    struct queue *queue; /* that is asked */
};

static struct queue *
queue_for(const struct trial *t, struct id id)
{
    return t->daemons[id_slice(id, t->comeback->slices)].queue;
}

/* Two crashes at the same message: it waits for the operator,
 * whole.
 */
static bool
is_guarded(struct queue *q, struct id id)
{
    char note[QUEUE_NOTE_MAX];
    return queue_note(q, id, QUEUE_CORRUPT, note) == 0 &&
           strstr(note, "processed in two crashes") != NULL;
}

static void
add_id(struct id **list, size_t *count, struct id id)
{
    *list = memory_resize(*list, (*count + 1) * sizeof(id));
    (*list)[(*count)++] = id;
}

static bool
note_place(void *context, struct id id, enum queue_place place)
{
    struct places *p = context;
    int m = shadow_find(p->trial->shadow, id);
    if (place == QUEUE_HOLD)
        add_id(&p->held, &p->count, id);
    if (place != QUEUE_CORRUPT || m < 0)
        return true;
    if (is_guarded(p->queue, id)) {
        add_id(&p->guarded, &p->guarded_count, id);
        return true;
    }
    expect_unless_over(p->trial, &p->trial->shadow->messages[m], false,
                       "message %d: T1: quarantined in corrupt/", m);
    p->trial->finding->quarantined += !p->trial->quarantined[m];
    p->trial->quarantined[m] = true;
    return true;
}

static void
take_found(struct trial *t, struct daemon *d)
{
    expect(t, !d->disordered, "T10: found, but not in the order of ids");
    d->listed = d->found_count;
    for (size_t i = 0; i < d->listed; i++)
        take_message(t, d->queue, d->found[i].id, false);
}

static void
take_held(struct trial *t)
{
    struct places places = {.trial = t, .queue = t->daemons[0].queue};
    char note[QUEUE_NOTE_MAX];
    expect(t, queue_each(places.queue, note_place, &places) == 0, "T6: not listed");
    for (size_t i = 0; i < places.count; i++) {
        struct id id = places.held[i];
        take_message(t, queue_for(t, id), id, true);
    }
    for (size_t i = 0; i < places.guarded_count; i++) {
        struct id id = places.guarded[i];
        struct queue *q = queue_for(t, id);
        expect(t, queue_release(q, id) == 0,
               "T7: quarantined by the guard, and not whole");
        take_message(t, q, id, queue_note(q, id, QUEUE_HOLD, note) == 0);
    }
    free(places.held);
    free(places.guarded);
}

/* A notice of what is in the journal, and the note of it, are durable together: both are
 * there, or neither. A notice that has ended is not asked for. */
static void
check_notice(struct trial *t, unsigned notice)
{
    const struct message *n = &t->shadow->messages[notice];
    if (n->told_of < 0 || !t->journaled[n->told_of])
        return;
    for (unsigned r = 0; r < RECIPIENTS_MAX; r++) {
        if (!n->tells[r])
            continue;
        bool noted = t->notified[n->told_of][r];
        expect(t, noted || t->seen[notice] == 0,
               "message %d: recipient %u was reported by %u, and is again", n->told_of,
               r, notice);
        expect(t, !noted || t->seen[notice] > 0 || n->known == STORED,
               "message %d: recipient %u counts as reported by %u, which is lost",
               n->told_of, r, notice);
    }
}

static void
check_all_there(struct trial *t)
{
    for (unsigned m = 0; m < t->shadow->count; m++)
        check_notice(t, m);
    for (unsigned m = 0; m < t->shadow->count; m++) {
        const struct message *s = &t->shadow->messages[m];
        if (s->known == STORED && s->retired == NO && s->removed == NO)
            expect(t, t->seen[m] == 1, "message %u: T1: lost", m);
        if (s->known == REFUSED && (!t->shadow->troubled || s->gone))
            expect(t, t->seen[m] == 0, "message %u: T2: refused, and there", m);
    }
}

/* --- The rest -------------------------------------------------------------------- */

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct trial *t = context;
    t->answers++;
    expect(t, refusal == NULL, "T8: the recovered queue refuses mail");
    if (e != NULL)
        t->fresh = e->id;
    envelope_free(&e);
}

/* It takes mail again. */
static void
accept_fresh(struct trial *t, struct daemon *d)
{
    struct outcome refusal;
    struct queue_draft *draft = queue_begin(d->queue, 10, &refusal);
    expect(t, draft != NULL, "T8: the recovered queue takes no mail");
    if (draft == NULL)
        return;
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("fresh@example.org"));
    if (!envelope_add(e, text_from(shadow_address(0)), NOTIFY_DEFAULT, TEXT("")))
        abort();
    (void)!queue_write(draft, TEXT("fresh mail"));
    queue_name(draft, e);
    queue_commit(&draft, &e, on_stored, t);
}

static void
take_fresh(struct trial *t, struct daemon *d)
{
    bool there = false;
    for (size_t i = 0; i < d->found_count; i++) {
        struct envelope *e = queue_load(d->queue, d->found[i].id);
        bool fresh = id_compare(d->found[i].id, t->fresh) == 0;
        int m = shadow_find(t->shadow, d->found[i].id);
        expect(t, fresh, "message %d: T3: all was delivered, and it is back", m);
        expect(t, e != NULL, "message %d: T1: found again, but not loaded", m);
        there = there || (fresh && e != NULL && e->content_size == 10);
        if (e != NULL)
            queue_retire(d->queue, &e);
    }
    expect(t, there, "T1: what came after the recovery is lost");
}

static void
check_empty(struct trial *t)
{
    static const char *const dirs[] = {"pid",   "mess",   "intd",   "todo", "info",
                                       "local", "remote", "bounce", "hold"};
    char path[40];
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", crash_spool, dirs[i]);
        size_t left = sim_disk_count(path);
        expect(t, left == 0, "T6: %zu files are left in %s/", left, dirs[i]);
    }
    snprintf(path, sizeof(path), "%s/corrupt", crash_spool);
    expect(t, sim_disk_count(path) == 0 || t->finding->quarantined > 0,
           "T2: corrupt/ is not empty");
}

/* --- Lives ----------------------------------------------------------------------- */

static bool
open_all(struct trial *t)
{
    const struct comeback *c = t->comeback;
    assert(c->slices >= 1 && c->slices <= SLICES_MAX);
    for (unsigned i = 0; i < c->slices; i++) {
        int code = daemon_open(&t->daemons[i], t->setup, c->slices, i, c->seed + i,
                               c->step_ms);
        expect(t, code == 0, "T8: no start: %s", t->daemons[i].error);
    }
    return t->finding->wrong == 0;
}

/* Recoveries of all slices go on side by side. */
static void
advance_all(struct trial *t, int64_t ms)
{
    unsigned slices = t->comeback->slices;
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < slices; i++)
            loop_turn(t->daemons[i].loop, 0);
    for (unsigned i = 0; i < slices; i++)
        daemon_advance(&t->daemons[i], ms);
}

static void
close_all(struct trial *t)
{
    for (unsigned i = 0; i < SLICES_MAX; i++)
        daemon_close(&t->daemons[i]);
}

/* All mail was taken. What is left had no 250, and its daemon is dead; large content of a
 * journal waits for 36 hours, for its record may be damaged. */
static void
check_leftovers(struct trial *t)
{
    static const char *const dirs[] = {"pid", "mess", "intd", "todo"};
    char path[40];
    if (t->setup->journal_size > 0 || t->shadow->injected || t->finding->wrong > 0)
        return;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", crash_spool, dirs[i]);
        size_t left = sim_disk_count(path);
        expect(t, left == 0, "T6: %zu files of a dead daemon are left in %s/", left,
               dirs[i]);
    }
}

static void
first_life(struct trial *t)
{
    if (open_all(t)) {
        advance_all(t, RECOVERY_MS);
        for (unsigned i = 0; i < t->comeback->slices; i++)
            take_found(t, &t->daemons[i]);
        take_held(t);
        check_all_there(t);
        check_leftovers(t);
    }
    if (t->finding->wrong == 0) {
        accept_fresh(t, &t->daemons[t->comeback->slices - 1]);
        advance_all(t, DURABLE_MS);
        expect(t, t->answers == 1, "T8: the recovered queue gives no answer");
    }
    if (t->comeback->killed)
        sim_disk_die_at(1);
    close_all(t);
    sim_disk_restart();
}

static void
second_life(struct trial *t)
{
    struct daemon *d = &t->daemons[0];
    int code = daemon_open(d, t->setup, 1, 0, t->comeback->seed + 77, SWEEP_MS);
    expect(t, code == 0, "T8: no second start: %s", d->error);
    if (code == 0) {
        daemon_advance(d, RECOVERY_MS);
        take_fresh(t, d);
        struct places places = {.trial = t, .queue = d->queue};
        expect(t, queue_each(d->queue, note_place, &places) == 0, "T6: not listed");
        expect(t, places.count == 0, "T6: something is still held");
        expect(t, places.guarded_count == 0, "T6: something is still quarantined");
        free(places.held);
        free(places.guarded);
        daemon_advance(d, DURABLE_MS);
    }
    close_all(t);
    if (t->finding->wrong == 0)
        check_empty(t);
}

void
judge(const struct shadow *shadow, const struct setup *setup,
      const struct comeback *comeback, struct finding *finding)
{
    struct trial *t = memory_new(sizeof(*t));
    *finding = (struct finding){0};
    t->shadow = shadow;
    t->setup = setup;
    t->comeback = comeback;
    t->finding = finding;
    if (comeback->copied)
        sim_disk_copy_plainly();
    first_life(t);
    if (finding->wrong == 0)
        second_life(t);
    free(t);
}

void
judge_recover(const struct setup *setup, const struct comeback *comeback)
{
    struct finding ignored = {0};
    struct trial *t = memory_new(sizeof(*t));
    t->setup = setup;
    t->comeback = comeback;
    t->finding = &ignored;
    if (open_all(t))
        advance_all(t, RECOVERY_MS);
    sim_disk_die_at(1);
    close_all(t);
    sim_disk_restart();
    free(t);
}
