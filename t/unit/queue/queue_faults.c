/* The queue on a disk that fails, dies and loses power at every single call: nothing
 * that was stored is lost, nothing that was refused is sent, and recovery may be killed
 * as well. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/queue.h"

#include "base/memory.h"
#include "queue/queue_fragments.h"
#include "queue/queue_operator.h"
#include "t/support/maildir_now.h"
#include "t/support/queue_kit.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"

#include <errno.h>

enum {
    MESSAGES = 7,
    RECIPIENTS = 3,
    LARGE = 150000,
    FLUSH_MS = 150,
    RETRY_MS = 25 * 1000, /* beyond two retries of refused marks */
    SWEEP_MS = 40 * 3600 * 1000
};

static const char spool[] = "/spool";
static const char *const addresses[] = {"a@example.org", "b@example.net",
                                        "c@example.com", NULL};

/* The properties of a message after any event. SOFT: done, and perhaps not yet on
 * disk. */
enum mark { OPEN, SOFT, HARD };
struct shadow {
    bool stored, refused, retired;
    bool alive; /* the disk worked when it was retired */
    struct id id;
    enum mark marks[RECIPIENTS];
    bool failed[RECIPIENTS]; /* settled with a failure */
};

/* A fault and what it does. */
enum fault { FAULT_NONE, FAULT_EIO, FAULT_ENOSPC, FAULT_DEATH };
enum end { END_KILL, END_POWER };

struct trial {
    struct kit *kit;
    struct shadow shadows[MESSAGES];
    struct envelope *envelopes[MESSAGES];
    enum fault fault;
    unsigned wrong;
    char what[400]; /* the first thing that was */
};

static struct {
    uint64_t states, recoveries, found;
} totals;

static void
blame(struct trial *t, const char *what, unsigned message)
{
    if (t->wrong++ == 0)
        snprintf(t->what, sizeof(t->what), "message %u: %s", message, what);
}

static void
expect(struct trial *t, bool good, const char *what, unsigned message)
{
    if (!good)
        blame(t, what, message);
}

static struct text
content_of(unsigned message)
{
    static char large[LARGE];
    static char small[MESSAGES][100];
    if (message == MESSAGES - 1) {
        for (size_t i = 0; i < sizeof(large); i++)
            large[i] = (char)(i * 31 + i / 256);
        return text_of(large, sizeof(large));
    }
    snprintf(small[message], sizeof(small[message]), "Subject: %u\r\n\r\nbody %u\r\n",
             message, message * 77);
    return text_from(small[message]);
}

static struct outcome
failure_outcome(unsigned message, unsigned recipient)
{
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "failure %u.%u",
                        message, recipient);
}

/* --- The workload ---------------------------------------------------------------- */

static void
accept_one(struct trial *t, unsigned m)
{
    struct shadow *s = &t->shadows[m];
    t->envelopes[m] = queue_kit_accept(t->kit, kit_envelope("sender@example.org", addresses),
                                 content_of(m));
    if (t->envelopes[m] != NULL) {
        s->stored = true;
        s->id = t->envelopes[m]->id;
    } else {
        s->refused = true;
        int code = t->kit->refusal.code;
        expect(t, code == 451 || code == 452, "refused with 451 or 452", m);
        if (t->fault == FAULT_ENOSPC && sim_disk_has_failed())
            expect(t, queue_health(t->kit->queue).accepting,
                   "a full disk does not make a spool unhealthy", m);
    }
    /* queue_kit_accept leaves no trace of an answer that did not come. */
    expect(t, t->kit->refused || t->envelopes[m] != NULL, "an answer came", m);
}

static void
settle(struct trial *t, unsigned m, unsigned recipient, bool failed)
{
    struct envelope *e = t->envelopes[m];
    if (e == NULL)
        return;
    struct failure failure = {.recipient = recipient,
                              .expired = false,
                              .outcome = failure_outcome(m, recipient)};
    queue_settle(t->kit->queue, e, recipient,
                 recipient == 0 ? CHANNEL_LOCAL : CHANNEL_REMOTE,
                 failed ? &failure : NULL);
    t->shadows[m].marks[recipient] = SOFT;
    t->shadows[m].failed[recipient] = failed;
}

