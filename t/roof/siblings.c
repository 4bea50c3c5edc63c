/* Hosts that are lost or cut off, and adopted by others. */
#include "t/roof/siblings.h"

#include "queue/copies/adoption.h"
#include "t/roof/editor.h"
#include "t/roof/engine.h"
#include "t/roof/fleet_internal.h"
#include "t/roof/group.h"
#include "t/roof/group_moves.h"
#include "t/roof/group_wire.h"
#include "t/roof/host.h"
#include "t/roof/law_adoption.h"
#include "t/roof/lost_disk.h"
#include "t/roof/network.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/world_internal.h"
#include "t/sim/sim_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOK_MS = 500,
    LOOKS_MAX = 120,
    CUT_MAX_MS = 4 * MINUTE_MS,
    AWAY_MAX_MS = 3 * MINUTE_MS,
    ORDER_MAX_MS = MINUTE_MS,
    ORDER_AGAIN_MS = 20 * SECOND_MS,
    MIDDLE_MAX_MS = 400, /* of an adoption */
    WAIT_MS = 4 * MINUTE_MS
};

enum cut { CUT_NOT, CUT_ENGINE, CUT_GROUP, CUT_ALL, CUTS };

static struct {
    uint64_t chance;
    bool is_there, is_good;
    struct kin {
        enum cut cut;
        bool is_gone; /* for good */
        struct roof_timer back, uncut, order, middle, unheard;
    } all[GROUP_MEMBERS_MAX];
    /* The next to lose its disk, once the engine has all. */
    unsigned loser, looks;
    struct roof_timer look;
} siblings;

static unsigned
draw(unsigned limit)
{
    return roof_below_of(&siblings.chance, limit);
}

void
siblings_settle(bool with[FEATURES])
{
    static const enum feature others[] = {WITH_FRAGMENTS, WITH_UPGRADES, WITH_COPIES,
                                          WITH_LOST_DISK, WITH_DAY};
    if (!with[WITH_SIBLINGS])
        return;
    with[WITH_ENGINE] = with[WITH_GROUP] = true;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        with[others[i]] = false;
}

static unsigned
number_of(const struct kin *s)
{
    return (unsigned)(s - siblings.all);
}

static struct host *
host_of(unsigned number)
{
    struct host *h = &host;
    while (number > 0 && h != group_host(number))
        h = host_next(h);
    return h;
}

/* One that is back after it was adopted waits for its last session. */
static bool
is_well(const struct kin *s)
{
    const struct host *h = host_of(number_of(s));
    if (s->is_gone || !siblings.is_there)
        return true;
    if (s->cut != CUT_NOT || !h->running)
        return false;
    struct adoption_state state = adoption_state(h->daemon.copies.adoption);
    return state.is_ours && !state.is_comparing;
}

bool
siblings_are_well(void)
{
    for (unsigned i = 0; i < group_count(); i++)
        if (!is_well(&siblings.all[i]))
            return false;
    return true;
}

bool
siblings_is_gone(unsigned number)
{
    return siblings.all[number].is_gone;
}

int64_t
siblings_wait_ms(void)
{
    return siblings.is_there ? WAIT_MS : 0;
}

/* --- Cut off --- */

static bool
is_cut_from(int number, const struct net_address *other)
{
    enum cut cut = number >= 0 ? siblings.all[number].cut : CUT_NOT;
    bool is_redis = other->ip[0] == 10 && other->ip[1] == 0 && other->ip[2] == 4;
    switch (cut) {
    case CUT_ENGINE:
        return is_redis && other->ip[3] == 9;
    case CUT_GROUP:
        return is_redis || law_adoption_host(other) >= 0;
    case CUT_ALL:
        return true;
    case CUT_NOT:
    case CUTS:
        break;
    }
    return false;
}

static bool
is_cut(const struct net_address *a, const struct net_address *b)
{
    int one = law_adoption_host(a), other = law_adoption_host(b);
    return one != other && (is_cut_from(one, b) || is_cut_from(other, a));
}

static void
on_uncut(void *context)
{
    struct kin *s = context;
    if (s->cut == CUT_NOT)
        return;
    s->cut = CUT_NOT;
    roof_timer_stop(&s->uncut);
    roof_timer_stop(&s->unheard);
    roof_note("relay%u: is not cut off any more", number_of(s));
}

static void
on_unheard(void *context)
{
    struct kin *s = context;
    char name[16];
    snprintf(name, sizeof(name), "relay%u", number_of(s));
    group_moves_cut(name);
    roof_timer_start(&s->unheard, GROUP_WIRE_AWAY_MS, on_unheard, s);
}

static void
cut_off(struct kin *s)
{
    static const char *const from[] = {"", "the engine", "the engine and the group",
                                       "everything"};
    if (s->cut != CUT_NOT || siblings.is_good)
        return;
    s->cut = (enum cut)(1 + draw(CUTS - 1));
    roof_note("relay%u: is cut off from %s", number_of(s), from[s->cut]);
    roof_timer_start(&s->uncut,
                     roof_between_of(&siblings.chance, SECOND_MS, CUT_MAX_MS), on_uncut,
                     s);
    if (s->cut != CUT_ENGINE)
        roof_timer_start(&s->unheard, GROUP_WIRE_AWAY_MS, on_unheard, s);
}

void
siblings_cut_engine(unsigned number, bool is_cut_off)
{
    siblings.all[number].cut = is_cut_off ? CUT_ENGINE : CUT_NOT;
    roof_note("relay%u: the engine is %s", number,
              is_cut_off ? "out of its reach" : "in its reach again");
}

void
siblings_slow_disk(unsigned number, int64_t spread_ms)
{
    host_enter(host_of(number));
    sim_disk_set_sync_spread(spread_ms, roof_random());
    host_leave();
}

