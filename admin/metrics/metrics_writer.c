/* Writes families and samples. */
#include "admin/metrics/metrics_writer.h"

#include <inttypes.h>
#include <stdio.h>

enum { END_ROOM = 16, SAMPLE_LABELS_MAX = 512, LABEL_MAX = 1024 };

static const char *const type_words[] = {"gauge", "counter", "histogram", "info"};

void
metrics_writer_begin(struct metrics_writer *w, bool open)
{
    *w = (struct metrics_writer){.open = open};
    buffer_init(&w->out, METRICS_SIZE_MAX - END_ROOM);
}

static const char *
metrics_suffix(const struct metric_family *f)
{
    return f->type == METRIC_COUNTER ? "_total" : f->type == METRIC_INFO ? "_info" : "";
}

/* In the older format the suffix belongs to the name, and there is no type info. */
void
metrics_writer_family(struct metrics_writer *w, const struct metric_family *f)
{
    const char *suffix = w->open ? "" : metrics_suffix(f);
    const char *type =
        !w->open && f->type == METRIC_INFO ? "gauge" : type_words[f->type];
    w->family = f;
    if (!buffer_format(&w->out, "# HELP %s%s %s.\n# TYPE %s%s %s\n", f->name, suffix,
                       f->help, f->name, suffix, type))
        w->family = NULL;
}

/* False: the limits are reached, and the sample is left out. */
static bool
metrics_put(struct metrics_writer *w, const char *suffix, const char *labels,
            const char *value)
{
    bool has = labels[0] != '\0';
    if (w->family == NULL || w->series == METRICS_SERIES_MAX)
        return false;
    w->series++;
    return buffer_format(&w->out, "%s%s%s%s%s %s\n", w->family->name, suffix,
                         has ? "{" : "", labels, has ? "}" : "", value);
}

void
metrics_write(struct metrics_writer *w, const char *labels, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.15g", value);
    if (w->family != NULL)
        (void)metrics_put(w, metrics_suffix(w->family), labels, text);
}

void
metrics_write_number(struct metrics_writer *w, const char *labels, int64_t value)
{
    char text[40];
    snprintf(text, sizeof(text), "%" PRId64, value);
    if (w->family != NULL)
        (void)metrics_put(w, metrics_suffix(w->family), labels, text);
}

void
metrics_write_count(struct metrics_writer *w, const char *labels, uint64_t value)
{
    char text[40];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (w->family != NULL)
        (void)metrics_put(w, metrics_suffix(w->family), labels, text);
}

void
metric_histogram_add(struct metric_histogram *h, const double *bounds, size_t count,
                     double value)
{
    size_t i = 0;
    while (i < count && value > bounds[i])
        i++;
    h->counts[i]++;
    h->sum += value;
}

void
metrics_write_histogram(struct metrics_writer *w, const char *labels,
                        const struct metric_histogram *h, const double *bounds,
                        size_t count)
{
    char all[SAMPLE_LABELS_MAX], text[40];
    uint64_t sum = 0;
    const char *comma = labels[0] != '\0' ? "," : "";
    for (size_t i = 0; i <= count; i++) {
        sum += h->counts[i];
        if (i < count)
            snprintf(all, sizeof(all), "%s%sle=\"%.15g%s\"", labels, comma, bounds[i],
                     bounds[i] == (double)(int64_t)bounds[i] ? ".0" : "");
        else
            snprintf(all, sizeof(all), "%s%sle=\"+Inf\"", labels, comma);
        snprintf(text, sizeof(text), "%" PRIu64, sum);
        (void)metrics_put(w, "_bucket", all, text);
    }
    (void)metrics_put(w, "_count", labels, text);
    snprintf(text, sizeof(text), "%.15g", h->sum);
    (void)metrics_put(w, "_sum", labels, text);
}

bool
metrics_label(struct buffer *out, const char *key, struct text value)
{
    if (!buffer_format(out, "%s=\"", key))
        return false;
    while (value.length > 0) {
        uint32_t code;
        size_t length = text_character(value, &code);
        bool escapes = value.at[0] == '"' || value.at[0] == '\\';
        struct text piece = length > 0 && code >= ' ' && code != 0x7f
                                ? text_before(value, length)
                                : TEXT("?");
        if ((escapes && !buffer_add_byte(out, '\\')) || !buffer_add(out, piece))
            return false;
        value = text_after(value, length > 0 ? length : 1);
    }
    return buffer_add_byte(out, '"');
}

void
metrics_write_of(struct metrics_writer *w, const char *key, const char *value,
                 double number)
{
    struct buffer labels;
    buffer_init(&labels, LABEL_MAX);
    if (metrics_label(&labels, key, text_from(value)) && buffer_add_byte(&labels, '\0'))
        metrics_write(w, labels.at, number);
    buffer_free(&labels);
}

void
metrics_writer_end(struct metrics_writer *w)
{
    w->out.limit = METRICS_SIZE_MAX;
    if (w->open)
        (void)!buffer_add(&w->out, TEXT("# EOF\n"));
}
