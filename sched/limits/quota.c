/* Counts the use of a quota, in slots of a 24th of each period. */
#include "sched/limits/quota.h"

#include <assert.h>
#include <string.h>
#include <time.h>

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

/* --- A ramp ----------------------------------------------------------------------- */

/* "2026-12-01" */
static bool
quota_parse_date(struct text t, int64_t *ms)
{
    struct text year, month;
    uint64_t y, m, d;
    if (t.length != 10 || !text_cut(&t, '-', &year) || !text_cut(&t, '-', &month) ||
        year.length != 4 || month.length != 2 || !text_number(year, 9999, &y) ||
        !text_number(month, 12, &m) || !text_number(t, 31, &d) || m == 0)
        return false;
    struct tm tm = {.tm_year = (int)y - 1900, .tm_mon = (int)m - 1, .tm_mday = (int)d};
    *ms = (int64_t)timegm(&tm) * 1000;
    return *ms >= 0 && tm.tm_mday == (int)d; /* February has no 30th */
}

static double
quota_power(double base, unsigned exponent)
{
    double result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if ((exponent & 1) != 0)
            result *= base;
    return result;
}

/* The root, by halves. */
static double
quota_growth(double ratio, unsigned days)
{
    double low = 1, high = ratio;
    for (int i = 0; i < 64; i++) {
        double middle = (low + high) / 2;
        if (quota_power(middle, days) > ratio)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* "30d" */
static bool
quota_parse_days(struct text t, uint32_t *days)
{
    uint64_t number;
    if (t.length < 2 || quota_unit(text_after(t, t.length - 1)) != QUOTA_DAY ||
        !text_number(text_before(t, t.length - 1), QUOTA_RAMP_DAYS_MAX, &number))
        return false;
    *days = (uint32_t)number;
    return number > 0;
}

/* The words behind both amounts. */
static bool
quota_parse_time(struct text words, struct quota *q)
{
    static const char blanks[] = " +\t";
    struct text in, span, since, date, more;
    return text_word(&words, blanks, &in) && text_word(&words, blanks, &span) &&
           text_word(&words, blanks, &since) && text_word(&words, blanks, &date) &&
           !text_word(&words, blanks, &more) && text_equal_nocase(in, TEXT("in")) &&
           text_equal_nocase(since, TEXT("since")) &&
           quota_parse_days(span, &q->days) && quota_parse_date(date, &q->since_ms);
}

static bool
quota_parse_ramp_limit(struct text limit, size_t dots, struct quota *q)
{
    struct text last = text_after(limit, dots + 2), time = TEXT("");
    struct quota first = {.first = 0}, end = {.first = 0};
    size_t blank = 0;
    while (blank < last.length && last.at[blank] != ' ' && last.at[blank] != '+')
        blank++;
    time = text_after(last, blank);
    last = text_before(last, blank);
    if (q->amounts[QUOTA_DAY] > 0 ||
        !quota_parse_limit(text_before(limit, dots), &first) ||
        !quota_parse_limit(last, &end) || first.amounts[QUOTA_DAY] == 0 ||
        end.amounts[QUOTA_DAY] <= first.amounts[QUOTA_DAY] ||
        !quota_parse_time(time, q))
        return false;
    q->first = first.amounts[QUOTA_DAY];
    q->amounts[QUOTA_DAY] = end.amounts[QUOTA_DAY];
    q->growth = quota_growth((double)q->amounts[QUOTA_DAY] / q->first, q->days);
    return true;
}

struct quota
quota_on(const struct quota *q, int64_t wall_ms)
{
    struct quota on = *q;
    on.first = on.days = 0;
    on.since_ms = 0;
    on.growth = 0;
    if (q->first == 0)
        return on;
    int64_t day = (wall_ms - q->since_ms) / quota_rows[QUOTA_DAY].period_ms;
    if (wall_ms < q->since_ms || day == 0)
        on.amounts[QUOTA_DAY] = q->first;
    else if (day < q->days)
        on.amounts[QUOTA_DAY] =
            (uint32_t)(q->first * quota_power(q->growth, (unsigned)day));
    return on;
}

int64_t
quota_grows_ms(const struct quota *q, int64_t wall_ms)
{
    int64_t width = quota_rows[QUOTA_DAY].period_ms, passed = wall_ms - q->since_ms;
    if (q->first == 0 || passed >= q->days * width)
        return INT64_MAX;
    return q->since_ms + (passed < 0 ? 1 : passed / width + 1) * width;
}

/* --- Texts ------------------------------------------------------------------------ */

bool
quota_parse_ramp(struct text t, struct quota *out)
{
    struct quota q = {.first = 0};
    struct text limit;
    t = text_trim(t);
    if (t.length == 0)
        return false;
    if (!text_equal_nocase(t, TEXT("none")))
        while (text_cut(&t, ',', &limit)) {
            limit = text_trim(limit);
            size_t dots = text_find(limit, '.');
            bool is_ramp = text_starts(text_after(limit, dots), TEXT(".."));
            if (is_ramp ? !quota_parse_ramp_limit(limit, dots, &q)
                        : !quota_parse_limit(limit, &q))
                return false;
        }
    *out = q;
    return true;
}

bool
quota_parse(struct text t, struct quota *out)
{
    struct quota q;
    if (!quota_parse_ramp(t, &q) || q.first > 0)
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
