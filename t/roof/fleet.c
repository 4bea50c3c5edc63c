/* Other hosts, and what happens to them. */
#include "t/roof/fleet_internal.h"

#include "t/roof/group.h"
#include "t/roof/hook.h"
#include "t/roof/law_log.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/network.h"
#include "t/roof/slices.h"
#include "t/roof/split.h"
#include "t/roof/poster.h"
#include "t/roof/visitor.h"
#include "t/roof/wire.h"
#include "t/sim/sim_disk.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    MARKS_MS = 4000,  /* marks, their sync, and the reply on its way */
    SETTLE_MS = 5000, /* the removal of a message without a journal is not synced */
    RELAY_RCPTS = 50,
    RELAY_BACKOFF_MS = 600 * SECOND_MS
};

#define WIRE_TARGET "smtp://10.0.2.1:25"

struct fleet fleet;

static unsigned
draw(unsigned limit)
{
    return roof_below_of(&fleet.chance, limit);
}

/* --- Start and end ---------------------------------------------------------------- */

unsigned
fleet_draw(unsigned limit)
{
    return draw(limit);
}

static void
member_on_start(void *context)
{
    struct member *m = context;
    if (m->is_away || m->host->running)
        return;
    if ((m->may_start != NULL && !m->may_start(m)) || !host_start(m->host))
        fleet_start(m, SECOND_MS);
}

void
fleet_start(struct member *m, int64_t delay_ms)
{
    roof_timer_start(&m->start, delay_ms, member_on_start, m);
}

struct member *
fleet_member(const struct host *h)
{
    for (unsigned i = 0; i < fleet.count; i++)
        if (fleet.members[i].host == h)
            return &fleet.members[i];
    return NULL;
}

static void
member_stopped(struct host *h)
{
    struct member *m = fleet_member(h);
    if (m->disk_was_bad)
        law_log_excuse(host_log(h));
    mailbox_look();
    m->ended(m, m->disk_was_bad ? INT64_MAX / 2
                                : MARKS_MS + 3 * fleet.sync_ms + SETTLE_MS);
    fleet_start(m, fleet.is_good ? SECOND_MS : draw(60) * SECOND_MS);
}

struct member *
fleet_add(const char *name, const char *ip, struct host *machine)
{
    struct member *m = &fleet.members[fleet.count++];
    m->host = host_add(name, roof_fork(name) ^ fleet.plan.seed, machine);
    m->host->fill_dns = fleet.plan.fill_dns;
    m->host->stopped = member_stopped;
    network_add_address(m->host->process, ip);
    if (machine != NULL)
        return m;
    host_enter(m->host);
    sim_disk_set_space(INT64_C(1) << 40, 1 << 30);
    sim_disk_set_syncing(DISK_SYNC_AIO, draw(2) == 0 ? 0 : 1 + draw(60));
    host_leave();
    return m;
}

/* --- A smarthost ------------------------------------------------------------------ */

static void
write_relay(struct member *m)
{
    static const int64_t sizes[] = {0, 1 << 20, 64 << 20};
    struct buffer b;
    unsigned rcpts = 1 + draw(RELAY_RCPTS);
    int64_t size = sizes[draw(3)];
    unsigned backoff_s = 1 + draw(300);
    buffer_init(&b, HOST_FILE_MAX);
    bool fits = buffer_format(
        &b,
        "hostname = relay.roof.test\nlisten = 10.0.0.2:25\nspool = " HOST_SPOOL
        "\nsandbox = no\ndns_servers = 10.0.0.53\nrelay_from = 10.0.0.0/8\nmta_sts = "
        "no\n"
        "canary_interval = 0\nhistory_size = 1M\nlog_level = debug\n"
        "maximal_backoff_time = %d\nminimal_backoff_time = %u\n"
        "journal_size = %" PRId64 "\ndefault_destination_recipient_limit = %u\n"
        "routes =\n",
        RELAY_BACKOFF_MS / SECOND_MS, backoff_s, size, rcpts);
    for (unsigned i = 0; i < fleet.plan.domain_count; i++)
        fits = buffer_format(&b, "  %s %s?concurrency=%u\n", fleet.plan.domains[i],
                             fleet.plan.targets[i], 1 + draw(20)) &&
               fits;
    fits = buffer_format(&b, "  * mx\n") && fits;
    assert(fits);
    host_write_settings(m->host, buffer_text(&b));
    buffer_free(&b);
}

/* At least one domain; reports take the short way. */
static void
draw_relayed(void)
{
    unsigned sure = draw(fleet.plan.used);
    for (unsigned i = 0; i < fleet.plan.used; i++)
        if (i == sure || draw(3) == 0)
            fleet.targets[i] = WIRE_TARGET;
}

static void
relay_ended(struct member *m, int64_t window_ms)
{
    (void)m;
    model_relay_ended(window_ms);
}

static void
add_relay(void)
{
    struct net_address at =
                           {
                               .family = NET_IPV4, .ip = {10, 0, 2, 1},
                                    .port = 25
    },
                       to = {.family = NET_IPV4, .ip = {10, 0, 0, 2}, .port = 25},
                       from = {.family = NET_IPV4, .ip = {10, 0, 2, 1}};
    struct member *m = fleet_add("relay", "10.0.0.2", NULL);
    m->ended = relay_ended;
    m->write = write_relay;
    draw_relayed();
    wire_new("wire", &at, &from, &to);
    wire_set_cuts(draw(2) == 0 ? draw(200) : 0);
    write_relay(m);
    member_on_start(m);
}

