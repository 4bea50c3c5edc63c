/* An address of the sink: its limits and manners, and what has happened there. */
#ifndef T_BENCH_SITE_H
#define T_BENCH_SITE_H

#include "base/loop/loop.h"
#include "base/net/net.h"
#include "base/text.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    SITES_MAX = 64,
    SITE_NUMBER_MAX = 1000000, /* of any setting */
    FAIL_WITHIN_MS = 50,
    SAMPLE_MS = 100 /* how often open sessions are counted for their mean */
};

/* Where a reply may be refused, late or never come. */
enum stage {
    STAGE_BANNER,
    STAGE_HELO,
    STAGE_MAIL,
    STAGE_RCPT,
    STAGE_DATA,
    STAGE_BODY, /* the first bytes of content: only for delay and close */
    STAGE_DOT,
    STAGES
};

static const char *const stage_names[STAGES] = {"banner", "helo", "mail", "rcpt",
                                                "data",   "body", "dot"};

/* The treatment of a connection that finds no free place. */
enum over {
    OVER_421,
    OVER_RST,
    OVER_SILENT, /* accepted, never greeted */
    OVER_REFUSE, /* nobody listens while there is no place */
    OVER_QUEUE   /* greeted when a place is free; behind a full queue it is silent */
};

struct site_settings {
    bool up;
    int64_t sessions; /* at once; < 0 = no limit */
    enum over over;
    int64_t queue; /* of OVER_QUEUE */
    int64_t delay_ms[STAGES];
    int64_t fail_of; /* one connection of so many fails; 0 = none */
    bool fail_random;
    int64_t rate, rate_period_ms; /* 0 = no limit */
    int64_t burst;                /* 0 = what one period brings */
    int rate_reply;
    enum stage rate_stage; /* STAGE_BANNER is "connect" */
    int64_t per_session;   /* messages, then 421; 0 = no limit */
};

enum count {
    COUNT_MESSAGES,
    COUNT_RECIPIENTS, /* of messages that were taken */
    COUNT_BYTES,
    COUNT_CONNECTIONS,
    COUNT_REFUSED, /* replies */
    COUNT_SESSIONS,
    COUNT_REFUSED_CONNECTS,
    COUNT_FAILED_CONNECTS,
    COUNT_RSETS,
    COUNT_IDLE_MS,
    COUNT_RCPTS_ACCEPTED,
    COUNT_RCPTS_TEMPFAILED,
    COUNT_RATE_REFUSALS,
    COUNTS
};

static const char *const count_names[COUNTS] = {
    "messages",       "recipients",       "bytes",           "connections", "refused",
    "sessions",       "refused_connects", "failed_connects", "rsets",       "idle_ms",
    "rcpts_accepted", "rcpts_tempfailed", "rate_refusals"};

struct tally {
    unsigned long long count[COUNTS];
    unsigned long long session_max; /* messages */
    size_t open, open_max;          /* sessions that have a place */
    unsigned long long open_sum, samples;
};

/* The level is in units of 1/period_ms of a token: a millisecond brings `rate` of them.
 */
struct bucket {
    int64_t level, at_ms;
};

struct site {
    struct sink *sink;
    struct net_address address;
    struct net_listener *listener; /* NULL: down, or full and refusing */
    struct site_settings set;
    struct bucket bucket;
    struct tally tally, *total;
    struct loop_task freed;      /* a place is */
    struct loop_timer reopening; /* somebody else has our port */
    uint64_t chance;             /* state of the generator */
    unsigned long long seen;     /* connections, for the K-th; never reset */
    size_t queued;
};

/* --- Settings --- */

static const struct site_settings site_defaults = {.up = true,
                                                   .sessions = -1,
                                                   .rate_period_ms = 1000,
                                                   .rate_reply = 451,
                                                   .rate_stage = STAGE_MAIL};

static bool
read_count(struct text value, int64_t *to)
{
    uint64_t number;
    if (!text_number(value, SITE_NUMBER_MAX, &number))
        return false;
    *to = (int64_t)number;
    return true;
}

