/* The course of a run: mail and trouble, then good weather, then judgement. */
#include "t/roof/world.h"

#include "queue/queue_operator.h"
#include "t/roof/audit.h"
#include "t/roof/client.h"
#include "t/roof/editor.h"
#include "t/roof/fleet.h"
#include "t/roof/hook.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_log.h"
#include "t/roof/law_truth.h"
#include "t/roof/limits.h"
#include "t/roof/login.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/names.h"
#include "t/roof/network.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/secrecy.h"
#include "t/roof/slices.h"
#include "t/roof/split.h"
#include "t/roof/visitor.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/sim/sim_dns.h"

#include <jansson.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const feature_names[FEATURES] = {
    "reload", "kill",    "cut",      "stop",    "mood", "weather", "operator",
    "inject", "clock",   "disk",     "path",    "mx",   "tls",     "relay",
    "slice",  "pace",    "http",     "webhook", "dsn",  "double",  "auth",
    "alias",  "maildir", "fragment", "limit",
};

enum {
    HOPS = 8,
    DOMAINS = 6,
    LATE_MARKS_MS = 4000,  /* marks, their sync, and the reply on its way */
    LAST_WORK_MS = 60000,  /* after the longest backoff */
    TRANSACTION_MS = 1000, /* at a slow hop: an attempt ends with the last of them */
    DUE_BELIEVED_MS = 4 * 3600 * 1000, /* queue/manager/manager_clock.c */
    RESTARTED_MS = 20000,
    LARGE_STEPS_CLEAR = 3,
    PATH_SIZE = 64,
    SETTLE_MS = 5000,
    FRAGMENTS_MS = 15 * 60 * 1000, /* incomplete ones wait so long, and a little */
    MESSAGES_UNDER_TLS = 60        /* each handshake is real work */
};

/* The domains that mail is for, and the last one, to which reports go. */
static const char *const domains[DOMAINS + 1] = {
    "d0.test", "d1.test", "d2.test", "d3.test", "d4.test", "d5.test", MODEL_BACK,
};
static const char *targets[DOMAINS + 1] = {
    "smtp://10.0.1.0:25", "smtp://10.0.1.1:25", "lmtp://10.0.1.2:24", "mx", "mx",
    "lmtp://10.0.1.2:24", "smtp://10.0.1.7:25",
};

static struct {
    bool with[FEATURES];
    unsigned messages, begun, domain_count;
    bool is_good; /* the weather, for good */
    bool disk_was_bad;
    bool joins_not;       /* fragments, by the routes now */
    uint64_t pace;        /* chance, of the disk's */
    bool waits_stored;    /* the power fails when a hop has stored something */
    int64_t slowest_ms;   /* that a sync has been, beyond what is usual */
    unsigned large_steps; /* of the clock */
    int64_t span_ms;      /* of mail and trouble */
    struct hop *hops[HOPS];
    struct roof_timer mail, trouble[FEATURES], start, compare, settle, end, fate;
    enum wait {
        WAIT_NOT,
        WAIT_KILL,
        WAIT_CUT
    } waits; /* for the next acknowledgement */
    struct network_path path;
    struct dns *dns;
} w;

/* --- The world --- */

static void
fill_table(struct dns *dns)
{
    sim_dns_mx(dns, "d3.test", 10, "mx3a.test");
    sim_dns_mx(dns, "d3.test", 20, "mx3b.test");
    sim_dns_mx(dns, "d4.test", 10, "mx4.test");
    sim_dns_address(dns, "mx3a.test", "10.0.1.3");
    sim_dns_address(dns, "mx3b.test", "10.0.1.4");
    sim_dns_address(dns, "mx4.test", "10.0.1.5");
    sim_dns_address(dns, "mx4.test", "10.0.1.6");
}

static void
fill_dns(struct dns *dns)
{
    w.dns = dns;
    fill_table(dns);
}

static void
draw_path(const struct net_address *to, struct network_path *out)
{
    (void)to;
    *out = (struct network_path){.latency_ms = 1 + roof_below(20), .window = 64 * 1024};
    if (!w.with[WITH_PATHS] || w.is_good)
        return;
    if (!plan_takes("narrow", plan_next("narrow")))
        return;
    static const size_t windows[] = {1, 7, 100, 1500, 64 * 1024};
    if (roof_chance(300))
        *out = (struct network_path){.latency_ms = roof_between(0, 400),
                                     .bytes_a_ms = roof_chance(300) ? 50 : 0,
                                     .window = windows[roof_below(5)],
                                     .choppy = roof_chance(500)};
    /* a window of one octet and a long way would need years */
    if (out->window < 1000)
        out->latency_ms = roof_below(3);
}

