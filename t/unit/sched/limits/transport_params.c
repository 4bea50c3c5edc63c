/* Transport parameters: Postfix's defaults, feedback notation, options of routes. */
#include "sched/limits/transport_params.h"

#include "t/support/tap.h"

static bool
feedback_is(const char *written, enum feedback_kind kind, unsigned a, unsigned b)
{
    struct feedback f;
    return transport_params_parse_feedback(text_from(written), &f) && f.kind == kind &&
           (uint64_t)f.numerator * b == (uint64_t)a * f.denominator &&
           f.denominator > 0;
}

TEST(feedback)
{
    static const char *const bad[] = {"",
                                      "-1",
                                      "1.5",
                                      "2",
                                      "1/0",
                                      "x",
                                      "1/2/3",
                                      "1/",
                                      "/2",
                                      ".",
                                      "5/4",
                                      "0.00001",
                                      "1,5",
                                      "1/cohorts",
                                      "1e-1",
                                      "+1",
                                      "1/-4",
                                      "0x1",
                                      "1 4",
                                      "99999/99999",
                                      "2/concurrency",
                                      "1/concurrency2",
                                      "10001/10001"};
    ok(feedback_is("1", FEEDBACK_CONSTANT, 1, 1));
    ok(feedback_is("0", FEEDBACK_CONSTANT, 0, 1));
    ok(feedback_is("1.0", FEEDBACK_CONSTANT, 1, 1));
    ok(feedback_is("0.25", FEEDBACK_CONSTANT, 1, 4));
    ok(feedback_is(".5", FEEDBACK_CONSTANT, 1, 2));
    ok(feedback_is("1/4", FEEDBACK_CONSTANT, 1, 4));
    ok(feedback_is(" 3 / 4 ", FEEDBACK_CONSTANT, 3, 4));
    ok(feedback_is("0.3333", FEEDBACK_CONSTANT, 3333, 10000));
    ok(feedback_is("10000/10000", FEEDBACK_CONSTANT, 1, 1));
    ok(feedback_is("1/concurrency", FEEDBACK_CONCURRENCY, 1, 1));
    ok(feedback_is("0.5/Concurrency", FEEDBACK_CONCURRENCY, 1, 2));
    ok(feedback_is("1/sqrt_concurrency", FEEDBACK_SQRT_CONCURRENCY, 1, 1));
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct feedback f = {FEEDBACK_CONSTANT, 7, 9};
        char name[80];
        snprintf(name, sizeof(name), "feedback '%s' is refused", bad[i]);
        ok_named(!transport_params_parse_feedback(text_from(bad[i]), &f), name);
        ok_named(f.numerator == 7 && f.denominator == 9, "and changes nothing");
    }
}

TEST(defaults)
{
    struct transport_params t;
    memset(&t, 0xee, sizeof(t));
    transport_params_default(&t);
    is_number(t.initial_concurrency, 5, "initial_destination_concurrency");
    is_number(t.concurrency_limit, 20, "default_destination_concurrency_limit");
    is_number(t.recipient_limit, 50, "default_destination_recipient_limit");
    is_number(t.failed_cohort_limit, 1, "failed_cohort_limit");
    is_number(t.positive.numerator, 1, "positive feedback 1");
    is_number(t.negative.denominator, 1, "negative feedback 1");
    is_number(t.rate_delay_ms, 0, "no rate delay");
    is_number(t.minimal_backoff_ms, 300000, "minimal_backoff_time");
    is_number(t.maximal_backoff_ms, 4000000, "maximal_backoff_time");
    is_number(t.lifetime_ms, 432000000, "maximal_queue_lifetime");
    is_number(t.bounce_lifetime_ms, 432000000, "bounce_queue_lifetime");
    is_number(t.delay_warning_ms, 0, "no delay warning");
    ok(t.slot_cost == 5 && t.slot_loan == 3 && t.slot_discount == 50 &&
       t.minimum_slots == 3);
}

static bool
option(struct transport_params *t, const char *key, const char *value)
{
    return transport_params_option(t, text_from(key), text_from(value));
}

