/* Classes of temporary refusals, by a table of codes and phrases. */
#include "sched/limits/reply_class.h"

#include "sched/limits/reply_words.h"
#include "sched/limits/retry.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS_MS INT64_C(1000)
#define MINUTE_MS  INT64_C(60000)
#define HOUR_MS    (60 * MINUTE_MS)

/* A row matches if all its members that are set match. A phrase matches from the start
 * of a word on, and may end within one; `then` comes at most GAP_MAX bytes later. */
struct row {
    enum reply_class_class class;
    const char *enhanced, *phrase, *then;
};

/* The first row that matches decides, so exceptions stand before their rules. */
static const struct row rows[] = {
    {REPLY_CLASS_GREYLIST,     NULL,      " greylist",               NULL         },
    {REPLY_CLASS_GREYLIST,     NULL,      " graylist",               NULL         },
    {REPLY_CLASS_GREYLIST,     NULL,      " grey list",              NULL         },
    {REPLY_CLASS_GREYLIST,     NULL,      " gray list",              NULL         },
    {REPLY_CLASS_GREYLIST,     NULL,      " postgrey",               NULL         },
 /* Gmail; then Microsoft, whose text for it is "server busy". */
    {REPLY_CLASS_RATE,         "4.7.28",  NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.500", NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.501", NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.502", NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.650", NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.651", NULL,                      NULL         },
    {REPLY_CLASS_RATE,         "4.7.652", NULL,                      NULL         },
 /* One transaction or session was too large, not our rate. */
    {REPLY_CLASS_PLAIN,        "4.5.3",   NULL,                      NULL         },
    {REPLY_CLASS_PLAIN,        "4.3.4",   NULL,                      NULL         },
    {REPLY_CLASS_PLAIN,        "4.2.3",   NULL,                      NULL         },
    {REPLY_CLASS_PLAIN,        NULL,      " too many messages",      " connection"},
    {REPLY_CLASS_PLAIN,        NULL,      " too many messages",      " session"   },
    {REPLY_CLASS_PLAIN,        NULL,      " size",                   " exceed"    },
    {REPLY_CLASS_PLAIN,        NULL,      " exceed",                 " size"      },
    {REPLY_CLASS_PLAIN,        NULL,      " memory",                 " exceed"    },
    {REPLY_CLASS_PLAIN,        NULL,      " exceed",                 " memory"    },
    {REPLY_CLASS_PLAIN,        NULL,      " time limit",             NULL         },
    {REPLY_CLASS_PLAIN,        NULL,      " hop",                    " exceed"    },
    {REPLY_CLASS_RATE,         NULL,      " sending quota",          NULL         },
    {REPLY_CLASS_RATE,         NULL,      " message quota",          NULL         },
    {REPLY_CLASS_RATE,         NULL,      " daily quota",            NULL         },
    {REPLY_CLASS_RATE,         NULL,      " hourly quota",           NULL         },
    {REPLY_CLASS_FULL_MAILBOX, "4.2.2",   NULL,                      NULL         },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " over quota",             NULL         },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " overquota",              NULL         },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " over",                   " quota"     },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " quota",                  " exceed"    },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " exceed",                 " quota"     },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " exceed",                 " storage"   },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " mailbox full",           NULL         },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " mailbox",                " is full"   },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " inbox",                  " full"      },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " out of storage",         NULL         },
    {REPLY_CLASS_FULL_MAILBOX, NULL,      " insufficient",           " mailbox"   },
    {REPLY_CLASS_BUSY,         NULL,      " too many",               " connection"},
    {REPLY_CLASS_BUSY,         NULL,      " too many",               " session"   },
    {REPLY_CLASS_BUSY,         NULL,      " connection limit",       NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " concurrent connections", NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " thread limit",           NULL         },
    {REPLY_CLASS_RATE,         NULL,      " tss04",                  NULL         },
    {REPLY_CLASS_RATE,         NULL,      " unexpected volume",      NULL         },
    {REPLY_CLASS_RATE,         NULL,      " unusual rate",           NULL         },
    {REPLY_CLASS_RATE,         NULL,      " receiving mail at a",    NULL         },
    {REPLY_CLASS_RATE,         NULL,      " receiving mail too",     NULL         },
    {REPLY_CLASS_RATE,         NULL,      " rate limit",             NULL         },
    {REPLY_CLASS_RATE,         NULL,      " ratelimit",              NULL         },
    {REPLY_CLASS_RATE,         NULL,      " rate exceed",            NULL         },
    {REPLY_CLASS_RATE,         NULL,      " rate control",           NULL         },
    {REPLY_CLASS_RATE,         NULL,      " throttl",                NULL         },
    {REPLY_CLASS_RATE,         NULL,      " slow down",              NULL         },
    {REPLY_CLASS_RATE,         NULL,      " send",                   " too fast"  },
    {REPLY_CLASS_RATE,         NULL,      " sent",                   " too fast"  },
    {REPLY_CLASS_RATE,         NULL,      " too many messages",      NULL         },
    {REPLY_CLASS_RATE,         NULL,      " too many mails",         NULL         },
    {REPLY_CLASS_RATE,         NULL,      " too many emails",        NULL         },
    {REPLY_CLASS_RATE,         NULL,      " too many recipients",    " from"      },
    {REPLY_CLASS_RATE,         NULL,      " too much mail",          NULL         },
    {REPLY_CLASS_RATE,         NULL,      " exceed",                 " limit"     },
    {REPLY_CLASS_RATE,         NULL,      " limit",                  " exceed"    },
    {REPLY_CLASS_BUSY,         "4.3.1",   NULL,                      NULL         },
    {REPLY_CLASS_BUSY,         "4.3.2",   NULL,                      NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " server busy",            NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " server is busy",         NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " system busy",            NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " system is busy",         NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " too busy",               NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " overload",               NULL         },
    {REPLY_CLASS_BUSY,         NULL,      " load",                   " too high"  },
    {REPLY_CLASS_BUSY,         NULL,      " insufficient system",    NULL         },
    {REPLY_CLASS_DNS,          "4.4.3",   NULL,                      NULL         },
    {REPLY_CLASS_DNS,          NULL,      " domain not found",       NULL         },
    {REPLY_CLASS_DNS,          NULL,      " host not found",         NULL         },
    {REPLY_CLASS_DNS,          NULL,      " cannot find your",       NULL         },
    {REPLY_CLASS_DNS,          NULL,      " dns",                    " fail"      },
    {REPLY_CLASS_DNS,          NULL,      " dns",                    " time"      },
    {REPLY_CLASS_DNS,          NULL,      " dns",                    " error"     },
};

