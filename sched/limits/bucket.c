/* Token buckets as times, and a rate learnt from refusals.
 *
 * A bucket is one time (GCRA): that at which it would be full again. Each transaction
 * moves it by the time of one; a transaction conforms while the bucket, at that time,
 * would miss at most burst - 1 of them. So nothing has to be refilled by a timer, and a
 * restart keeps a bucket by keeping a number.
 *
 * The learnt rate is a machine of phases (bucket.h). The accepted rate is measured
 * between two refusals: at both the site's own bucket is empty, so its depth does not
 * count. */
#include "sched/limits/bucket.h"

#include <assert.h>

enum {
    SLOT_MS = 1000,
    STEP_MS = 1000,
    REST_MS = 3000,
    BURST_SHARE = 100,  /* 1/100 of a second: a late wake-up may catch up this */
    MEASURED = 4,       /* accepted; fewer are no measurement */
    SEARCH_RATE = 1000, /* from which it is searched when little has passed */
    HOLD_MESSAGES = 100 /* a hold of slow sites is counted in messages, but */
};
enum { SLOW_MS = 60000 }; /* no step, rest or first hold lasts longer */

#define DAY_MS  INT64_C(86400000)
#define SPAN_MS INT64_C(1000000) /* rates count transactions in this time */

static bool
period_parse(struct text t, int64_t *period_ms)
{
    static const struct {
        struct text name;
        int64_t ms;
    } units[] = {
        {TEXT("s"),   1000   },
        {TEXT("m"),   60000  },
        {TEXT("min"), 60000  },
        {TEXT("h"),   3600000},
        {TEXT("d"),   DAY_MS },
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (text_equal_nocase(t, units[i].name)) {
            *period_ms = units[i].ms;
            return true;
        }
    }
    return false;
}

bool
bucket_rate_parse(struct text t, struct rate *out)
{
    static const struct text burst = {"burst=", 6};
    struct text rest = text_trim(t), amount, period, option;
    uint64_t value;
    if (text_equal_nocase(rest, TEXT("none")) || text_equal(rest, TEXT("0"))) {
        *out = (struct rate){.burst = 1, .period_ms = 1000};
        return true;
    }
    if (!text_cut(&rest, '/', &amount) || !text_cut(&rest, ',', &period))
        return false;
    struct rate r;
    if (!text_number(text_trim(amount), RATE_AMOUNT_MAX, &value) || value == 0 ||
        !period_parse(text_trim(period), &r.period_ms))
        return false;
    r.amount = (uint32_t)value;
    /* 600/m must not let 600 go in the first second. */
    r.burst = (uint32_t)(value * 1000 / (uint64_t)r.period_ms);
    if (r.burst == 0)
        r.burst = 1;
    if (rest.at != NULL) {
        option = text_trim(rest);
        if (!text_starts_nocase(option, burst) ||
            !text_number(text_after(option, burst.length), RATE_AMOUNT_MAX, &value) ||
            value == 0)
            return false;
        r.burst = (uint32_t)value;
    }
    *out = r;
    return true;
}

/* The duration of `count` transactions; below 10^17. */
static int64_t
span_us(const struct rate *r, uint32_t count)
{
    assert(r->amount <= LEARNT_MAX && count <= RATE_AMOUNT_MAX);
    return r->period_ms * 1000 * count / r->amount;
}

/* The time of GCRA, but not later than that of an empty bucket. */
static int64_t
due_us(const struct bucket *b, const struct rate *r, int64_t now_us)
{
    int64_t empty = now_us + span_us(r, r->burst);
    return b->full_at_us > empty ? empty : b->full_at_us;
}