static void
harden(struct trial *t)
{
    for (unsigned m = 0; m < MESSAGES; m++)
        for (unsigned r = 0; r < RECIPIENTS; r++)
            if (t->shadows[m].marks[r] == SOFT && !t->shadows[m].retired)
                t->shadows[m].marks[r] = HARD;
}

/* The marks are written now, unless something happened meanwhile. */
static void
flush(struct trial *t)
{
    sim_loop_advance(t->kit->loop, FLUSH_MS);
    if (!sim_disk_has_failed() && !sim_disk_is_dead())
        harden(t);
}

static void
defer(struct trial *t, unsigned m, int64_t due_ms)
{
    if (t->envelopes[m] != NULL)
        queue_defer(t->kit->queue, &t->envelopes[m], due_ms, m);
}

static void
retire(struct trial *t, unsigned m)
{
    if (t->envelopes[m] == NULL)
        return;
    bool failed_before = sim_disk_has_failed();
    queue_retire(t->kit->queue, &t->envelopes[m]);
    t->shadows[m].retired = true;
    t->shadows[m].alive =
        !sim_disk_is_dead() && (failed_before || !sim_disk_has_failed());
}

/* A hint: nothing that is checked here depends on it. */
static void
wait(struct trial *t, unsigned m, bool waits)
{
    if (t->envelopes[m] != NULL)
        queue_wait(t->kit->queue, t->envelopes[m], waits);
}

/* 0 delivered at once; 1 in parts, then deferred; 2 deferred, for other fragments; 3
 * with a bounce text; 4 retired from S5; 5 held in memory, marks unwritten; 6 large,
 * loaded again after a deferral, and quarantined then. */
static void
work(struct trial *t)
{
    struct kit *k = t->kit;
    for (unsigned m = 0; m < 3; m++)
        accept_one(t, m);
    settle(t, 0, 0, false);
    settle(t, 0, 1, false);
    settle(t, 0, 2, false);
    retire(t, 0);
    settle(t, 1, 0, false);
    wait(t, 2, true);
    defer(t, 2, 5000);
    flush(t);
    accept_one(t, 3);
    accept_one(t, 4);
    settle(t, 4, 0, false);
    settle(t, 1, 2, false);
    flush(t);
    /* Its todo is gone, but not durably so, when the S5 of another is written. */
    settle(t, 4, 1, true);
    settle(t, 4, 2, false);
    retire(t, 4);
    settle(t, 3, 1, true);
    flush(t);
    settle(t, 3, 2, true);
    settle(t, 3, 0, false);
    flush(t);
    defer(t, 1, 7000);
    accept_one(t, 6);
    flush(t);
    settle(t, 6, 1, true);
    defer(t, 6, 9000);
    flush(t);
    if (t->shadows[6].stored) {
        t->envelopes[6] = queue_load(k->queue, t->shadows[6].id);
        if (t->fault == FAULT_NONE)
            expect(t, t->envelopes[6] != NULL, "loaded again", 6);
        if (t->envelopes[6] != NULL) {
            expect(t, t->envelopes[6]->recipients[1].done, "done in memory", 6);
            wait(t, 6, true);
            wait(t, 6, false);
            wait(t, 6, true);
            settle(t, 6, 0, false);
        }
    }
    accept_one(t, 5);
    flush(t);
    settle(t, 5, 1, false);
    /* Disks recover: what was refused is written again. */
    if (t->fault == FAULT_EIO || t->fault == FAULT_ENOSPC) {
        sim_loop_advance(k->loop, RETRY_MS);
        harden(t);
    }
}

static void
end_process(struct trial *t)
{
    struct envelope *left[MESSAGES];
    memcpy(left, t->envelopes, sizeof(left));
    /* A process that was killed does not write what it has: from here on it is dead. */
    if (t->fault == FAULT_DEATH || t->fault == FAULT_NONE)
        sim_disk_die_at(1);
    kit_close(t->kit);
    for (unsigned m = 0; m < MESSAGES; m++)
        envelope_free(&left[m]);
    memset(t->envelopes, 0, sizeof(t->envelopes));
}

