/* Questions about a disk that fails for a moment, and about a host that ends again and
 * again. A fault is over before the answer is judged: what it may cost is known exactly. */
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
#include <string.h>

enum {
    ALL = 1 << 20, /* calls */
    SMALL = 200,
    LARGE = 30 * 1000, /* more than the journal takes, in half of the runs */
    SYNC_MS = 3000,
    FAULT_MS = 15 * 1000,
    SETTLED_MS = 10 * 1000, /* until marks and due times are durable */
    WRITTEN_MS = 45 * 1000, /* results are written each 10 s, and once more then */
    SLOW_MS = 100 * 1000,   /* a reply of the second hop */
    LEAVES_MS = 60 * 1000,
    RELEASED = 3,
    ROUTE_SIZE = MODEL_ADDRESS_MAX + 20,
    ANSWERED_MS = 500, /* an order */
    UNWRITTEN_CALLS = 8,
    UNWRITTEN_MS = 9000, /* some attempts, and no second try to write */
    FAULTS = 4,
    FLOODS = 3,
    REMOVAL_CALLS = 12, /* from the last reply to the last file */
    ENDS = 12,
    TORN = 6,
    TORN_SESSIONS = 4,
    CALLS = 90,
    BETWEEN_MS = 20 * 1000
};

static size_t
any_size(void)
{
    return roof_chance(500) ? SMALL : LARGE;
}

/* Without a journal removals are not synced (doc/dev/queue.md): a cut brings mail back. */
static bool
may_cut(void)
{
    return host.daemon.started->options.manager.queue.journal_size > 0;
}

static void
restart_any_way(void)
{
    if (may_cut() && roof_chance(500))
        world_cut();
    else
        world_restart(roof_chance(500));
}

static size_t
count_files(void)
{
    return sim_disk_count(HOST_SPOOL "/mess") + sim_disk_count(HOST_SPOOL "/todo") +
           sim_disk_count(HOST_SPOOL "/intd");
}

/* A message whose sync fails is refused, and gone for good. */
static void
audit_failed_batch(void)
{
    struct model_message *m = audit_message(0, 1, any_size());
    size_t before = count_files();
    sim_disk_fail_syncs(ALL, EIO);
    world_note_fault();
    int code = audit_try(m);
    sim_disk_fail_syncs(0, 0);
    if (code == 250)
        roof_break("once", m->id, "m%u is acknowledged, and its sync has failed",
                   m->number);
    (void)world_run_for(LEAVES_MS, NULL);
    if (count_files() > before)
        roof_break("clean", m->id, "m%u is refused, and %zu of its files remain",
                   m->number, count_files() - before);
    restart_any_way();
    (void)world_run_for(LEAVES_MS, NULL);
    audit_departure("mail of a disk that failed");
}

/* The same when one call of many fails, whichever it is. */
static void
audit_failed_calls(void)
{
    for (unsigned i = 0; i < FAULTS; i++) {
        struct model_message *m = audit_message(0, 1, any_size());
        world_fail_call(1 + roof_below(CALLS / 3));
        size_t before = count_files();
        int code = audit_try(m);
        bool has_failed = host.fails_after == 0;
        host.fails_after = 0;
        (void)world_run_for(LEAVES_MS, NULL);
        if (code >= 400 && has_failed && count_files() > before)
            roof_break("clean", NULL, "m%u is refused, and %zu of its files remain",
                       m->number, count_files() - before);
        world_restart(roof_chance(500)); /* it takes mail again */
        (void)world_run_for(LEAVES_MS, NULL);
    }
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a disk that failed now and again");
}

/* Mail that has left in files does not come back when the power goes, though the journal
 * that knew of its end has been used again meanwhile. */
void
audit_removed_files(void)
{
    size_t size = (size_t)audit_options()->manager.queue.journal_message_max + 1024;
    if (!may_cut())
        return;
    for (unsigned i = 0; i < FAULTS; i++)
        (void)audit_try(audit_message(0, 1, size));
    audit_departure("mail in files");
    for (unsigned i = 0; i < FLOODS; i++)
        audit_flood();
    (void)world_run_for(LEAVES_MS, NULL);
    world_cut();
    (void)audit_has_gone(audit_longest_ms());
}

/* For a while, or in one call. */
static void
fail_for_a_while(void)
{
    if (roof_chance(500)) {
        world_fail_call(1 + roof_below(CALLS / 3));
    } else {
        sim_disk_fail_calls(EIO);
        world_note_fault();
    }
    (void)world_run_for(FAULT_MS, NULL);
    sim_disk_fail_calls(0);
    host.fails_after = 0;
}

/* A client that has gone before its message was durable: the message leaves all the same. */
static void
audit_orphan(void)
{
    struct model_message *m = audit_message(0, 1, any_size());
    sim_disk_set_sync_spread(SYNC_MS, roof_random());
    audit_give_and_leave(m);
    (void)world_run_for(SYNC_MS, NULL);
    sim_disk_set_sync_spread(0, 0);
    (void)world_run_for(LEAVES_MS, NULL);
    if (m->rcpts[0].stored == 0)
        roof_break("in time", NULL, "m%u is durable, its client has gone, and it waits",
                   m->number);
}