enum reply_class_class
reply_class_classify(const struct outcome *outcome)
{
    if (outcome->verdict != VERDICT_DEFERRED)
        return REPLY_CLASS_PLAIN;
    if (outcome->blame == BLAME_ADDRESS)
        return REPLY_CLASS_ADDRESS;
    if (outcome->code == 0 &&
        strcmp(outcome->enhanced, REPLY_CLASS_TOKEN_ENHANCED) == 0)
        return REPLY_CLASS_TOKEN;
    if (outcome->code == 0)
        return strcmp(outcome->enhanced, "4.4.3") == 0 ? REPLY_CLASS_DNS
                                                       : REPLY_CLASS_PLAIN;
    if (outcome->code / 100 != 4)
        return REPLY_CLASS_PLAIN;
    struct outcome_sentence said;
    struct reply_words words;
    (void)outcome_reply_read(outcome, &said);
    reply_words_make(&words, said.reply);
    for (const struct row *r = rows; r < rows + sizeof(rows) / sizeof(rows[0]); r++)
        if ((r->enhanced == NULL || strcmp(r->enhanced, outcome->enhanced) == 0) &&
            (r->phrase == NULL || reply_words_have(&words, r->phrase, r->then)))
            return r->class;
    return REPLY_CLASS_PLAIN;
}

/* Milliseconds of a unit that a word begins with; 0: it is not a unit. */
static int64_t
unit_ms(struct text t)
{
    static const struct {
        struct text word;
        int64_t ms;
    } units[] = {
        {TEXT("s"),       1000     },
        {TEXT("sec"),     1000     },
        {TEXT("secs"),    1000     },
        {TEXT("second"),  1000     },
        {TEXT("seconds"), 1000     },
        {TEXT("m"),       MINUTE_MS},
        {TEXT("min"),     MINUTE_MS},
        {TEXT("mins"),    MINUTE_MS},
        {TEXT("minute"),  MINUTE_MS},
        {TEXT("minutes"), MINUTE_MS},
        {TEXT("h"),       HOUR_MS  },
        {TEXT("hour"),    HOUR_MS  },
        {TEXT("hours"),   HOUR_MS  },
    };
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (text_equal(t, units[i].word))
            return units[i].ms;
    return 0;
}

