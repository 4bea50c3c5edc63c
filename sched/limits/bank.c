/* Leases of transactions and sessions, for the hosts of a group.
 *
 * Numbers are doubles as in Lua. All but parts of rates are whole, and below 2^53. No
 * expression adds to a product without a rounding between (FP_CONTRACT), or processors
 * with a fused operation would answer otherwise than Redis. */
#include "sched/limits/bank.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>
#include <utlist.h>

/* The sums of the questions in a period. */
struct generation {
    double weight;   /* of hosts that want transactions */
    double sessions; /* counted */
    double asked;    /* hosts that want or have sessions; among them: */
    double unmet;    /* got fewer than they want */
    double without;  /* got none */
    double content;  /* sessions of the others */
};

enum { BANK_SLACK_US = BANK_PERIOD_US / 5 }; /* hosts ask at random in it */
#define INTERVAL_MAX_US 1e15

struct bank_site {
    UT_hash_handle hh;
    struct bank_site *prev, *next; /* asked for longest ago first */
    int64_t asked_us;
    double period, born;
    double full_us;   /* when the bucket is full */
    double budget_us; /* of this period's transactions */
    double debt_us;   /* of those before; only so much may be given back */
    double granted;   /* transactions, in this period */
    bool late;        /* nobody got one in the last period */
    double waiting;   /* the weight of those that may ask again */
    double moved;     /* sessions that hosts have beyond those of the last period */
    struct generation last, present;
    size_t key_length;
    char key[BANK_KEY_MAX];
};

struct bank {
    struct bank_site *by_key, *oldest;
};

static double
bank_larger(double a, double b)
{
    return a > b ? a : b;
}

static double
bank_smaller(double a, double b)
{
    return a < b ? a : b;
}

static double
whole(double positive)
{
    return (double)(int64_t)positive;
}

static double
whole_up(double positive)
{
    double down = whole(positive);
    return down < positive ? down + 1 : down;
}

/* False for what is no number, too. */
static bool
bank_is_within(double number, double min, double max)
{
    return number >= min && number <= max;
}

bool
bank_question_is_sound(const struct bank_question *q)
{
    enum { MAX = BANK_COUNT_MAX };
    return (q->interval_us == 0 ||
            bank_is_within(q->interval_us, 1, INTERVAL_MAX_US)) &&
           bank_is_within(q->burst, 1, MAX) && bank_is_within(q->limit, 0, MAX) &&
           bank_is_within(q->want, 0, MAX) &&
           bank_is_within(q->weight, 1, BANK_WEIGHT_MAX) &&
           bank_is_within(q->again, 0, 1) && bank_is_within(q->back, 0, MAX) &&
           bank_is_within(q->before, 0, MAX) && bank_is_within(q->had, -1, MAX) &&
           bank_is_within(q->open, 0, MAX) && bank_is_within(q->need, 0, MAX) &&
           bank_is_within(q->chance, 0, 1) &&
           bank_is_within(q->hosts, 1, BANK_HOSTS_MAX);
}

bool
bank_grant_is_sound(const struct bank_grant *g)
{
    enum { MAX = BANK_COUNT_MAX, LEFT_MAX = (BANK_AHEAD_PERIODS + 1) * BANK_PERIOD_US };
    return bank_is_within(g->tokens, 0, MAX) && bank_is_within(g->sessions, 0, MAX) &&
           bank_is_within(g->counted, 0, MAX) && bank_is_within(g->unmet, 0, MAX) &&
           bank_is_within((double)g->left_us, 0, LEFT_MAX);
}

struct bank *
bank_new(void)
{
    return memory_new(sizeof(struct bank));
}

static void
bank_forget(struct bank *bank, struct bank_site *site)
{
    HASH_DELETE(hh, bank->by_key, site);
    DL_DELETE(bank->oldest, site);
    free(site);
}

void
bank_free(struct bank **bank)
{
    struct bank *b = *bank;
    *bank = NULL;
    if (b == NULL)
        return;
    while (b->oldest != NULL)
        bank_forget(b, b->oldest);
    free(b);
}

static void
bank_insert(struct bank *bank, struct bank_site *site)
{
    HASH_ADD_KEYPTR(hh, bank->by_key, site->key, site->key_length, site);
    DL_APPEND(bank->oldest, site);
}

struct bank *
bank_copy(const struct bank *bank)
{
    struct bank *copy = bank_new();
    const struct bank_site *site;
    DL_FOREACH (bank->oldest, site) {
        struct bank_site *same = memory_new(sizeof(*same));
        *same = *site;
        bank_insert(copy, same);
    }
    return copy;
}

