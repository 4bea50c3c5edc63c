/* Questions about the order of steps on the disk: the host ends between two that belong to
 * each other. */
#include "t/roof/audit_internal.h"

#include "t/roof/editor.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"
#include "t/sim/sim_disk.h"

#include <errno.h>
#include <stdio.h>

enum {
    ROUNDS = 8,
    SMALL = 200,
    RCPTS = 3,
    REMOVED = 12,     /* some of which come back whole, where they can */
    CALLS = 24,       /* of the disk: some marks, and their texts */
    MOVE_CALLS = 100, /* until some messages are files */
    DEFERRED_MS = 8 * 1000,
    REPLY_MS = 1500,
    FAILED_MS = 3 * REPLY_MS,
    ENDING_MS = 20 * 1000,
    STARTED_MS = 3000,
    WRITTEN_MS = 45 * 1000, /* results are written each 10 s, and once more then */
    ANSWERED_MS = 500,      /* an order */
    LEAVES_MS = 60 * 1000
};

static struct {
    struct model_message *messages[REMOVED];
    unsigned count, attempts;
} order;

static void
order_attempted(struct model_rcpt *r)
{
    for (unsigned i = 0; i < order.count; i++)
        order.attempts += r->message == order.messages[i];
}

static bool
is_attempted(void)
{
    return order.attempts > 0;
}

static bool
has_journal(void)
{
    return host.daemon.started->options.manager.queue.journal_size > 0;
}

/* In the journal, or in files. */
static size_t
any_size(void)
{
    size_t most = (size_t)audit_options()->manager.queue.journal_message_max;
    return roof_chance(500) ? SMALL : most + 1024;
}

static void
await_attempt(void)
{
    order.attempts = 0;
    model_on_attempted(order_attempted);
    (void)world_run_for(audit_longest_ms(), is_attempted);
    model_on_attempted(NULL);
}

static bool
is_up(void)
{
    return host.running;
}

static void
await_start(void)
{
    (void)world_run_for(ENDING_MS, NULL);
    host.dies_after = host.fails_after = 0;
    (void)world_run_for(LEAVES_MS, is_up);
}

static void
set_backoff(bool is_short)
{
    editor_set("minimal_backoff_time", is_short ? "10s" : "");
    editor_set("maximal_backoff_time", is_short ? "10s" : "");
    world_set_route("");
}

/* Startup would remove them, too; what a cut has brought back of others is left to it. */
static void
judge_failures_of(const struct model_message *m)
{
    char path[MODEL_ID_MAX + sizeof(HOST_SPOOL "/bounce/")];
    snprintf(path, sizeof(path), HOST_SPOOL "/bounce/%s", m->id);
    if (model_open() > 0 || sim_disk_content(path).at == NULL)
        return;
    (void)world_run_for(LEAVES_MS, NULL);
    if (sim_disk_content(path).at != NULL)
        roof_break("clean", m->id, "m%u has gone, and its failures are in bounce/",
                   m->number);
}

/* The host ends, or the disk fails, while the failures of a message are on their way to its
 * files, which it has from the beginning, or since it was deferred: each of them is
 * reported. */
void
audit_failures(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000},
                    never = {.rcpt = 700, .never = 1000, .reply_ms = REPLY_MS};
    uint64_t own = roof_fork("failures");
    set_backoff(true);
    for (unsigned i = 0; i < ROUNDS; i++) {
        bool is_deferred = roof_chance(700);
        world_set_moods(is_deferred ? &refusing : &never);
        order.messages[0] = audit_message(0, RCPTS, any_size());
        order.count = 1;
        (void)audit_try(order.messages[0]);
        if (is_deferred)
            (void)world_run_for(DEFERRED_MS, NULL);
        world_set_moods(&never);
        await_attempt();
        unsigned calls = 1 + roof_below(CALLS);
        if (roof_chance(300)) {
            world_fail_call(calls);
        } else {
            host.dies_after = calls;
            host.dies_by_cut = has_journal() && roof_chance(500);
        }
        if (roof_below_of(&own, 2) == 0) { /* those that have no mark yet get their mail */
            (void)world_run_for(FAILED_MS, NULL);
            world_set_moods(&good);
        }
        await_start();
        judge_failures_of(order.messages[0]);
        world_restart(false); /* a disk that has failed takes no mail until then */
    }
    world_set_moods(&good);
    set_backoff(false);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail that failed when the host ended");
    (void)world_run_for(LEAVES_MS, NULL);
    if (sim_disk_count(HOST_SPOOL "/bounce") > 0)
        roof_break("clean", NULL, "failures of mail that has gone are left in bounce/");
}

/* One recipient of a message in files has its mail, and the other waits: the power goes when
 * the mark is there. */
static void
audit_marks(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    if (model_domains() < 2)
        return;
    set_backoff(true);
    world_set_moods(&refusing);
    audit_settle();
    struct model_message *m = audit_message(0, 2, any_size());
    m->rcpts[1].domain = 1;
    (void)audit_try(m);
    (void)world_run_for(DEFERRED_MS, NULL);
    world_set_first_mood(&good);
    (void)world_run_for(2 * ENDING_MS, NULL);
    world_cut();
    world_set_moods(&good);
    set_backoff(false);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of which some had left before the power went");
}

/* Deferred mail is on its way to files when the host ends, or a call of the disk fails; the
 * power goes behind that. */
void
audit_moves(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    for (unsigned i = 0; i < ROUNDS; i++) {
        audit_settle();
        world_set_moods(&refusing);
        for (unsigned j = 0; j < RCPTS; j++)
            (void)audit_try(audit_message(0, 1, any_size()));
        unsigned calls = 1 + roof_below(MOVE_CALLS);
        if (roof_chance(500)) {
            host.dies_after = calls;
        } else {
            world_fail_call(calls);
        }
        await_start();
        (void)world_run_for(roof_below(STARTED_MS), NULL);
        world_cut();
    }
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail that moved when the host ended");
}

/* Mail that an operator has removed is so behind a cut, also without a journal. */
void
audit_removals(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    world_set_moods(&refusing);
    for (unsigned i = 0; i < REMOVED; i++) {
        order.messages[i] = audit_message(0, 1, any_size());
        (void)audit_try(order.messages[i]);
    }
    (void)world_run_for(WRITTEN_MS, NULL);
    audit_settle();
    for (unsigned i = 0; i < REMOVED; i++) {
        order.messages[i]->rcpts[0].may_vanish = true;
        operator_order("rm", order.messages[i]);
    }
    (void)world_run_for(ANSWERED_MS, NULL);
    size_t quarantined = sim_disk_count(HOST_SPOOL "/corrupt");
    world_cut();
    order.count = REMOVED;
    order.attempts = 0;
    model_on_attempted(order_attempted);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    (void)world_run_for(LEAVES_MS, NULL);
    model_on_attempted(NULL);
    if (order.attempts > 0)
        roof_break("once", order.messages[0]->id,
                   "%u of m%u to m%u are tried behind a cut, and were removed",
                   order.attempts, order.messages[0]->number,
                   order.messages[REMOVED - 1]->number);
    if (sim_disk_count(HOST_SPOOL "/corrupt") > quarantined)
        roof_break("clean", NULL, "mail that was removed is in corrupt/ behind a cut");
    audit_departure("mail that was removed before the power went");
}

void
audit_order(void)
{
    static void (*const questions[])(void) = {audit_failures, audit_moves,
                                              audit_removals, audit_marks};
    editor_set("delay_warning_time", "");
    world_set_route("");
    for (unsigned i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        if (roof_chance(500))
            questions[i]();
}
