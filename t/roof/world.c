/* The course of a run: mail and trouble, then good weather, then judgement. */
#include "t/roof/world_internal.h"

#include "t/roof/audit.h"
#include "t/roof/app.h"
#include "t/roof/client.h"
#include "t/roof/dead.h"
#include "t/roof/editor.h"
#include "t/roof/engine.h"
#include "t/roof/fleet.h"
#include "t/roof/group.h"
#include "t/roof/hook.h"
#include "t/roof/host.h"
#include "t/roof/law_adoption.h"
#include "t/roof/law_age.h"
#include "t/roof/law_bounds.h"
#include "t/roof/law_history.h"
#include "t/roof/law_log.h"
#include "t/roof/law_metrics.h"
#include "t/roof/law_truth.h"
#include "t/roof/limits.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/network.h"
#include "t/roof/operator.h"
#include "t/roof/policy.h"
#include "t/roof/returner.h"
#include "t/roof/roof.h"
#include "t/roof/secrecy.h"
#include "t/roof/siblings.h"
#include "t/roof/token.h"
#include "t/roof/upgrade.h"
#include "t/roof/poster.h"
#include "t/roof/visitor.h"
#include "t/sim/sim_disk.h"
#include "t/sim/sim_dns.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

const char *const feature_names[FEATURES] = {
    "reload",  "kill",    "cut",        "stop",    "mood",    "weather", "operator",
    "inject",  "clock",   "disk",       "path",    "mx",      "tls",     "relay",
    "slice",   "pace",    "http",       "webhook", "dsn",     "double",  "auth",
    "alias",   "maildir", "fragment",   "limit",   "upgrade", "group",   "redis",
    "sts",     "age",     "oauth",      "copy",    "app",     "return",  "dead",
    "release", "post",    "requiretls", "day",     "engine",
    "lost",    "sibling", "drill",
};

enum {
    LAST_WORK_MS = 60000,  /* after the longest backoff */
    TRANSACTION_MS = 1000, /* at a slow hop: an attempt ends with the last of them */
    DUE_BELIEVED_MS = 4 * 3600 * 1000, /* queue/manager/age_clock.c */
    FRAGMENTS_MS = 15 * 60 * 1000,     /* incomplete ones wait so long, and a little */
    BOOT_SIZE = 64
};

struct course course;

void
world_run_until(int64_t end_ms, bool (*is_done)(void))
{
    struct host *first;
    while (is_done == NULL || !is_done()) {
        if (roof_run_due())
            continue;
        int64_t host_ms = hosts_due_ms(&first), due_ms = roof_due_ms();
        if (host_ms <= roof_now_ms()) {
            host_turn(first);
            if (first->running)
                law_bounds_turn(first);
            continue;
        }
        int64_t next_ms = host_ms < due_ms ? host_ms : due_ms;
        if (next_ms > end_ms) {
            roof_set_now(end_ms);
            return;
        }
        if (next_ms > roof_now_ms())
            law_bounds_sleep();
        roof_set_now(next_ms);
    }
}

static void
on_mail(void *context)
{
    (void)context;
    plan_enter("client", course.begun);
    unsigned count = 1 + (roof_chance(300) ? roof_below(5) : 0);
    if (count > course.messages - course.begun)
        count = course.messages - course.begun;
    client_begin(course.begun, count);
    course.begun += count;
    int64_t mean_ms = course.span_ms / course.messages + 1;
    if (course.begun < course.messages) /* in bursts */
        roof_timer_start(&course.mail,
                         roof_chance(600) ? roof_between(0, 50)
                                          : roof_between(0, 4 * mean_ms),
                         on_mail, NULL);
    plan_leave();
}