/* An unknown bucket is empty: a bank that has lost its memory grants nothing twice. */
static struct bank_site *
bank_add(struct bank *bank, struct text key, double now_us,
         const struct bank_question *q)
{
    if (HASH_COUNT(bank->by_key) >= BANK_SITES_MAX)
        bank_forget(bank, bank->oldest);
    struct bank_site *site = memory_new(sizeof(*site));
    double depth_us = q->burst * q->interval_us;
    site->born = whole(now_us / BANK_PERIOD_US);
    site->period = site->born - 1;
    site->full_us = now_us + depth_us;
    memcpy(site->key, key.at, key.length);
    site->key_length = key.length;
    bank_insert(bank, site);
    return site;
}

static struct bank_site *
bank_find(struct bank *bank, struct text key, int64_t now_us,
          const struct bank_question *q)
{
    struct bank_site *site;
    while (bank->oldest != NULL && now_us - bank->oldest->asked_us >= BANK_FORGET_US)
        bank_forget(bank, bank->oldest);
    HASH_FIND(hh, bank->by_key, key.at, key.length, site);
    double period = whole((double)now_us / BANK_PERIOD_US);
    if (site != NULL && site->period > period + BANK_AHEAD_PERIODS) {
        bank_forget(bank, site);
        site = NULL;
    }
    if (site == NULL) {
        site = bank_add(bank, key, (double)now_us, q);
    } else {
        DL_DELETE(bank->oldest, site);
        DL_APPEND(bank->oldest, site);
    }
    site->asked_us = now_us > site->asked_us ? now_us : site->asked_us;
    return site;
}

/* The time left to grant until the period ends. */
static double
bank_left_us(const struct bank_site *site, const struct bank_question *q, double now_us,
             double left_us)
{
    double depth_us = q->burst * q->interval_us;
    return depth_us + left_us - (site->full_us - now_us);
}

/* Hosts ask in the first fifth of a period: its refill is not lost. */
static void
bank_fill(struct bank_site *site, double now_us)
{
    double begin_us = site->period * BANK_PERIOD_US;
    double since_us = bank_larger(begin_us, now_us - BANK_SLACK_US);
    site->full_us = bank_larger(site->full_us, since_us);
}

static void
bank_turn(struct bank_site *site, const struct bank_question *q, double period,
          double now_us, double left_us)
{
    site->last =
        site->period == period - 1 ? site->present : (struct generation){.asked = 0};
    site->late = site->budget_us > 0 && site->granted == 0;
    site->present = (struct generation){.asked = 0};
    site->moved = site->waiting = site->granted = 0;
    site->period = period;
    bank_fill(site, now_us);
    double begin_us = period * BANK_PERIOD_US;
    site->debt_us = site->born == period ? 0 : site->full_us - begin_us;
    site->budget_us = bank_larger(0, bank_left_us(site, q, now_us, left_us));
}

/* A host that wants little gets one in advance, when others were there first: all of them
 * together no more than one each, and a tenth of a period. */
static bool
bank_lends(const struct bank_question *q, double left)
{
    double most = bank_smaller(q->hosts, whole(BANK_PERIOD_US / q->interval_us / 10));
    return q->want > 0 && q->want <= most && left + most >= 1;
}

static double
bank_tokens(struct bank_site *site, const struct bank_question *q, double now_us,
            double left_us)
{
    double part, back_us = q->back * q->interval_us;
    bank_fill(site, now_us);
    back_us = bank_smaller(back_us, site->debt_us);
    site->debt_us -= back_us;
    site->full_us -= back_us;
    double left = bank_left_us(site, q, now_us, left_us) / q->interval_us;
    double available = whole(bank_larger(0, left));
    if (q->again) {
        part = available * q->weight / bank_larger(site->waiting, q->weight);
        site->waiting = bank_larger(0, site->waiting - q->weight);
    } else {
        site->present.weight += q->weight;
        part = site->budget_us / q->interval_us * q->weight /
               bank_larger(bank_larger(site->last.weight, site->present.weight), 1);
    }
    double tokens = whole(part);
    /* A lottery, where a host has less than one in a period. */
    if (tokens == 0 && available > 0 && (site->late || q->chance < part))
        tokens = 1;
    tokens = bank_smaller(tokens, bank_smaller(q->want, available));
    if (tokens == 0 && bank_lends(q, left))
        tokens = 1;
    if (!q->again && tokens < q->want)
        site->waiting += q->weight;
    double tokens_us = tokens * q->interval_us;
    site->full_us += tokens_us;
    site->granted += tokens;
    return tokens;
}