static struct model_rcpt *first;

static bool
is_first_stored(void)
{
    return first->stored > 0;
}

/* Those that make files a message; others may be left to the next start. */
static size_t
count_messages(void)
{
    return sim_disk_count(HOST_SPOOL "/todo") + sim_disk_count(HOST_SPOOL "/info");
}

/* Files that the disk has refused to remove go when it does, without a start. */
void
audit_refused_removals(void)
{
    struct hop_mood good = {0};
    size_t size = (size_t)audit_options()->manager.queue.journal_message_max + 1024;
    world_set_moods(&good);
    for (unsigned i = 0; i < FAULTS; i++) {
        size_t before = count_messages();
        unsigned starts = host.starts;
        struct model_message *m = audit_message(0, 1, size);
        first = &m->rcpts[0];
        (void)audit_try(m);
        (void)world_run_for(FAULT_MS, is_first_stored);
        world_fail_call(1 + roof_below(REMOVAL_CALLS));
        (void)world_run_for(LEAVES_MS, NULL);
        host.fails_after = 0;
        if (m->rcpts[0].stored > 0 && host.starts == starts &&
            count_messages() > before)
            roof_break("clean", m->id, "m%u has gone, and %zu of its files remain",
                       m->number, count_messages() - before);
        world_restart(false); /* a disk that has failed takes no mail until then */
    }
    audit_departure("mail whose files the disk did not remove");
}

/* Results that the disk has refused are written once it is good: by themselves, or when
 * the host stops. */
static void
audit_refused_results(void)
{
    struct hop_mood good = {0}, slow = {.reply_ms = SLOW_MS, .rcpt = 1000},
                    refusing = {.rcpt = 1000};
    if (model_domains() < 2)
        return;
    bool is_deferred =
        world_is_dense() && roof_chance(500); /* its marks are in files */
    world_set_moods(is_deferred ? &refusing : &slow);
    if (!is_deferred)
        world_set_first_mood(&good);
    struct model_message *m = audit_message(0, 2, any_size());
    m->rcpts[1].domain = 1;
    first = &m->rcpts[0];
    if (audit_try(m) != 250)
        roof_break("bounds", NULL, "a message in good weather is refused");
    if (is_deferred) {
        (void)world_run_for(FAULT_MS, NULL);
        world_set_moods(&slow);
        world_set_first_mood(&good);
    }
    bool is_stored = world_run_for(audit_longest_ms(), is_first_stored);
    fail_for_a_while();
    bool stops = roof_chance(500);
    if (!stops)
        (void)world_run_for(WRITTEN_MS, NULL);
    world_restart(!stops);
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    if (is_stored && m->rcpts[0].stored > 1)
        roof_break("once", m->id, "m%ur0 is stored again: its result was not written",
                   m->number);
    audit_departure("mail whose results the disk had refused");
}

/* A message that is read again while its first result has yet to be written: the recipient
 * has his mail, and the other is tried. */
static void
audit_unwritten_results(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    if (model_domains() < 2)
        return;
    editor_set("minimal_backoff_time", "2s");
    editor_set("maximal_backoff_time", "2s");
    world_set_route("");
    world_set_moods(&refusing);
    world_set_first_mood(&good);
    for (unsigned i = 0; i < ENDS; i++) {
        struct model_message *m = audit_message(0, 2, any_size());
        m->rcpts[1].domain = 1;
        first = &m->rcpts[0];
        (void)audit_try(m);
        (void)world_run_for(FAULT_MS, is_first_stored);
        world_fail_call(1 + roof_below(UNWRITTEN_CALLS));
        (void)world_run_for(UNWRITTEN_MS, NULL);
        host.fails_after = 0;
        if (m->rcpts[0].stored > 1)
            roof_break("once", m->id, "m%ur0 is stored again: its result is not known",
                       m->number);
        world_restart(false); /* a disk that has failed takes no mail until then */
    }
    editor_set("minimal_backoff_time", "");
    editor_set("maximal_backoff_time", "");
    world_set_route("");
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail whose results were written late");
}

/* Mail that is deferred while no sync succeeds, and then all do, outlives a power cut. */
void
audit_refused_moves(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    audit_settle();
    world_set_moods(&refusing);
    for (unsigned i = 0; i < 4; i++)
        (void)audit_give(0, 1);
    if (roof_chance(500)) {
        sim_disk_fail_syncs(ALL, EIO);
        world_note_fault();
        (void)world_run_for(FAULT_MS, NULL);
        sim_disk_fail_syncs(0, 0);
    } else {
        fail_for_a_while();
    }
    (void)world_run_for(WRITTEN_MS, NULL);
    world_cut();
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail that was deferred on a disk that failed");
}