/* Runs the workload with the fault at a call; the number of calls it made. */
static uint64_t
run(struct trial *t, enum fault fault, uint64_t at)
{
    *t = (struct trial){.kit = memory_new(sizeof(struct kit)), .fault = fault};
    sim_disk_reset();
    if (fault == FAULT_EIO || fault == FAULT_ENOSPC)
        sim_disk_fail_at(at, fault == FAULT_EIO ? EIO : ENOSPC);
    else if (fault == FAULT_DEATH)
        sim_disk_die_at(at);
    if (queue_kit_open(t->kit, spool) == 0)
        work(t);
    uint64_t calls = sim_disk_calls();
    end_process(t);
    free(t->kit);
    t->kit = NULL;
    totals.states++;
    return calls;
}

static void
end_with(enum end end)
{
    if (end == END_KILL)
        sim_disk_restart();
    else
        sim_disk_power_cut();
}

/* --- Required messages ----------------------------------------------------------- */

static unsigned
count_found(const struct kit *k, struct id id)
{
    unsigned count = 0;
    for (size_t i = 0; i < k->found_count; i++)
        count += id_compare(k->found[i].id, id) == 0;
    return count;
}

static void
check_failures(struct trial *t, const struct envelope *e, unsigned m)
{
    const struct shadow *s = &t->shadows[m];
    unsigned told[RECIPIENTS] = {0};
    for (unsigned i = 0; i < e->delivery.failure_count; i++) {
        unsigned r = e->delivery.failures[i].recipient;
        struct outcome want = failure_outcome(m, r);
        told[r]++;
        expect(t, s->failed[r], "a failure that there was", m);
        expect(t, strcmp(e->delivery.failures[i].outcome.text, want.text) == 0, "its text", m);
    }
    for (unsigned r = 0; r < RECIPIENTS; r++)
        expect(t, told[r] == (s->failed[r] && e->recipients[r].done),
               "a failure is told exactly when its recipient is done", m);
}

static void
check_message(struct trial *t, const struct envelope *e, unsigned m)
{
    const struct shadow *s = &t->shadows[m];
    expect(t, kit_content_is(t->kit, e, content_of(m)), "content byte for byte", m);
    expect(t, text_equal(e->sender, TEXT("sender@example.org")), "the sender", m);
    expect(t, e->count == RECIPIENTS, "all recipients", m);
    for (unsigned r = 0; r < RECIPIENTS && e->count == RECIPIENTS; r++) {
        expect(t, text_equal(e->recipients[r].address, text_from(addresses[r])),
               "each recipient", m);
        if (s->marks[r] == OPEN)
            expect(t, !e->recipients[r].done, "an open recipient is open", m);
        /* Also when a retired message came back. */
        if (s->marks[r] == HARD)
            expect(t, e->recipients[r].done, "a durable mark stays", m);
    }
    check_failures(t, e, m);
}

/* Which of ours it is, by its content. */
static unsigned
message_of(struct trial *t, const struct envelope *e)
{
    for (unsigned m = 0; m < MESSAGES; m++)
        if (e->content_size == (int64_t)content_of(m).length &&
            kit_content_is(t->kit, e, content_of(m)))
            return m;
    blame(t, "a message that nobody sent", MESSAGES);
    return 0;
}

static void
check_found(struct trial *t, enum end end)
{
    struct kit *k = t->kit;
    for (unsigned m = 0; m < MESSAGES; m++) {
        const struct shadow *s = &t->shadows[m];
        unsigned count = s->stored ? count_found(k, s->id) : 0;
        if (s->stored && !s->retired)
            expect(t, count == 1, "stored: found once", m);
        if (s->retired && s->alive && end == END_KILL)
            expect(t, count == 0, "retired: not found", m);
    }
    for (size_t i = 0; i < k->found_count; i++) {
        struct envelope *e = queue_load(k->queue, k->found[i].id);
        if (e == NULL) {
            blame(t, "found, but not loaded", MESSAGES);
            continue;
        }
        unsigned m = message_of(t, e);
        check_message(t, e, m);
        if (t->fault == FAULT_EIO || t->fault == FAULT_ENOSPC)
            expect(t, !t->shadows[m].refused, "refused: not found", m);
        envelope_free(&e);
        totals.found++;
    }
    expect(t, queue_health(k->queue).quarantined == 0, "nothing is damaged", MESSAGES);
    expect(t, sim_disk_count("/spool/corrupt") == 0, "corrupt/ is empty", MESSAGES);
}

static void
recover(struct trial *t)
{
    t->kit = memory_new(sizeof(struct kit));
    if (queue_kit_open(t->kit, spool) != 0)
        blame(t, t->kit->error, MESSAGES);
    else
        sim_loop_advance(t->kit->loop, 50);
    totals.recoveries++;
}

