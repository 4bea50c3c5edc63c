/* Simulated mail servers: limits, delays, failures, rates. */
#include "t/simulation/fake_server.h"

#include "base/settings/settings.h"
#include "sched/limits/retry.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { COUNT_MAX = 1000000, PER_MILLE = 1000 };

#define DAY_MS INT64_C(86400000)

enum option_kind {
    OPTION_COUNT,
    OPTION_TIME,
    OPTION_ODDS,
    OPTION_RATE,
    OPTION_OVER,
    OPTION_SHARE
};
struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;
    uint64_t min, max;
    const char *right; /* the form of its value */
};

#define ROW(name, kind, field, min, max, right)                                        \
    {                                                                                  \
        name, OPTION_##kind, offsetof(struct fake_server_settings, field), min, max,   \
            right                                                                      \
    }

static const struct option options[] = {
    ROW("sessions", COUNT, sessions, 0, COUNT_MAX, "a number; 0 = no limit"),
    ROW("over", OVER, over, 0, COUNT_MAX, "421 or queue:N"),
    ROW("delay.greeting", TIME, greeting_us, 0, 0, "a time such as 10ms"),
    ROW("delay.rcpt", TIME, rcpt_us, 0, 0, "a time such as 10ms"),
    ROW("delay.message", TIME, message_us, 0, 0, "a time such as 10ms"),
    ROW("delay.jitter", SHARE, jitter, 0, 100, "a share such as 2%"),
    ROW("fail", ODDS, fail, 0, 0, "odds such as 1/4 or 1/4,random"),
    ROW("tempfail", ODDS, tempfail, 0, 0, "odds such as 1/4 or 1/4,random"),
    ROW("per_session", COUNT, per_session, 0, COUNT_MAX, "a number; 0 = no limit"),
    ROW("rate", RATE, rate, 0, 0, "a rate such as 10/s or 10/s,burst=10"),
    ROW("rate_reply", COUNT, rate_reply, 400, 499, "a reply code such as 451"),
    ROW("connect_timeout", TIME, connect_timeout_us, 0, 0, "a time such as 30s"),
    ROW("greeting_timeout", TIME, greeting_timeout_us, 0, 0, "a time such as 300s"),
};

static bool
odds_parse(struct text t, struct fake_server_odds *out)
{
    uint64_t bad, of;
    struct text odds = t, rest = TEXT("");
    size_t comma = text_find(t, ',');
    if (comma != TEXT_NONE) {
        odds = text_before(t, comma);
        rest = text_after(t, comma + 1);
        if (!text_equal(rest, TEXT("random")))
            return false;
    }
    size_t slash = text_find(odds, '/');
    if (slash == TEXT_NONE || !text_number(text_before(odds, slash), COUNT_MAX, &bad) ||
        !text_number(text_after(odds, slash + 1), COUNT_MAX, &of) || of == 0 ||
        bad > of)
        return false;
    *out = (struct fake_server_odds){
        .bad = (unsigned)bad, .of = (unsigned)of, .random = rest.length > 0};
    return true;
}

static bool
over_parse(struct text t, struct fake_server_settings *s)
{
    uint64_t queue;
    if (text_equal(t, TEXT("421"))) {
        s->over = FAKE_SERVER_OVER_421;
        return true;
    }
    if (!text_starts(t, TEXT("queue:")) ||
        !text_number(text_after(t, 6), COUNT_MAX, &queue))
        return false;
    s->over = FAKE_SERVER_OVER_QUEUE;
    s->queue = (unsigned)queue;
    return true;
}

static bool
count_set(const struct option *o, struct text value, void *field)
{
    uint64_t number;
    if (!text_number(value, o->max, &number) || number < o->min)
        return false;
    memcpy(field, &(unsigned){(unsigned)number}, sizeof(unsigned));
    return true;
}

static bool
fake_server_option_set(const struct option *o, struct fake_server_settings *s,
                       struct text value)
{
    void *field = (char *)s + o->offset;
    int64_t time;
    switch (o->kind) {
    case OPTION_COUNT:
        return count_set(o, value, field);
    case OPTION_TIME:
        if (!settings_parse_duration(value, &time) || time < 0 || time > DAY_MS)
            return false;
        time *= 1000;
        memcpy(field, &time, sizeof(time));
        return true;
    case OPTION_ODDS:
        return odds_parse(value, field);
    case OPTION_RATE:
        return bucket_rate_parse(value, field);
    case OPTION_OVER:
        return over_parse(value, s);
    case OPTION_SHARE:
        if (value.length == 0 || value.at[value.length - 1] != '%' ||
            !count_set(o, text_before(value, value.length - 1), field))
            return false;
        s->jitter *= PER_MILLE / 100;
        return true;
    }
    return false;
}