static struct hop_mood
draw_mood(bool reports)
{
    struct hop_mood m = {.reply_ms = roof_chance(300) ? roof_between(0, 200) : 0};
    unsigned how_bad = 1 + roof_below(200);
    if (w.with[WITH_TLS] && !w.is_good) {
        unsigned *const ends[] = {&m.tls_refused, &m.tls_broken, &m.tls_cut,
                                  &m.tls_strange};
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            if (roof_chance(300))
                *ends[i] = roof_below(400);
    }
    if (w.with[WITH_AUTH] && !w.is_good) {
        unsigned *const ends[] = {&m.auth_refused, &m.auth_later, &m.auth_closed,
                                  &m.auth_surplus};
        for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
            if (roof_chance(300))
                *ends[i] = roof_below(300);
    }
    if (w.with[WITH_DOUBLE] && !w.is_good) {
        m.twice = !reports && roof_chance(300) ? roof_below(100) : 0;
        m.early = roof_chance(400) ? roof_below(300) : 0;
    }
    if (!w.with[WITH_MOODS] || w.is_good)
        return m;
    unsigned *const rates[] = {&m.greeting, &m.mail,    &m.rcpt,     &m.data, &m.end,
                               &m.cut,      &m.cut_end, &m.idle_cut, &m.late, &m.close};
    for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
        if (roof_chance(400))
            *rates[i] = roof_below(how_bad);
    m.never = reports ? 0 : roof_below(300);
    m.late_ms = roof_chance(200) ? 20 * MINUTE_MS : 5 * SECOND_MS;
    m.grey_ms = !reports && roof_chance(200) ? roof_between(1, 10) * MINUTE_MS : 0;
    return m;
}

/* At the hops that have a route of their own. */
static void
begin_login(unsigned hop)
{
    static const int domains_of[HOPS] = {0, 1, -1, -1, -1, -1, -1, DOMAINS};
    if (domains_of[hop] < 0 || !roof_chance(700))
        return;
    hop_set_login(w.hops[hop], hop, (unsigned)domains_of[hop], roof_chance(300));
    editor_log_in((unsigned)domains_of[hop], hop);
}

static void
make_hops(void)
{
    static const struct {
        const char *name, *ip;
        unsigned port;
        bool lmtp, pipelining, chunking;
    } rows[HOPS] = {
        {"hop0", "10.0.1.0", 25, false, true,  true },
        {"hop1", "10.0.1.1", 25, false, false, false},
        {"hop2", "10.0.1.2", 24, true,  true,  false},
        {"hop3", "10.0.1.3", 25, false, true,  false},
        {"hop4", "10.0.1.4", 25, false, true,  true },
        {"hop5", "10.0.1.5", 25, false, true,  false},
        {"hop6", "10.0.1.6", 25, false, true,  false},
        {"back", "10.0.1.7", 25, false, true,  false},
    };
    for (unsigned i = 0; i < HOPS; i++) {
        w.hops[i] = hop_new(rows[i].name, rows[i].ip, rows[i].port, rows[i].lmtp,
                            rows[i].pipelining, rows[i].chunking);
        plan_enter("temper", i);
        struct hop_mood m = draw_mood(i == HOPS - 1);
        plan_leave();
        if (!plan_takes("temper", i))
            m = (struct hop_mood){0};
        hop_set_mood(w.hops[i], &m);
        if (w.with[WITH_TLS])
            hop_set_tls(w.hops[i], roof_chance(800));
        if (w.with[WITH_LIMITS] && i < 2)
            hop_set_route(w.hops[i], i);
        if (w.with[WITH_AUTH] && !w.with[WITH_RELAY]) /* which has no password */
            begin_login(i);
        if (w.with[WITH_DSN] && roof_chance(400))
            hop_set_dsn(w.hops[i]);
        if (roof_breaks("in time") || roof_breaks("truth"))
            hop_set_weather(w.hops[i], HOP_REFUSES);
    }
}

/* --- Trouble --- */

static void on_start(void *context);

static void
start_again(int64_t delay_ms)
{
    roof_timer_start(&w.start, delay_ms, on_start, NULL);
}

static void
on_start(void *context)
{
    (void)context;
    if (!host.running && (!slices_may_start() || !host_start(&host)))
        start_again(SECOND_MS);
}

