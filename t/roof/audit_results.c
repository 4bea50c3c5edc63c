/* Questions about results and their reports: at kills and reloads, with a full disk, and at
 * a host that takes no report. */
#include "t/roof/audit_internal.h"

#include "t/roof/editor.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_history.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"
#include "t/sim/sim_disk.h"

enum {
    RCPTS = 6,
    SYNC_MS = 3000, /* the longest of a slow disk */
    REPLY_MS = 5000,
    ATTEMPT_MS = 3400 * 1000, /* 3000 s, and its tenth */
    FULL_MS = 20 * 1000,      /* of a full disk, behind the refusal */
    AGAIN_MS = 25 * 1000,     /* then: results are written each 10 s */
    SMALL = 200,              /* octets */
    CALLS = 12,               /* of the disk, until a message is stored */
    CLEARED_MS = 60 * 1000,   /* behind a start */
    REPORTED_MS = 60 * 1000,  /* a report, and the time on its way */
    GOOD_SPACE_INODES = 1 << 30
};
#define GOOD_SPACE (INT64_C(1) << 40)

static struct {
    struct model_message *message;
    unsigned attempts;
} results;

static unsigned
count_reports(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < results.message->rcpt_count; i++)
        count += results.message->rcpts[i].failed;
    return count;
}

static bool
has_report(void)
{
    return count_reports() > 0;
}

static void
results_attempted(struct model_rcpt *r)
{
    results.attempts += r->message == results.message;
}

static void
reported_attempted(struct model_rcpt *r)
{
    results.attempts += r->message == results.message && r->failed > 0;
}

static bool
is_attempted(void)
{
    return results.attempts > 0;
}

/* By the log, or, when the power has cut off the line, by the report itself. */
static bool
is_delay_reported(const struct model_message *m)
{
    bool is_delayed = m->was_delayed;
    for (unsigned i = 0; i < m->rcpt_count; i++)
        is_delayed = is_delayed || m->rcpts[i].delayed > 0;
    return is_delayed;
}

/* A report notes in its own record which failures it has: behind a power cut they are not
 * reported again, though nothing else of the round was durable. */
void
audit_note(void)
{
    struct hop_mood good = {0}, mixed = {.rcpt = 1000, .never = 500};
    /* a second attempt would make a second report, of others */
    if (host.daemon.started->options.manager.queue.journal_size == 0 ||
        audit_options()->transport.minimal_backoff_ms < 3 * SYNC_MS)
        return;
    world_set_moods(&mixed);
    sim_disk_set_sync_spread(SYNC_MS, roof_random());
    results.message = audit_give(0, RCPTS);
    (void)world_run_for(audit_longest_ms(), has_report);
    (void)world_run_for(roof_below(SYNC_MS), NULL);
    sim_disk_set_sync_spread(0, 0);
    unsigned before = results.message->reports;
    results.attempts = 0;
    model_on_attempted(reported_attempted);
    world_cut();
    world_set_moods(&good);
    (void)audit_has_gone(audit_longest_ms());
    (void)world_run_for(REPORTED_MS, NULL); /* another report comes behind the mail */
    model_on_attempted(NULL);
    if (results.attempts > 0)
        roof_break(
            "once", results.message->id,
            "%u recipients of m%u were reported, and are tried behind a power cut",
            results.attempts, results.message->number);
    /* where a delay is reported within seconds that may be the other one */
    if (before > 0 && results.message->reports > before &&
        !is_delay_reported(results.message))
        roof_break("once", results.message->id,
                   "m%u is reported anew behind a power cut, by another report",
                   results.message->number);
    audit_departure("mail of which some has failed before a power cut");
}

/* A report that a full disk has refused is made soon when there is space. */
static void
audit_full_disk(void)
{
    struct hop_mood good = {0},
                    never = {.rcpt = 1000, .never = 1000, .reply_ms = REPLY_MS};
    world_set_moods(&never);
    results.attempts = 0;
    model_on_attempted(results_attempted);
    results.message = audit_give(0, 1);
    bool is_tried = world_run_for(audit_longest_ms(), is_attempted);
    model_on_attempted(NULL);
    law_history_forgive(); /* it pauses meanwhile */
    sim_disk_set_space(0, 0);
    (void)world_run_for(REPLY_MS + FULL_MS, NULL);
    sim_disk_set_space(GOOD_SPACE, GOOD_SPACE_INODES);
    if (is_tried && !world_run_for(AGAIN_MS, has_report))
        roof_break("in time", results.message->id,
                   "m%u has failed, the disk has space, and it is not reported",
                   results.message->number);
    world_set_moods(&good);
    (void)world_run_for(AGAIN_MS, NULL); /* until new mail is taken, too */
    audit_departure("mail that failed on a full disk");
}