int64_t
bucket_ready_ms(struct bucket *b, const struct rate *r, int64_t now_ms)
{
    if (r->amount == 0)
        return INT64_MIN;
    assert(r->burst >= 1);
    /* Were it not kept, the bucket would be as empty at each later question. */
    b->full_at_us = due_us(b, r, now_ms * 1000);
    int64_t ready = b->full_at_us - span_us(r, r->burst - 1);
    /* Rounded up: a wake-up a fraction of a millisecond early would find nothing. */
    return ready / 1000 + (ready % 1000 > 0);
}

void
bucket_take(struct bucket *b, const struct rate *r, int64_t now_ms)
{
    if (r->amount == 0)
        return;
    int64_t now_us = now_ms * 1000, due = due_us(b, r, now_us);
    uint64_t part = b->part < r->amount ? b->part : 0;
    /* Within a millisecond the bucket counts as just empty: a timer is no more precise,
     * and each of its delays would otherwise lower the rate. */
    if (due <= now_us - 1000) { /* full */
        due = now_us;
        part = 0;
    }
    /* 7/s is no whole number of microseconds: the remainder is carried, or the error
     * of a day would be seconds. */
    uint64_t period_us = (uint64_t)r->period_ms * 1000;
    part += period_us % r->amount;
    b->full_at_us = due + (int64_t)(period_us / r->amount + part / r->amount);
    b->part = (uint32_t)(part % r->amount);
}

uint32_t
bucket_passes(const struct bucket *b, const struct rate *r, int64_t now_ms,
              int64_t until_ms)
{
    if (r->amount == 0)
        return RATE_AMOUNT_MAX;
    assert(until_ms >= now_ms && until_ms - now_ms <= DAY_MS);
    int64_t now_us = now_ms * 1000, due = due_us(b, r, now_us);
    int64_t parts = (until_ms * 1000 - (due > now_us ? due : now_us)) * r->amount;
    int64_t period_us = r->period_ms * 1000, passes = r->burst + parts / period_us;
    if (parts % period_us < 0)
        passes--;
    if (passes < 0)
        return 0;
    return passes > RATE_AMOUNT_MAX ? RATE_AMOUNT_MAX : (uint32_t)passes;
}

void
bucket_shift(struct bucket *b, int64_t delta_ms)
{
    if (b->full_at_us != 0)
        b->full_at_us += delta_ms * 1000;
}

/* A rate below LEARNT_MIN would never be measured again: no transaction would come. */
static uint32_t
bucket_clip(int64_t rate)
{
    return rate < LEARNT_MIN ? LEARNT_MIN
                             : (uint32_t)(rate > LEARNT_MAX ? LEARNT_MAX : rate);
}

static uint32_t
share(uint32_t rate, uint32_t per_mille)
{
    return bucket_clip((int64_t)rate * per_mille / 1000);
}

static int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The duration of that many transactions at that rate, a minute at most. */
static int64_t
messages_ms(uint32_t rate, int64_t count)
{
    assert(rate > 0);
    int64_t span = count * SPAN_MS / rate;
    return span > SLOW_MS ? SLOW_MS : span;
}

static struct rate
in_force(const struct learnt_rate *l)
{
    return (struct rate){.amount = l->rate,
                         .burst = 1 + l->rate / 1000 / BURST_SHARE,
                         .period_ms = SPAN_MS};
}

static void
slots_advance(struct learnt_rate *l, int64_t now_ms)
{
    int64_t gone = (now_ms - l->slot_at_ms) / SLOT_MS;
    if (gone < 0 || gone >= LEARNT_SLOTS) {
        for (int i = 0; i < LEARNT_SLOTS; i++)
            l->slots[i] = 0;
        l->slot_at_ms = now_ms;
        return;
    }
    l->slot_at_ms += gone * SLOT_MS;
    for (; gone > 0; gone--) {
        for (int i = LEARNT_SLOTS - 1; i > 0; i--)
            l->slots[i] = l->slots[i - 1];
        l->slots[0] = 0;
    }
}

/* Transactions accepted in the last seconds; *steady: some in each of them. After a
 * rest the number is too low; it is never too high, except for the depth of the site's
 * bucket. */