static void
host_stopped(struct host *h)
{
    (void)h;
    /* Marks that a bad disk has refused are made later; the removal of a message without
     * a journal is not synced. */
    int64_t window_ms =
        LATE_MARKS_MS + 3 * w.slowest_ms + (w.with[WITH_CUTS] ? SETTLE_MS : 0);
    if (w.disk_was_bad)
        law_log_excuse();
    mailbox_look();
    slices_first_ended(w.disk_was_bad ? INT64_MAX / 2 : window_ms);
    start_again(w.is_good ? SECOND_MS : roof_between(0, RESTARTED_MS));
}

static void
end_host(bool power_cut)
{
    if (!host.running)
        return;
    /* marks that a bad disk has refused are made later */
    host_kill(&host, power_cut);
    host_stopped(&host);
}

/* The moment in which most is at stake: a client has its 250. */
static void
on_end_time(void *context)
{
    bool power_cut = w.waits == WAIT_CUT;
    (void)context;
    w.waits = WAIT_NOT;
    if (!w.is_good)
        end_host(power_cut);
}

static void
world_acked(void)
{
    if (w.waits != WAIT_NOT && !w.is_good)
        roof_timer_start(&w.end, roof_between(0, 50), on_end_time, NULL);
}

/* The result and its event are on their way to the disk. */
static void
on_stored_time(void *context)
{
    (void)context;
    if (!w.is_good)
        end_host(true);
}

static void
world_stored(void)
{
    if (!w.waits_stored || w.is_good)
        return;
    w.waits_stored = false;
    roof_timer_start(&w.fate, roof_between_of(&w.pace, 0, 300), on_stored_time, NULL);
}

static void
trouble_disk(void)
{
    w.disk_was_bad = true;
    law_log_excuse();
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
    host.step_ms += step_ms;
    if (host.running)
        sim_loop_step_wall(host.daemon.loop, step_ms);
    model_forget_waits(); /* mail may be due by the new time */
}

static void
change_records(void)
{
    if (w.dns == NULL || !host.running)
        return;
    sim_dns_status(w.dns, "d3.test", roof_chance(300) ? DNS_TRY_AGAIN : DNS_FOUND);
    sim_dns_forget(w.dns, "d4.test");
    sim_dns_mx(w.dns, "d4.test", 10, roof_chance(500) ? "mx4.test" : "mx3b.test");
}

static void
set_pace(int64_t spread_ms)
{
    for (struct host *h = NULL; (h = host_next(h)) != NULL;) {
        host_enter(h);
        sim_disk_set_sync_spread(spread_ms, roof_random_of(&w.pace));
        host_leave();
    }
}

/* Events may be lost where two syncs, one behind the other, take longer than a second
 * (doc/events.md). */
static void
draw_pace(void)
{
    static const int64_t spreads_ms[] = {5, 50, 300, 900, 3000, 20000};
    int64_t spread_ms = spreads_ms[roof_below_of(&w.pace, w.with[WITH_HOOK] ? 3 : 6)];
    roof_note("disk: a sync takes up to %" PRId64 " ms more", spread_ms);
    if (spread_ms > w.slowest_ms)
        w.slowest_ms = spread_ms;
    fleet_note_sync(spread_ms);
    set_pace(spread_ms);
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
    int64_t step_ms = steps[roof_below(w.with[WITH_SLICES] ? small : all)];
    /* Behind a few of them a time may have been by several clocks of the boot, and
     * the daemon takes one of them for the right one (queue/manager/age_clock.h). */
    bool is_large = step_ms > HOUR_MS || step_ms < -HOUR_MS;
    if (is_large && ++w.large_steps > LARGE_STEPS_CLEAR)
        model_set_lifetime(0);
    world_step_clock(step_ms);
}

static void
trouble_hook(void)
{
    hook_act();
    w.waits_stored = w.with[WITH_CUTS] && roof_below_of(&w.pace, 2) == 0;
}

/* No route joins fragments any more, and those that wait go on; or each does again. */
static void
change_joining(void)
{
    w.joins_not = !w.joins_not;
    roof_note("editor: routes join %s fragments", w.joins_not ? "no" : "all");
    editor_add_option(w.joins_not ? "" : SPLIT_OPTIONS);
    split_forgive();
}

static void
reload_host(void)
{
    editor_change(NULL);
    limits_edit();
    if (w.with[WITH_FRAGMENTS] && roof_chance(100))
        change_joining();
    editor_write();
    model_set_lifetime(editor_bounds()->life_ms);
    model_reloaded();
    host_reload(&host);
}

static void
kill_host(void)
{
    if (roof_chance(300))
        w.waits = WAIT_KILL;
    else if (host.running && roof_chance(500)) /* in the middle of a turn */
        host.dies_after = 1 + roof_below(30);
    else
        end_host(false);
}