static bool
read_up(struct site_settings *set, struct text value)
{
    set->up = text_equal(value, TEXT("yes"));
    return set->up || text_equal(value, TEXT("no"));
}

static bool
read_sessions(struct site_settings *set, struct text value)
{
    set->sessions = -1;
    return text_equal(value, TEXT("none")) || read_count(value, &set->sessions);
}

static bool
read_over(struct site_settings *set, struct text value)
{
    static const char *const names[] = {[OVER_421] = "421",
                                        [OVER_RST] = "rst",
                                        [OVER_SILENT] = "silent",
                                        [OVER_REFUSE] = "refuse"};
    if (text_starts(value, TEXT("queue:"))) {
        set->over = OVER_QUEUE;
        return read_count(text_after(value, 6), &set->queue);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        set->over = (enum over)i;
        if (text_equal(value, text_from(names[i])))
            return true;
    }
    return false;
}

static bool
read_fail(struct site_settings *set, struct text value)
{
    set->fail_of = 0;
    set->fail_random = false;
    if (text_equal(value, TEXT("none")))
        return true;
    return text_starts(value, TEXT("1/")) &&
           read_count(text_after(value, 2), &set->fail_of) && set->fail_of > 0;
}

/* The comma in "fail=1/4,random" makes it a word of its own. */
static bool
read_random(struct site_settings *set, struct text value)
{
    set->fail_random = true;
    return value.length == 0 && set->fail_of > 0;
}

static bool
read_rate(struct site_settings *set, struct text value)
{
    struct text number = TEXT("");
    set->rate = 0;
    if (text_equal(value, TEXT("none")))
        return true;
    text_cut(&value, '/', &number);
    set->rate_period_ms =
        value.at != NULL && text_equal(value, TEXT("m")) ? 60000 : 1000;
    return value.at != NULL &&
           (text_equal(value, TEXT("s")) || text_equal(value, TEXT("m"))) &&
           read_count(number, &set->rate) && set->rate > 0;
}

static bool
read_burst(struct site_settings *set, struct text value)
{
    return read_count(value, &set->burst) && set->burst > 0;
}

static bool
read_rate_reply(struct site_settings *set, struct text value)
{
    int64_t code;
    if (!read_count(value, &code) || (code != 421 && code != 450 && code != 451))
        return false;
    set->rate_reply = (int)code;
    return true;
}

static bool
read_rate_stage(struct site_settings *set, struct text value)
{
    static const struct {
        const char *name;
        enum stage stage;
    } stages[] = {
        {"connect", STAGE_BANNER},
        {"mail",    STAGE_MAIL  },
        {"rcpt",    STAGE_RCPT  },
        {"dot",     STAGE_DOT   }
    };
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        set->rate_stage = stages[i].stage;
        if (text_equal(value, text_from(stages[i].name)))
            return true;
    }
    return false;
}

static bool
read_per_session(struct site_settings *set, struct text value)
{
    return read_count(value, &set->per_session);
}

static bool
read_delay(struct site_settings *set, struct text name, struct text value)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (text_equal(name, text_from(stage_names[stage])))
            return read_count(value, &set->delay_ms[stage]);
    return false;
}

static bool
read_setting(struct site_settings *set, struct text word)
{
    static const struct {
        const char *name;
        bool (*read)(struct site_settings *set, struct text value);
    } keys[] = {
        {"up",          read_up         },
        {"sessions",    read_sessions   },
        {"over",        read_over       },
        {"fail",        read_fail       },
        {"random",      read_random     },
        {"rate",        read_rate       },
        {"burst",       read_burst      },
        {"rate_reply",  read_rate_reply },
        {"rate_stage",  read_rate_stage },
        {"per_session", read_per_session}
    };
    struct text name = TEXT("");
    text_cut(&word, '=', &name);
    if (word.at == NULL) /* there was no '=' */
        word = TEXT("");
    if (text_starts(name, TEXT("delay.")))
        return read_delay(set, text_after(name, 6), word);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (text_equal(name, text_from(keys[i].name)))
            return keys[i].read(set, word);
    return false;
}

