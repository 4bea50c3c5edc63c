/* Counts the mail that waits in each lane of a site, and finds lanes that lack sessions.
 *
 * Each change of a lane ends with lane_update(), which counts it anew and adds the differences
 * to the sums of the site. */
#include "sched/lane.h"

#include "base/memory.h"
#include "sched/limits/retry.h"
#include "sched/destination.h"

#include <assert.h>
#include <stdlib.h>
#include <utlist.h>

enum { LANES_LOOKED = 64 }; /* by lanes_first() */

static size_t
lane_less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Some entries may need one more than that. Sessions are opened for them when others have
 * taken theirs. */
static size_t
lane_worth(const struct site *site, const struct lane_counts *counts)
{
    int limit = transport_params_recipients(site_transport(site));
    size_t entries = counts->entries[FLOW_NEW] + counts->entries[FLOW_OLD];
    size_t full =
        limit > 0 ? (counts->recipients + (size_t)limit - 1) / (size_t)limit : 0;
    return full > entries ? full : entries;
}

/* One session tries a lane whose demand could not be proven. */
static struct lane_counts
lane_count(const struct lane *lane)
{
    struct lane_counts c = {.recipients = lane->queue.recipients};
    for (int age = 0; age < FLOW_AGES; age++)
        c.entries[age] = lane->queue.turns[age].entries;
    size_t without = (size_t)(lane->sessions - lane->carrying);
    size_t worth = lane_worth(lane->site, &c);
    c.matched = lane_less(worth, without);
    c.lacks = worth - c.matched;
    c.spares = without - c.matched;
    if (lane->delay_ms != 0)
        c.lacks = lane_less(c.lacks, lane->sessions == 0);
    c.unproven = c.lacks > 0 && lane->sessions == 0 && lane->demand != 0;
    return c;
}

static void
lane_list(struct lanes *lanes, struct lane *lane)
{
    bool lacks = lane->counts.lacks > 0 && lane->demand != 0;
    if (lacks == lane->is_listed)
        return;
    lane->is_listed = lacks;
    if (lacks)
        DL_APPEND(lanes->lacking, lane);
    else
        DL_DELETE(lanes->lacking, lane);
}

/* The differences are modulo: a sum is never less than one of its parts. */
static void
lane_update(struct lane *lane)
{
    struct lane_counts *sum = &lane->site->lanes.counts, *was = &lane->counts;
    struct lane_counts is = lane_count(lane);
    for (int age = 0; age < FLOW_AGES; age++)
        sum->entries[age] += is.entries[age] - was->entries[age];
    sum->recipients += is.recipients - was->recipients;
    sum->lacks += is.lacks - was->lacks;
    sum->spares += is.spares - was->spares;
    sum->matched += is.matched - was->matched;
    sum->unproven += is.unproven - was->unproven;
    *was = is;
    lane_list(&lane->site->lanes, lane);
}

/* Nothing must wait there: its mail belongs to destinations that are in it. */
static void
lane_end(struct lane *lane)
{
    struct lanes *lanes = &lane->site->lanes;
    if (lane->demand == 0 || lane->destinations > 0 || lane->sessions > 0)
        return;
    assert(lane->counts.recipients == 0 && !lane->is_listed);
    HASH_DELETE(hh, lanes->by_demand, lane);
    flow_queue_free(&lane->queue);
    reason_close(&lane->reasons, &lane->reason);
    free(lane);
}

static void
lane_init(struct lane *lane, struct site *site, uint64_t demand)
{
    lane->site = site;
    lane->demand = demand;
    flow_queue_init(&lane->queue);
}

void
lanes_init(struct site *site)
{
    lane_init(&site->lanes.plain, site, 0);
}

void
lanes_free(struct lanes *lanes)
{
    assert(!lanes->by_demand && !lanes->lacking && lanes->counts.recipients == 0);
    flow_queue_free(&lanes->plain.queue);
}

struct lane *
lane_get(struct site *site, uint64_t demand)
{
    struct lane *lane;
    if (demand == 0)
        return &site->lanes.plain;
    HASH_FIND(hh, site->lanes.by_demand, &demand, sizeof(demand), lane);
    if (lane)
        return lane;
    lane = memory_new(sizeof(*lane));
    lane_init(lane, site, demand);
    HASH_ADD(hh, site->lanes.by_demand, demand, sizeof(demand), lane);
    return lane;
}

void
lane_enter(struct lane *lane)
{
    lane->destinations++;
}

void
lane_leave(struct lane *lane)
{
    assert(lane->destinations > 0);
    lane->destinations--;
    lane_end(lane);
}

/* The lane that got or had a session last gets its next one last. */
static void
lane_go_last(struct lanes *lanes, struct lane *lane)
{
    if (!lane->is_listed)
        return;
    DL_DELETE(lanes->lacking, lane);
    DL_APPEND(lanes->lacking, lane);
}

void
lane_add_session(struct lane *lane, int change)
{
    lane->sessions += change;
    assert(lane->sessions >= lane->carrying);
    lane_update(lane);
    lane_go_last(&lane->site->lanes, lane);
    lane_end(lane);
}

void
lane_add_carrying(struct lane *lane, int change)
{
    lane->carrying += change;
    assert(lane->carrying >= 0 && lane->carrying <= lane->sessions);
    lane_update(lane);
}

