/* Proves both formats, their limits, and that labels cannot be broken. */
#include "admin/metrics/metrics_writer.h"

#include "t/support/tap.h"

static const struct metric_family gauge = {"a", METRIC_GAUGE, "Of a", ""};
static const struct metric_family counter = {"b", METRIC_COUNTER, "Of b", "k: 1, 2"};
static const struct metric_family info = {"c", METRIC_INFO, "Of c", "k"};
static const struct metric_family times = {"d", METRIC_HISTOGRAM, "Of d", "k"};
static const double bounds[] = {0.1, 1, 10};

static void
write_all(struct metrics_writer *w, bool open)
{
    struct metric_histogram h = {.counts = {0}};
    metric_histogram_add(&h, bounds, 3, 0.1);
    metric_histogram_add(&h, bounds, 3, 0.2);
    metric_histogram_add(&h, bounds, 3, 99.5);
    metrics_writer_begin(w, open);
    metrics_writer_family(w, &gauge);
    metrics_write(w, "", 0.5);
    metrics_writer_family(w, &counter);
    metrics_write_count(w, "k=\"1\"", UINT64_MAX);
    metrics_writer_family(w, &info);
    metrics_write_count(w, "k=\"x\"", 1);
    metrics_writer_family(w, &times);
    metrics_write_histogram(w, "k=\"x\"", &h, bounds, 3);
    metrics_write_histogram(w, "", &h, bounds, 3);
    metrics_writer_end(w);
}

#define HISTOGRAM                                                                        \
    "d_bucket{k=\"x\",le=\"0.1\"} 1\nd_bucket{k=\"x\",le=\"1.0\"} 2\n"                   \
    "d_bucket{k=\"x\",le=\"10.0\"} 2\nd_bucket{k=\"x\",le=\"+Inf\"} 3\n"                 \
    "d_count{k=\"x\"} 3\nd_sum{k=\"x\"} 99.8\n"                                          \
    "d_bucket{le=\"0.1\"} 1\nd_bucket{le=\"1.0\"} 2\nd_bucket{le=\"10.0\"} 2\n"          \
    "d_bucket{le=\"+Inf\"} 3\nd_count 3\nd_sum 99.8\n"

TEST(formats)
{
    struct metrics_writer w;
    write_all(&w, false);
    is_text(buffer_text(&w.out),
            TEXT("# HELP a Of a.\n# TYPE a gauge\na 0.5\n"
                 "# HELP b_total Of b.\n# TYPE b_total counter\n"
                 "b_total{k=\"1\"} 18446744073709551615\n"
                 "# HELP c_info Of c.\n# TYPE c_info gauge\nc_info{k=\"x\"} 1\n"
                 "# HELP d Of d.\n# TYPE d histogram\n" HISTOGRAM),
            "the format 0.0.4");
    is_number(w.series, 15, "series");
    buffer_free(&w.out);
    write_all(&w, true);
    is_text(buffer_text(&w.out),
            TEXT("# HELP a Of a.\n# TYPE a gauge\na 0.5\n"
                 "# HELP b Of b.\n# TYPE b counter\n"
                 "b_total{k=\"1\"} 18446744073709551615\n"
                 "# HELP c Of c.\n# TYPE c info\nc_info{k=\"x\"} 1\n"
                 "# HELP d Of d.\n# TYPE d histogram\n" HISTOGRAM "# EOF\n"),
            "OpenMetrics");
    buffer_free(&w.out);
}

TEST(labels)
{
    static const struct {
        struct text value, label;
    } rows[] = {
        {{"mx.test:25", 10}, {"k=\"mx.test:25\"", 14}},
        {{"a\"b\\c", 5}, {"k=\"a\\\"b\\\\c\"", 11}},
        {{"a\nb\r\0\x7f", 6}, {"k=\"a?b???\"", 10}},
        {{"\xc3\xbc\xff", 3}, {"k=\"\xc3\xbc?\"", 7}},
        {{"", 0}, {"k=\"\"", 4}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct buffer out;
        buffer_init(&out, 100);
        ok(metrics_label(&out, "k", rows[i].value));
        is_text(buffer_text(&out), rows[i].label, "a label");
        buffer_free(&out);
        for (size_t limit = 0; limit < rows[i].label.length; limit++) {
            buffer_init(&out, limit);
            ok(!metrics_label(&out, "k", rows[i].value));
            buffer_free(&out);
        }
    }
}

TEST(limits)
{
    struct metrics_writer w;
    metrics_writer_begin(&w, true);
    metrics_writer_family(&w, &gauge);
    for (int i = 0; i < 2 * METRICS_SERIES_MAX; i++)
        metrics_write(&w, "", i);
    metrics_writer_end(&w);
    is_number(w.series, METRICS_SERIES_MAX, "series are limited");
    ok(strstr(w.out.at, "a 699\n") != NULL && strstr(w.out.at, "a 700\n") == NULL);
    buffer_free(&w.out);

    char labels[500];
    memset(labels, 'x', sizeof(labels) - 1);
    labels[sizeof(labels) - 1] = '\0';
    metrics_writer_begin(&w, true);
    metrics_writer_family(&w, &gauge);
    for (int i = 0; i < METRICS_SERIES_MAX - 100; i++)
        metrics_write(&w, labels, i);
    metrics_writer_family(&w, &counter);
    metrics_writer_end(&w);
    ok(w.out.length <= METRICS_SIZE_MAX);
    ok_named(memcmp(w.out.at + w.out.length - 7, "\n# EOF\n", 7) == 0,
             "octets are limited, by whole lines, and the end is there");
    buffer_free(&w.out);
}
