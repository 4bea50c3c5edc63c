/* The work with a queue, and the properties it must have from then on. */
#include "t/crash/work.h"

#include "t/sim/sim_disk.h"

#include <stdlib.h>
#include <string.h>

/* LARGEST: still in the journal. */
enum { SMALL = 300, MIDDLE = 9000, LARGEST = 12000, LARGE = 150000 };

/* --- Scenarios ------------------------------------------------------------------- */

static void
scenario_accept(struct work *w)
{
    act_start(w, 1);
    act_accept(w, 1, SMALL);
    act_accept(w, 3, SMALL);
    act_accept(w, 2, MIDDLE);
    act_await(w);
    act_accept(w, 3, LARGE);
    act_accept(w, 1, SMALL);
    act_await(w);
    act_flush(w);
    act_stop(w, false);
}

static void
scenario_first_delivery(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 3; i++)
        act_accept(w, 1 + i, SMALL);
    act_accept(w, 1, LARGE);
    act_await(w);
    for (int m = 0; m < 4; m++)
        act_finish(w, m);
    act_accept(w, 2, SMALL);
    act_await(w);
    act_flush(w);
    act_finish(w, 4);
    act_flush(w);
    act_stop(w, true);
}

static void
scenario_partial_delivery(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 3; i++)
        act_accept(w, 3, i == 2 ? LARGE : SMALL);
    act_await(w);
    for (int m = 0; m < 3; m++)
        act_settle(w, m, 0, false);
    act_flush(w);
    act_settle(w, 0, 1, false);
    act_settle(w, 1, 2, false);
    act_flush(w);
    act_defer(w, 2, 5000);
    act_settle(w, 0, 2, false);
    act_finish(w, 0);
    act_flush(w);
    act_finish(w, 1);
    act_load(w, 2);
    act_finish(w, 2);
    act_flush(w);
}

static void
scenario_deferral(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 2, i == 3 ? LARGE : SMALL);
    act_await(w);
    act_settle(w, 1, 0, false);
    for (int m = 0; m < 4; m++)
        act_defer(w, m, 60000);
    act_flush(w);
    act_load(w, 0);
    act_load(w, 1);
    act_settle(w, 0, 1, false);
    act_defer(w, 0, 90000);
    act_defer(w, 1, 90000);
    act_flush(w);
    act_load(w, 0);
    act_finish(w, 0);
    act_load(w, 3);
    act_finish(w, 3);
    act_flush(w);
}

static void
scenario_bounce(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 1 + i % 3, i == 2 ? LARGE : SMALL);
    act_await(w);
    act_settle(w, 0, 0, true);
    act_finish(w, 0);
    act_settle(w, 1, 0, true);
    act_flush(w);
    act_settle(w, 1, 1, false);
    act_settle(w, 2, 1, true);
    act_defer(w, 2, 5000);
    act_finish(w, 1);
    act_flush(w);
    act_load(w, 2);
    act_settle(w, 2, 0, true);
    act_settle(w, 2, 2, false);
    act_flush(w);
    act_finish(w, 2);
    act_settle(w, 3, 0, true);
    act_finish(w, 3);
    act_finish_all(w);
    act_flush(w);
    act_stop(w, true);
}

static void
scenario_delay(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 1 + i % 3, i == 2 ? LARGE : SMALL);
    act_await(w);
    act_warn(w, 0, 60000); /* young */
    act_settle(w, 1, 0, true);
    act_flush(w);
    act_warn(w, 1, 60000); /* in files; and with a failure */
    act_defer(w, 2, 60000);
    act_flush(w);
    act_load(w, 2);
    act_warn(w, 2, 60000);
    act_flush(w);
    for (int m = 0; m < 3; m++)
        act_load(w, m);
    act_settle(w, 2, 0, false);
    for (int m = 0; m < 3; m++)
        act_warn(w, m, 90000); /* no more than a new time */
    act_flush(w);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_warn(w, 3, 60000);
    act_warn(w, 0, 120000);
    act_finish(w, 2);
    act_flush(w);
}

/* Failures are reported while other recipients stay open: of journaled mail, of files,
 * twice, over a kill. */
static void
scenario_rounds(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 3, i == 2 ? LARGE : SMALL);
    act_await(w);
    act_settle(w, 0, 0, true);
    act_report(w, 0, 60000); /* journaled */
    act_settle(w, 1, 1, true);
    act_flush(w);
    act_report(w, 1, 60000); /* the mark is durable before */
    act_defer(w, 2, 60000);
    act_flush(w);
    act_load(w, 2);
    act_settle(w, 2, 0, true);
    act_settle(w, 2, 2, false);
    act_report(w, 2, 60000); /* in files */
    act_flush(w);
    act_load(w, 0);
    act_settle(w, 0, 1, true);
    act_report(w, 0, 60000); /* the second round */
    act_settle(w, 3, 0, true);
    act_settle(w, 3, 1, true);
    act_report(w, 3, 60000);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_report(w, 3, 60000); /* again, if its note was lost */
    act_finish(w, 1);
    act_flush(w);
    act_finish_all(w);
    act_flush(w);
}