/* --- Orders --- */

void
siblings_order(unsigned to, unsigned of)
{
    char line[80];
    const struct host *h = group_host(to);
    snprintf(line, sizeof(line), "{\"command\":\"cluster-adopt\",\"host\":\"relay%u\"}",
             of);
    if (h->running && !h->leaves && to != of)
        operator_tell(h, line);
}

/* Any host that runs, but for the one that is meant. */
static void
order_of(struct kin *s)
{
    siblings_order(draw(group_count()), number_of(s));
}

static void
on_order(void *context)
{
    struct kin *s = context;
    char name[16];
    snprintf(name, sizeof(name), "relay%u", number_of(s));
    if (!siblings.is_good || (s->is_gone && engine_copies_of(name) > 0))
        order_of(s);
    if (!siblings.is_good && draw(2) == 0)
        order_of(s);
    if (siblings.is_good && s->is_gone)
        roof_timer_start(&s->order, ORDER_AGAIN_MS, on_order, s);
}

static void
order_later(struct kin *s)
{
    roof_timer_start(&s->order, roof_between_of(&siblings.chance, 0, ORDER_MAX_MS),
                     on_order, s);
}

/* --- Lost --- */

static void
on_back(void *context)
{
    struct kin *s = context;
    struct member *m = fleet_member(host_of(number_of(s)));
    roof_timer_stop(&s->back);
    if (m == NULL || s->is_gone || !m->is_away)
        return;
    m->is_away = false;
    fleet_start(m, 0);
}

/* One of them stays, and so does the first, to which the judge listens. */
static bool
may_go(const struct kin *s)
{
    unsigned left = 0;
    for (unsigned i = 0; i < group_count(); i++)
        left += !siblings.all[i].is_gone;
    return number_of(s) > 0 && left > 2;
}

static void
lose(struct kin *s)
{
    unsigned number = number_of(s);
    struct host *h = host_of(number);
    struct member *m = fleet_member(h);
    int64_t away_ms =
        draw(2) == 0 ? 0 : roof_between_of(&siblings.chance, 0, AWAY_MAX_MS);
    s->is_gone = may_go(s) && draw(2) == 0;
    roof_note("relay%u: its disk is lost%s", number, s->is_gone ? " for good" : "");
    law_adoption_lost(number);
    if (m == NULL) {
        trouble_end_host(false);
        if (away_ms > 0)
            trouble_start_later(away_ms);
    } else {
        host_kill(h, false);
        h->stopped(h);
        if (s->is_gone || away_ms > 0)
            m->is_away = true;
        if (away_ms > 0 && !s->is_gone)
            roof_timer_start(&s->back, away_ms, on_back, s);
    }
    lost_disk_empty(h);
    if (s->is_gone || draw(2) == 0)
        order_later(s);
}

static bool
may_lose(const struct kin *s)
{
    const struct host *h = host_of(number_of(s));
    return h->running && !h->leaves && s->cut == CUT_NOT && engine_has_all();
}

/* Soon, when mail waits. */
static void
on_look(void *context)
{
    struct kin *s = &siblings.all[siblings.loser];
    (void)context;
    if (siblings.is_good || siblings.looks == 0)
        return;
    siblings.looks--;
    if (may_lose(s))
        lose(s);
    else
        roof_timer_start(&siblings.look, LOOK_MS, on_look, NULL);
}

/* --- In the middle of an adoption --- */

static void
on_middle(void *context)
{
    struct kin *s = context;
    struct host *h = host_of(number_of(s));
    if (siblings.is_good || !h->running || h->leaves)
        return;
    switch (draw(4)) {
    case 0:
        cut_off(s);
        break;
    case 1:
        if (may_lose(s)) {
            lose(s);
            break;
        }
        /* fall through */
    default:
        roof_note("relay%u: ends in the middle", number_of(s));
        h->dies_after = 1 + draw(30);
        break;
    }
}

void
siblings_line(unsigned number, struct text line)
{
    static const char begins[] = "copies: adopting the mail of ";
    struct kin *s = &siblings.all[number];
    if (!siblings.is_there || siblings.is_good || !text_starts(line, text_from(begins)))
        return;
    if (draw(2) == 0)
        roof_timer_start(&s->middle, draw(MIDDLE_MAX_MS), on_middle, s);
}

/* ---------------------------------------------------------------------------------- */

void
siblings_act(void)
{
    struct kin *s = &siblings.all[draw(group_count())];
    switch (draw(4)) {
    case 0:
        cut_off(s);
        if (draw(3) == 0)
            order_later(s);
        break;
    case 1:
        on_uncut(s);
        break;
    default:
        siblings.loser = number_of(s);
        siblings.looks = LOOKS_MAX;
        roof_timer_start(&siblings.look, LOOK_MS, on_look, NULL);
        break;
    }
}

void
siblings_become_good(void)
{
    siblings.is_good = true;
    for (unsigned i = 0; i < group_count() && siblings.is_there; i++) {
        struct kin *s = &siblings.all[i];
        on_uncut(s);
        on_back(s);
        if (s->is_gone)
            roof_timer_start(&s->order, ORDER_AGAIN_MS, on_order, s);
    }
}

/* Also with a time that no host is silent for. */
void
siblings_begin(void)
{
    static char line[64];
    static const unsigned after_s[] = {0, 5, 10, 30, 60};
    siblings.chance = roof_fork("siblings");
    siblings.is_there = true;
    snprintf(line, sizeof(line), "adopt_after = %u\n", after_s[draw(5)]);
    editor_add(line);
    editor_keep("adopt_after");
    network_on_cut(is_cut);
}