static void
act(enum feature feature)
{
    switch (feature) {
    case WITH_RELOADS:
        reload_host();
        break;
    case WITH_KILLS:
        kill_host();
        break;
    case WITH_CUTS:
        if (roof_chance(600))
            w.waits = WAIT_CUT;
        else
            end_host(true);
        break;
    case WITH_STOPS:
        if (roof_chance(500)) {
            editor_change_at_start();
            editor_write();
        }
        host_terminate(&host);
        break;
    case WITH_MOODS: {
        unsigned i = roof_below(HOPS);
        struct hop_mood m = draw_mood(i == HOPS - 1);
        hop_set_mood(w.hops[i], &m);
        break;
    }
    case WITH_WEATHER:
        hop_set_weather(w.hops[roof_below(HOPS)], (enum hop_weather)roof_below(3));
        break;
    case WITH_OPERATOR:
        operator_act();
        break;
    case WITH_CLOCKS:
        step_clock();
        break;
    case WITH_DISKS:
        trouble_disk();
        break;
    case WITH_MX:
        change_records();
        break;
    case WITH_TLS:
        secrecy_renew();
        break;
    case WITH_PACES:
        draw_pace();
        break;
    case WITH_VISITORS:
        visitors_act();
        break;
    case WITH_HOOK:
        trouble_hook();
        break;
    case WITH_ALIASES:
        names_edit();
        break;
    case WITH_LIMITS:
    case WITH_FRAGMENTS:
    case WITH_MAILDIRS:
    case WITH_AUTH:
    case WITH_DSN:
    case WITH_DOUBLE:
    case WITH_INJECTORS:
    case WITH_PATHS:
    case WITH_RELAY:
    case WITH_SLICES:
    case FEATURES:
        break;
    }
}

static const struct {
    int64_t from_ms, to_ms; /* between two of them */
} paces[FEATURES] = {
    [WITH_RELOADS] = {SECOND_MS,      3 * MINUTE_MS },
    [WITH_KILLS] = {SECOND_MS,      20 * MINUTE_MS},
    [WITH_CUTS] = {SECOND_MS,      30 * MINUTE_MS},
    [WITH_STOPS] = {10 * SECOND_MS, 20 * MINUTE_MS},
    [WITH_MOODS] = {SECOND_MS,      5 * MINUTE_MS },
    [WITH_WEATHER] = {SECOND_MS,      3 * MINUTE_MS },
    [WITH_OPERATOR] = {100,            30 * SECOND_MS},
    [WITH_CLOCKS] = {10 * SECOND_MS, 20 * MINUTE_MS},
    [WITH_DISKS] = {SECOND_MS,      5 * MINUTE_MS },
    [WITH_MX] = {SECOND_MS,      5 * MINUTE_MS },
    [WITH_TLS] = {MINUTE_MS,      HOUR_MS       },
    [WITH_PACES] = {SECOND_MS,      5 * MINUTE_MS },
    [WITH_VISITORS] = {100,            30 * SECOND_MS},
    [WITH_HOOK] = {SECOND_MS,      10 * MINUTE_MS},
    [WITH_ALIASES] = {SECOND_MS,      10 * MINUTE_MS},
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
    if (w.is_good)
        return;
    plan_enter(name, number);
    int64_t again_ms = roof_between(paces[a->feature].from_ms, paces[a->feature].to_ms);
    if (plan_takes(name, number))
        act(a->feature);
    plan_leave();
    roof_timer_start(&w.trouble[a->feature], again_ms, on_trouble, context);
}

static void
begin_trouble(void)
{
    for (enum feature i = 0; i < FEATURES; i++) {
        repeated[i].feature = i;
        plan_enter("first", i);
        if (w.with[i] && paces[i].to_ms > 0)
            roof_timer_start(&w.trouble[i],
                             roof_between(paces[i].from_ms, paces[i].to_ms), on_trouble,
                             &repeated[i]);
        plan_leave();
    }
}

static void
on_mail(void *context)
{
    (void)context;
    plan_enter("client", w.begun);
    unsigned count = 1 + (roof_chance(300) ? roof_below(5) : 0);
    if (count > w.messages - w.begun)
        count = w.messages - w.begun;
    client_begin(w.begun, count);
    w.begun += count;
    int64_t mean_ms = w.span_ms / w.messages + 1;
    if (w.begun < w.messages) /* in bursts */
        roof_timer_start(&w.mail,
                         roof_chance(600) ? roof_between(0, 50)
                                          : roof_between(0, 4 * mean_ms),
                         on_mail, NULL);
    plan_leave();
}