static uint32_t
recent(struct learnt_rate *l, int64_t now_ms, bool *steady)
{
    int64_t sum = 0;
    slots_advance(l, now_ms);
    *steady = true;
    for (int i = 0; i < LEARNT_SLOTS; i++) {
        sum += l->slots[i];
        *steady = *steady && l->slots[i] > 0;
    }
    return bucket_clip(sum * SPAN_MS / (LEARNT_SLOTS * SLOT_MS));
}

static int64_t
hold_min_ms(const struct learnt_rate *l)
{
    return larger(LEARNT_HOLD_MIN_MS, messages_ms(l->known, HOLD_MESSAGES));
}

static void
bucket_enter(struct learnt_rate *l, enum learnt_phase phase, uint32_t rate,
             int64_t next_at_ms)
{
    l->phase = phase;
    l->rate = rate;
    l->next_at_ms = next_at_ms;
    l->used = 0;
}

/* The site's bucket is empty now, and so is ours. */
static void
bucket_empty(struct learnt_rate *l, int64_t now_ms)
{
    struct rate r = in_force(l);
    l->bucket = (struct bucket){.full_at_us = now_ms * 1000 + span_us(&r, r.burst)};
}

static void
bucket_rest(struct learnt_rate *l, uint32_t known, int64_t hold_ms, int64_t now_ms)
{
    l->known = known;
    l->next_hold_ms = hold_ms;
    bucket_enter(l, LEARNT_REST, share(known, 700),
                 now_ms + larger(REST_MS, messages_ms(known, 3)));
    bucket_empty(l, now_ms);
}

static int64_t
step_ms(const struct learnt_rate *l)
{
    return larger(STEP_MS, messages_ms(l->rate, 2));
}

/* Starts from a rate that surely passes; or from nothing, when a site that was shut may
 * be open. */
static void
search(struct learnt_rate *l, uint32_t rate, int64_t now_ms)
{
    l->step = LEARNT_STEP_MAX;
    l->probed = 0;
    l->hold_ms = 0;
    l->known = l->rate = rate; /* step_ms() reads it */
    bucket_enter(l, LEARNT_SEARCH, rate, now_ms + step_ms(l));
}

static void
refused_first(struct learnt_rate *l, int64_t now_ms)
{
    bool steady;
    uint32_t rate = recent(l, now_ms, &steady);
    l->begun_ms = now_ms;
    /* Only transactions accepted in each of the last seconds are a measurement. After a
     * rest the number is too low, and when nothing was accepted there is none: the rate
     * is searched from there, or from one that is slow, but soon doubled. */
    if (steady) {
        bucket_rest(l, rate, 0, now_ms);
    } else {
        uint32_t least = share(rate, 700);
        search(l, least > SEARCH_RATE ? least : SEARCH_RATE, now_ms);
        bucket_empty(l, now_ms);
    }
}

/* Much more than the known rate passed: the limit may be higher still. */
static bool
is_find(uint32_t known, uint32_t before)
{
    return before > 0 && (int64_t)known * 4 > (int64_t)before * 5;
}

/* The site refused a rate that was thought to pass. So at most the rate between the two
 * refusals passes; this may be too low when its bucket was full in between. Hence the
 * rate does not fall below one that was once held for long, nor far in one step, unless
 * that rate is refused itself. */
static void
refused_below(struct learnt_rate *l, uint32_t passed, int64_t now_ms)
{
    uint32_t least = share(l->rate, l->phase == LEARNT_REST || l->shut ? 500 : 700);
    if (l->probed > 0 && l->rate > l->probed && !l->shut)
        least = l->probed + (l->rate - l->probed) / 4;
    uint32_t known = passed > least ? passed : least;
    known = known > l->rate ? l->rate : known;
    if (known < l->probed)
        l->probed = known;
    bucket_rest(l, known, is_find(known, l->probed) ? hold_min_ms(l) : l->hold_ms,
                now_ms);
}

