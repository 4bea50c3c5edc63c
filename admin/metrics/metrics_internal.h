/* The data of a scrape, for the families of metrics_families.c. */
#ifndef ADMIN_METRICS_METRICS_INTERNAL_H
#define ADMIN_METRICS_METRICS_INTERNAL_H

#include "admin/metrics/metrics.h"
#include "admin/view/counters.h"
#include "base/disk/disk.h"
#include "base/loop/loop.h"

/* Statuses of a site: not expired, which is the end of many attempts. */
enum { METRICS_KEY_MAX = 256, METRICS_SITE_STATUSES = 3 };

/* A site with series of its own. */
struct metrics_site {
    char key[METRICS_KEY_MAX];
    uint64_t hash;    /* of the key: most comparisons end with it */
    int64_t until_ms; /* its series stay until then; monotonic */
    bool is_here;
    uint64_t deliveries[METRICS_SITE_STATUSES];
    /* of the scrape */
    double waiting, backlogged, sessions, window, alive, rate, latency_s;
};

struct metrics_top {
    size_t count;
    struct {
        uint64_t mail;
        char key[METRICS_KEY_MAX];
    } rows[METRICS_SITES_TOP];
};

/* Reading for a scrape: sites are walked over twice, some in a step. */
enum metrics_stage {
    METRICS_RESTING,
    METRICS_WEIGHING, /* which sites have most mail */
    METRICS_SEEING    /* all that is said of sites */
};

/* Samples of the last minute. */
enum { METRICS_BUSY_MS = 10 * 1000, METRICS_BUSY_SAMPLES = 6 };
struct metrics_busy {
    struct loop_timer timer;
    double samples[METRICS_BUSY_SAMPLES];
    size_t count, next;
    int64_t at_us, worked_us; /* of the last one */
};

struct metrics {
    struct metrics_setup setup;
    const struct http_server *server;
    struct metrics_counters counters;
    uint64_t reloads[2]; /* ok, refused */
    bool reload_good;
    double started_s;     /* unix time */
    struct disk *process; /* /proc/self; NULL: not there */
    int statm, descriptors;
    struct metrics_site sites[METRICS_SITES_MAX];
    size_t site_count;
    uint64_t other_deliveries[METRICS_SITE_STATUSES]; /* never of the scrape */
    struct metrics_busy busy;
    int64_t fresh_until_us; /* loop_clock_us() */
    enum metrics_stage stage;
    struct sched_walk *walk;
    int64_t stepped_us,
        busy_us; /* the last step; the time of all since the beginning */
    struct metrics_top top;
    /* of the scrape */
    struct counters now;
    bool has_group, has_copies;
    struct metrics_group group;
    struct metrics_copies copies;
    struct metrics_clients clients;
    struct metrics_site others;
    uint64_t alive, probing, dead, bound[SCHED_BOUNDS];
    /* read when they are written */
    struct {
        bool accepting, draining, ready, has_log;
        int64_t history_bytes;
        uint64_t tls[2][2], lost_lines;
        struct event_keeping keeping;
    } live;
};

/* Reads all that a scrape needs, unless it has just been read: a client that asks very
 * often may use a twentieth of the time, for any number of sites. Looks at no more than
 * `most` sites; false: not all is read yet. Several scrapes may go on with one
 * reading. */
bool metrics_gather(struct metrics *m, size_t most);

/* Reads the rest, which needs no time. */
void metrics_read_live(struct metrics *m);

/* --- metrics_process.c ------------------------------------------------------------- */

void metrics_busy_start(struct metrics *m);
void metrics_busy_stop(struct metrics *m);
void metrics_write_busy(const struct metrics *m, struct metrics_writer *w);

void metrics_write_turns(const struct metrics *m, struct metrics_writer *w);
void metrics_write_refused(const struct metrics *m, struct metrics_writer *w);
void metrics_write_accepts(const struct metrics *m, struct metrics_writer *w);
void metrics_write_sync_times(const struct metrics *m, struct metrics_writer *w);
void metrics_write_certificates(const struct metrics *m, struct metrics_writer *w);
void metrics_write_lines(const struct metrics *m, struct metrics_writer *w);

#endif
