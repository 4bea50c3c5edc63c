/* Counts the use of a quota, in slots of a 24th of each period. */
#include "sched/limits/quota.h"

#include <assert.h>
#include <string.h>

static const struct quota_row {
    const char *word;
    struct text units[2];
    int64_t period_ms;
} quota_rows[QUOTA_PERIODS] = {
    [QUOTA_SECOND] = {"second", {TEXT("s"), TEXT("s")},   1000    },
    [QUOTA_MINUTE] = {"minute", {TEXT("m"), TEXT("min")}, 60000   },
    [QUOTA_HOUR] = {"hour",   {TEXT("h"), TEXT("h")},   3600000 },
    [QUOTA_DAY] = {"day",    {TEXT("d"), TEXT("d")},   86400000},
};

const char *
quota_period_word(enum quota_period period)
{
    return quota_rows[period].word;
}

int64_t
quota_period_ms(enum quota_period period)
{
    return quota_rows[period].period_ms;
}

/* QUOTA_PERIODS: not a unit. */
static enum quota_period
quota_unit(struct text unit)
{
    enum quota_period p = QUOTA_SECOND;
    while (p < QUOTA_PERIODS && !text_equal_nocase(unit, quota_rows[p].units[0]) &&
           !text_equal_nocase(unit, quota_rows[p].units[1]))
        p++;
    return p;
}

static bool
quota_parse_limit(struct text limit, struct quota *q)
{
    size_t slash = text_find(limit, '/');
    uint64_t amount;
    if (slash == TEXT_NONE ||
        !text_number(text_trim(text_before(limit, slash)), QUOTA_AMOUNT_MAX, &amount))
        return false;
    enum quota_period p = quota_unit(text_trim(text_after(limit, slash + 1)));
    if (p == QUOTA_PERIODS || amount == 0 || q->amounts[p] > 0)
        return false;
    q->amounts[p] = (uint32_t)amount;
    return true;
}

bool
quota_parse(struct text t, struct quota *out)
{
    struct quota q = {{0}};
    struct text limit;
    t = text_trim(t);
    if (t.length == 0)
        return false;
    if (!text_equal_nocase(t, TEXT("none")))
        while (text_cut(&t, ',', &limit))
            if (!quota_parse_limit(text_trim(limit), &q))
                return false;
    *out = q;
    return true;
}

bool
quota_is_none(const struct quota *q)
{
    for (int p = 0; p < QUOTA_PERIODS; p++)
        if (q->amounts[p] > 0)
            return false;
    return true;
}

/* Rounded up: 24 slots are never shorter than the period. */
static int64_t
slot_width(enum quota_period p)
{
    return (quota_rows[p].period_ms + QUOTA_SLOTS - 2) / (QUOTA_SLOTS - 1);
}

/* How many slots have begun since the newest one. */
static int64_t
quota_age(const struct quota_use *use, enum quota_period p, int64_t now_ms)
{
    int64_t age = now_ms / slot_width(p) - use->windows[p].slot;
    return age > 0 ? age : 0;
}

uint32_t
quota_used(const struct quota_use *use, enum quota_period p, int64_t now_ms)
{
    uint32_t used = use->reserved;
    int64_t kept = QUOTA_SLOTS - quota_age(use, p, now_ms);
    for (int64_t i = 0; i < kept; i++)
        used += use->windows[p].counts[i];
    return used;
}

uint32_t
quota_left(const struct quota_use *use, const struct quota *q, int64_t now_ms)
{
    uint32_t least = QUOTA_AMOUNT_MAX;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        if (q->amounts[p] == 0)
            continue;
        uint32_t used = quota_used(use, p, now_ms);
        uint32_t left = used < q->amounts[p] ? q->amounts[p] - used : 0;
        least = left < least ? left : least;
    }
    return least;
}

/* The oldest slots leave first. Reserved ones may be settled by now, and leave last. */
static int64_t
window_ready_ms(const struct quota_use *use, enum quota_period p, uint32_t amount,
                uint32_t count, int64_t now_ms)
{
    const struct quota_window *w = &use->windows[p];
    int64_t used = quota_used(use, p, now_ms), over = used + count - (int64_t)amount;
    if (over <= 0)
        return now_ms;
    if (count > amount)
        return INT64_MAX;
    int64_t width = slot_width(p);
    for (int64_t i = QUOTA_SLOTS - 1 - quota_age(use, p, now_ms); i >= 0; i--)
        if ((over -= w->counts[i]) <= 0)
            return (w->slot - i + QUOTA_SLOTS) * width;
    return (now_ms / width + QUOTA_SLOTS) * width;
}

int64_t
quota_ready_ms(const struct quota_use *use, const struct quota *q, uint32_t count,
               int64_t now_ms, enum quota_period *period)
{
    int64_t ready = now_ms;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        if (q->amounts[p] == 0)
            continue;
        int64_t one = window_ready_ms(use, p, q->amounts[p], count, now_ms);
        if (one > ready) {
            ready = one;
            *period = p;
        }
    }
    return ready;
}

void
quota_reserve(struct quota_use *use, uint32_t count)
{
    use->reserved += count;
}

static void
window_advance(struct quota_use *use, enum quota_period p, int64_t now_ms)
{
    struct quota_window *w = &use->windows[p];
    int64_t age = quota_age(use, p, now_ms);
    size_t gone = age < QUOTA_SLOTS ? (size_t)age : QUOTA_SLOTS;
    if (age == 0)
        return;
    memmove(&w->counts[gone], &w->counts[0], (QUOTA_SLOTS - gone) * sizeof(*w->counts));
    memset(w->counts, 0, gone * sizeof(*w->counts));
    w->slot += age;
}

void
quota_settle(struct quota_use *use, uint32_t count, uint32_t sent, int64_t now_ms)
{
    assert(count <= use->reserved && sent <= count);
    use->reserved -= count;
    for (enum quota_period p = 0; sent > 0 && p < QUOTA_PERIODS; p++) {
        window_advance(use, p, now_ms);
        use->windows[p].counts[0] += sent;
    }
}

bool
quota_keep(const struct quota_use *use, enum quota_period p, int64_t now_ms,
           uint32_t counts[QUOTA_SLOTS], int64_t *end_ms)
{
    struct quota_use now = *use;
    now.reserved = 0;
    if (quota_used(&now, p, now_ms) + use->reserved == 0)
        return false;
    window_advance(&now, p, now_ms);
    memcpy(counts, now.windows[p].counts, sizeof(now.windows[p].counts));
    counts[0] += use->reserved; /* it may be sent before a crash */
    *end_ms = (now.windows[p].slot + 1) * slot_width(p);
    return true;
}

/* The slots of the other epoch begin at other times: each is put where its end is, which
 * keeps it too long rather than too short. */
void
quota_restore(struct quota_use *use, enum quota_period p, int64_t now_ms,
              const uint32_t counts[QUOTA_SLOTS], int64_t end_ms)
{
    struct quota_window *w = &use->windows[p];
    int64_t width = slot_width(p), most = (now_ms / width + 1) * width;
    int64_t oldest = now_ms - 2 * QUOTA_SLOTS * width;
    uint32_t room = QUOTA_AMOUNT_MAX;
    end_ms = end_ms < most ? end_ms : most;
    end_ms = end_ms > oldest ? end_ms : oldest;
    *w = (struct quota_window){.slot = (end_ms - 1) / width};
    for (int i = 0; i < QUOTA_SLOTS; i++) {
        w->counts[i] = counts[i] < room ? counts[i] : room;
        room -= w->counts[i];
    }
}
