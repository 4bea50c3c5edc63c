/* Leases of a site's transactions and sessions, and the part of a host without them. */
#include "sched/limits/lease.h"

#include "sched/limits/retry.h"

#include <assert.h>
#include <limits.h>

static int
lease_hosts(const struct lease_terms *t)
{
    assert(t->lost >= 0 && t->late >= 0 && t->late < t->members);
    return t->members + t->lost;
}

/* The parts of lost hosts are kept for them. */
static int
lease_limit(const struct lease_terms *t)
{
    int limit = (int)((int64_t)t->sessions * t->members / lease_hosts(t));
    return t->sessions > 0 && limit == 0 ? 1 : limit;
}

static double
lease_interval_us(const struct lease_terms *t)
{
    if (t->rate.amount == 0)
        return 0;
    return (double)t->rate.period_ms * 1000 / t->rate.amount * lease_hosts(t) /
           (t->members - t->late);
}

static int
clip(double number, int most)
{
    return number > most ? most : (int)number;
}

static int
lease_larger(int a, int b)
{
    return a > b ? a : b;
}

/* A host whose transactions in a period are a tenth of its equal part or less need not be
 * paced, and has as many again in advance: all such hosts together use no more than a
 * tenth of a period before its time. */
static bool
lease_is_far(const struct lease_terms *t, double tokens)
{
    double interval_us = lease_interval_us(t);
    return tokens * interval_us * lease_hosts(t) * LEASE_FAR <= BANK_PERIOD_US;
}

/* --- Without a bank ----------------------------------------------------------------- */

/* Those of the limit that cannot be divided go round by the clock. In the last seconds of
 * a turn no session begins: it would end in the next host's turn. */
static int
lease_part(int64_t now_ms, const struct lease_terms *t, bool is_new)
{
    int hosts = lease_hosts(t), odd = t->sessions % hosts;
    int64_t slot = now_ms / LEASE_SLOT_MS;
    bool has_odd = (t->index + slot) % hosts < odd;
    bool is_late = now_ms % LEASE_SLOT_MS >= LEASE_SLOT_MS - LEASE_SLOT_END_MS;
    return t->sessions / hosts + (has_odd && !(is_new && is_late));
}

static struct rate
lease_part_rate(const struct lease_terms *t)
{
    return (struct rate){.amount = t->rate.amount,
                         .burst = 1,
                         .period_ms = t->rate.period_ms * lease_hosts(t)};
}

/* No lease, and no answer either. */
static bool
lease_is_alone(const struct lease *l, int64_t now_ms, const struct lease_terms *t)
{
    return !t->has_bank || (l->due_ms != 0 && now_ms >= l->due_ms + LEASE_PATIENCE_MS);
}

static int
lease_loose(const struct lease_terms *t)
{
    int part = t->sessions / lease_hosts(t);
    return part > 0 ? part : 1;
}

/* --- Questions ---------------------------------------------------------------------- */

static bool
lease_wants(const struct lease *l, const struct lease_terms *t,
            const struct lease_load *load)
{
    if (!t->is_strict)
        return load->need > lease_loose(t) || load->open > lease_loose(t);
    return load->works > 0 || load->open > 0 || l->used > 0;
}

static int
lease_unspent(const struct lease *l)
{
    return l->used < l->tokens ? l->tokens - l->used : 0;
}

static bool
lease_has_sessions(const struct lease *l, int64_t now_ms)
{
    return l->end_ms != 0 && now_ms < l->end_ms + LEASE_PERIOD_MS;
}

/* The part of its wish that it may ask for: in doubt, what it has. */
static int
lease_useful(const struct lease *l, int64_t now_ms, const struct lease_terms *t,
             const struct lease_load *load)
{
    int most = lease_limit(t);
    if (t->late > 0 || now_ms < t->doubt_ms) {
        int had = lease_has_sessions(l, now_ms) ? l->sessions : 0;
        int own = lease_part(now_ms, t, false);
        own = lease_larger(own, lease_larger(had, load->open));
        most = own < most ? own : most;
    }
    return load->need < most ? load->need : most;
}

/* Mail waits, and what it has is in use. A host that gives its session away has none. */
static bool
lease_is_out(const struct lease *l, int64_t now_ms, const struct lease_terms *t,
             const struct lease_load *load)
{
    int sessions = lease_sessions(l, now_ms, t, true);
    bool has_tokens = t->rate.amount == 0 || lease_unspent(l) > 0;
    bool has_sessions =
        sessions >= lease_useful(l, now_ms, t, load) || sessions > load->open;
    return load->works > 0 && l->yields == 0 && !(has_tokens && has_sessions);
}

