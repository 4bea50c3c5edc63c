/* How busy the host is, as a signal to add hosts or to remove them: the greatest of the
 * loop's work, the journal, the disk and the sessions in, in the mean of a minute. The
 * length of the queue is none: it is the pace of the receivers. */
#include "admin/http/metrics_internal.h"

#include "base/loop/loop.h"

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
