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
    SITE_NUMBER_MAX = 1000000 /* of any setting */
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

struct site_settings {
    int64_t sessions; /* at once, others hear 421; < 0 = no limit */
    int64_t delay_ms[STAGES];
};

enum count {
    COUNT_MESSAGES,
    COUNT_RECIPIENTS, /* of messages that were taken */
    COUNT_BYTES,
    COUNT_CONNECTIONS,
    COUNT_REFUSED, /* replies */
    COUNTS
};

static const char *const count_names[COUNTS] = {"messages", "recipients", "bytes",
                                                "connections", "refused"};

struct tally {
    unsigned long long count[COUNTS];
    size_t open, open_max; /* sessions that have a place */
};

struct site {
    struct sink *sink;
    struct net_address address;
    struct net_listener *listener;
    struct site_settings set;
    struct tally tally, *total;
};

/* --- Settings --- */

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
    struct text name = TEXT("");
    text_cut(&word, '=', &name);
    if (word.at == NULL) /* there was no '=' */
        word = TEXT("");
    if (text_starts(name, TEXT("delay.")))
        return read_delay(set, text_after(name, 6), word);
    return text_equal(name, TEXT("sessions")) && read_count(word, &set->sessions);
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
    site->set = set;
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

/* Sessions that are there already go on. */
static void
tally_reset(struct tally *t)
{
    *t = (struct tally){.open = t->open, .open_max = t->open};
}

/* Adds them to an object. */
static void
tally_print(const struct tally *t, json_t *to)
{
    for (int i = 0; i < COUNTS; i++)
        json_object_set_new(to, count_names[i], json_integer((json_int_t)t->count[i]));
    json_object_set_new(to, "sessions_max", json_integer((json_int_t)t->open_max));
}

#endif