/* It used all that it had, and asks for as much again: no more than some twenty times in a
 * period. */
static bool
lease_is_growing(const struct lease *l, const struct lease_terms *t)
{
    return t->rate.amount > 0 && lease_unspent(l) == 0 &&
           lease_is_far(t, 2.0 * l->used);
}

void
lease_update(struct lease *l, int64_t now_ms, const struct lease_terms *t,
             const struct lease_load *load)
{
    l->busy = lease_larger(l->busy, load->need);
    int64_t soon_ms = l->sent_ms + (lease_is_growing(l, t) ? 0 : LEASE_SOON_MS);
    if (l->is_asked)
        return;
    if (l->due_ms == 0 && lease_wants(l, t, load)) {
        l->due_ms = now_ms;
        l->is_again = false;
    } else if (!l->is_again && !l->is_refused && now_ms < l->end_ms &&
               soon_ms < l->end_ms && lease_is_out(l, now_ms, t, load)) {
        l->due_ms = soon_ms > now_ms ? soon_ms : now_ms;
        l->is_again = true;
    }
}

int64_t
lease_ask_ms(const struct lease *l, const struct lease_terms *t)
{
    if (l->is_asked || l->due_ms == 0 || !t->has_bank)
        return INT64_MAX;
    return l->due_ms > l->retry_ms ? l->due_ms : l->retry_ms;
}

/* Some time in the first fifth of the next period: those that have waited longest first. */
static int64_t
lease_next_ms(const struct lease *l, uint64_t *random)
{
    int64_t span = LEASE_PERIOD_MS / 5 / (1 + (int64_t)l->behind);
    return l->end_ms + span / 2 +
           (int64_t)(retry_random(random) % (uint64_t)(span / 2 + 1));
}

/* Sessions of the own part that were needed are needed again, or idle sessions would end in each
 * period. While fewer sessions than hosts are allowed, one that others want is given away,
 * and not wanted before they had a chance. */
static int
lease_need(struct lease *l, int64_t now_ms, const struct lease_terms *t,
           const struct lease_load *load)
{
    if (l->yields == 0 && l->seated_ms != 0 && now_ms - l->seated_ms >= LEASE_TURN_MS &&
        lease_limit(t) < lease_hosts(t))
        l->yields = 2;
    int need = lease_useful(l, now_ms, t, load), part = t->sessions / lease_hosts(t);
    if (!l->is_again) {
        need = lease_larger(need, l->busy < part ? l->busy : part);
        l->busy = 0;
    }
    return l->yields > 0 ? 0 : need;
}

static int
lease_want(const struct lease *l, const struct lease_terms *t,
           const struct lease_load *load, bool is_again)
{
    double works = (double)load->works, left = lease_unspent(l);
    double want = is_again ? works - left : works + l->used, more = want + l->used;
    if (!(is_again && left > 0) && lease_is_far(t, more))
        want = more;
    return clip(want > 0 ? want : 0, BANK_COUNT_MAX);
}

/* Whether a first question of this period had no answer. Periods are those of the last
 * answer; without one any question of the last five seconds may be of this period. */
static bool
lease_is_repeated(const struct lease *l, int64_t now_ms)
{
    int64_t failed_ms = l->failed_ms;
    if (failed_ms == 0)
        return false;
    if (l->end_ms == 0)
        return now_ms - failed_ms < LEASE_PERIOD_MS;
    return (now_ms - l->end_ms) / LEASE_PERIOD_MS ==
           (failed_ms - l->end_ms) / LEASE_PERIOD_MS;
}

/* 0 when a first question is repeated: a count that the bank may have for it stays, for
 * two periods at most. */
static int
lease_had(const struct lease *l, int64_t now_ms)
{
    if (now_ms < l->end_ms)
        return l->counted;
    return lease_is_repeated(l, now_ms) ? 0 : -1;
}