static void
leave(struct trial *t)
{
    kit_close(t->kit);
    free(t->kit);
    t->kit = NULL;
}

static size_t
count_messages_files(void)
{
    return sim_disk_count(spool) - sim_disk_count("/spool/lock");
}

/* Delivers what is left, then sweeps: nothing may remain. */
static void
check_empty_in_the_end(struct trial *t)
{
    recover(t);
    struct kit *k = t->kit;
    for (size_t i = 0; k->queue != NULL && i < k->found_count; i++) {
        struct envelope *e = queue_load(k->queue, k->found[i].id);
        if (e != NULL)
            queue_retire(k->queue, &e);
    }
    leave(t);
    sim_disk_restart();
    t->kit = k = memory_new(sizeof(*k));
    if (queue_kit_open(k, spool) == 0) {
        sim_loop_step_wall(k->loop, SWEEP_MS);
        sim_loop_advance(k->loop, 50);
        expect(t, k->found_count == 0, "all was retired", MESSAGES);
    }
    leave(t);
    expect(t, count_messages_files() == 0, "the directories are empty", MESSAGES);
}

static void
check_all(struct trial *t, enum end end)
{
    for (unsigned round = 0; round < 2 && t->wrong == 0; round++) {
        recover(t);
        if (t->wrong == 0)
            check_found(t, end);
        if (round == 0) {
            sim_disk_die_at(1);
            leave(t);
            sim_disk_restart();
        } else {
            leave(t);
        }
    }
    if (t->wrong == 0)
        check_empty_in_the_end(t);
}

/* --- The trials ------------------------------------------------------------------ */

static bool
report(const struct trial *t, const char *name, uint64_t at, enum end end)
{
    if (t->wrong == 0)
        return true;
    printf("# %s at call %" PRIu64 ", then %s: %u wrong, first: %s\n", name, at,
           end == END_KILL ? "SIGKILL" : "a power cut", t->wrong, t->what);
    return false;
}

static void
test_fault(enum fault fault, const char *name)
{
    struct trial t;
    char label[120];
    for (enum end end = END_KILL; end <= END_POWER; end++) {
        unsigned bad = 0;
        uint64_t at = 0, calls = run(&t, FAULT_NONE, 0);
        while (at < calls && bad < 5) {
            uint64_t made = run(&t, fault, ++at);
            calls = made > calls ? made : calls;
            end_with(end);
            check_all(&t, end);
            bad += !report(&t, name, at, end);
        }
        snprintf(label, sizeof(label), "%s at each of %" PRIu64 " calls, then %s", name,
                 at, end == END_KILL ? "SIGKILL" : "a power cut");
        is_number(bad, 0, label);
    }
}

/* The calls that an undisturbed recovery makes from here. */
static uint64_t
count_recovery(struct trial *t)
{
    recover(t);
    uint64_t calls = sim_disk_calls();
    leave(t);
    return calls;
}

/* A process that dies at one call, and its recovery at another. */
static void
test_death_in_recovery(uint64_t step)
{
    struct trial t;
    uint64_t calls = run(&t, FAULT_NONE, 0), tried = 0;
    unsigned bad = 0;
    for (unsigned ends = 0; ends < 4; ends++) {
        enum end first = ends & 1 ? END_POWER : END_KILL;
        enum end second = ends & 2 ? END_POWER : END_KILL;
        for (uint64_t at = 1 + ends; at <= calls && bad < 5; at += step) {
            run(&t, FAULT_DEATH, at);
            end_with(first);
            uint64_t again = 0, recovery_calls = count_recovery(&t);
            while (again < recovery_calls && bad < 5) {
                run(&t, FAULT_DEATH, at);
                end_with(first);
                sim_disk_die_at(++again);
                t.kit = memory_new(sizeof(struct kit));
                if (queue_kit_open(t.kit, spool) == 0)
                    sim_loop_advance(t.kit->loop, 50);
                leave(&t);
                end_with(second);
                check_all(&t, first == END_POWER || second == END_POWER ? END_POWER
                                                                        : END_KILL);
                bad += !report(&t, "death, and death in recovery", again, second);
                tried++;
            }
        }
    }
    printf("# %" PRIu64 " pairs of deaths\n", tried);
    ok_named(bad == 0 && tried > 100, "recovery may die at every call");
}

