/* The troubles of a run, and when they come. */
#include "t/roof/world_internal.h"
#include "t/roof/app.h"

#include "t/roof/dead.h"
#include "t/roof/editor.h"
#include "t/roof/engine.h"
#include "t/roof/fleet.h"
#include "t/roof/hook.h"
#include "t/roof/lost_disk.h"
#include "t/roof/host.h"
#include "t/roof/group.h"
#include "t/roof/law_adoption.h"
#include "t/roof/law_history.h"
#include "t/roof/law_log.h"
#include "t/roof/limits.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/names.h"
#include "t/roof/operator.h"
#include "t/roof/policy.h"
#include "t/roof/redis.h"
#include "t/roof/roof.h"
#include "t/roof/secrecy.h"
#include "t/roof/siblings.h"
#include "t/roof/slices.h"
#include "t/roof/split.h"
#include "t/roof/token.h"
#include "t/roof/upgrade.h"
#include "t/roof/visitor.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/sim/sim_dns.h"

#include <errno.h>
#include <inttypes.h>

enum {
    LATE_MARKS_MS = 4000, /* marks, their sync, and the reply on its way */
    MOVED_FIRST = 24,     /* of a round of moves */
    RESTARTED_MS = 20000,
    STORM_MS = 8000,          /* in a storm: between two ends */
    STORM_RESTARTED_MS = 500, /* and from one to the start */
    STORM_MOST = 80,
    FIRST_OF_MX = 3, /* hops that policies are about */
    LAST_OF_MX = 6,
    CUT_CALLS = 60 /* of the disk, until the power fails in a turn */
};

/* --- The host ends --- */

static void on_start(void *context);
static void stop_host(void);

static void
start_again(int64_t delay_ms)
{
    roof_timer_start(&course.start, delay_ms, on_start, NULL);
}

void
trouble_start_later(int64_t delay_ms)
{
    start_again(delay_ms);
}

static void
on_start(void *context)
{
    (void)context;
    if (!host.running && !course.is_over && (!slices_may_start() || !host_start(&host)))
        start_again(SECOND_MS);
}

/* Results of mail in todo/ are durable with the first sync of its move (doc/dev/queue.md "Crash
 * rules"). It waits for the three of the round that is under way, and for those of others of
 * its kind. */
static int64_t
trouble_moves_ms(void)
{
    size_t rounds =
        (sim_disk_count(HOST_SPOOL "/todo") + MOVED_FIRST - 1) / MOVED_FIRST;
    return (int64_t)(rounds > 0 ? rounds : 1) * 3 * course.slowest_ms;
}

void
trouble_host_stopped(struct host *h)
{
    (void)h;
    bool was_bad = course.disk_was_bad && !course.is_audited;
    /* Marks that a bad disk has refused are made later; the removal of a message without
     * a journal is not synced. */
    int64_t window_ms = LATE_MARKS_MS + trouble_moves_ms() +
                        (course.with[WITH_CUTS] ? course.slowest_ms + SETTLE_MS : 0);
    if (was_bad || course.has_failed)
        law_log_excuse(0);
    course.has_failed = false;
    mailbox_look();
    dead_host_ended(0, course.slowest_ms);
    engine_host_ended();
    if (course.is_audited)
        window_ms = LATE_MARKS_MS;
    if (was_bad)
        window_ms = INT64_MAX / 2;
    if (course.with[WITH_GROUP]) {
        group_first_ended(window_ms);
    } else {
        slices_first_ended(window_ms);
        law_adoption_ended(0);
    }
    start_again(course.is_good     ? SECOND_MS
                : course.storm > 0 ? roof_between(0, STORM_RESTARTED_MS)
                                   : roof_between(0, RESTARTED_MS));
}

static void
forget_ages(void)
{
    if (course.stepped_ms > 0)
        model_forget_ages(course.stepped_ms);
}

void
trouble_end_host(bool power_cut)
{
    if (!host.running)
        return;
    if (power_cut)
        forget_ages();
    host_kill(&host, power_cut);
    trouble_host_stopped(&host);
}