static void
scenario_materialise(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 6; i++)
        act_accept(w, 1 + i % 3, i == 4 ? LARGE : i == 5 ? MIDDLE : SMALL);
    act_await(w);
    act_settle(w, 2, 0, false);
    act_settle(w, 4, 0, true);
    for (int m = 0; m < 6; m++)
        act_defer(w, m, 60000);
    act_turn(w);
    act_accept(w, 1, SMALL);
    act_await(w);
    act_load(w, 5);
    act_finish(w, 5);
    act_flush(w);
    act_stop(w, false);
}

/* More than the journal holds: what is left behind has to move out. */
static void
scenario_recycle(struct work *w)
{
    act_start(w, 1);
    for (int m = 0; m < 40; m += 4) {
        for (int i = 0; i < 4; i++)
            act_accept(w, 1 + (unsigned)i % 2, LARGEST);
        act_await(w);
        act_finish(w, m);
        act_settle(w, m + 1, 0, m % 8 == 0);
        act_finish(w, m + 2);
        if (m % 8 == 0)
            act_defer(w, m + 3, 60000);
    }
    act_flush(w);
    act_stop(w, true);
}

/* The journal goes round while some mail waits for its turn: it is copied ahead, and
 * gets its marks there. */
static void
scenario_copy(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 1 + i % 3, i == 3 ? LARGE : SMALL);
    act_await(w);
    for (int m = 4; m < 44; m += 4) {
        for (int i = 0; i < 4; i++)
            act_accept(w, 1, LARGEST);
        act_await(w);
        for (int i = 0; i < 4; i++)
            act_finish(w, m + i);
        if (m == 20)
            act_settle(w, 1, 0, true);
        if (m == 24)
            act_finish(w, 0);
        if (m == 28)
            act_load(w, 3);
    }
    act_settle(w, 2, 1, false);
    act_defer(w, 3, 60000);
    act_flush(w);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_finish(w, 1);
    act_flush(w);
}

/* One of the events under which a message may become files: results of each kind, a
 * deferral, another envelope after it. */
static void
disturb(struct work *w, int message, unsigned way)
{
    unsigned next = 1 + way % (RECIPIENTS_MAX - 1);
    switch (way % 5) {
    case 0:
        act_settle(w, message, next, false);
        break;
    case 1:
        act_settle(w, message, next, true);
        break;
    case 2:
        act_defer(w, message, 60000);
        act_load(w, message);
        act_settle(w, message, next, false);
        break;
    case 3:
        act_settle(w, message, next, true);
        act_defer(w, message, 60000);
        break;
    case 4:
        act_settle(w, message, RECIPIENTS_MAX - next, false);
        act_settle(w, message, next, true);
        break;
    }
}

/* Each message from first on at another turn, so that every step of a round of moves has
 * a result that comes under it. */
static void
disturb_each(struct work *w, int first, unsigned count, unsigned shift)
{
    for (unsigned i = 0; i < count; i++) {
        disturb(w, first + (int)i, i + shift);
        act_turn(w);
    }
}

/* Sessions deliver while the message becomes files. */
static void
scenario_moving(struct work *w)
{
    enum { MOVING = 12, FIRST_MS = 97 };
    sim_disk_set_syncing(DISK_SYNC_AIO, 3);
    act_start(w, 1);
    for (unsigned i = 0; i < MOVING; i += INJECTED_MAX)
        act_inject(w, INJECTED_MAX, RECIPIENTS_MAX, SMALL);
    act_notice_injected(w);
    for (int m = 0; m < MOVING; m++)
        act_settle(w, m, m % 2 == 0 ? 0 : 2, m % 3 == 0);
    for (unsigned i = 0; i < FIRST_MS; i++)
        act_turn(w);
    disturb_each(w, 0, MOVING, (unsigned)act_chance(w, 5));
    act_flush(w);
    disturb_each(w, 0, MOVING, 2 + (unsigned)act_chance(w, 5));
    act_flush(w);
    act_load_all(w);
    for (int m = 0; m < MOVING; m += 2)
        act_finish(w, m);
    act_flush(w);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_finish_all(w);
    act_flush(w);
}

/* The journal is nearly full while sessions deliver what stands in its oldest segment,
 * with results that are written, that are pending, and that come under the move. */