bool
lease_ask(struct lease *l, int64_t now_ms, const struct lease_terms *t,
          const struct lease_load *load, uint64_t *random, struct bank_question *q)
{
    bool is_again = l->is_again && now_ms < l->end_ms;
    if (is_again && load->works == 0) {
        l->due_ms = lease_next_ms(l, random);
        l->is_again = false;
        return false;
    }
    if (!is_again && !lease_wants(l, t, load)) {
        l->due_ms = 0;
        return false;
    }
    /* A period may be left out: nothing is counted in it. */
    bool is_same = now_ms < l->end_ms, is_next = now_ms < l->end_ms + LEASE_PERIOD_MS;
    if (!is_same)
        l->before = is_next ? l->counted : 0;
    l->is_again = is_again;
    l->want = t->rate.amount > 0 ? lease_want(l, t, load, is_again) : 0;
    l->need = lease_need(l, now_ms, t, load);
    l->is_asked = true;
    l->sent_ms = now_ms;
    l->used_asked = l->used;
    l->open_asked = load->open;
    int had = lease_had(l, now_ms);
    size_t senders = load->senders > 0 ? load->senders : 1;
    *q =
        (struct bank_question){.interval_us = lease_interval_us(t),
                               .burst = clip(t->rate.burst, BANK_COUNT_MAX),
                               .limit = lease_limit(t),
                               .want = l->want,
                               .weight = clip((double)senders, BANK_WEIGHT_MAX),
                               .again = is_again,
                               .back = had >= 0 || !is_next ? 0 : lease_unspent(l),
                               .before = l->before,
                               .had = had,
                               .open = load->open,
                               .need = l->need,
                               .chance = (double)(retry_random(random) % 1000000) / 1e6,
                               .hosts = lease_hosts(t)};
    return true;
}

/* The rest is spent evenly until the next answer may come. The burst of the group is
 * divided as its transactions are. */
static void
lease_set_pace(struct lease *l, const struct lease_terms *t)
{
    double group =
        BANK_PERIOD_US / (lease_interval_us(t) > 0 ? lease_interval_us(t) : 1);
    int burst = clip((double)t->rate.burst * l->tokens / (group > 1 ? group : 1),
                     BANK_COUNT_MAX);
    int left = lease_unspent(l);
    l->pace = (struct rate){.amount = (uint32_t)left,
                            .burst = burst > 1 ? (uint32_t)burst : 1,
                            .period_ms = l->end_ms + LEASE_PERIOD_MS / 10 - l->sent_ms};
    if (lease_is_far(t, l->tokens)) {
        l->pace = lease_part_rate(t);
        l->pace.burst = burst > 1 ? (uint32_t)burst : 1;
    }
    l->bucket = (struct bucket){0};
}

static void
lease_count_turn(struct lease *l)
{
    l->behind = l->need > 0 && l->sessions == 0 ? l->behind + 1 : 0;
    if (l->yields > 0 && l->counted == 0)
        l->yields--;
    if (l->sessions != 1 || l->unmet == 0)
        l->seated_ms = 0;
    else if (l->seated_ms == 0)
        l->seated_ms = l->sent_ms;
}

void
lease_granted(struct lease *l, const struct lease_terms *t, const struct bank_grant *g,
              uint64_t *random)
{
    if (!l->is_asked)
        return;
    l->is_asked = l->is_own = false;
    l->failed_ms = 0;
    l->end_ms = l->sent_ms + g->left_us / 1000;
    if (!l->is_again) { /* those begun since were given back already */
        l->used -= l->used_asked;
        l->tokens = 0;
    }
    l->tokens += g->tokens;
    l->sessions = g->sessions;
    l->counted = g->counted;
    l->unmet = g->unmet;
    lease_set_pace(l, t);
    bool is_short = g->tokens < l->want || g->sessions < l->need;
    int64_t again_ms = l->sent_ms + LEASE_AGAIN_MS;
    if (!l->is_again)
        lease_count_turn(l);
    l->is_refused = l->is_again && is_short;
    l->is_again = !l->is_again && is_short && again_ms < l->end_ms;
    l->due_ms = l->is_again ? again_ms : lease_next_ms(l, random);
}

void
lease_failed(struct lease *l, int64_t now_ms)
{
    if (!l->is_asked)
        return;
    l->is_asked = false;
    l->retry_ms = now_ms + LEASE_RETRY_MS;
    if (!l->is_again) {
        l->failed_ms = l->sent_ms;
        return;
    }
    /* It may have been answered with less than the first. */
    l->counted = l->counted < l->open_asked ? l->counted : l->open_asked;
    l->sessions = l->sessions < l->open_asked ? l->sessions : l->open_asked;
}

/* --- Limits --------------------------------------------------------------------------- */