TEST(options)
{
    struct transport_params t;
    transport_params_default(&t);
    ok(option(&t, "concurrency", "7") && t.concurrency_limit == 7);
    ok(option(&t, "concurrency", "0") && t.concurrency_limit == 0);
    ok(option(&t, "shared", "yes") && t.shared == TRANSPORT_SHARED);
    ok(option(&t, "shared", "No") && t.shared == TRANSPORT_NOT_SHARED);
    ok(option(&t, "initial", "2") && t.initial_concurrency == 2);
    ok(option(&t, "recipients", "7") && transport_params_recipients(&t) == 7);
    ok(option(&t, "verp", "yes") && transport_params_recipients(&t) == 1);
    ok(option(&t, "verp", "no") && transport_params_recipients(&t) == 7);
    ok(option(&t, "recipients", "1") && t.recipient_limit == 1);
    ok(option(&t, "cohort", "10") && t.failed_cohort_limit == 10);
    ok(option(&t, "positive", "1/concurrency") &&
       t.positive.kind == FEEDBACK_CONCURRENCY);
    ok(option(&t, "negative", "1/4") && t.negative.denominator == 4);
    ok(option(&t, "rate_delay", "2s") && t.rate_delay_ms == 2000);
    ok(option(&t, "rate_delay", "500ms") && t.rate_delay_ms == 500);
    ok(option(&t, "minimal_backoff", "1m") && t.minimal_backoff_ms == 60000);
    ok(option(&t, "maximal_backoff", "2h") && t.maximal_backoff_ms == 7200000);
    ok(option(&t, "lifetime", "0") && t.lifetime_ms == 0);
    ok(option(&t, "bounce_lifetime", "1d") && t.bounce_lifetime_ms == 86400000);
    ok(option(&t, "default_destination_concurrency_limit", "3") &&
       t.concurrency_limit == 3);
    ok(option(&t, "smtp_destination_concurrency_limit", "4") &&
       t.concurrency_limit == 4);
    ok(option(&t, "lmtp_destination_recipient_limit", "9") && t.recipient_limit == 9);
    ok(option(&t, "initial_destination_concurrency", "1") &&
       t.initial_concurrency == 1);
    ok(option(&t, "default_destination_concurrency_negative_feedback", "0") &&
       t.negative.numerator == 0);
    ok(option(&t, "maximal_queue_lifetime", "2d") && t.lifetime_ms == 172800000);
    ok(option(&t, "default_delivery_slot_cost", "2") && t.slot_cost == 2);
    ok(option(&t, "Default_Minimum_Delivery_Slots", "8") && t.minimum_slots == 8);
}

TEST(bad_options)
{
    static const struct {
        const char *key, *value;
    } bad[] = {
        {"concurrency",         ""                    },
        {"concurrency",         "-1"                  },
        {"concurrency",         "x"                   },
        {"concurrency",         "100001"              },
        {"initial",             "0"                   },
        {"initial",             "1.5"                 },
        {"positive",            "2"                   },
        {"negative",            "-1"                  },
        {"rate_delay",          "2 days"              },
        {"rate_delay",          "2d"                  },
        {"minimal_backoff",     "0"                   },
        {"lifetime",            "101d"                },
        {"lifetime",            "-1"                  },
        {"slot_discount",       "101"                 },
        {"",                    "1"                   },
        {"concurency",          "1"                   },
        {"default_",            "1"                   },
        {"default_concurrency", "1"                   },
        {"recipients",          "99999999999999999999"},
        {"maximal_backoff",     "1h30m"               },
        {"shared",              ""                    },
        {"shared",              "1"                   },
        {"shared",              "yes,no"              },
        {"shared",              "never"               },
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct transport_params t, before;
        char name[80];
        memset(&t, 0, sizeof(t));
        transport_params_default(&t);
        before = t;
        snprintf(name, sizeof(name), "%s=%s is refused", bad[i].key, bad[i].value);
        ok_named(!option(&t, bad[i].key, bad[i].value), name);
        ok_named(t.concurrency_limit == before.concurrency_limit &&
                     t.initial_concurrency == before.initial_concurrency &&
                     t.recipient_limit == before.recipient_limit &&
                     t.rate_delay_ms == before.rate_delay_ms &&
                     t.lifetime_ms == before.lifetime_ms &&
                     t.minimal_backoff_ms == before.minimal_backoff_ms,
                 "and changes nothing");
    }
}

/* Limits that a route has of its own are kept exactly by a group of hosts. */
TEST(strict)
{
    static const struct {
        const char *key, *value;
        bool is_strict;
    } rows[] = {
        {"recipients",  "7",    false},
        {"concurrency", "20",   false}, /* the default */
        {"concurrency", "0",    false},
        {"concurrency", "19",   true },
        {"rate",        "10/s", true },
        {"shared",      "yes",  true },
        {"shared",      "no",   false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct transport_params t;
        char name[80];
        transport_params_default(&t);
        ok(option(&t, rows[i].key, rows[i].value));
        snprintf(name, sizeof(name), "%s=%s", rows[i].key, rows[i].value);
        ok_named(transport_params_is_strict(&t) == rows[i].is_strict, name);
    }
}