/* As ext4 does every five seconds. */
static void
on_settle(void *context)
{
    (void)context;
    sim_disk_settle();
    if (!w.is_good)
        roof_timer_start(&w.settle, SETTLE_MS, on_settle, NULL);
}

static void
on_compare(void *context)
{
    (void)context;
    /* a message that cannot be read now is not listed */
    if (!w.disk_was_bad && !host.is_shared)
        law_truth_ask();
    roof_timer_start(&w.compare,
                     w.is_good ? 3 * HOUR_MS : roof_between(1, 10) * MINUTE_MS,
                     on_compare, NULL);
}

/* --- The course --- */

/* At each turn: the scheduler within its limits, as they were at any time. */
static void
judge_bounds(void)
{
    struct sched_counts c = sched_count(manager_sched(host.daemon.manager));
    const struct editor_bounds *b = editor_bounds();
    unsigned rcpts = hops_take_most_rcpts();
    int64_t most =
        b->recipients > fleet_recipients() ? b->recipients : fleet_recipients();
    if ((int64_t)c.sessions > 2 * b->sessions)
        roof_break("bounds", NULL, "%zu sessions, with a limit of %" PRId64, c.sessions,
                   b->sessions);
    if ((int64_t)c.active > b->active)
        roof_break("bounds", NULL, "%zu active messages, with a limit of %" PRId64,
                   c.active, b->active);
    if (rcpts > (roof_breaks("bounds") ? 0 : most))
        roof_break("bounds", NULL,
                   "%u recipients in a transaction, with a limit of %" PRId64, rcpts,
                   most);
}

static void
run_until(int64_t end_ms, bool (*is_done)(void))
{
    while (is_done == NULL || !is_done()) {
        if (roof_run_due())
            continue;
        int64_t host_ms = hosts_due_ms(), due_ms = roof_due_ms();
        if (host_ms <= roof_now_ms()) {
            if (hosts_turn() == &host && host.running)
                judge_bounds();
            continue;
        }
        int64_t next_ms = host_ms < due_ms ? host_ms : due_ms;
        if (next_ms > end_ms) {
            roof_set_now(end_ms);
            return;
        }
        roof_set_now(next_ms);
    }
}

static bool
is_empty(void)
{
    if (!host.running || !fleet_is_up() || clients_open() > 0)
        return false;
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (host_mail(h) > 0)
            return false;
    return model_open() == 0;
}

/* The host runs, and clients have ended. */
static bool
is_quiet(void)
{
    return host.running && !host.leaves && fleet_is_up() && clients_open() == 0;
}

static bool
is_fed(void)
{
    return w.begun == w.messages;
}

static bool
has_ended(void)
{
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running)
            return false;
    return true;
}

static void
begin_tls(void)
{
    static const struct text names[] = {
        TEXT("10.0.1.0"),  TEXT("10.0.1.1"),  TEXT("10.0.1.2"), TEXT("10.0.1.3"),
        TEXT("10.0.1.4"),  TEXT("10.0.1.5"),  TEXT("10.0.1.6"), TEXT("10.0.1.7"),
        TEXT("mx3a.test"), TEXT("mx3b.test"), TEXT("mx4.test"),
    };
    secrecy_begin(names, sizeof(names) / sizeof(*names));
    editor_begin_tls();
}

static bool
is_listed(struct text list, const char *name)
{
    struct text word;
    while (list.length > 0) {
        text_cut(&list, ',', &word);
        if (text_equal(word, text_from(name)))
            return true;
    }
    return false;
}

/* The first ones share a stream, which kept seeds have drawn from since they were found;
 * each later one has its own, so that it changes nothing of the others. */
static void
draw_features(const char *only)
{
    unsigned permille = 100 + roof_below(600);
    for (enum feature i = 0; i < FEATURES; i++) {
        uint64_t own = roof_fork(feature_names[i]);
        bool drawn = i < FEATURES_OF_ONE_STREAM
                         ? roof_chance(permille)
                         : roof_random_of(&own) % 1000 < permille;
        drawn = only != NULL ? is_listed(text_from(only), feature_names[i]) : drawn;
        w.with[i] = drawn && plan_takes("with", i);
    }
    w.with[WITH_TLS] = w.with[WITH_TLS] || w.with[WITH_AUTH];
    /* the reader looks into Maildirs of the first host; a slice has its own fragments;
     * the relay has no way for reports to names */
    if (w.with[WITH_RELAY])
        w.with[WITH_MAILDIRS] = w.with[WITH_FRAGMENTS] = w.with[WITH_ALIASES] = false;
    if (w.with[WITH_SLICES])
        w.with[WITH_FRAGMENTS] = false;
}