/* The most that one host may have, when some had too little: equal parts of the
 * sessions that the others leave. While a host had none, no host keeps the odd ones. */
static double
bank_cap(const struct bank_site *site, double limit)
{
    const struct generation *last = &site->last;
    double equal =
        limit / bank_larger(bank_larger(last->asked, site->present.asked), 1);
    double rest = bank_larger(0, limit - last->content) / last->unmet;
    if (last->without > 0)
        return bank_larger(1, bank_larger(whole(equal), whole(rest)));
    return bank_larger(1, bank_larger(whole_up(equal), whole_up(rest)));
}

/* Open sessions count, and little is given, as long as leases may be in use of which a bank
 * knows nothing that has lost its memory: they last until the end of the next period. */
static bool
bank_is_newborn(const struct bank_site *site)
{
    return site->period - site->born <= 1;
}

static double
bank_sessions(struct bank_site *site, const struct bank_question *q, double *counted)
{
    double before = q->before, open = q->open, need = q->need;
    double mine = bank_larger((q->had >= 0 ? q->had : before) - before, 0);
    double others = bank_larger(site->last.sessions - before, 0) + site->moved - mine;
    double cap = site->last.unmet > 0 ? bank_cap(site, q->limit) : q->limit;
    double sessions =
        bank_smaller(need, bank_smaller(cap, bank_larger(0, q->limit - others)));
    if (bank_is_newborn(site))
        sessions = bank_smaller(
            sessions, bank_larger(open, whole_up((double)q->limit / q->hosts)));
    *counted = bank_larger(sessions, open);
    if (q->had < 0) {
        if (need > 0 || open > 0)
            site->present.asked++;
        if (sessions < need)
            site->present.unmet++;
        else
            site->present.content += *counted;
        if (need > 0 && sessions == 0)
            site->present.without++;
    }
    site->moved += bank_larger(*counted - before, 0) - mine;
    site->present.sessions += *counted - bank_larger(q->had, 0);
    return sessions;
}

struct bank_grant
bank_ask(struct bank *bank, struct text key, int64_t now_us,
         const struct bank_question *q)
{
    assert(now_us >= 0 && q->weight >= 1 && q->hosts >= 1);
    assert(q->interval_us >= 0 && q->want >= 0 && q->need >= 0 && q->open >= 0);
    key.length = key.length < BANK_KEY_MAX ? key.length : BANK_KEY_MAX;
    struct bank_site *site = bank_find(bank, key, now_us, q);
    double now = (double)now_us, period = whole(now / BANK_PERIOD_US);
    if (period < site->period) { /* another bank's clock was ahead */
        period = site->period;
        now = period * BANK_PERIOD_US;
    }
    double left = (period + 1) * BANK_PERIOD_US - now;
    if (site->period != period)
        bank_turn(site, q, period, now, left);
    double tokens = 0, sessions = q->need, counted = sessions;
    if (q->interval_us > 0)
        tokens = bank_tokens(site, q, now, left);
    if (q->limit > 0)
        sessions = bank_sessions(site, q, &counted);
    return (struct bank_grant){.tokens = (int)tokens,
                               .sessions = (int)sessions,
                               .counted = (int)counted,
                               .unmet = (int)site->last.unmet,
                               .left_us = (int64_t)left};
}

size_t
bank_sites(const struct bank *bank)
{
    return HASH_COUNT(bank->by_key);
}

/* --- In Lua ------------------------------------------------------------------------ */