static void
scenario_crowd(struct work *w)
{
    enum { ACTIVE = 8, ROUNDS = 6 };
    sim_disk_set_syncing(DISK_SYNC_AIO, 3);
    act_start(w, 1);
    for (unsigned i = 0; i < ACTIVE; i++)
        act_accept(w, RECIPIENTS_MAX, i == 3 ? LARGE : SMALL);
    act_await(w);
    for (int m = 0; m < ACTIVE; m++)
        act_settle(w, m, m % 2 == 0 ? 0 : 2, m % 3 == 0);
    act_flush(w);
    for (int round = 0; round < ROUNDS; round++) {
        int first = (int)w->shadow.count;
        for (unsigned i = 0; i < 4; i++)
            act_accept(w, 1, LARGEST);
        for (int m = 0; m < ACTIVE; m++)
            act_settle(w, m, 1 + (unsigned)(m + round) % 5, (m + round) % 3 == 0);
        act_await(w);
        for (int m = first; m < (int)w->shadow.count; m++)
            act_finish(w, m);
        if (round % 2 == 1)
            disturb_each(w, 0, ACTIVE, (unsigned)round);
    }
    act_flush(w);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_finish_all(w);
    act_flush(w);
}

/* More arrives in a turn than the ring has space for: the journal is crowded by mail whose
 * batches are not durable. */
static void
scenario_young(struct work *w)
{
    sim_disk_set_syncing(DISK_SYNC_AIO, 3);
    act_start(w, 1);
    for (int round = 0; round < 4; round++) {
        int first = (int)w->shadow.count;
        for (unsigned i = 0; i < 14; i++)
            act_accept(w, 1 + i % 2, i % 4 == 3 ? SMALL : LARGEST);
        act_await(w);
        for (int m = first; m < (int)w->shadow.count; m++)
            if (m % 5 != 0)
                act_finish(w, m);
        act_flush(w);
    }
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_finish_all(w);
    act_flush(w);
}

static void
scenario_injection(struct work *w)
{
    act_inject(w, 1, 2, SMALL);
    act_start(w, 1);
    act_inject(w, 1, 1, SMALL);
    act_inject(w, INJECTED_MAX, 3, LARGE);
    act_notice_injected(w);
    act_settle(w, 0, 0, false);
    act_flush(w);
    act_finish(w, 1);
    act_stop(w, true);
    act_inject(w, 1, 1, SMALL);
    act_start(w, 1);
    act_load_all(w);
    act_defer(w, 2, 60000);
    act_finish(w, 3);
    act_flush(w);
}

/* Members of an alias, found anew until the message has files of S5. */
static void
scenario_expansion(struct work *w)
{
    act_inject_alias(w, SMALL);
    act_start(w, 1);
    act_inject_alias(w, SMALL);
    act_inject_alias(w, LARGE);
    act_notice_injected(w);
    act_settle(w, 0, 1, false);
    act_settle(w, 1, 0, true);
    act_flush(w);
    act_settle(w, 0, 0, false);
    act_report(w, 1, 60000);
    act_defer(w, 2, 60000);
    act_flush(w);
    act_stop(w, true);
    act_inject_alias(w, SMALL);
    act_start(w, 1);
    act_load_all(w);
    act_settle(w, 2, 2, false);
    act_finish(w, 0);
    act_finish(w, 3);
    act_flush(w);
}

static void
scenario_operator(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 6; i++)
        act_accept(w, 2, i == 5 ? LARGE : SMALL);
    act_await(w);
    act_hold(w, 0);
    act_settle(w, 1, 0, true);
    act_hold(w, 1);
    act_defer(w, 2, 60000);
    act_flush(w);
    act_remove(w, 2);
    act_remove(w, 3);
    act_hold(w, 5);
    act_flush(w);
    act_load(w, 1);
    act_finish(w, 1);
    act_remove(w, 0);
    act_flush(w);
}

static void
scenario_recovery(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 7; i++)
        act_accept(w, 3, i == 6 ? LARGE : SMALL);
    act_await(w);
    act_settle(w, 0, 0, false);
    act_settle(w, 1, 1, true);
    act_finish(w, 2);
    act_defer(w, 3, 60000);
    act_flush(w);
    act_settle(w, 4, 0, false);
    act_accept(w, 1, SMALL);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_settle(w, 0, 1, true);
    act_finish(w, 4);
    act_accept(w, 1, SMALL);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_finish_all(w);
    act_stop(w, false);
    act_start(w, 1);
}