static void
begin_fleet(uint64_t seed)
{
    struct fleet_plan plan = {.seed = seed,
                              .relay = w.with[WITH_RELAY],
                              .slices = w.with[WITH_SLICES],
                              .hook = w.with[WITH_HOOK],
                              .visitors = w.with[WITH_VISITORS],
                              .paths = w.with[WITH_PATHS],
                              .clocks = w.with[WITH_CLOCKS],
                              .kills = w.with[WITH_KILLS],
                              .cuts = w.with[WITH_CUTS],
                              .stops = w.with[WITH_STOPS],
                              .reloads = w.with[WITH_RELOADS],
                              .disks = w.with[WITH_DISKS],
                              .domains = domains,
                              .targets = targets,
                              .domain_count = DOMAINS + 1,
                              .used = w.domain_count,
                              .fill_dns = fill_table};
    fleet_begin(&plan);
}

static void
draw_limits(void)
{
    static const enum feature blurring[] = {WITH_MOODS, WITH_PATHS, WITH_CLOCKS,
                                            WITH_KILLS, WITH_CUTS,  WITH_DISKS,
                                            WITH_RELAY, WITH_SLICES};
    limits_begin(DOMAINS + 1);
    for (size_t i = 0; i < sizeof(blurring) / sizeof(*blurring); i++)
        if (w.with[blurring[i]])
            limits_forgive();
}

static void
draw_manners_of_features(struct client_manners *m)
{
    m->auth = w.with[WITH_AUTH] ? 100 + roof_below(600) : 0;
    if (w.with[WITH_FRAGMENTS]) {
        m->split = 200 + roof_below(600);
        editor_add_option(SPLIT_OPTIONS);
    }
    if (w.with[WITH_LIMITS])
        draw_limits();
    m->dsn = w.with[WITH_DSN] ? 100 + roof_below(900) : 0;
}

/* Aliases and logins. */
static void
begin_names(void)
{
    if (w.with[WITH_ALIASES]) {
        names_begin(100 + roof_below(600));
        editor_add("local_domains = here.test\naliases = " NAMES_FILE "\n");
    }
    if (w.with[WITH_AUTH]) {
        static const char *const hops[] = {"10.0.1.0", "10.0.1.1", "10.0.1.2",
                                           "10.0.1.3", "10.0.1.4", "10.0.1.5",
                                           "10.0.1.6", "10.0.1.7"};
        login_begin(hops, HOPS);
        editor_begin_logins();
    }
}

static void
draw_world(const struct wishes *wishes)
{
    static const unsigned most[] = {10, 40, 40, 150, 150, 400};
    static const int64_t spans_ms[] = {MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS};
    draw_features(wishes->only);
    w.messages = 5 + roof_below(most[roof_below(6)]);
    w.domain_count = 1 + roof_below(DOMAINS);
    w.span_ms = roof_between(MINUTE_MS, spans_ms[roof_below(4)]);
    struct client_manners manners = {.pipelining = roof_below(1001),
                                     .bdat = roof_below(500),
                                     .slow = roof_below(300),
                                     .cut = roof_chance(500) ? roof_below(300) : 0,
                                     .injects = w.with[WITH_INJECTORS] ? 500 : 0,
                                     .null_sender = roof_below(100),
                                     .notify = roof_below(400)};
    draw_manners_of_features(&manners);
    if (w.with[WITH_TLS]) {
        manners.tls = 100 + roof_below(900);
        if (w.messages > MESSAGES_UNDER_TLS)
            w.messages = MESSAGES_UNDER_TLS;
    }
    client_set_manners(&manners);
    if (w.with[WITH_MAILDIRS]) {
        w.domain_count = DOMAINS;
        targets[DOMAINS - 1] = MAILBOX_TARGET;
        mailbox_begin(DOMAINS - 1);
    }
    model_begin(w.messages);
    model_set_domains(domains, w.domain_count);
    begin_fleet(wishes->seed);
    editor_begin(fleet_targets(), domains, DOMAINS + 1,
                 roof_chance(500) ? roof_below(300) : 0);
    if (w.with[WITH_TLS])
        begin_tls();
    begin_names();
    for (enum feature i = 0; i < FEATURES; i++)
        if (w.with[i])
            roof_note("with: %s", feature_names[i]);
    roof_note("messages: %u, domains: %u, span: %" PRId64 " s", w.messages,
              w.domain_count, w.span_ms / 1000);
}

