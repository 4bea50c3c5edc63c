/* Scheduling parameters of a transport: defaults, feedback and route options. */
#include "sched/limits/transport_params.h"

#include "base/settings/settings.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

enum {
    FEEDBACK_DENOMINATOR_MAX = 10000, /* four decimals; squares fit in 64 bits */
    COUNT_MAX = 100000
};

#define SECOND_MS   INT64_C(1000)
#define DAY_MS      (24 * 3600 * SECOND_MS)
#define LIFE_MAX_MS (100 * DAY_MS)

enum option_kind {
    OPTION_NUMBER,
    OPTION_DURATION,
    OPTION_FEEDBACK,
    OPTION_RATE,
    OPTION_QUOTA,
    OPTION_YES,
    OPTION_SHARED
};

struct option {
    const char *name, *setting; /* short name; Postfix's without its prefix */
    enum option_kind kind;
    size_t offset;
    uint64_t min, max;
};

#define ROW(name, setting, kind, field, min, max)                                      \
    {                                                                                  \
        name, setting, OPTION_##kind, offsetof(struct transport_params, field), min,   \
            max                                                                        \
    }

static const struct option options[] = {
    ROW("concurrency", "destination_concurrency_limit", NUMBER, concurrency_limit, 0,
        COUNT_MAX),
    ROW("initial", "initial_destination_concurrency", NUMBER, initial_concurrency, 1,
        COUNT_MAX),
    ROW("recipients", "destination_recipient_limit", NUMBER, recipient_limit, 0,
        COUNT_MAX),
    ROW("cohort", "destination_concurrency_failed_cohort_limit", NUMBER,
        failed_cohort_limit, 0, COUNT_MAX),
    ROW("positive", "destination_concurrency_positive_feedback", FEEDBACK, positive, 0,
        0),
    ROW("negative", "destination_concurrency_negative_feedback", FEEDBACK, negative, 0,
        0),
    ROW("rate_delay", "destination_rate_delay", DURATION, rate_delay_ms, 0, DAY_MS),
    ROW("transport_rate_delay", "transport_rate_delay", DURATION,
        transport_rate_delay_ms, 0, DAY_MS),
    ROW("rate", "destination_rate", RATE, rate, 0, 0),
    ROW("quota", "destination_quota", QUOTA, quota, 0, 0),
    ROW("verp", "verp", YES, verp, 0, 1),
    ROW("adaptive", "destination_adaptive", YES, adaptive, 0, 1),
    ROW("shared", "destination_shared", SHARED, shared, 0, 0),
    ROW("reuse", "connection_reuse_count_limit", NUMBER, reuse_limit, 0, COUNT_MAX),
    ROW("minimal_backoff", "minimal_backoff_time", DURATION, minimal_backoff_ms,
        SECOND_MS, LIFE_MAX_MS),
    ROW("maximal_backoff", "maximal_backoff_time", DURATION, maximal_backoff_ms,
        SECOND_MS, LIFE_MAX_MS),
    ROW("lifetime", "maximal_queue_lifetime", DURATION, lifetime_ms, 0, LIFE_MAX_MS),
    ROW("bounce_lifetime", "bounce_queue_lifetime", DURATION, bounce_lifetime_ms, 0,
        LIFE_MAX_MS),
    ROW("delay_warning", "delay_warning_time", DURATION, delay_warning_ms, 0,
        LIFE_MAX_MS),
    ROW("slot_cost", "delivery_slot_cost", NUMBER, slot_cost, 0, COUNT_MAX),
    ROW("slot_loan", "delivery_slot_loan", NUMBER, slot_loan, 0, COUNT_MAX),
    ROW("slot_discount", "delivery_slot_discount", NUMBER, slot_discount, 0, 100),
    ROW("minimum_slots", "minimum_delivery_slots", NUMBER, minimum_slots, 0, COUNT_MAX),
};

/* "1", "0.25", ".5" as numerator and denominator; four decimals at most. */
static bool
decimal_parse(struct text t, unsigned *numerator, unsigned *denominator)
{
    size_t dot = text_find(t, '.');
    struct text whole = dot == TEXT_NONE ? t : text_before(t, dot);
    struct text rest = dot == TEXT_NONE ? TEXT("") : text_after(t, dot + 1);
    uint64_t value = 0, decimals = 0;
    unsigned scale = 1;
    if (whole.length == 0 && rest.length == 0)
        return false;
    if (whole.length > 0 && !text_number(whole, FEEDBACK_DENOMINATOR_MAX, &value))
        return false;
    if (dot != TEXT_NONE && rest.length > 0) {
        if (rest.length > 4 || !text_number(rest, FEEDBACK_DENOMINATOR_MAX, &decimals))
            return false;
        for (size_t i = 0; i < rest.length; i++)
            scale *= 10;
    }
    if (value * scale + decimals > FEEDBACK_DENOMINATOR_MAX)
        return false;
    *numerator = (unsigned)(value * scale + decimals);
    *denominator = scale;
    return true;
}

