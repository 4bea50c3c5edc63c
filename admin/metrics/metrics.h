/* GET /metrics: one table of families, for both formats and for petrel-metrics(7).
 *
 * Its size does not depend on mail: label values are fixed lists, but for sites: those
 * with most mail have series of their own. Counters come from events, the rest is read
 * when it is asked for. */
#ifndef ADMIN_METRICS_METRICS_H
#define ADMIN_METRICS_METRICS_H

#include "admin/http/http_exchange.h"
#include "admin/http/http_server.h"
#include "admin/metrics/metrics_counters.h"
#include "queue/manager/manager.h"

struct event_hub;
struct health;
struct log;
struct loop;
struct metrics;
struct tls_server;

enum {
    METRICS_SITES_TOP = 20, /* of `metrics_sites` */
    METRICS_SITES_MAX = 30, /* with those that are kept */
    METRICS_SITE_KEEP_MS = 60 * 60 * 1000
};

struct metrics_upstream {
    char relay[256 + 8]; /* "host:port" */
    bool is_up;
    int64_t good_ms;
};

/* Connections of clients since startup. */
enum { METRICS_REFUSED_MAX = 8 };
struct metrics_clients {
    uint64_t opened, logins;
    /* Those that got no session, by its word; NULL behind the last. */
    const char *refused[METRICS_REFUSED_MAX + 1];
    uint64_t refused_counts[METRICS_REFUSED_MAX];
    const double *accept_bounds; /* from the end of content to 250 */
    size_t accept_bound_count;
    struct metric_histogram accepts;
};

/* The group of hosts. */
struct metrics_group {
    bool has_bank, is_up;
    size_t members, lost, fallback_sites;
    uint64_t answered, failures; /* questions to the bank */
};

/* Copies of mail in Redis. */
struct metrics_copies {
    uint64_t adopted, recalled, given_up, unreadable;
    bool is_up;
    uint64_t behind, stored, removed, refused, losses;
};

struct metrics_setup {
    struct loop *loop;
    struct manager *manager;
    struct event_hub *events;
    size_t sites; /* with series of their own; `metrics_sites` */
    /* Sessions in. */
    size_t (*count_sessions)(void *context, bool *stressed);
    void *count_context;
    bool (*is_draining)(void *context);
    void *context;
    const struct health *health; /* NULL: it is always ready */
    struct log *log;             /* NULL: no lines are counted */
    /* The certificates in force; NULL: none. */
    struct tls_server *(*tls)(void *context);
    void *tls_context;
    /* NULL: nobody counts. */
    void (*clients)(void *context, struct metrics_clients *out);
    void *clients_context;
    size_t client_sessions_limit; /* `server_session_limit` */
    /* The size of the history's files. */
    int64_t (*history_bytes)(void *context);
    void *history;
    /* The code of a finding that may hold: "" if it does not; NULL behind the last. */
    const char *(*finding)(void *context, size_t index);
    void *findings;
    /* A smarthost, its state, and the time of its last success (unix; 0: none). False
     * behind the last. NULL: there are none. */
    bool (*upstream)(void *context, size_t index, struct metrics_upstream *out);
    void *upstreams;
    /* Sessions under a demand of DANE or MTA-STS: [dane, sts][ok, failed]. NULL: there are
     * none. */
    void (*tls_policy)(void *context, uint64_t counts[2][2]);
    void *deliveries;
    /* False, or NULL: there is no group of hosts. */
    bool (*group)(void *context, struct metrics_group *out);
    void *group_context;
    /* False, or NULL: there are no copies. context: that of the group. */
    bool (*copies)(void *context, struct metrics_copies *out);
};
/* Before the sandbox: opens files of /proc. */
struct metrics *metrics_new(const struct metrics_setup *setup);
void metrics_free(struct metrics **metrics);
/* Before the first request. */
void metrics_set_server(struct metrics *metrics, const struct http_server *server);
void metrics_set_sites(struct metrics *metrics, size_t sites);
void metrics_set_limit(struct metrics *metrics, size_t client_sessions_limit);
void metrics_note_reload(struct metrics *metrics, bool good);

/* How busy the host is, 0 to 1, in the mean of the last minute. */
double metrics_busy(const struct metrics *metrics);

/* In the format that the request accepts. With many sites it is a stream, which reads
 * METRICS_SITES_STEP of them at a time and then has one piece. */
enum { METRICS_SITES_STEP = 500 };
void metrics_answer(struct metrics *metrics, struct http_exchange *exchange);
/* As read last. */
void metrics_write_all(struct metrics *metrics, struct metrics_writer *writer);

/* The table, for the manual. NULL behind the last. */
const struct metric_family *metrics_family_at(size_t index);

#endif