static bool
word_set(struct fake_server_settings *s, struct text word)
{
    static const struct {
        struct text word;
        enum fake_server_state state;
    } words[] = {
        {TEXT("up"),     FAKE_SERVER_UP    },
        {TEXT("down"),   FAKE_SERVER_DOWN  },
        {TEXT("silent"), FAKE_SERVER_SILENT},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (text_equal(word, words[i].word)) {
            s->state = words[i].state;
            return true;
        }
    return false;
}

bool
fake_server_option(struct fake_server_settings *s, struct text option,
                   struct buffer *problem)
{
    size_t equals = text_find(option, '=');
    if (equals == TEXT_NONE && word_set(s, option))
        return true;
    struct text key = text_before(option, equals);
    for (size_t i = 0; equals != TEXT_NONE && i < sizeof(options) / sizeof(*options);
         i++) {
        const struct option *o = &options[i];
        if (!text_equal(key, text_from(o->name)))
            continue;
        if (fake_server_option_set(o, s, text_after(option, equals + 1)))
            return true;
        (void)!buffer_format(problem, "'%.*s': %s needs %s", TEXT_ARGS(option), o->name,
                             o->right);
        return false;
    }
    (void)!buffer_format(problem, "'%.*s' is not a server setting: up down silent",
                         TEXT_ARGS(option));
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
        (void)!buffer_format(problem, " %s=", options[i].name);
    return false;
}

/* --- The server ------------------------------------------------------------------- */

int64_t
fake_server_delay_us(struct fake_server *r, int64_t time_us)
{
    int64_t span = time_us * r->settings.jitter / PER_MILLE;
    if (span == 0)
        return time_us;
    return time_us - span +
           (int64_t)(retry_random(r->random) % (uint64_t)(2 * span + 1));
}

static bool
is_unlucky(struct fake_server *r, const struct fake_server_odds *odds, uint64_t number)
{
    if (odds->of == 0)
        return false;
    uint64_t drawn = odds->random ? retry_random(r->random) : number;
    return drawn % odds->of >= odds->of - odds->bad;
}

static void
session_count(struct fake_server *r)
{
    r->sessions++;
    if (r->sessions > r->peak_sessions)
        r->peak_sessions = r->sessions;
}

static enum reception
connect_over(struct fake_server *r)
{
    switch (r->settings.over) {
    case FAKE_SERVER_OVER_421:
        return RECEPTION_421;
    case FAKE_SERVER_OVER_QUEUE:
        if (r->waiting >= r->settings.queue)
            return RECEPTION_UNANSWERED;
        r->waiting++;
        return RECEPTION_QUEUED;
    }
    return RECEPTION_REFUSED;
}

enum reception
fake_server_connect(struct fake_server *r)
{
    switch (r->settings.state) {
    case FAKE_SERVER_UP:
        break;
    case FAKE_SERVER_DOWN:
        return RECEPTION_REFUSED;
    case FAKE_SERVER_SILENT:
        return RECEPTION_UNANSWERED;
    }
    if (is_unlucky(r, &r->settings.fail, r->connections++))
        return RECEPTION_421;
    if (r->settings.sessions > 0 && r->sessions >= r->settings.sessions)
        return connect_over(r);
    session_count(r);
    return RECEPTION_SESSION;
}

bool
fake_server_left(struct fake_server *r)
{
    assert(r->sessions > 0);
    r->sessions--;
    if (r->waiting == 0 ||
        (r->settings.sessions > 0 && r->sessions >= r->settings.sessions))
        return false;
    r->waiting--;
    session_count(r);
    return true;
}

void
fake_server_gave_up(struct fake_server *r)
{
    assert(r->waiting > 0);
    r->waiting--;
}

enum receipt
fake_server_begin(struct fake_server *r, int64_t now_ms)
{
    uint64_t number = r->transactions++;
    if (bucket_ready_ms(&r->bucket, &r->settings.rate, now_ms) > now_ms)
        return RECEIPT_RATE;
    bucket_take(&r->bucket, &r->settings.rate, now_ms);
    if (is_unlucky(r, &r->settings.tempfail, number))
        return RECEIPT_TEMPFAIL;
    return RECEIPT_TAKEN;
}

int64_t
fake_server_service_us(struct fake_server *r, size_t recipients, int64_t *reply_us)
{
    int64_t time = *reply_us = fake_server_delay_us(r, r->settings.message_us);
    for (size_t i = 0; i < recipients; i++)
        time += fake_server_delay_us(r, r->settings.rcpt_us);
    return time;
}