/* Mail that an operator has released stays so, though the power goes. */
static void
audit_release_and_cut(void)
{
    /* no attempt ends before the cut: it would write the release with its result */
    struct hop_mood good = {0}, refusing = {.rcpt = 1000, .reply_ms = FAULT_MS};
    audit_settle();
    world_set_moods(&refusing);
    struct model_message *m[RELEASED];
    char routes[RELEASED * ROUTE_SIZE] = "", address[MODEL_ADDRESS_MAX];
    for (unsigned i = 0; i < RELEASED; i++) {
        size_t used = strlen(routes);
        m[i] = audit_message(0, 1, any_size());
        model_rcpt_address(&m[i]->rcpts[0], address);
        snprintf(routes + used, sizeof(routes) - used, "  %s hold\n", address);
    }
    editor_add_routes(routes); /* which a release passes, and they are there still */
    world_set_route("");
    for (unsigned i = 0; i < RELEASED; i++)
        (void)audit_try(m[i]);
    (void)world_run_for(WRITTEN_MS, NULL);
    for (unsigned i = 0; i < RELEASED; i++)
        operator_order("release", m[i]);
    (void)world_run_for(ANSWERED_MS, NULL);
    world_cut();
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail that was released before the power went");
    editor_add_routes(NULL);
    world_set_route("");
}

static bool
is_up(void)
{
    return host.running;
}

/* The host ends in the middle of its work, time and again. */
static void
audit_ends(void)
{
    struct hop_mood good = {0}, mixed = {.rcpt = 400, .never = 200, .end = 200};
    for (unsigned i = 0; i < ENDS; i++) {
        world_set_moods(roof_chance(500) ? &mixed : &good);
        bool by_cut = roof_chance(700) && may_cut();
        unsigned calls = 1 + roof_below(CALLS);
        (void)audit_give_to_dying(audit_message(0, 1, any_size()), calls, by_cut);
        (void)world_run_for(roof_between(1, BETWEEN_MS), NULL);
        host.dies_after = 0;
        (void)world_run_for(LEAVES_MS, is_up);
    }
    world_set_moods(&good);
    (void)world_run_for(LEAVES_MS, NULL);
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a host that has ended time and again");
}

/* The power goes while a batch is on its way to the disk, of which any part is there then.
 * What nobody has heard of comes whole, or not at all. */
void
audit_torn_batches(void)
{
    /* sessions of clients that have gone wait for their syncs */
    bool is_narrow =
        audit_options()->server.clients.sessions_per_client <= TORN_SESSIONS ||
        audit_options()->server.clients.sessions <= TORN_SESSIONS;
    if (!may_cut() || (world_is_dense() && is_narrow))
        return;
    for (unsigned i = 0; i < TORN; i++) {
        sim_disk_set_sync_spread(SYNC_MS, roof_random());
        for (unsigned count = 1 + roof_below(3); count > 0; count--)
            audit_give_and_leave(audit_message(0, 1, 1 + roof_below(LARGE)));
        (void)world_run_for(roof_between(1, SYNC_MS), NULL);
        sim_disk_set_sync_spread(0, 0);
        world_cut();
    }
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of torn batches");
}

static void
flood_on_fault(void *context)
{
    sim_disk_fail_syncs(*(const unsigned *)context, EIO);
}

static void
fail_flood(unsigned syncs, int64_t delay_ms)
{
    static struct roof_timer fault;
    struct model_message *m[AUDIT_FLOOD];
    size_t before = sim_disk_count(HOST_SPOOL "/info");
    if (!audit_begin_flood(m))
        return;
    sim_disk_set_sync_spread(SYNC_MS, roof_random());
    sim_disk_fail_syncs(delay_ms == 0 ? syncs : 0, EIO);
    if (delay_ms > 0)
        roof_timer_start(&fault, delay_ms, flood_on_fault, &syncs);
    world_note_fault();
    audit_end_flood(m, true);
    roof_timer_stop(&fault);
    sim_disk_fail_syncs(0, 0);
    sim_disk_set_sync_spread(0, 0);
    (void)world_run_for(SETTLED_MS, NULL);
    if (sim_disk_count(HOST_SPOOL "/info") > before + model_open())
        roof_break("clean", NULL, "%zu messages are in info/, and %u are open",
                   sim_disk_count(HOST_SPOOL "/info"), model_open());
    world_restart(roof_chance(500));
    (void)audit_has_gone(audit_longest_ms());
    audit_departure("mail of a flood on a disk that failed");
}

void
audit_failed_flood(void)
{
    fail_flood(ALL, 0);
}

void
audit_failed_sync(void)
{
    int64_t wait_ms = roof_between(1, SYNC_MS);
    fail_flood(1 + roof_below(3), wait_ms);
}

void
audit_disk(void)
{
    static void (*const questions[])(void) = {
        audit_failed_batch,  audit_failed_calls,    audit_removed_files,
        audit_orphan,        audit_refused_results, audit_unwritten_results,
        audit_refused_moves, audit_release_and_cut, audit_torn_batches,
        audit_ends};
    /* a notice that the disk has refused comes a minute later */
    editor_set("delay_warning_time", "");
    world_set_route("");
    for (unsigned i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        if (roof_chance(500))
            questions[i]();
}