/* With any file of its name beside the journal, a journaled message is unchanged. */
static void
scenario_plant(struct work *w)
{
    act_start(w, 1);
    act_accept(w, 3, SMALL);
    act_accept(w, 1, LARGE);
    act_accept(w, 2, SMALL);
    act_await(w);
    act_settle(w, 0, 0, false);
    act_flush(w);
    for (int m = 0; m < 3; m++)
        act_plant(w, m);
    act_stop(w, true);
    act_start(w, 1);
    act_load_all(w);
    act_settle(w, 2, 0, true);
    act_defer(w, 2, 60000);
    act_flush(w);
    act_finish_all(w);
    act_flush(w);
    act_stop(w, false);
    act_start(w, 1);
}

static void
scenario_slices(struct work *w)
{
    act_start(w, 1);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 2, i == 3 ? LARGE : SMALL);
    act_await(w);
    act_settle(w, 0, 0, false);
    act_defer(w, 1, 60000);
    act_flush(w);
    act_stop(w, true);
    act_start(w, 2);
    act_load_all(w);
    act_settle(w, 2, 1, true);
    for (unsigned i = 0; i < 4; i++)
        act_accept(w, 1, SMALL);
    act_await(w);
    act_finish(w, 3);
    act_stop(w, true);
    act_start(w, 4);
    act_load_all(w);
    act_defer(w, 2, 60000);
    act_accept(w, 1, SMALL);
    act_await(w);
    act_flush(w);
    act_stop(w, false);
    act_start(w, 1);
    act_load_all(w);
    act_finish_all(w);
    act_flush(w);
}

/* Anything, in any order. */
static void
scenario_anything(struct work *w)
{
    static const size_t sizes[] = {SMALL, SMALL, SMALL, MIDDLE, 2 * MIDDLE, LARGE};
    unsigned steps = 14 + (unsigned)act_chance(w, 14);
    act_start(w, 1u << act_chance(w, 2));
    for (unsigned i = 0; i < steps; i++) {
        int m = act_any(w);
        bool failed = act_chance(w, 3) == 0;
        switch (act_chance(w, 16)) {
        case 0:
        case 1:
        case 2:
            for (uint64_t n = act_chance(w, 3) + 1; n > 0 && w->shadow.count < 12;
                 n--) {
                size_t size = sizes[act_chance(w, 6)];
                act_accept(w, 1 + (unsigned)act_chance(w, 3), size);
            }
            if (act_chance(w, 4) > 0)
                act_await(w);
            break;
        case 3:
        case 4:
        case 5:
            act_settle(w, m, (unsigned)act_chance(w, 3), failed);
            break;
        case 6:
        case 7:
            act_finish(w, m);
            break;
        case 8:
            if (act_chance(w, 3) == 0 && w->shadow.count < 12)
                act_warn(w, m, (int64_t)act_chance(w, 100000));
            else if (act_chance(w, 3) == 0 && w->shadow.count < 12)
                act_report(w, m, (int64_t)act_chance(w, 100000));
            else
                act_defer(w, m, (int64_t)act_chance(w, 100000));
            break;
        case 9:
            act_load(w, m);
            break;
        case 10:
            act_turn(w);
            break;
        case 11:
        case 12:
            act_flush(w);
            break;
        case 13:
            if (act_chance(w, 2) == 0)
                act_hold(w, m);
            else
                act_remove(w, m);
            break;
        case 14:
            if (w->shadow.count < 12)
                act_inject(w, 1 + (unsigned)act_chance(w, INJECTED_MAX), 1,
                           sizes[act_chance(w, 6)]);
            break;
        case 15:
            act_stop(w, act_chance(w, 3) > 0);
            act_start(w, 1u << act_chance(w, 3));
            act_load_all(w);
            break;
        }
    }
    act_flush(w);
}

const struct scenario scenarios[] = {
    {"accept",           scenario_accept,           false, false},
    {"first delivery",   scenario_first_delivery,   false, false},
    {"partial delivery", scenario_partial_delivery, false, false},
    {"deferral",         scenario_deferral,         false, true },
    {"bounce",           scenario_bounce,           false, true },
    {"delay",            scenario_delay,            false, false},
    {"rounds",           scenario_rounds,           false, false},
    {"materialise",      scenario_materialise,      false, false},
    {"recycle",          scenario_recycle,          true,  false},
    {"copy",             scenario_copy,             true,  false},
    {"moving",           scenario_moving,           false, false},
    {"crowd",            scenario_crowd,            true,  false},
    {"young",            scenario_young,            true,  false},
    {"injection",        scenario_injection,        false, false},
    {"expansion",        scenario_expansion,        false, false},
    {"operator",         scenario_operator,         false, false},
    {"recovery",         scenario_recovery,         false, true },
    {"plant",            scenario_plant,            false, false},
    {"slices",           scenario_slices,           false, false},
    {"anything",         scenario_anything,         false, false},
};
const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
