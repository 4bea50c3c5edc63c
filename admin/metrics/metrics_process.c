/* Metrics of the process: its loop, log, disk, certificates and connections. */
#include "admin/metrics/metrics_internal.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/tls/tls.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CERTIFICATES_MAX = 16, PROCESS_LABELS_MAX = 1024 };

static_assert((int)LOOP_PACE_BOUNDS < (int)METRIC_BUCKETS_MAX &&
                  (int)DISK_PACE_BOUNDS < (int)METRIC_BUCKETS_MAX,
              "they fit");

void
metrics_write_turns(const struct metrics *m, struct metrics_writer *w)
{
    static const double bounds[LOOP_PACE_BOUNDS] = {0.001, 0.01, 0.1, 1};
    const struct loop_pace *pace = loop_pace(m->setup.loop);
    struct metric_histogram turns = {.sum = (double)pace->sum_us / 1e6};
    memcpy(turns.counts, pace->turns, sizeof(pace->turns));
    metrics_write_histogram(w, "", &turns, bounds, LOOP_PACE_BOUNDS);
}

void
metrics_write_sync_times(const struct metrics *m, struct metrics_writer *w)
{
    static const double bounds[DISK_PACE_BOUNDS] = {0.0001, 0.001, 0.01, 0.1, 1};
    const struct disk_pace *pace =
        disk_pace(queue_disk(manager_queue(m->setup.manager)));
    struct metric_histogram syncs = {.sum = (double)pace->sum_us / 1e6};
    memcpy(syncs.counts, pace->syncs, sizeof(pace->syncs));
    metrics_write_histogram(w, "", &syncs, bounds, DISK_PACE_BOUNDS);
}

/* --- Clients ------------------------------------------------------------------------ */

void
metrics_write_refused(const struct metrics *m, struct metrics_writer *w)
{
    char labels[PROCESS_LABELS_MAX];
    for (size_t i = 0; m->clients.refused[i] != NULL; i++) {
        snprintf(labels, sizeof(labels), "reason=\"%s\"", m->clients.refused[i]);
        metrics_write_count(w, labels, m->clients.refused_counts[i]);
    }
}

void
metrics_write_accepts(const struct metrics *m, struct metrics_writer *w)
{
    if (m->clients.accept_bound_count > 0)
        metrics_write_histogram(w, "", &m->clients.accepts, m->clients.accept_bounds,
                                m->clients.accept_bound_count);
}

/* --- Certificates ------------------------------------------------------------------- */

/* Keys of two types have certificates of one name: the first end counts. */
static size_t
metrics_find_certificates(const struct metrics *m,
                          struct tls_certificate list[CERTIFICATES_MAX])
{
    const struct tls_server *tls =
        m->setup.tls != NULL ? m->setup.tls(m->setup.tls_context) : NULL;
    struct tls_certificate one;
    size_t count = 0;
    for (size_t i = 0; tls != NULL && tls_server_certificate(tls, i, &one); i++) {
        size_t at = 0;
        while (at < count && strcmp(list[at].name, one.name) != 0)
            at++;
        if (at == CERTIFICATES_MAX)
            continue;
        if (at == count || one.until_ms < list[at].until_ms)
            list[at] = one;
        count += at == count;
    }
    return count;
}

void
metrics_write_certificates(const struct metrics *m, struct metrics_writer *w)
{
    struct tls_certificate list[CERTIFICATES_MAX];
    size_t count = metrics_find_certificates(m, list);
    for (size_t i = 0; i < count; i++)
        metrics_write_of(w, "name", list[i].name, (double)(list[i].until_ms / 1000));
}

/* --- Log ---------------------------------------------------------------------------- */

void
metrics_write_lines(const struct metrics *m, struct metrics_writer *w)
{
    char labels[PROCESS_LABELS_MAX];
    if (m->setup.log == NULL)
        return;
    for (int l = LOG_LEVEL_ERROR; l <= LOG_LEVEL_DEBUG; l++) {
        snprintf(labels, sizeof(labels), "level=\"%s\"",
                 log_level_name((enum log_level)l));
        metrics_write_count(w, labels, log_counts(m->setup.log)->lines[l]);
    }
}

/* --- Busy --- */

static double
busy_share(double used, double all)
{
    double share = all > 0 ? used / all : 0;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Since the last sample. */
static double
busy_loop(struct metrics *m)
{
    struct metrics_busy *b = &m->busy;
    int64_t now_us = loop_clock_us(), worked_us = loop_pace(m->setup.loop)->sum_us;
    double share =
        busy_share((double)(worked_us - b->worked_us), (double)(now_us - b->at_us));
    b->at_us = now_us;
    b->worked_us = worked_us;
    return share;
}

/* Beyond the reserve there is no space for new mail. */
static double
busy_disk(const struct metrics *m, const struct queue_health *h)
{
    struct disk_space space;
    if (h->bytes_free < 0 ||
        disk_space(queue_disk(manager_queue(m->setup.manager)), &space) != 0)
        return 0;
    double all = (double)(space.bytes - h->bytes_reserve);
    return busy_share(all - (double)(h->bytes_free - h->bytes_reserve), all);
}

static double
busy_now(struct metrics *m)
{
    struct queue_health h = queue_health(manager_queue(m->setup.manager));
    bool stressed;
    double sessions =
        (double)m->setup.count_sessions(m->setup.count_context, &stressed);
    double shares[] = {
        busy_loop(m), busy_disk(m, &h),
        busy_share((double)h.segments - (double)h.free_segments, (double)h.segments),
        busy_share(sessions, (double)m->setup.client_sessions_limit)};
    double most = 0;
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
        most = shares[i] > most ? shares[i] : most;
    return most;
}

static void
metrics_busy_sample(void *context)
{
    struct metrics *m = context;
    struct metrics_busy *b = &m->busy;
    b->samples[b->next] = busy_now(m);
    b->next = (b->next + 1) % METRICS_BUSY_SAMPLES;
    b->count += b->count < METRICS_BUSY_SAMPLES;
    loop_timer_start(m->setup.loop, &b->timer, METRICS_BUSY_MS, metrics_busy_sample, m);
}

void
metrics_busy_start(struct metrics *m)
{
    m->busy = (struct metrics_busy){.at_us = loop_clock_us(),
                                    .worked_us = loop_pace(m->setup.loop)->sum_us};
    loop_timer_start(m->setup.loop, &m->busy.timer, METRICS_BUSY_MS,
                     metrics_busy_sample, m);
}

void
metrics_busy_stop(struct metrics *m)
{
    loop_timer_stop(m->setup.loop, &m->busy.timer);
}

double
metrics_busy(const struct metrics *m)
{
    const struct metrics_busy *b = &m->busy;
    double sum = 0;
    for (size_t i = 0; i < b->count; i++)
        sum += b->samples[i];
    return b->count > 0 ? sum / (double)b->count : 0;
}

void
metrics_write_busy(const struct metrics *m, struct metrics_writer *w)
{
    metrics_write(w, "", metrics_busy(m));
}