bool
transport_params_parse_feedback(struct text t, struct feedback *out)
{
    struct feedback f = {.kind = FEEDBACK_CONSTANT};
    struct text trimmed = text_trim(t);
    size_t slash = text_find(trimmed, '/');
    struct text base = slash == TEXT_NONE ? trimmed : text_before(trimmed, slash);
    if (!decimal_parse(text_trim(base), &f.numerator, &f.denominator))
        return false;
    if (slash != TEXT_NONE) {
        struct text below = text_trim(text_after(trimmed, slash + 1));
        uint64_t divisor;
        if (text_equal_nocase(below, TEXT("concurrency")))
            f.kind = FEEDBACK_CONCURRENCY;
        else if (text_equal_nocase(below, TEXT("sqrt_concurrency")))
            f.kind = FEEDBACK_SQRT_CONCURRENCY;
        else if (!text_number(below, FEEDBACK_DENOMINATOR_MAX, &divisor) ||
                 divisor == 0 || divisor * f.denominator > FEEDBACK_DENOMINATOR_MAX)
            return false;
        else
            f.denominator *= (unsigned)divisor;
    }
    if (f.numerator > f.denominator)
        return false;
    *out = f;
    return true;
}

void
transport_params_default(struct transport_params *t)
{
    /* memset, because targets, which have them, are compared as bytes. */
    memset(t, 0, sizeof(*t));
    t->initial_concurrency = 5;
    t->concurrency_limit = 20;
    t->recipient_limit = 50;
    t->positive = (struct feedback){FEEDBACK_CONSTANT, 1, 1};
    t->negative = (struct feedback){FEEDBACK_CONSTANT, 1, 1};
    t->failed_cohort_limit = 1;
    t->adaptive = 1;
    t->slot_cost = 5;
    t->slot_loan = 3;
    t->slot_discount = 50;
    t->minimum_slots = 3;
    t->minimal_backoff_ms = 300 * SECOND_MS;
    t->maximal_backoff_ms = 4000 * SECOND_MS;
    t->lifetime_ms = 5 * DAY_MS;
    t->bounce_lifetime_ms = 5 * DAY_MS;
}

int
transport_params_recipients(const struct transport_params *t)
{
    return t->verp ? 1 : t->recipient_limit;
}

int64_t
transport_params_lifetime_ms(const struct transport_params *t, bool null_sender)
{
    return null_sender && t->bounce_lifetime_ms < t->lifetime_ms ? t->bounce_lifetime_ms
                                                                 : t->lifetime_ms;
}

static bool
yes_parse(struct text value, int *is_yes)
{
    *is_yes = text_equal_nocase(value, TEXT("yes"));
    return *is_yes || text_equal_nocase(value, TEXT("no"));
}

static bool
transport_params_option_set(const struct option *o, struct transport_params *t,
                            struct text value)
{
    char *field = (char *)t + o->offset;
    uint64_t number;
    int64_t duration;
    struct feedback feedback;
    struct rate rate;
    struct quota quota;
    int is_yes;
    switch (o->kind) {
    case OPTION_NUMBER:
        if (!text_number(value, o->max, &number) || number < o->min)
            return false;
        if (o->offset == offsetof(struct transport_params, concurrency_limit))
            t->has_limit |= number > 0 && (int)number != t->concurrency_limit;
        memcpy(field, &(int){(int)number}, sizeof(int));
        return true;
    case OPTION_DURATION:
        if (!settings_parse_duration(value, &duration) || duration < (int64_t)o->min ||
            duration > (int64_t)o->max)
            return false;
        memcpy(field, &duration, sizeof(duration));
        return true;
    case OPTION_FEEDBACK:
        if (!transport_params_parse_feedback(value, &feedback))
            return false;
        memcpy(field, &feedback, sizeof(feedback));
        return true;
    case OPTION_RATE:
        if (!bucket_rate_parse(value, &rate))
            return false;
        memcpy(field, &rate, sizeof(rate));
        return true;
    case OPTION_QUOTA:
        if (!quota_parse_ramp(value, &quota))
            return false;
        memcpy(field, &quota, sizeof(quota));
        return true;
    case OPTION_YES:
        if (!yes_parse(value, &is_yes))
            return false;
        memcpy(field, &is_yes, sizeof(int));
        return true;
    case OPTION_SHARED:
        if (!yes_parse(value, &is_yes))
            return false;
        t->shared = is_yes ? TRANSPORT_SHARED : TRANSPORT_NOT_SHARED;
        return true;
    }
    return false;
}

/* Settings are default_X for all transports and smtp_X or lmtp_X for one; a route knows
 * which it is. */
static struct text
without_prefix(struct text key)
{
    static const char *const prefixes[] = {"default_", "smtp_", "lmtp_", "local_"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        struct text prefix = text_from(prefixes[i]);
        if (text_starts_nocase(key, prefix))
            return text_after(key, prefix.length);
    }
    return key;
}

bool
transport_params_is_strict(const struct transport_params *t)
{
    return t->rate.amount > 0 || t->shared == TRANSPORT_SHARED || t->has_limit;
}

bool
transport_params_option(struct transport_params *t, struct text key, struct text value)
{
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        const struct option *o = &options[i];
        if (text_equal_nocase(key, text_from(o->name)) ||
            text_equal_nocase(without_prefix(key), text_from(o->setting)))
            return transport_params_option_set(o, t, value);
    }
    return false;
}