/* EIO somewhere in the recovery: later, all is found nevertheless. */
static void
test_errors_in_recovery(uint64_t step)
{
    struct trial t;
    uint64_t calls = run(&t, FAULT_NONE, 0);
    unsigned bad = 0;
    for (uint64_t at = 1; at <= calls && bad < 5; at += step) {
        run(&t, FAULT_DEATH, at);
        sim_disk_restart();
        uint64_t again = 0, recovery_calls = count_recovery(&t);
        while (again < recovery_calls && bad < 5) {
            run(&t, FAULT_DEATH, at);
            sim_disk_restart();
            sim_disk_fail_at(++again, EIO);
            t.kit = memory_new(sizeof(struct kit));
            if (queue_kit_open(t.kit, spool) != 0) {
                leave(&t);
                recover(&t);
            }
            sim_loop_advance(t.kit->loop, 130 * 1000);
            if (t.wrong == 0)
                check_found(&t, END_KILL);
            leave(&t);
            bad += !report(&t, "an error in recovery", again, END_KILL);
            totals.states++;
        }
    }
    is_number(bad, 0, "recovery may fail at every call");
}

static void
test_nothing_wrong(void)
{
    struct trial t;
    for (enum end end = END_KILL; end <= END_POWER; end++) {
        uint64_t calls = run(&t, FAULT_NONE, 0);
        for (unsigned m = 0; m < MESSAGES; m++)
            ok_named(t.shadows[m].stored, "without a fault all is stored");
        ok_named(t.shadows[3].marks[1] == HARD && t.shadows[5].marks[1] == SOFT,
                 "some marks are durable, some not yet");
        ok(calls > 100);
        end_with(end);
        check_all(&t, end);
        ok(report(&t, "no fault", 0, end));
    }
}

/* After EIO from a sync: no new mail, but deliveries are still written. */
static void
test_unhealthy(void)
{
    struct kit *k = memory_new(sizeof(*k));
    sim_disk_reset();
    queue_kit_open(k, spool);
    struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(0));
    k->answers = 0;
    ok(kit_commit(k, kit_envelope("", addresses), content_of(1)));
    ok(kit_commit(k, kit_envelope("", addresses), content_of(2)));
    sim_disk_count_anew();
    sim_disk_fail_at(1, EIO); /* the fsync of the first mess/ID */
    kit_turns(k, 1);
    ok(k->refused && k->refusal.code == 451);
    is_number(k->answers, 2, "the whole batch is answered");
    ok_named(k->stored == NULL && sim_disk_count("/spool/todo") == 1,
             "and refused: a failed sync is fatal for all of it");
    is_string(k->refusal.enhanced, "4.3.0", "a failed sync refuses");
    struct queue_health health = queue_health(k->queue);
    ok_named(!health.accepting && strstr(health.reason, "sync") != NULL,
             "and makes the spool unhealthy");
    ok(kit_logged(k, "spool unhealthy"));
    ok_named(kit_logged(k, "(see dmesg), then restart petrel"), "and says what to do");
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(2)) &&
                 k->refusal.code == 451,
             "no new mail is taken");
    is_number(sim_disk_count("/spool/mess"), 1, "the refused one is gone");
    queue_settle(k->queue, e, 0, CHANNEL_LOCAL, NULL);
    sim_loop_advance(k->loop, FLUSH_MS);
    is_number(sim_disk_count("/spool/info"), 1, "delivery goes on");
    queue_retire(k->queue, &e);
    kit_close(k);
    free(k);
}

