/* Runs a scenario (sched/simulate/scenario.h): the real scheduler, pretended servers,
 * virtual time, chance from a seed. Pure: the same scenario gives the same result and
 * trace.
 *
 * The client is the real one in short: a look-up tells a session's site, addresses are
 * tried one after the other, a greeted session is given mail until there is none, and
 * is kept idle for a moment. Not pretended: two transactions under way on one session,
 * and what the network carries. */
#ifndef SCHED_SIMULATION_H
#define SCHED_SIMULATION_H

#include "sched/simulate/scenario.h"

/* Of each arrive statement: from arrival to the last recipient's delivery. */
struct simulation_group {
    const char *name; /* the scenario's */
    unsigned messages, delivered, failed;
    int64_t mean_ms, median_ms, p99_ms, max_ms;
    int64_t first_ms, last_ms; /* deliveries, since the start; last 0: none */
};

struct simulation_site {
    const char *name;                 /* the scenario's */
    uint64_t delivered;               /* transactions */
    unsigned sessions, peak_sessions; /* the client's, from the look-up on */
    unsigned peak_open;               /* of the servers, together */
    int64_t busy_us;                  /* in transactions */
};

struct simulation_result {
    bool finished; /* no message is left */
    int64_t end_ms, last_delivery_ms;
    uint64_t messages, messages_delivered, messages_failed;
    uint64_t recipients_delivered, recipients_failed;
    uint64_t works;    /* transactions that delivered */
    uint64_t deferred; /* verdicts for recipients: all of them, and of these: */
    uint64_t tempfails, rate_limited, suspended; /* without a session */
    uint64_t opens, connects, greeted, refused, timed_out, lost;
    uint64_t transactions; /* begun */
    uint64_t deaths;
    size_t peak_queue, peak_active, peak_sessions;
    uint64_t window_events; /* of up to 16 sites; of these, after each feedback: */
    double window_mean, window_deviation;
    uint64_t actions; /* of the scheduler */
    struct simulation_group *groups;
    size_t group_count;
    struct simulation_site *sites;
    size_t site_count;
};

/* trace NULL: none. A line has no line end. */
struct simulation_result *simulation_run(const struct scenario *scenario,
                                         void (*trace)(void *context, struct text line),
                                         void *context);
void simulation_free(struct simulation_result **result);

/* Connections that were refused or timed out, in 100 of those that were tried. */
double simulation_refused_share(const struct simulation_result *result);
/* The same for each 100 messages delivered. */
double simulation_refused_per_100(const struct simulation_result *result);
/* In percent: of what a site (its number in the scenario) could have carried with so
 * many sessions from the first arrival to its end. */
double simulation_use(const struct simulation_result *result, size_t site,
                      unsigned sessions);

/* For people. */
void simulation_report(const struct simulation_result *result,
                       const struct scenario *scenario, struct buffer *out);

#endif