/* The search has hardly begun: half the rate, and the measurement goes on. */
static void
refused_early(struct learnt_rate *l, int64_t now_ms)
{
    search(l, share(l->rate, 500), now_ms);
    bucket_empty(l, now_ms);
}

/* The rate before the last step passed, or the depth of the site's bucket did: in that
 * case the next lower rate is refused. */
static void
refused_above(struct learnt_rate *l, uint32_t passed, int64_t now_ms)
{
    uint32_t known = l->before > l->known ? l->before : l->known;
    known = passed > known ? passed : known;
    l->hold_ms =
        l->hold_ms * 2 > LEARNT_HOLD_MAX_MS ? LEARNT_HOLD_MAX_MS : l->hold_ms * 2;
    bucket_rest(l, known, is_find(known, l->known) ? hold_min_ms(l) : l->hold_ms,
                now_ms);
}

/* One less, because the site may have had up to one token left at the last refusal. */
static uint32_t
passed_between(const struct learnt_rate *l, int64_t now_ms)
{
    int64_t span = larger(now_ms - l->since_ms, 1);
    return bucket_clip(l->accepted == 0 ? 0
                                        : (l->accepted - INT64_C(1)) * SPAN_MS / span);
}

/* One step up; below half use the rate is not the limit. */
static void
raise(struct learnt_rate *l, int64_t now_ms)
{
    int64_t length = step_ms(l);
    if ((int64_t)l->used * SPAN_MS * 2 >= (int64_t)l->rate * length) {
        l->before = l->rate;
        /* With long steps, at slow sites, it is doubled in a minute, too. */
        uint32_t least = length > SLOW_MS / 8 ? (uint32_t)(length * 1000 / SLOW_MS) : 0;
        uint32_t step = l->step > least ? l->step : least;
        uint32_t up = l->rate / 1000 * step + l->rate % 1000 * step / 1000;
        l->rate += up > 0 ? up : 1;
        /* Ever faster: a limit that was lifted is found in minutes, and one that still
         * stands is passed by 1 % first. */
        if (l->phase == LEARNT_PROBE)
            l->step = l->step < 250 ? l->step * 2 : 500;
    }
    l->used = 0;
    l->next_at_ms = now_ms + step_ms(l);
    if (l->rate > LEARNT_MAX)
        bucket_learnt_init(l);
}

static void
probe(struct learnt_rate *l, int64_t now_ms)
{
    if (l->probed == 0 || is_find(l->known, l->probed))
        l->hold_ms = hold_min_ms(l);
    l->probed = l->known;
    l->before = l->rate;
    l->step = 10;
    bucket_enter(l, LEARNT_PROBE, l->rate, now_ms + step_ms(l));
}

static void
held(struct learnt_rate *l, int64_t now_ms)
{
    if (l->hold_ms == 0)
        l->hold_ms = hold_min_ms(l);
    bucket_enter(l, LEARNT_HELD, share(l->known, 970),
                 now_ms + larger(l->next_hold_ms, hold_min_ms(l)));
}

static bool
learnt_is_over(const struct learnt_rate *l, int64_t now_ms)
{
    return l->phase == LEARNT_NONE || now_ms - l->refused_at_ms >= LEARNT_CLEAN_MS;
}

static void
bucket_advance(struct learnt_rate *l, int64_t now_ms)
{
    if (l->phase != LEARNT_NONE && learnt_is_over(l, now_ms))
        bucket_learnt_init(l);
    if (l->phase == LEARNT_NONE || now_ms < l->next_at_ms)
        return;
    switch (l->phase) {
    case LEARNT_NONE:
        break;
    case LEARNT_SEARCH:
    case LEARNT_PROBE:
        raise(l, now_ms);
        break;
    case LEARNT_REST:
        if (l->known == LEARNT_MIN)
            search(l, l->known, now_ms);
        else
            held(l, now_ms);
        break;
    case LEARNT_HELD:
        probe(l, now_ms);
        break;
    }
}