static size_t
count_files(void)
{
    return sim_disk_count(HOST_SPOOL "/mess");
}

/* Files of mail that a dead daemon has not finished go at the next start. */
static void
audit_dead_files(void)
{
    if (host.daemon.started->options.manager.queue.journal_size != 0)
        return;
    size_t before = count_files();
    unsigned calls = 1 + roof_below(CALLS);
    if (audit_give_to_dying(audit_message(0, 1, SMALL), calls, false)) {
        (void)world_run_for(CLEARED_MS, NULL);
        (void)audit_has_gone(audit_longest_ms());
        if (count_files() > before)
            roof_break("clean", NULL, "a dead daemon has left %zu files in mess/",
                       count_files() - before);
    }
    audit_departure("mail whose host has died");
}

/* A hold that was ordered in a delivery outlives a reload. */
static void
audit_hold(void)
{
    struct hop_mood good = {0}, slow = {.rcpt = 1000, .reply_ms = REPLY_MS};
    world_set_moods(&slow);
    results.attempts = 0;
    model_on_attempted(results_attempted);
    results.message = audit_give(0, 1);
    bool is_tried = world_run_for(audit_longest_ms(), is_attempted);
    operator_order("hold", results.message);
    (void)world_run_for(REPLY_MS / 10, NULL);
    world_set_route("initial=2");
    world_set_moods(&good);
    (void)world_run_for(2 * audit_longest_ms(), NULL);
    if (is_tried && results.attempts > 1)
        roof_break("bounds", results.message->id, "m%u is held, and tried",
                   results.message->number);
    model_on_attempted(NULL);
    operator_order("release", results.message);
    world_set_route("");
    audit_departure("mail that was held over a reload");
}

/* Where a host takes no mail from nobody, reports have a sender. */
static void
audit_strict_host(void)
{
    struct hop_mood good = {0}, never = {.rcpt = 1000, .never = 1000},
                    strict = {.null = 1000};
    editor_set("bounce_sender", "bounces@" MODEL_BACK);
    world_set_route("");
    world_set_moods(&never);
    world_set_back_mood(&strict);
    results.message = audit_give(0, 1);
    (void)world_run_for(audit_longest_ms(), has_report);
    if (!has_report())
        roof_break("once", results.message->id,
                   "m%u has failed, and no report has come", results.message->number);
    editor_set("bounce_sender", "");
    world_set_moods(&good);
    world_set_back_mood(&good);
    world_set_route("");
    audit_departure("mail that has failed");
}

/* The sender hears of a delay at the next attempt, and once: not at those behind it, nor
 * behind a restart. */
static void
audit_notices(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000};
    editor_set("delay_warning_time", "600s");
    editor_set("minimal_backoff_time", "3000s");
    editor_set("maximal_backoff_time", "3000s");
    world_set_route("");
    world_set_moods(&refusing);
    results.message = audit_give(0, 1);
    const struct model_rcpt *r = &results.message->rcpts[0];
    (void)world_run_for(ATTEMPT_MS, NULL);
    if (r->delayed != 1)
        roof_break("in time", results.message->id,
                   "m%u waits, and has %u notices of it", results.message->number,
                   r->delayed);
    (void)world_run_for(ATTEMPT_MS, NULL);
    world_restart(false);
    (void)world_run_for(ATTEMPT_MS, NULL);
    if (r->delayed != 1)
        roof_break("once", results.message->id, "m%u waits, and has %u notices of it",
                   results.message->number, r->delayed);
    editor_set("delay_warning_time", "");
    editor_set("minimal_backoff_time", "");
    editor_set("maximal_backoff_time", "");
    world_set_route("");
    world_set_moods(&good);
    (void)audit_has_gone(2 * ATTEMPT_MS);
    audit_departure("mail that was delayed");
}

void
audit_results(void)
{
    static void (*const questions[])(void) = {audit_note,        audit_full_disk,
                                              audit_dead_files,  audit_hold,
                                              audit_strict_host, audit_notices};
    for (unsigned i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        if (roof_chance(500))
            questions[i]();
}