void
fleet_begin(const struct fleet_plan *plan)
{
    fleet.plan = *plan;
    fleet.chance = roof_fork("fleet");
    assert(plan->domain_count <= FLEET_TARGETS_MAX);
    for (unsigned i = 0; i < plan->domain_count; i++)
        fleet.targets[i] = plan->targets[i];
    if (plan->hook) {
        hook_begin(!plan->clocks && !plan->slices);
        snprintf(host.overrides[4], HOST_OVERRIDE_SIZE, "events = " HOOK_URL);
        snprintf(host.overrides[5], HOST_OVERRIDE_SIZE, "events_batch = %u",
                 1 + draw(40));
        snprintf(host.overrides[6], HOST_OVERRIDE_SIZE, "events_linger = %us",
                 draw(20));
    }
    if (plan->visitors) {
        visitors_begin(plan->paths);
        snprintf(host.overrides[7], HOST_OVERRIDE_SIZE, "http_token = " VISITOR_TOKEN);
        snprintf(host.overrides[FLEET_OWN], HOST_OVERRIDE_SIZE, VISITOR_HTTP);
    }
    if (plan->posts) {
        posters_begin();
        snprintf(host.overrides[FLEET_OWN + 1], HOST_OVERRIDE_SIZE,
                 "http_keys = " POSTER_KEYS);
    }
    if (plan->relay)
        add_relay();
    if (plan->slices)
        slices_begin();
    if (plan->group)
        group_begin(plan->redis, plan->fragments);
}

void
fleet_note_sync(int64_t sync_ms)
{
    if (sync_ms > fleet.sync_ms)
        fleet.sync_ms = sync_ms;
}

const char *const *
fleet_targets(void)
{
    return fleet.targets;
}

/* --- Trouble ---------------------------------------------------------------------- */

static void
fleet_fault(struct member *m)
{
    m->disk_was_bad = true;
    law_log_excuse(host_log(m->host));
    split_forgive();
    roof_note("%s: its disk is to fail", m->host->name);
    m->host->fails_after = 1 + draw(100);
    m->host->fails_with = draw(2) == 0 ? EIO : ENOSPC;
}

static void
fleet_kill(struct member *m, bool power_cut)
{
    if (!power_cut && draw(2) == 0) {
        m->host->dies_after = 1 + draw(30); /* in the middle of a turn */
        return;
    }
    host_kill(m->host, power_cut);
    m->host->stopped(m->host);
}

static void
fleet_act(struct member *m, unsigned kind)
{
    const struct fleet_plan *p = &fleet.plan;
    if (!m->host->running)
        return;
    if (kind == 0 && p->kills) {
        fleet_kill(m, false);
    } else if (kind == 1 && p->cuts) {
        fleet_kill(m, true);
    } else if (kind == 2 && p->stops) {
        if (m->write != NULL)
            m->write(m);
        host_terminate(m->host);
    } else if (kind == 3 && p->reloads) {
        if (m->write != NULL)
            m->write(m);
        model_reloaded();
        host_reload(m->host);
    } else if (kind == 4 && p->disks) {
        fleet_fault(m);
    }
}

static void
fleet_on_trouble(void *context)
{
    (void)context;
    if (fleet.is_good)
        return;
    unsigned kind = draw(5);
    fleet_act(&fleet.members[draw(fleet.count)], kind);
    if (fleet.plan.slices && draw(4) == 0)
        slices_act();
    roof_timer_start(&fleet.trouble,
                     roof_between_of(&fleet.chance, SECOND_MS, 5 * MINUTE_MS),
                     fleet_on_trouble, NULL);
}

/* As the kernel writes what is dirty. */
static void
fleet_on_settle(void *context)
{
    (void)context;
    for (unsigned i = 0; i < fleet.count; i++) {
        if (fleet.members[i].host->machine == &host)
            continue;
        host_enter(fleet.members[i].host);
        sim_disk_settle();
        host_leave();
    }
    if (!fleet.is_good)
        roof_timer_start(&fleet.settle, SETTLE_MS, fleet_on_settle, NULL);
}

void
fleet_begin_trouble(void)
{
    if (fleet.count == 0)
        return;
    roof_timer_start(&fleet.trouble, SECOND_MS, fleet_on_trouble, NULL);
    if (fleet.plan.cuts)
        roof_timer_start(&fleet.settle, SETTLE_MS, fleet_on_settle, NULL);
}

/* A failed sync ends acceptance until a restart (doc/dev/queue.md). */
void
fleet_become_good(void)
{
    fleet.is_good = true;
    wire_set_cuts(0);
    slices_become_good();
    group_become_good();
    for (unsigned i = 0; i < fleet.count; i++) {
        struct member *m = &fleet.members[i];
        m->host->dies_after = m->host->fails_after = 0;
        if (m->disk_was_bad || (fleet.plan.disks && m->host->machine == &host))
            host_terminate(m->host);
    }
}

bool
fleet_is_up(void)
{
    for (unsigned i = 0; i < fleet.count; i++)
        if (!fleet.members[i].is_away &&
            (!fleet.members[i].host->running || fleet.members[i].host->leaves))
            return false;
    return true;
}

void
fleet_terminate(void)
{
    for (unsigned i = 0; i < fleet.count; i++) {
        fleet.members[i].host->is_idle = true;
        fleet.members[i].is_away = true; /* it is not started again */
        host_terminate(fleet.members[i].host);
    }
}

int64_t
fleet_backoff_ms(void)
{
    return fleet.plan.relay ? RELAY_BACKOFF_MS : 0;
}

int64_t
fleet_recipients(void)
{
    return fleet.plan.relay ? RELAY_RCPTS : 0;
}