/* Nothing passed since the last refusal: a limit for a whole minute or hour may be used
 * up. Then a lower rate does not help, but waiting does; the site's grant is the number
 * that passes until the next refusal, including this pause. */
static void
refused_shut(struct learnt_rate *l, int64_t now_ms)
{
    int64_t pause = l->pause_ms * 2;
    l->pause_ms = pause > LEARNT_PAUSE_MAX_MS ? LEARNT_PAUSE_MAX_MS : pause;
    l->refused_at_ms = now_ms;
    l->shut = true;
    bucket_rest(l, l->known, l->next_hold_ms, now_ms);
    l->next_at_ms += l->pause_ms;
}

void
bucket_learnt_init(struct learnt_rate *l)
{
    *l = (struct learnt_rate){0};
}

void
bucket_learnt_accepted(struct learnt_rate *l, int64_t now_ms)
{
    slots_advance(l, now_ms);
    l->slots[0]++;
    if (l->accepted < UINT32_MAX)
        l->accepted++;
}

void
bucket_learnt_refused(struct learnt_rate *l, int64_t now_ms)
{
    /* It is of a transaction that was under way at the last refusal: no news. */
    if (l->phase != LEARNT_NONE && now_ms - l->refused_at_ms < LEARNT_PAUSE_MS)
        return;
    if (l->phase != LEARNT_NONE && l->accepted == 0) {
        refused_shut(l, now_ms);
        return;
    }
    bool is_measured = l->phase != LEARNT_SEARCH || l->accepted >= MEASURED;
    uint32_t passed = l->phase == LEARNT_NONE ? 0 : passed_between(l, now_ms);
    switch (l->phase) {
    case LEARNT_NONE:
        refused_first(l, now_ms);
        break;
    case LEARNT_SEARCH:
        if (is_measured)
            refused_below(l, passed, now_ms);
        else
            refused_early(l, now_ms);
        break;
    case LEARNT_REST:
    case LEARNT_HELD:
        refused_below(l, passed, now_ms);
        break;
    case LEARNT_PROBE:
        refused_above(l, passed, now_ms);
        break;
    }
    l->refused_at_ms = now_ms;
    l->pause_ms = LEARNT_PAUSE_MS;
    l->shut = false;
    if (!is_measured)
        return;
    l->since_ms = now_ms;
    l->accepted = 0;
}

int64_t
bucket_learnt_ready_ms(struct learnt_rate *l, int64_t now_ms)
{
    bucket_advance(l, now_ms);
    struct rate r = in_force(l);
    int64_t ready = bucket_ready_ms(&l->bucket, &r, now_ms);
    return l->phase == LEARNT_NONE ? ready
                                   : larger(ready, l->refused_at_ms + l->pause_ms);
}

uint32_t
bucket_learnt_rate(const struct learnt_rate *l, int64_t now_ms)
{
    return learnt_is_over(l, now_ms) ? 0 : l->rate;
}

uint32_t
bucket_learnt_passes(const struct learnt_rate *l, int64_t now_ms, int64_t until_ms)
{
    struct rate r = in_force(l);
    return bucket_passes(&l->bucket, &r, now_ms, until_ms);
}

void
bucket_learnt_take(struct learnt_rate *l, int64_t now_ms)
{
    struct rate r = in_force(l);
    bucket_take(&l->bucket, &r, now_ms);
    l->used++;
}

void
bucket_learnt_shift(struct learnt_rate *l, int64_t delta_ms)
{
    if (l->phase == LEARNT_NONE)
        return;
    l->next_at_ms += delta_ms;
    l->begun_ms += delta_ms;
    l->refused_at_ms += delta_ms;
    l->since_ms += delta_ms;
    l->slot_at_ms += delta_ms;
    bucket_shift(&l->bucket, delta_ms);
}
