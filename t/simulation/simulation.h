/* Runs a scenario (t/simulation/scenario.h) with the real scheduler, simulated
 * servers, virtual time, and chance from a seed. Pure: the same scenario gives the same
 * result and trace. It opens no socket and no file.
 *
 * The client is a short form of smtp/client: a look-up finds a session's site,
 * addresses are tried one after the other, a greeted session takes mail until there is
 * none, the next with the content of the one before where a server replies promptly, and
 * stays idle for a moment. Not simulated: network traffic. */
#ifndef T_SIMULATION_SIMULATION_H
#define T_SIMULATION_SIMULATION_H

#include "t/simulation/scenario.h"

/* For each arrive statement: from arrival to the last recipient's delivery. */
struct simulation_group {
    const char *name; /* the scenario's */
    unsigned messages, delivered, failed;
    int64_t mean_ms, median_ms, p99_ms, max_ms;
    int64_t first_ms, last_ms; /* of deliveries, since the start; last 0: none */
    unsigned behind;           /* places that a message has lost, at most: 0 when all
                                * leave in order of arrival */
};

struct simulation_site {
    const char *name;                 /* the scenario's */
    uint64_t delivered;               /* transactions */
    unsigned sessions, peak_sessions; /* of the client, from the look-up on */
    unsigned peak_open;               /* of all servers together */
    int64_t busy_us;                  /* in transactions */
};

struct simulation_result {
    bool finished; /* no message is left */
    int64_t end_ms, last_delivery_ms;
    uint64_t messages, messages_delivered, messages_failed;
    uint64_t recipients_delivered, recipients_failed;
    uint64_t works;    /* transactions that delivered */
    uint64_t deferred; /* verdicts for recipients; among them: */
    uint64_t tempfails, rate_limited, suspended; /* without a session */
    uint64_t opens, connects, greeted, refused, timed_out, lost;
    uint64_t transactions; /* begun */
    uint64_t deaths;
    size_t peak_queue, peak_active, peak_recipients, peak_sessions;
    uint64_t window_events; /* of up to 16 sites; after each feedback: */
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

/* A report for people. */
void simulation_report(const struct simulation_result *result,
                       const struct scenario *scenario, struct buffer *out);

#endif
