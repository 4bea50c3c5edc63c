/* A transport's scheduling parameters: Postfix's names and defaults
 * (doc/scheduler.md "Destinations"). Plain data. */
#ifndef SCHED_LIMITS_TRANSPORT_PARAMS_H
#define SCHED_LIMITS_TRANSPORT_PARAMS_H

#include "sched/limits/bucket.h"
#include "sched/limits/quota.h"

enum feedback_kind {
    FEEDBACK_CONSTANT,
    FEEDBACK_CONCURRENCY,
    FEEDBACK_SQRT_CONCURRENCY
};
struct feedback { /* numerator / denominator, divided by N or sqrt N */
    enum feedback_kind kind;
    unsigned numerator, denominator; /* value within 0..1 */
};
/* "1", "0.25", "1/4", "1/concurrency", "1/sqrt_concurrency" */
bool transport_params_parse_feedback(struct text t, struct feedback *out);

/* Whether a group of hosts keeps the limits together. Unset: the limits that receivers
 * count together, and exactly if the route has limits of its own. */
enum transport_shared {
    TRANSPORT_SHARED_UNSET,
    TRANSPORT_SHARED,
    TRANSPORT_NOT_SHARED
};

struct transport_params {
    int initial_concurrency;            /* 5 */
    int concurrency_limit;              /* 20; 0 = none */
    int recipient_limit;                /* 50 per transaction; 0 = none */
    struct feedback positive, negative; /* 1, 1 */
    int failed_cohort_limit;            /* 1; 0 = never dead */
    int64_t rate_delay_ms;              /* 0 */
    int64_t transport_rate_delay_ms;    /* 0 */
    struct rate rate;                   /* of transactions to a site; none */
    struct quota quota;                 /* of recipients; none */
    enum transport_shared shared;
    int has_limit;   /* the route has a concurrency of its own */
    int verp;        /* 1: a tagged sender for each recipient (mime/verp.h) */
    int adaptive;    /* 1: learn a site's limits; 0: Postfix's rules */
    int reuse_limit; /* transactions over one connection; 0 = no limit */
    int slot_cost, slot_loan, slot_discount, minimum_slots; /* 5, 3, 50, 3 */
    int64_t minimal_backoff_ms;                             /* 300 s */
    int64_t maximal_backoff_ms;                             /* 4000 s */
    int64_t lifetime_ms, bounce_lifetime_ms;                /* 5 d */
    int64_t delay_warning_ms;                               /* 0 = off */
};
/* Postfix's defaults. */
void transport_params_default(struct transport_params *t);
/* Recipients in one transaction; 0: no limit. With verp 1. */
int transport_params_recipients(const struct transport_params *t);
/* The lifetime of mail: for the null sender never longer than for others. */
int64_t transport_params_lifetime_ms(const struct transport_params *t,
                                     bool null_sender);
/* In a group no host has a part without a question. */
bool transport_params_is_strict(const struct transport_params *t);
/* One option of a route: "concurrency=20", "initial=5", "recipients=50", "cohort=1",
 * "positive=", "negative=", "rate_delay=", "quota=", "shared=", "minimal_backoff=",
 * "maximal_backoff=", "lifetime=" and the long names of the settings. False: unknown key
 * or bad value. */
bool transport_params_option(struct transport_params *t, struct text key,
                             struct text value);

#endif