int
lease_sessions(const struct lease *l, int64_t now_ms, const struct lease_terms *t,
               bool is_new)
{
    if (t->sessions == 0)
        return INT_MAX;
    bool has_lease = lease_has_sessions(l, now_ms);
    int leased = has_lease ? l->sessions : 0;
    if (!t->is_strict)
        return leased > lease_loose(t) ? leased : lease_loose(t);
    if (has_lease)
        return leased;
    return lease_is_alone(l, now_ms, t) ? lease_part(now_ms, t, is_new) : 0;
}

static int64_t
lease_tokens_until_ms(const struct lease *l)
{
    return l->end_ms + LEASE_PERIOD_MS / 4;
}

static bool
lease_has_tokens(const struct lease *l, int64_t now_ms)
{
    return l->end_ms != 0 && now_ms < lease_tokens_until_ms(l);
}

/* Hosts lose their leases together: each begins with an empty bucket, and at a time of its
 * own. */
static void
lease_begin_part(struct lease *l, int64_t now_ms, const struct lease_terms *t)
{
    if (l->is_own)
        return;
    l->is_own = true;
    l->bucket = (struct bucket){.full_at_us =
                                    now_ms * 1000 +
                                    (int64_t)(lease_interval_us(t) * (t->index + 1) *
                                              (t->members - t->late) / lease_hosts(t))};
}

int64_t
lease_ready_ms(struct lease *l, int64_t now_ms, const struct lease_terms *t)
{
    if (t->rate.amount == 0)
        return INT64_MIN;
    if (lease_has_tokens(l, now_ms)) {
        int64_t ready = l->used < l->tokens
                            ? bucket_ready_ms(&l->bucket, &l->pace, now_ms)
                            : INT64_MAX;
        return ready < lease_tokens_until_ms(l) ? ready : lease_tokens_until_ms(l);
    }
    if (!lease_is_alone(l, now_ms, t))
        return (l->due_ms != 0 ? l->due_ms : now_ms) + LEASE_PATIENCE_MS;
    struct rate part = lease_part_rate(t);
    lease_begin_part(l, now_ms, t);
    return bucket_ready_ms(&l->bucket, &part, now_ms);
}

uint32_t
lease_passes(const struct lease *l, int64_t now_ms, int64_t until_ms,
             const struct lease_terms *t)
{
    struct rate part = lease_part_rate(t);
    if (t->rate.amount == 0)
        return RATE_AMOUNT_MAX;
    if (!lease_has_tokens(l, now_ms))
        return bucket_passes(&l->bucket, &part, now_ms, until_ms);
    uint32_t left = (uint32_t)lease_unspent(l);
    uint32_t passes =
        left > 0 ? bucket_passes(&l->bucket, &l->pace, now_ms, until_ms) : 0;
    return passes < left ? passes : left;
}

void
lease_take(struct lease *l, int64_t now_ms, const struct lease_terms *t)
{
    struct rate part = lease_part_rate(t);
    if (t->rate.amount == 0)
        return;
    bool has_tokens = lease_has_tokens(l, now_ms);
    if (has_tokens && l->tokens > 0)
        bucket_take(&l->bucket, &l->pace, now_ms);
    else if (!has_tokens)
        bucket_take(&l->bucket, &part, now_ms);
    if (l->used < BANK_COUNT_MAX)
        l->used++;
}

int64_t
lease_wake_ms(const struct lease *l, int64_t now_ms, const struct lease_terms *t)
{
    int64_t wake = INT64_MAX, slot_ms = now_ms / LEASE_SLOT_MS * LEASE_SLOT_MS;
    const int64_t times[] = {
        l->end_ms + LEASE_PERIOD_MS, l->due_ms != 0 ? l->due_ms + LEASE_PATIENCE_MS : 0,
        slot_ms + LEASE_SLOT_MS - LEASE_SLOT_END_MS, slot_ms + LEASE_SLOT_MS};
    bool is_part = t->is_strict && t->sessions % lease_hosts(t) > 0;
    for (size_t i = 0; i < (is_part ? 4 : 2); i++)
        if (times[i] > now_ms && times[i] < wake)
            wake = times[i];
    return wake;
}

void
lease_shift(struct lease *l, int64_t delta_ms)
{
    int64_t *times[] = {&l->sent_ms, &l->due_ms,    &l->retry_ms,
                        &l->end_ms,  &l->failed_ms, &l->seated_ms};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
        if (*times[i] != 0)
            *times[i] += delta_ms;
    bucket_shift(&l->bucket, delta_ms);
}