/* "00:05:00" or "05:00". 0: not a time. */
static int64_t
clock_ms(struct text t)
{
    struct text field;
    uint64_t sum = 0, value;
    int fields = 0;
    while (text_cut(&t, ':', &field)) {
        if (!text_number(field, 999, &value) || ++fields > 3)
            return 0;
        sum = sum * 60 + value;
    }
    return fields < 2 ? 0 : (int64_t)sum * 1000;
}

/* "300 seconds", "300s", "00:05:00"; next is the word that follows. */
static int64_t
reply_class_span_ms(struct text word, struct text next)
{
    size_t digits = text_digits(word);
    uint64_t value;
    if (!text_number(text_before(word, digits), 1000000, &value))
        return 0;
    if (digits == word.length)
        return (int64_t)value * unit_ms(next);
    int64_t clock = clock_ms(word);
    return clock > 0 ? clock : (int64_t)value * unit_ms(text_after(word, digits));
}

int64_t
reply_class_asked_ms(const struct outcome *o)
{
    static const struct text before[] = {TEXT("in"),   TEXT("after"), TEXT("for"),
                                         TEXT("wait"), TEXT("least"), TEXT("within")};
    struct outcome_sentence said;
    struct reply_words words;
    (void)outcome_reply_read(o, &said);
    reply_words_make(&words, said.reply);
    struct text rest = text_from(words.at), last = TEXT(""), word = TEXT(""), next;
    while (text_word(&rest, " ", &next) || word.length > 0) {
        for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
            int64_t span =
                text_equal(last, before[i]) ? reply_class_span_ms(word, next) : 0;
            if (span > 0)
                return span;
        }
        last = word;
        word = next;
    }
    return 0;
}

/* After RCPT, once others of the transaction were accepted. A bare 452 can mean a full
 * disk, too; then the next transaction has no recipient, and the refusal counts. */
bool
reply_class_is_of_recipients(const struct outcome *o)
{
    struct outcome_sentence said;
    struct reply_words words;
    if (o->code / 100 != 4 && o->code / 100 != 5)
        return false;
    if (o->code != 421 && strcmp(o->enhanced + 1, ".5.3") == 0)
        return true;
    if ((o->code != 452 && o->code != 552) || strcmp(o->enhanced + 1, ".0.0") != 0)
        return false;
    (void)outcome_reply_read(o, &said);
    reply_words_make(&words, said.reply);
    return reply_words_have(&words, " recipients", NULL) ||
           reply_class_classify(o) == REPLY_CLASS_PLAIN;
}

static int64_t
reply_class_clip(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int64_t
greylist_ms(int64_t age_ms, int64_t minimal_ms, int64_t maximal_ms)
{
    if (age_ms >= 30 * MINUTE_MS)
        return retry_delay_ms(age_ms, minimal_ms, maximal_ms);
    return maximal_ms < 5 * MINUTE_MS ? maximal_ms : 5 * MINUTE_MS;
}

int64_t
reply_class_delay_ms(enum reply_class_class class, const struct outcome *outcome,
                     int64_t age_ms, int64_t minimal_ms, int64_t maximal_ms)
{
    int64_t plain = retry_delay_ms(age_ms, minimal_ms, maximal_ms);
    int64_t delay;
    switch (class) {
    case REPLY_CLASS_PLAIN:
    case REPLY_CLASS_BUSY:
    case REPLY_CLASS_DNS:
    case REPLY_CLASS_TOKEN:
        return plain;
    case REPLY_CLASS_ADDRESS:
        return ADDRESS_MS;
    case REPLY_CLASS_FULL_MAILBOX: {
        int64_t patient = reply_class_clip(age_ms, HOUR_MS, 4 * HOUR_MS);
        return patient > plain ? patient : plain;
    }
    case REPLY_CLASS_GREYLIST:
    case REPLY_CLASS_RATE:
        delay = reply_class_asked_ms(outcome);
        if (delay > 0)
            return reply_class_clip(delay, MINUTE_MS, HOUR_MS);
        return class == REPLY_CLASS_GREYLIST
                   ? greylist_ms(age_ms, minimal_ms, maximal_ms)
                   : retry_delay_ms(age_ms, MINUTE_MS, maximal_ms);
    }
    abort(); /* not a class */
}

bool
reply_class_refuses_us(const struct outcome *outcome)
{
    return outcome->verdict == VERDICT_DEFERRED && outcome->blame == BLAME_SITE &&
           strcmp(outcome->enhanced, "4.7.8") == 0;
}

bool reply_class_counts(enum reply_class_class class)
{
    return class != REPLY_CLASS_RATE && class != REPLY_CLASS_ADDRESS &&
           class != REPLY_CLASS_TOKEN;
}