static void
on_compare(void *context)
{
    (void)context;
    /* a message that cannot be read now is not listed */
    bool is_unread = (course.disk_was_bad && !course.is_audited) || course.has_failed ||
                     (course.with[WITH_INJECTORS] && course.with[WITH_UPGRADES]);
    if (!is_unread && !host.is_shared)
        law_truth_ask();
    if (course.with[WITH_VISITORS])
        law_metrics_ask();
    roof_timer_start(&course.compare,
                     course.is_good ? 3 * HOUR_MS : roof_between(1, 10) * MINUTE_MS,
                     on_compare, NULL);
}

/* Its boot is another one after each power cut. */
static void
write_boot(void)
{
    char text[BOOT_SIZE];
    snprintf(text, sizeof(text), "00000000-0000-4000-8000-%012u\n", host.cuts);
    host_write_file(&host, "/proc/sys/kernel/random", "boot_id", text_from(text));
}

static void
begin(const struct wishes *wishes)
{
    roof_begin(wishes->seed, wishes->traced);
    plan_begin(wishes->plan);
    roof_set_broken(wishes->broken);
    secrecy_seed();
    json_object_seed(1);
    sim_disk_reset();
    sim_disk_set_space(INT64_C(1) << 40, 1 << 30);
    network_on_path(swarm_draw_path);
    network_add_address(host.process, "10.0.0.1");
    host.seed = wishes->seed;
    host.fill_dns = swarm_fill_dns;
    host.stopped = trouble_host_stopped;
    course.pace = roof_fork("pace of the disk");
    swarm_draw(wishes);
    swarm_make_hops();
    group_begin_sites(course.hops, course.with);
    model_on_acked(trouble_acked);
    model_on_stored(trouble_stored);
    sim_disk_set_syncing(DISK_SYNC_AIO, roof_chance(500) ? 0 : roof_between(1, 60));
    editor_write();
    write_boot();
    model_set_lifetime(editor_bounds()->life_ms);
    if (!host_start(&host))
        roof_break("start", NULL, "the host does not start");
}

/* From now on nothing stands in the way of mail. */
static void
become_good(void)
{
    if (roof_breaks("in time") || roof_breaks("truth"))
        return; /* hops stay away */
    roof_note("the weather is good");
    course.is_good = true;
    for (unsigned i = 0; i < HOPS; i++) {
        struct hop_mood m = swarm_draw_mood(true);
        hop_set_mood(course.hops[i], &m);
        hop_set_weather(course.hops[i], HOP_UP);
        hop_set_tls(course.hops[i], course.with[WITH_TLS]);
    }
    host.dies_after = host.fails_after = 0;
    sim_disk_set_space(INT64_C(1) << 40, 1 << 30);
    if (course.dns != NULL && host.running)
        sim_dns_status(course.dns, "d3.test", DNS_FOUND);
    fleet_become_good();
    hook_become_good();
    app_become_good();
    engine_become_good();
    siblings_become_good();
    visitors_become_good();
    posters_become_good();
    upgrade_become_good();
    policy_become_good();
    token_become_good();
    trouble_set_pace(0);
    hops_reset();
    network_end_silence();
    /* A failed sync ends acceptance until a restart (doc/dev/queue.md). */
    if (course.disk_was_bad)
        host_terminate(&host);
}

static unsigned
open_recipients(void)
{
    return model_tally().rcpts;
}

static struct tally
tally_all(void)
{
    struct model_tally t = model_tally();
    struct tally all = {.hash = roof_hash(),
                        .virtual_ms = roof_now_ms(),
                        .messages = t.acked,
                        .recipients = t.rcpts,
                        .stored = t.stored,
                        .reported = t.reported,
                        .twice = t.twice,
                        .commands = operator_commands(),
                        .compared = law_truth_compared() + law_metrics_judged(),
                        .explained = law_truth_explained(),
                        .remembered = law_history_compared(),
                        .posted = posters_count()};
    returner_tally(&all.returned, &all.forged);
    all.claims = law_adoption_claims();
    dead_tally(&all.to_dead, &all.dead_tries, &all.dead_addresses);
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;) {
        all.turns += h->turns;
        all.kills += h->kills;
        all.cuts += h->cuts;
        all.reloads += h->reloads;
        all.starts += h->starts;
    }
    return all;
}