/* --- Queues ----------------------------------------------------------------------- */

void
lane_append(struct flows *flows, struct lane *lane, struct entry *e)
{
    flow_queue_append(flows, &lane->queue, e);
    lane_update(lane);
}

void
lane_drop(struct flows *flows, struct lane *lane, struct entry *e)
{
    flow_queue_drop(flows, &lane->queue, e);
    lane_update(lane);
}

struct entry *
lane_cut(struct flows *flows, struct lane *lane, unsigned most,
         const struct transport_params *t, uint32_t job_s, unsigned *first,
         unsigned *count)
{
    struct entry *e = flow_queue_cut(flows, &lane->queue, most, t, job_s, first, count);
    lane_update(lane);
    return e;
}

void
lane_take(struct flows *flows, struct lane *lane, const struct destination *only,
          struct entry **list)
{
    flow_queue_take(flows, &lane->queue, only, list);
    lane_update(lane);
}

void
lanes_take(struct flows *flows, struct lanes *lanes, struct entry **list)
{
    struct lane *lane, *next;
    lane_take(flows, &lanes->plain, NULL, list);
    HASH_ITER (hh, lanes->by_demand, lane, next)
        lane_take(flows, lane, NULL, list);
}

/* A sender that has had its turn may get one more than the others. */
void
lanes_enter_again(struct flows *flows, struct lanes *lanes)
{
    struct entry *e, *next, *list = NULL;
    lanes_take(flows, lanes, &list);
    DL_FOREACH_SAFE (list, e, next) {
        DL_DELETE(list, e);
        lane_append(flows, e->destination->lane, e);
    }
}

/* --- Sessions --------------------------------------------------------------------- */

size_t
lanes_worth(const struct lanes *lanes)
{
    return lane_worth(lanes->plain.site, &lanes->counts);
}

/* Any session takes plain mail. */
static size_t
lanes_plain_lacks(const struct lanes *lanes)
{
    size_t spares = lanes->counts.spares - lanes->plain.counts.spares;
    return lanes->plain.counts.lacks - lane_less(lanes->plain.counts.lacks, spares);
}

size_t
lanes_lack(const struct lanes *lanes)
{
    return lanes->counts.lacks - lanes->plain.counts.lacks + lanes_plain_lacks(lanes);
}

size_t
lanes_matched(const struct lanes *lanes)
{
    return lanes->counts.matched + lanes->plain.counts.lacks - lanes_plain_lacks(lanes);
}

bool
lanes_lack_proof(const struct lanes *lanes)
{
    return lanes->counts.unproven > 0 && lanes_plain_lacks(lanes) == 0;
}

bool
lanes_have_spare(const struct lanes *lanes)
{
    return lanes->counts.spares > lanes->plain.counts.lacks;
}

struct lane *
lanes_next(const struct lanes *lanes)
{
    bool plain = lanes_plain_lacks(lanes) > 0;
    if (plain && (lanes->plain_turn || !lanes->lacking))
        return &lanes->plain.site->lanes.plain;
    return lanes->lacking;
}

void
lanes_turn(struct lanes *lanes, struct lane *lane)
{
    lanes->plain_turn = lane->demand != 0;
}

struct entry *
lanes_first(const struct lanes *lanes)
{
    const struct lane *lane = lanes_next(lanes);
    struct entry *e = lane ? flow_queue_first(&lane->queue) : NULL;
    if (!e)
        e = flow_queue_first(&lanes->plain.queue);
    lane = lanes->by_demand;
    for (int i = 0; !e && lane && i < LANES_LOOKED; i++, lane = lane->hh.next)
        e = flow_queue_first(&lane->queue);
    return e;
}

/* --- Suspended -------------------------------------------------------------------- */

void
lane_suspend(struct lane *lane, int64_t now_ms, const struct outcome *outcome,
             uint64_t *random)
{
    struct outcome later =
        outcome_make(VERDICT_DEFERRED, outcome->blame, outcome->code, outcome->enhanced,
                     "delivery temporarily suspended: %s", outcome->text);
    text_copy(later.remote, sizeof(later.remote), text_from(outcome->remote));
    struct reason *reason = reason_open(&lane->reasons, &later);
    reason_close(&lane->reasons, &lane->reason);
    lane->reason = reason;
    lane->delay_ms = lane->delay_ms > 0 ? 2 * lane->delay_ms : LANE_SUSPEND_MS;
    if (lane->delay_ms > LANE_SUSPEND_MAX_MS)
        lane->delay_ms = LANE_SUSPEND_MAX_MS;
    lane->until_ms = now_ms + retry_jitter_ms(lane->delay_ms * 9 / 10, random);
    lane_update(lane);
}

void
lane_resume(struct lane *lane)
{
    lane->until_ms = lane->delay_ms = 0;
    reason_close(&lane->reasons, &lane->reason);
    lane_update(lane);
}

bool
lane_is_suspended(const struct lane *lane, int64_t now_ms)
{
    return lane->delay_ms != 0 && now_ms < lane->until_ms;
}

void
lane_reason(const struct lane *lane, struct outcome *outcome)
{
    reason_read(lane->reason, outcome);
}

void
lanes_shift(struct lanes *lanes, int64_t delta_ms)
{
    struct lane *lane, *next;
    HASH_ITER (hh, lanes->by_demand, lane, next)
        lane->until_ms += delta_ms;
}