/* The moment in which most is at stake: a client has its 250. */
static void
on_end_time(void *context)
{
    bool power_cut = course.waits == WAIT_CUT;
    (void)context;
    course.waits = WAIT_NOT;
    if (!course.is_good)
        trouble_end_host(power_cut);
}

void
trouble_acked(void)
{
    if (course.waits != WAIT_NOT && !course.is_good)
        roof_timer_start(&course.end, roof_between(0, 50), on_end_time, NULL);
}

/* The result and its event are on their way to the disk. */
static void
on_stored_time(void *context)
{
    (void)context;
    if (!course.is_good)
        trouble_end_host(true);
}

void
trouble_stored(void)
{
    if (!course.waits_stored || course.is_good)
        return;
    course.waits_stored = false;
    roof_timer_start(&course.fate, roof_between_of(&course.pace, 0, 300),
                     on_stored_time, NULL);
}

/* --- The disk, the clock, and the settings --- */

static void
trouble_disk(void)
{
    course.disk_was_bad = true;
    law_log_excuse(0);
    split_forgive();
    roof_note("disk: trouble");
    if (roof_chance(700)) {
        host.fails_after = 1 + roof_below(100);
        host.fails_with = roof_chance(500) ? EIO : ENOSPC;
    } else if (roof_chance(500)) {
        sim_disk_set_space(0, 0);
    } else {
        sim_disk_set_space(INT64_C(1) << 40, 1 << 30);
    }
}

void
world_step_clock(int64_t step_ms)
{
    roof_note("clock: %+" PRId64 " ms", step_ms);
    split_forgive();
    law_history_forgive();
    host.step_ms += step_ms;
    host.stepped_ms = roof_now_ms();
    if (host.running)
        sim_loop_step_wall(host.daemon.loop, step_ms);
    model_forget_waits(); /* mail may be due by the new time */
}

static void
change_records(void)
{
    if (course.dns == NULL || !host.running)
        return;
    sim_dns_status(course.dns, "d3.test", roof_chance(300) ? DNS_TRY_AGAIN : DNS_FOUND);
    sim_dns_forget(course.dns, "d4.test");
    sim_dns_mx(course.dns, "d4.test", 10, roof_chance(500) ? "mx4.test" : "mx3b.test");
}

void
trouble_set_pace(int64_t spread_ms)
{
    for (struct host *h = NULL; (h = host_next(h)) != NULL;) {
        host_enter(h);
        sim_disk_set_sync_spread(spread_ms, roof_random_of(&course.pace));
        host_leave();
    }
}

/* Events may be lost where two syncs, one behind the other, take longer than a second
 * (doc/events.md). */
static void
draw_pace(void)
{
    static const int64_t spreads_ms[] = {5, 50, 300, 900, 3000, 20000};
    int64_t spread_ms =
        spreads_ms[roof_below_of(&course.pace, course.with[WITH_HOOK] ? 3 : 6)];
    roof_note("disk: a sync takes up to %" PRId64 " ms more", spread_ms);
    if (spread_ms > course.slowest_ms)
        course.slowest_ms = spread_ms;
    fleet_note_sync(spread_ms);
    trouble_set_pace(spread_ms);
}

/* Behind a few large ones a time may have been by several clocks of the boot, and the daemon
 * takes one of them for the right one (queue/manager/age_clock.h). Hosts of a group have no
 * more of them, so that the ages of what they give each other are known. */
static void
step_by(int64_t step_ms)
{
    bool is_large = step_ms > HOUR_MS || step_ms < -HOUR_MS;
    bool is_known = course.is_dense && course.with[WITH_GROUP];
    if (is_large && is_known && course.large_steps == LARGE_STEPS_CLEAR) {
        step_ms = step_ms > 0 ? HOUR_MS : -HOUR_MS;
        is_large = false;
    }
    if (is_large && ++course.large_steps > LARGE_STEPS_CLEAR)
        model_set_lifetime(0);
    if (is_large)
        course.stepped_ms = roof_now_ms();
    world_step_clock(step_ms);
}

static void
step_back(void)
{
    step_by(-26 * HOUR_MS);
}