/* --- For the audit --- */

/* It knows one host whose routes demand nothing, and mail that leaves as it was given. It
 * sets the clock, so that no order of events can be judged. */
static bool
can_audit(void)
{
    static const enum feature unknown[] = {
        WITH_TLS,      WITH_RELAY,     WITH_SLICES,  WITH_AUTH,    WITH_ALIASES,
        WITH_MAILDIRS, WITH_FRAGMENTS, WITH_LIMITS,  WITH_HOOK,    WITH_GROUP,
        WITH_COPIES,   WITH_APP,       WITH_RETURNS, WITH_RELEASES, WITH_ENGINE};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
        if (course.with[unknown[i]])
            return false;
    /* no mail counts as open where it may expire at any time */
    return !course.is_dense || course.large_steps <= LARGE_STEPS_CLEAR;
}

bool
world_run_for(int64_t ms, bool (*is_done)(void))
{
    world_run_until(roof_now_ms() + ms, is_done);
    return is_done != NULL && is_done();
}

void
world_restart_with(bool by_kill, void (*between)(void))
{
    if (by_kill)
        trouble_end_host(false);
    else
        host_terminate(&host);
    if (!by_kill)
        (void)world_run_for(HOUR_MS, judge_has_ended);
    if (between != NULL)
        between();
    if (!world_run_for(30 * MINUTE_MS, judge_is_quiet))
        roof_break("in time", NULL, "the host does not start again");
}

void
world_restart(bool by_kill)
{
    world_restart_with(by_kill, NULL);
}

void
world_set_first_mood(const struct hop_mood *m)
{
    hop_set_mood(course.hops[0], m);
}

void
world_set_back_mood(const struct hop_mood *m)
{
    hop_set_mood(course.hops[HOPS - 1], m);
}

void
world_set_hops(bool up)
{
    for (unsigned i = 0; i + 1 < HOPS; i++)
        hop_set_weather(course.hops[i], up ? HOP_UP : HOP_REFUSES);
    hops_reset();
}

void
world_cut(void)
{
    trouble_end_host(true);
    if (!world_run_for(30 * MINUTE_MS, judge_is_quiet))
        roof_break("in time", NULL, "the host does not start again");
}

void
world_set_moods(const struct hop_mood *m)
{
    for (unsigned i = 0; i + 1 < HOPS; i++)
        hop_set_mood(course.hops[i], m);
}

void
world_set_route(const char *options)
{
    editor_set_route(0, options);
    editor_write();
    model_set_lifetime(editor_bounds()->life_ms);
    model_reloaded();
    host_reload(&host);
    (void)world_run_for(10 * SECOND_MS, NULL);
}

bool
world_is_dense(void)
{
    return course.is_dense;
}

void
world_note_fault(void)
{
    course.has_failed = true;
}

bool
world_has_failed(void)
{
    return course.has_failed;
}

void
world_fail_call(unsigned calls)
{
    host.fails_after = calls;
    host.fails_with = EIO;
    world_note_fault();
}

size_t
world_sockets(void)
{
    return network_open(host.process);
}

/* The trouble is over, and what it may have cost is, too. Settings at random leave little to
 * be asked: most audits are of the default ones. */
static void
begin_audit(void)
{
    uint64_t own = roof_fork("audit");
    if (!course.is_dense) /* as older seeds were kept */
        return;
    course.is_audited = true;
    if (roof_below_of(&own, 3) > 0)
        editor_forget();
    editor_change_at_start();
    editor_write();
    model_reloaded();
    world_restart(false);
    sim_disk_settle(); /* removals without a journal, which may have been until now */
}