const char bank_script[] =
    "local T, ttl, n, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), "
    "tonumber(ARGV[4])\n"
    "if now == 0 then\n"
    "  local t = redis.call('TIME')\n"
    "  now = t[1] * 1000000 + t[2]\n"
    "end\n"
    "local floor, max, min, ceil = math.floor, math.max, math.min, math.ceil\n"
    "local fmt = '<ddddddddddddddddddddd'\n"
    "local out = {}\n"
    "local a = 4\n"
    "local function argument()\n"
    "  a = a + 1\n"
    "  return tonumber(ARGV[a])\n"
    "end\n"
    "for i = 1, #KEYS do\n"
    "  local D, B, L, want = argument(), argument(), argument(), argument()\n"
    "  local weight, again, back = argument(), argument() == 1, argument()\n"
    "  local before, had, open = argument(), argument(), argument()\n"
    "  local need, chance = argument(), argument()\n"
    "  local p = floor(now / T)\n"
    "  local P, full, w0, w1, b, g1, late, u = p - 1, now + B * D, 0, 0, 0, 0, 0, 0\n"
    "  local s0, s1, x, a0, a1, v0, v1, y0, y1, z0, z1 = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0\n"
    "  local born, q = p, 0\n"
    "  local v = redis.call('GET', KEYS[i])\n"
    "  if v and (struct.unpack('<d', v)) <= p + 2 then\n"
    "    P, full, w0, w1, b, g1, late, u, s0, s1, x, a0, a1, v0, v1, y0, y1, z0, z1, "
    "born, q =\n"
    "      struct.unpack(fmt, v)\n"
    "  end\n"
    "  local at = now\n"
    "  if p < P then\n"
    "    p = P\n"
    "    at = P * T\n"
    "  end\n"
    "  local left = (p + 1) * T - at\n"
    "  if P ~= p then\n"
    "    if P == p - 1 then\n"
    "      w0, s0, a0, v0, y0, z0 = w1, s1, a1, v1, y1, z1\n"
    "    else\n"
    "      w0, s0, a0, v0, y0, z0 = 0, 0, 0, 0, 0, 0\n"
    "    end\n"
    "    late = (b > 0 and g1 == 0) and 1 or 0\n"
    "    w1, s1, a1, v1, y1, z1, x, u, g1, P = 0, 0, 0, 0, 0, 0, 0, 0, 0, p\n"
    "    full = max(full, p * T, at - T / 5)\n"
    "    q = born == p and 0 or full - p * T\n"
    "    b = max(0, B * D + left - (full - at))\n"
    "  end\n"
    "  local g, m, counted = 0, need, need\n"
    "  if D > 0 then\n"
    "    local returned = min(back * D, q)\n"
    "    q = q - returned\n"
    "    full = max(full, p * T, at - T / 5) - returned\n"
    "    local rest = (B * D + left - (full - at)) / D\n"
    "    local avail = max(0, floor(rest))\n"
    "    local part, most = 0, min(n, floor(T / D / 10))\n"
    "    if again then\n"
    "      part = avail * weight / max(u, weight)\n"
    "      u = max(0, u - weight)\n"
    "    else\n"
    "      w1 = w1 + weight\n"
    "      part = b / D * weight / max(w0, w1, 1)\n"
    "    end\n"
    "    g = floor(part)\n"
    "    if g == 0 and avail > 0 and (late == 1 or chance < part) then g = 1 end\n"
    "    g = max(0, min(g, want, avail))\n"
    "    if g == 0 and want > 0 and want <= most and rest + most >= 1 then g = 1 end\n"
    "    if not again and g < want then u = u + weight end\n"
    "    full = full + g * D\n"
    "    g1 = g1 + g\n"
    "  end\n"
    "  local unmet = v0\n"
    "  if L > 0 then\n"
    "    local mine = max((had >= 0 and had or before) - before, 0)\n"
    "    local others = max(s0 - before, 0) + x - mine\n"
    "    local up = z0 > 0 and floor or ceil\n"
    "    local cap = L\n"
    "    if v0 > 0 then cap = max(1, up(L / max(a0, a1, 1)), up(max(0, L - y0) / v0)) "
    "end\n"
    "    m = min(need, cap, max(0, L - others))\n"
    "    if p - born <= 1 then m = min(m, max(open, ceil(L / n))) end\n"
    "    counted = max(m, open)\n"
    "    if had < 0 then\n"
    "      if need > 0 or open > 0 then a1 = a1 + 1 end\n"
    "      if m < need then v1 = v1 + 1 else y1 = y1 + counted end\n"
    "      if need > 0 and m == 0 then z1 = z1 + 1 end\n"
    "    end\n"
    "    x = x + max(counted - before, 0) - mine\n"
    "    s1 = s1 + counted - max(had, 0)\n"
    "  end\n"
    "  redis.call('SET', KEYS[i], struct.pack(fmt, P, full, w0, w1, b, g1, late, u, "
    "s0, s1,\n"
    "    x, a0, a1, v0, v1, y0, y1, z0, z1, born, q), 'PX', ttl)\n"
    "  local o = #out\n"
    "  out[o + 1] = g\n"
    "  out[o + 2] = m\n"
    "  out[o + 3] = counted\n"
    "  out[o + 4] = unmet\n"
    "  out[o + 5] = left\n"
    "end\n"
    "return out\n";