/* "key=value,key=value", also with spaces between them. Either all or, when one of them
 * is wrong, nothing of it is set. */
static bool
site_set(struct site *site, struct text list)
{
    struct site_settings set = site->set;
    struct text word;
    while (text_word(&list, ", \t", &word))
        if (!read_setting(&set, word))
            return false;
    if (set.rate != site->set.rate || set.burst != site->set.burst ||
        set.rate_period_ms != site->set.rate_period_ms)
        site->bucket = (struct bucket){.at_ms = INT64_MIN}; /* full again */
    site->set = set;
    return true;
}

/* --- Chance and rate --- */

static uint64_t
site_chance(struct site *site, uint64_t below)
{
    /* SplitMix64: same seed, same run. */
    uint64_t z = site->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

/* Whether the connection that has just come is one of those that fail. */
static bool
site_fails(struct site *site)
{
    uint64_t of = (uint64_t)site->set.fail_of;
    site->seen++;
    if (of == 0)
        return false;
    return site->set.fail_random ? site_chance(site, of) == 0 : site->seen % of == 0;
}

/* Takes a token. False when there is none. */
static bool
site_take_token(struct site *site, int64_t now_ms)
{
    const struct site_settings *set = &site->set;
    struct bucket *b = &site->bucket;
    int64_t period = set->rate_period_ms;
    int64_t full = (set->burst > 0 ? set->burst : set->rate) * period;
    bool filled = b->at_ms == INT64_MIN || now_ms - b->at_ms > full / set->rate;
    int64_t level = filled ? full : b->level + (now_ms - b->at_ms) * set->rate;
    b->level = level < full ? level : full;
    b->at_ms = now_ms;
    if (b->level < period)
        return false;
    b->level -= period;
    return true;
}

/* --- Counters --- */

static void
site_count(struct site *site, enum count what, unsigned long long by)
{
    site->tally.count[what] += by;
    site->total->count[what] += by;
}

static void
tally_open(struct tally *t, bool more)
{
    assert(more || t->open > 0);
    t->open += more ? 1 : (size_t)-1;
    if (t->open > t->open_max)
        t->open_max = t->open;
}

/* A session has got its place, or has left it. */
static void
site_count_open(struct site *site, bool more)
{
    tally_open(&site->tally, more);
    tally_open(site->total, more);
}

/* A session has brought so many messages by now. */
static void
site_count_session(struct site *site, unsigned long long messages)
{
    if (messages > site->tally.session_max)
        site->tally.session_max = messages;
    if (messages > site->total->session_max)
        site->total->session_max = messages;
}

static void
tally_sample(struct tally *t)
{
    t->open_sum += t->open;
    t->samples++;
}

/* Sessions that are there already go on and count. */
static void
tally_reset(struct tally *t, unsigned long long sessions)
{
    *t = (struct tally){.open = t->open, .open_max = t->open};
    t->count[COUNT_SESSIONS] = sessions;
}

static json_t *
ratio(unsigned long long sum, unsigned long long of)
{
    return json_real(of > 0 ? (double)sum / (double)of : 0);
}

/* Adds them to an object. */
static void
tally_print(const struct tally *t, json_t *to)
{
    for (int i = 0; i < COUNTS; i++)
        json_object_set_new(to, count_names[i], json_integer((json_int_t)t->count[i]));
    json_object_set_new(to, "sessions_open", json_integer((json_int_t)t->open));
    json_object_set_new(to, "sessions_max", json_integer((json_int_t)t->open_max));
    json_object_set_new(to, "sessions_mean", ratio(t->open_sum, t->samples));
    json_object_set_new(to, "messages_per_session_max",
                        json_integer((json_int_t)t->session_max));
    json_object_set_new(to, "messages_per_session_mean",
                        ratio(t->count[COUNT_MESSAGES], t->count[COUNT_SESSIONS]));
}

#endif
