/* Reads scenarios: the mail that arrives. */
#include "t/simulation/scenario_internal.h"

#include "base/settings/settings.h"
#include "sched/limits/bucket.h"

#include <stdio.h>

static bool
read_class(struct reader *r, struct text value, enum sched_class *class)
{
    if (text_equal(value, TEXT("normal")))
        *class = SCHED_CLASS_NORMAL;
    else if (text_equal(value, TEXT("urgent")))
        *class = SCHED_CLASS_URGENT;
    else if (text_equal(value, TEXT("bulk")))
        *class = SCHED_CLASS_BULK;
    else {
        scenario_complain(r, "'%.*s' is not a class: normal, urgent or bulk",
                          TEXT_ARGS(scenario_shown(value)));
        return false;
    }
    return true;
}

static bool
scenario_read_rate(struct reader *r, struct text value, int64_t *every_us)
{
    struct rate rate;
    if (!bucket_rate_parse(value, &rate) || rate.amount == 0) {
        scenario_complain(r, "'%.*s' is not a rate such as 10/s",
                          TEXT_ARGS(scenario_shown(value)));
        return false;
    }
    *every_us = rate.period_ms * 1000 / rate.amount;
    return true;
}

static bool
scenario_read_size(struct reader *r, struct text value, uint64_t *size)
{
    int64_t bytes;
    if (!settings_parse_size(value, &bytes) || bytes < 0) {
        scenario_complain(r, "'%.*s' is not a size such as 10K",
                          TEXT_ARGS(scenario_shown(value)));
        return false;
    }
    *size = (uint64_t)bytes;
    return true;
}

/* The parts of the statement; they are checked when all are known. */
struct arriving {
    struct scenario_arrival arrival;
    struct text domain, sender, name;
    int64_t for_us; /* 0: by count */
    bool has_class;
};

static bool
read_arrival_part(struct reader *r, struct arriving *a, struct text word)
{
    struct scenario_arrival *arrival = &a->arrival;
    size_t equals = text_find(word, '=');
    struct text key = text_before(word, equals),
                value = equals == TEXT_NONE ? TEXT("") : text_after(word, equals + 1);
    uint64_t number = 0;
    bool good = true;
    if (text_equal(word, TEXT("random")))
        arrival->random = true;
    else if (text_equal(key, TEXT("domain")))
        a->domain = value;
    else if (text_equal(key, TEXT("sender")))
        a->sender = value;
    else if (text_equal(key, TEXT("name")))
        a->name = value;
    else if (text_equal(key, TEXT("class"))) {
        good = read_class(r, value, &arrival->class);
        a->has_class = true;
    } else if (text_equal(key, TEXT("count"))) {
        good = scenario_read_number(r, value, 1, SCENARIO_MESSAGES_MAX, &number);
        arrival->messages = (unsigned)number;
    } else if (text_equal(key, TEXT("recipients"))) {
        good = scenario_read_number(r, value, 1, SCENARIO_RECIPIENTS_MAX, &number);
        arrival->recipients = (unsigned)number;
    } else if (text_equal(key, TEXT("size")))
        good = scenario_read_size(r, value, &arrival->size);
    else if (text_equal(key, TEXT("at")))
        good = scenario_read_time(r, value, &arrival->at_us);
    else if (text_equal(key, TEXT("every")))
        good = scenario_read_time(r, value, &arrival->every_us);
    else if (text_equal(key, TEXT("for")))
        good = scenario_read_time(r, value, &a->for_us);
    else if (text_equal(key, TEXT("rate")))
        good = scenario_read_rate(r, value, &arrival->every_us);
    else {
        scenario_complain(
            r,
            "'%.*s' is not a part of 'arrive': domain= count= recipients= size= "
            "sender= class= name= at= every= rate= for= random",
            TEXT_ARGS(scenario_shown(word)));
        good = false;
    }
    return good;
}

/* The number of messages that arrive in the time given. */
static bool
count_messages(struct reader *r, struct arriving *a)
{
    if (a->for_us == 0)
        return true;
    int64_t count = a->arrival.every_us > 0 ? a->for_us / a->arrival.every_us : 0;
    if (count < 1 || count > SCENARIO_MESSAGES_MAX) {
        scenario_complain(r,
                          "for=TIME needs rate= or every=, and makes 1 to %d messages",
                          SCENARIO_MESSAGES_MAX);
        return false;
    }
    a->arrival.messages = (unsigned)count;
    return true;
}

void
scenario_read_arrive(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct arriving a = {
        .arrival = {.messages = 1, .recipients = 1, .size = 10240},
        .sender = TEXT("sender@example.net")
    };
    char name[32];
    struct text word;
    while (scenario_next_word(&rest, &word))
        if (!read_arrival_part(r, &a, word))
            return;
    if (!scenario_domain_find(s, a.domain, &a.arrival.first, &a.arrival.count)) {
        scenario_complain(r, "domain=NAME must name a domain defined above, not '%.*s'",
                          TEXT_ARGS(scenario_shown(a.domain)));
        return;
    }
    if (!count_messages(r, &a))
        return;
    s->messages += a.arrival.messages;
    if (s->messages > SCENARIO_MESSAGES_MAX) {
        scenario_complain(r, "more than %d messages", SCENARIO_MESSAGES_MAX);
        return;
    }
    if (!a.has_class && r->defaults->bulk_size > 0 &&
        a.arrival.size >= r->defaults->bulk_size)
        a.arrival.class = SCHED_CLASS_BULK;
    snprintf(name, sizeof(name), "line %zu", r->line);
    a.arrival.name = a.name.length > 0 ? text_string(a.name) : memory_string(name);
    a.arrival.sender = text_string(a.sender);
    s->arrivals = scenario_grown(s->arrivals, s->arrival_count, &s->arrival_capacity,
                                 sizeof(*s->arrivals));
    s->arrivals[s->arrival_count++] = a.arrival;
}