/* Its boot is another one after each power cut. */
static void
write_boot(void)
{
    char text[PATH_SIZE];
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
    network_on_path(draw_path);
    network_add_address(host.process, "10.0.0.1");
    host.seed = wishes->seed;
    host.fill_dns = fill_dns;
    host.stopped = host_stopped;
    w.pace = roof_fork("pace of the disk");
    draw_world(wishes);
    make_hops();
    model_on_acked(world_acked);
    model_on_stored(world_stored);
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
    w.is_good = true;
    for (unsigned i = 0; i < HOPS; i++) {
        struct hop_mood m = draw_mood(true);
        hop_set_mood(w.hops[i], &m);
        hop_set_weather(w.hops[i], HOP_UP);
        hop_set_tls(w.hops[i], w.with[WITH_TLS]);
    }
    host.dies_after = host.fails_after = 0;
    sim_disk_set_space(INT64_C(1) << 40, 1 << 30);
    if (w.dns != NULL && host.running)
        sim_dns_status(w.dns, "d3.test", DNS_FOUND);
    fleet_become_good();
    hook_become_good();
    visitors_become_good();
    set_pace(0);
    hops_reset();
    network_end_silence();
    /* A failed sync ends acceptance until a restart (doc/queue.md). */
    if (w.disk_was_bad)
        host_terminate(&host);
}

static unsigned
open_recipients(void)
{
    return model_tally().rcpts;
}

static void
judge_drain(int64_t limit_ms)
{
    if (is_empty())
        return;
    struct sched_counts c = {0};
    if (host.running)
        c = sched_count(manager_sched(host.daemon.manager));
    model_print();
    for (const struct host *h = host_next(&host); h != NULL; h = host_next(h))
        printf("%s %s, %zu messages wait\n", h->name,
               !h->running ? "does not run"
               : h->leaves ? "is to end"
                           : "runs",
               host_mail(h));
    roof_break(
        "in time", NULL,
        "after %" PRId64 " s of good weather %zu messages wait (%zu incoming, %zu "
        "active, %zu deferred), and %u recipients are open; the host %s, the others "
        "%s, "
        "and %u clients are at work",
        limit_ms / 1000, c.incoming + c.active + c.deferred, c.incoming, c.active,
        c.deferred, model_open(), host.running ? "runs" : "does not run",
        fleet_is_up() ? "run" : "do not run", clients_open());
}

/* The files left in a folder of its spool; path: the first that has any. */
static size_t
files_left_of(struct host *h, char path[PATH_SIZE])
{
    static const char *const places[] = {"mess",   "info",   "todo", "intd",   "local",
                                         "remote", "bounce", "hold", "corrupt"};
    size_t count = 0;
    host_enter(h);
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        snprintf(path, PATH_SIZE, HOST_SPOOL "/%s", places[i]);
        count = sim_disk_count(path);
        /* remains of mail that was done when the power went (doc/queue.md) */
        bool may_remain =
            strcmp(places[i], "corrupt") == 0 && (h->cuts > 0 || audit_has_damaged());
        /* what an injector left under a clock that was ahead is that much younger
         * (petrel-spool(5)) */
        bool is_unfinished =
            strcmp(places[i], "mess") == 0 || strcmp(places[i], "intd") == 0;
        may_remain = may_remain || (is_unfinished && w.large_steps > 0);
        if (count > 0 && !may_remain)
            break;
        count = 0;
    }
    host_leave();
    return count;
}

static size_t
files_left(char path[PATH_SIZE])
{
    size_t count = 0;
    for (struct host *h = NULL; (h = host_next(h)) != NULL && count == 0;)
        if (h->machine == h)
            count = files_left_of(h, path);
    return count;
}

static void
judge_spool(void)
{
    char path[PATH_SIZE];
    if (roof_breaks("clean"))
        host_write_file(&host, HOST_SPOOL "/mess", "left", TEXT("of nobody"));
    size_t count = files_left(path);
    if (count > 0)
        roof_break("clean", NULL, "%zu files are left in %s", count, path);
}

/* Files of mail that was never acknowledged are left for 36 h: a host that has none need
 * not be watched for so long. */
static void
wait_clean(void)
{
    char path[PATH_SIZE];
    int64_t end_ms = roof_now_ms() + 38 * HOUR_MS;
    while (files_left(path) > 0 && roof_now_ms() < end_ms)
        run_until(roof_now_ms() + HOUR_MS, NULL);
    run_until(roof_now_ms() + HOUR_MS, NULL);
}

/* Each event is a request when `events_batch` is 1, and one that fails waits: there may be
 * many when mail is done. It goes on as long as an hour, four waits of the longest, brings
 * any. */