static void
step_clock(void)
{
    /* by NTP, by a time zone, by a battery that is empty */
    static const int64_t steps[] = {-1000,
                                    1000,
                                    MINUTE_MS,
                                    -HOUR_MS,
                                    HOUR_MS,
                                    -26 * HOUR_MS,
                                    26 * HOUR_MS,
                                    -40 * 24 * (int64_t)HOUR_MS,
                                    40 * 24 * (int64_t)HOUR_MS};
    /* Each slice has a memory of its own of the steps: the mail of one that has died
     * may be judged by the daemon that takes it over. */
    unsigned small = 5, all = sizeof(steps) / sizeof(*steps);
    step_by(steps[roof_below(course.with[WITH_SLICES] ? small : all)]);
    uint64_t own = roof_fork("step within");
    if (course.is_dense && course.with[WITH_GROUP] && roof_below_of(&own, 2) == 0)
        group_step_within(step_back);
}

static void
trouble_hook(void)
{
    hook_act();
    course.waits_stored = course.with[WITH_CUTS] && roof_below_of(&course.pace, 2) == 0;
}

/* A policy is known, and cannot be had again: the host begins anew, and all hosts of the
 * domain are of nobody. */
static void
trouble_policy(void)
{
    policy_act();
    if (!course.is_dense || roof_below_of(&course.pace, 3) > 0)
        return;
    roof_note("policies: cannot be had, and hosts are of nobody");
    policy_leave();
    struct hop_mood strange = {.tls_strange = 1000};
    for (unsigned i = FIRST_OF_MX; i <= LAST_OF_MX; i++)
        hop_set_mood(course.hops[i], &strange);
    stop_host();
}

/* No route joins fragments any more, and those that wait go on; or each does again. */
static void
change_joining(void)
{
    course.joins_not = !course.joins_not;
    roof_note("editor: routes join %s fragments", course.joins_not ? "no" : "all");
    editor_add_option(course.joins_not ? "" : SPLIT_OPTIONS);
    split_forgive();
    hops_forget_windows();
}

static void
reload_host(void)
{
    editor_change(NULL);
    limits_edit();
    dead_edit();
    if (course.with[WITH_FRAGMENTS] && roof_chance(100))
        change_joining();
    editor_write();
    model_set_lifetime(editor_bounds()->life_ms);
    model_reloaded();
    host_reload(&host);
    group_reload_all();
}

static void
kill_host(void)
{
    if (roof_chance(300))
        course.waits = WAIT_KILL;
    else if (host.running && roof_chance(500)) /* in the middle of a turn */
        host.dies_after = 1 + roof_below(30);
    else
        trouble_end_host(false);
}

/* --- When --- */

static void
cut_power(void)
{
    if (roof_chance(600))
        course.waits = WAIT_CUT;
    else if (course.is_dense && host.running && roof_chance(500)) {
        forget_ages();
        host.dies_after = 1 + roof_below(CUT_CALLS);
        host.dies_by_cut = true;
    } else
        trouble_end_host(true);
}

static void
stop_host(void)
{
    if (roof_chance(500)) {
        editor_change_at_start();
        editor_write();
    }
    host_terminate(&host);
}

static void
change_mood(void)
{
    unsigned i = roof_below(HOPS);
    struct hop_mood m = swarm_draw_mood(i == HOPS - 1);
    hop_set_mood(course.hops[i], &m);
}

static void
change_weather(void)
{
    enum hop_weather weather = (enum hop_weather)roof_below(3);
    hop_set_weather(course.hops[roof_below(HOPS)], weather);
}