/* Marks that a full disk refuses stay in memory: nobody gets it twice. */
static void
test_full_disk(void)
{
    struct kit *k = memory_new(sizeof(*k));
    struct failure failure = {
        .recipient = 1, .expired = false, .outcome = failure_outcome(0, 1)};
    sim_disk_reset();
    queue_kit_open(k, spool);
    struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(0));
    struct id id = e->id;
    queue_settle(k->queue, e, 0, CHANNEL_LOCAL, NULL);
    queue_settle(k->queue, e, 1, CHANNEL_REMOTE, &failure);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSPC);
    queue_defer(k->queue, &e, 1000, 2);
    kit_turns(k, 1);
    is_number(sim_disk_count("/spool/info"), 0, "the disk refused S5");
    e = queue_load(k->queue, id);
    ok_named(e != NULL && !e->storage.preprocessed && e->delivery.done == 2 && e->recipients[0].done &&
                 e->recipients[1].done,
             "what was done is still known");
    ok_named(e->delivery.failure_count == 1, "and the failure");
    envelope_free(&e);
    kit_turns(k, 1);
    e = queue_load(k->queue, id);
    ok_named(e != NULL && e->storage.preprocessed && e->delivery.done == 2 && e->delivery.failure_count == 1 &&
                 e->delivery.attempts == 2,
             "with space again it is written");
    queue_retire(k->queue, &e);
    is_number(count_messages_files(), 0, "and retired");

    e = queue_kit_accept(k, kit_envelope("", addresses), content_of(1));
    queue_settle(k->queue, e, 0, CHANNEL_LOCAL, NULL);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOSPC);
    sim_loop_advance(k->loop, FLUSH_MS);
    is_number(sim_disk_count("/spool/info"), 0, "refused");
    sim_loop_advance(k->loop, RETRY_MS);
    is_number(sim_disk_count("/spool/info"), 1, "and tried again by itself");
    ok(e->storage.preprocessed);
    queue_retire(k->queue, &e);
    sim_disk_set_space(1000, 1000000);
    sim_loop_advance(k->loop, 2000);
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(1)) &&
                 k->refusal.code == 452,
             "below the reserve of bytes mail is refused");
    sim_disk_set_space(INT64_C(1) << 40, 10);
    sim_loop_advance(k->loop, 2000);
    ok_named(!kit_commit(k, kit_envelope("", addresses), content_of(1)) &&
                 k->refusal.code == 452,
             "below the reserve of inodes as well");
    sim_disk_set_space(INT64_C(1) << 40, 1000);
    sim_loop_advance(k->loop, 2000);
    e = queue_kit_accept(k, kit_envelope("", addresses), content_of(1));
    ok_named(e != NULL, "with space it is taken again");
    queue_retire(k->queue, &e);
    kit_close(k);
    free(k);
}

/* A Maildir delivery that fails leaves nothing; one that does not is durable. */
static void
test_maildir(int error, const char *enhanced)
{
    struct target target = {.kind = TARGET_MAILDIR, .path = "/mail/%u", .create = true};
    unsigned wrong = 0, deferred = 0, calls = 1;
    for (unsigned at = 0; at <= calls; at++) {
        struct kit *k = memory_new(sizeof(*k));
        sim_disk_reset();
        queue_kit_open(k, spool);
        struct envelope *e = queue_kit_accept(k, kit_envelope("", addresses), content_of(6));
        sim_disk_count_anew();
        sim_disk_fail_at(at, error);
        struct outcome o = maildir_deliver(k->queue, k->loop, &target, "h", e, 0);
        calls = at == 0 ? (unsigned)sim_disk_calls() : calls;
        bool delivered = o.verdict == VERDICT_DELIVERED;
        wrong += !delivered && (o.verdict != VERDICT_DEFERRED ||
                                (strcmp(o.enhanced, enhanced) != 0 &&
                                 strstr(o.text, "read the message") == NULL));
        sim_disk_die_at(1);
        kit_close(k);
        envelope_free(&e);
        free(k);
        end_with(delivered ? END_POWER : END_KILL);
        wrong += sim_disk_count("/mail/a/new") != delivered;
        deferred += !delivered;
    }
    is_number(wrong, 0, "a Maildir delivery is whole or deferred");
    ok(deferred > calls / 2);
}

int
main(void)
{
    const char *thorough = getenv("THOROUGH");
    uint64_t step = thorough != NULL ? 1 : 17;
    test_nothing_wrong();
    test_fault(FAULT_EIO, "EIO");
    test_fault(FAULT_ENOSPC, "ENOSPC");
    test_fault(FAULT_DEATH, "death");
    test_death_in_recovery(step);
    test_errors_in_recovery(step);
    test_unhealthy();
    test_full_disk();
    test_maildir(EIO, "4.3.0");
    test_maildir(ENOSPC, "4.3.1");
    test_maildir(EDQUOT, "4.2.2");
    printf("# %" PRIu64 " states, %" PRIu64 " recoveries, %" PRIu64
           " messages compared: nothing lost\n",
           totals.states, totals.recoveries, totals.found);
    ok(totals.states > 500);
    return done();
}