static void
wait_heard(void)
{
    unsigned before;
    do {
        before = hook_batches();
        run_until(roof_now_ms() + HOUR_MS, model_has_heard);
    } while (!model_has_heard() && hook_batches() > before);
    model_judge_heard();
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
                        .compared = law_truth_compared(),
                        .explained = law_truth_explained()};
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

/* It knows one host, and no route that demands TLS. */
static bool
can_audit(void)
{
    for (enum feature i = FEATURES_OF_ONE_STREAM; i < FEATURES; i++)
        if (w.with[i])
            return false;
    return true;
}

bool
world_run_for(int64_t ms, bool (*is_done)(void))
{
    run_until(roof_now_ms() + ms, is_done);
    return is_done != NULL && is_done();
}

void
world_restart_with(bool by_kill, void (*between)(void))
{
    if (by_kill)
        end_host(false);
    else
        host_terminate(&host);
    if (!by_kill)
        (void)world_run_for(HOUR_MS, has_ended);
    if (between != NULL)
        between();
    if (!world_run_for(30 * MINUTE_MS, is_quiet))
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
    hop_set_mood(w.hops[0], m);
}

void
world_set_hops(bool up)
{
    for (unsigned i = 0; i + 1 < HOPS; i++)
        hop_set_weather(w.hops[i], up ? HOP_UP : HOP_REFUSES);
    hops_reset();
}

void
world_cut(void)
{
    end_host(true);
    if (!world_run_for(30 * MINUTE_MS, is_quiet))
        roof_break("in time", NULL, "the host does not start again");
}

void
world_set_moods(const struct hop_mood *m)
{
    for (unsigned i = 0; i + 1 < HOPS; i++)
        hop_set_mood(w.hops[i], m);
}

void
world_set_route(const char *options)
{
    editor_set_route(0, options);
    editor_write();
    model_reloaded();
    host_reload(&host);
    (void)world_run_for(10 * SECOND_MS, NULL);
}

size_t
world_sockets(void)
{
    return network_open(host.process);
}

struct tally
world_run(const struct wishes *wishes)
{
    begin(wishes);
    roof_timer_start(&w.mail, 0, on_mail, NULL);
    roof_timer_start(&w.compare, MINUTE_MS, on_compare, NULL);
    if (w.with[WITH_CUTS])
        roof_timer_start(&w.settle, SETTLE_MS, on_settle, NULL);
    begin_trouble();
    fleet_begin_trouble();
    run_until(INT64_MAX, is_fed);
    run_until(roof_now_ms() + roof_between(0, 10 * MINUTE_MS), NULL);
    become_good();
    /* clients have ended, the host runs, and nothing is held */
    run_until(roof_now_ms() + 30 * MINUTE_MS, is_quiet);
    operator_release_all();
    for (struct host *h = NULL; hook_has_stopped() && (h = host_next(h)) != NULL;)
        host_reload(h);
    /* A clock that was ahead may have written any due time: a restart believes those that
     * are within this. */
    int64_t backoff_ms = editor_bounds()->backoff_ms;
    if (w.with[WITH_CLOCKS] && backoff_ms < DUE_BELIEVED_MS)
        backoff_ms = DUE_BELIEVED_MS;
    backoff_ms += fleet_backoff_ms();
    /* with the tenth that chance adds (retry_jitter_ms()) */
    int64_t limit_ms = backoff_ms * 11 / 10 + LAST_WORK_MS +
                       (editor_bounds()->pace_ms + limits_pace_ms() + TRANSACTION_MS) *
                           open_recipients();
    if (w.with[WITH_FRAGMENTS])
        limit_ms += FRAGMENTS_MS;
    /* a host that has just begun does not know yet what it has */
    int64_t end_ms = roof_now_ms() + limit_ms;
    do {
        run_until(end_ms, is_empty);
        run_until(roof_now_ms() + 2 * MINUTE_MS, NULL);
    } while (!is_empty() && roof_now_ms() < end_ms);
    judge_drain(limit_ms);
    mailbox_judge();
    model_judge();
    if (!host.is_shared)
        law_log_judge();
    wait_clean();
    if (w.with[WITH_HOOK] && !w.disk_was_bad)
        wait_heard();
    judge_spool();
    if (can_audit() && plan_takes("audit", 0))
        audit_run();
    run_until(roof_now_ms() + 2 * HOUR_MS, NULL);
    judge_spool();
    host.is_idle = true;
    host_terminate(&host);
    fleet_terminate();
    run_until(roof_now_ms() + HOUR_MS, has_ended);
    if (!has_ended())
        roof_break("in time", NULL, "the host does not end");
    return tally_all();
}
