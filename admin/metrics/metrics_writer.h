/* Metrics as text: OpenMetrics 1.0.0, or the format 0.0.4 of Prometheus. Pure.
 *
 * A family is begun, then its samples follow. Families that do not fit into the limits
 * are left out: a scrape is never cut in the middle. */
#ifndef ADMIN_METRICS_METRICS_WRITER_H
#define ADMIN_METRICS_METRICS_WRITER_H

#include "base/buffer.h"

enum {
    METRICS_SIZE_MAX = 64 * 1024, /* octets of an answer */
    METRICS_SERIES_MAX = 700
};

enum metric_type { METRIC_GAUGE, METRIC_COUNTER, METRIC_HISTOGRAM, METRIC_INFO };

struct metric_family {
    const char *name; /* without "_total" and "_info" */
    enum metric_type type;
    const char *help;   /* one sentence without a period */
    const char *labels; /* for the manual: "KEY: value, value; KEY: ..." or "" */
};

struct metrics_writer {
    struct buffer out;
    bool open; /* OpenMetrics */
    const struct metric_family *family;
    unsigned series;
};

void metrics_writer_begin(struct metrics_writer *w, bool open);
void metrics_writer_family(struct metrics_writer *w,
                           const struct metric_family *family);
/* labels: "" or "key=\"value\",..."; values of peers are escaped by
 * metrics_label(). */
void metrics_write(struct metrics_writer *w, const char *labels, double value);
void metrics_write_number(struct metrics_writer *w, const char *labels, int64_t value);
void metrics_write_count(struct metrics_writer *w, const char *labels, uint64_t value);

/* A sample with one label, whose value may be of a peer. */
void metrics_write_of(struct metrics_writer *w, const char *key, const char *value,
                      double number);

/* Cumulative: counts[i] of values up to bounds[i]; the last one is of all. */
enum { METRIC_BUCKETS_MAX = 9 };
struct metric_histogram {
    uint64_t counts[METRIC_BUCKETS_MAX]; /* the last: beyond all bounds */
    double sum;
};
void metric_histogram_add(struct metric_histogram *h, const double *bounds,
                          size_t count, double value);
void metrics_write_histogram(struct metrics_writer *w, const char *labels,
                             const struct metric_histogram *h, const double *bounds,
                             size_t count);
/* Adds key="value", escaped; bytes that are not UTF-8 become "?". False at the
 * limit. */
bool metrics_label(struct buffer *out, const char *key, struct text value)
    __attribute__((warn_unused_result));
/* The end of OpenMetrics. */
void metrics_writer_end(struct metrics_writer *w);

#endif