/* Features that do something now and again. */
static const struct {
    void (*act)(void);
    int64_t from_ms, to_ms; /* between two of them */
} troubles[FEATURES] = {
    [WITH_RELOADS] = {reload_host,    SECOND_MS,      3 * MINUTE_MS },
    [WITH_KILLS] = {kill_host,      SECOND_MS,      20 * MINUTE_MS},
    [WITH_CUTS] = {cut_power,      SECOND_MS,      30 * MINUTE_MS},
    [WITH_STOPS] = {stop_host,      10 * SECOND_MS, 20 * MINUTE_MS},
    [WITH_MOODS] = {change_mood,    SECOND_MS,      5 * MINUTE_MS },
    [WITH_WEATHER] = {change_weather, SECOND_MS,      3 * MINUTE_MS },
    [WITH_OPERATOR] = {operator_act,   100,            30 * SECOND_MS},
    [WITH_CLOCKS] = {step_clock,     10 * SECOND_MS, 20 * MINUTE_MS},
    [WITH_DISKS] = {trouble_disk,   SECOND_MS,      5 * MINUTE_MS },
    [WITH_MX] = {change_records, SECOND_MS,      5 * MINUTE_MS },
    [WITH_TLS] = {secrecy_renew,  MINUTE_MS,      HOUR_MS       },
    [WITH_PACES] = {draw_pace,      SECOND_MS,      5 * MINUTE_MS },
    [WITH_VISITORS] = {visitors_act,   100,            30 * SECOND_MS},
    [WITH_HOOK] = {trouble_hook,   SECOND_MS,      10 * MINUTE_MS},
    [WITH_APP] = {app_act,        SECOND_MS,      10 * MINUTE_MS},
    [WITH_ALIASES] = {names_edit,     SECOND_MS,      10 * MINUTE_MS},
    [WITH_TOKENS] = {token_act,      SECOND_MS,      10 * MINUTE_MS},
    [WITH_POLICIES] = {trouble_policy, SECOND_MS,      10 * MINUTE_MS},
    [WITH_UPGRADES] = {upgrade_act,    SECOND_MS,      10 * MINUTE_MS},
    [WITH_GROUP] = {group_act,      SECOND_MS,      2 * MINUTE_MS },
    [WITH_REDIS] = {redises_act,    SECOND_MS,      2 * MINUTE_MS },
    [WITH_ENGINE] = {engine_act,     SECOND_MS,      2 * MINUTE_MS },
    [WITH_LOST_DISK] = {lost_disk_act,  SECOND_MS,      5 * MINUTE_MS },
    [WITH_SIBLINGS] = {siblings_act,   SECOND_MS,      2 * MINUTE_MS },
    [WITH_DEAD] = {dead_act,       SECOND_MS,      MINUTE_MS     },
};

struct again {
    enum feature feature;
};
static struct again repeated[FEATURES];

static void
on_trouble(void *context)
{
    const struct again *a = context;
    const char *name = feature_names[a->feature];
    unsigned number = plan_next(name);
    if (course.is_good)
        return;
    plan_enter(name, number);
    int64_t again_ms =
        roof_between(troubles[a->feature].from_ms, troubles[a->feature].to_ms);
    if (course.storm > 0 && (a->feature == WITH_KILLS || a->feature == WITH_CUTS)) {
        course.storm--;
        again_ms = roof_between(0, STORM_MS);
    }
    if (plan_takes(name, number))
        troubles[a->feature].act();
    plan_leave();
    roof_timer_start(&course.trouble[a->feature], again_ms, on_trouble, context);
}

/* As ext4 does every five seconds. */
static void
on_settle(void *context)
{
    (void)context;
    sim_disk_settle();
    if (!course.is_good)
        roof_timer_start(&course.settle, SETTLE_MS, on_settle, NULL);
}

/* In some runs the host ends again and again: as often as other ends may come in a week of
 * runs, with less mail under way at each. */
static void
draw_storm(void)
{
    uint64_t own = roof_fork("storm");
    unsigned count = 1 + roof_below_of(&own, STORM_MOST);
    if (course.is_dense && roof_below_of(&own, 3) == 0)
        course.storm = count;
}

void
trouble_begin(void)
{
    draw_storm();
    if (course.with[WITH_CUTS])
        roof_timer_start(&course.settle, SETTLE_MS, on_settle, NULL);
    for (enum feature i = 0; i < FEATURES; i++) {
        repeated[i].feature = i;
        plan_enter("first", i);
        if (course.with[i] && troubles[i].to_ms > 0)
            roof_timer_start(&course.trouble[i],
                             roof_between(troubles[i].from_ms, troubles[i].to_ms),
                             on_trouble, &repeated[i]);
        plan_leave();
    }
}