/* In which all that waits must leave a world without trouble. */
static int64_t
world_limit_ms(void)
{
    /* A clock that was ahead may have written any due time: a restart believes those that
     * are within this. */
    int64_t backoff_ms = editor_bounds()->backoff_ms;
    if (course.with[WITH_CLOCKS] && backoff_ms < DUE_BELIEVED_MS)
        backoff_ms = DUE_BELIEVED_MS;
    backoff_ms += fleet_backoff_ms();
    /* with the tenth that chance adds (retry_jitter_ms()) */
    int64_t limit_ms = backoff_ms * 11 / 10 + LAST_WORK_MS +
                       (editor_bounds()->pace_ms + limits_pace_ms() + group_pace_ms() +
                        TRANSACTION_MS) *
                           open_recipients();
    if (course.with[WITH_FRAGMENTS])
        limit_ms += FRAGMENTS_MS;
    if (course.with[WITH_RELEASES])
        limit_ms += CLIENT_HOLD_MS;
    return limit_ms + policy_wait_ms() + token_wait_ms() + returner_wait_ms() +
           siblings_wait_ms();
}

struct tally
world_run(const struct wishes *wishes)
{
    begin(wishes);
    roof_timer_start(&course.mail, 0, on_mail, NULL);
    roof_timer_start(&course.compare, MINUTE_MS, on_compare, NULL);
    trouble_begin();
    fleet_begin_trouble();
    world_run_until(INT64_MAX, judge_is_fed);
    world_run_until(roof_now_ms() + roof_between(0, 10 * MINUTE_MS), NULL);
    become_good();
    /* clients have ended, the host runs, and nothing is held */
    world_run_until(roof_now_ms() + 30 * MINUTE_MS, judge_is_quiet);
    operator_release_all();
    upgrade_release();
    for (struct host *h = NULL; hook_has_stopped() && (h = host_next(h)) != NULL;)
        host_reload(h);
    int64_t limit_ms = world_limit_ms();
    /* a host that has just begun does not know yet what it has */
    int64_t end_ms = roof_now_ms() + limit_ms;
    do {
        world_run_until(end_ms, judge_is_empty);
        world_run_until(roof_now_ms() + 2 * MINUTE_MS, NULL);
    } while (!judge_is_empty() && roof_now_ms() < end_ms);
    judge_drain(limit_ms);
    mailbox_judge();
    model_judge();
    law_log_judge();
    returner_judge();
    dead_judge();
    judge_wait_clean();
    if (course.with[WITH_HOOK] && !course.disk_was_bad)
        judge_heard();
    judge_spool();
    if (course.is_dense)
        group_refuse_last();
    engine_judge();
    if (course.with[WITH_ENGINE] && course.is_dense && plan_takes("audit", 1))
        engine_audit();
    if (course.with[WITH_SIBLINGS] && course.is_dense && plan_takes("audit", 2))
        audit_siblings();
    if (course.with[WITH_GROUP] && !course.with[WITH_SIBLINGS] && course.is_dense &&
        plan_takes("audit", 3))
        audit_gifts();
    group_ask_status();
    world_run_until(roof_now_ms() + MINUTE_MS, group_has_answered);
    if (can_audit() && plan_takes("audit", 0)) {
        if (course.with[WITH_AGES]) { /* the audit has times of its own */
            editor_end_ages();
            world_set_route("");
        }
        begin_audit();
        if (course.with[WITH_DRILL])
            audit_drill();
        else
            audit_run();
    }
    world_run_until(roof_now_ms() + 2 * HOUR_MS, NULL);
    judge_wait_clean(); /* what the audit has killed may have left such files, too */
    judge_spool();
    judge_connections();
    host.is_idle = course.is_over = true;
    host_terminate(&host);
    fleet_terminate();
    world_run_until(roof_now_ms() + HOUR_MS, judge_has_ended);
    if (!judge_has_ended())
        roof_break("in time", NULL, "the host does not end");
    return tally_all();
}
