/* Numbers over time, for views of the last minutes or the last day: how much mail came
 * and went in each second of ten minutes, in each minute of a day, and how much waited.
 *
 * In memory only, of one size for ever, and over with the daemon. */
#ifndef ADMIN_METRICS_SERIES_H
#define ADMIN_METRICS_SERIES_H

#include "base/buffer.h"
#include "base/event/event.h"

struct loop;
struct series;

enum {
    SERIES_SECONDS = 600,
    SERIES_MINUTES = 1440,
    SERIES_SAMPLE_MS = 1000,    /* after an event: how much waits */
    SERIES_REST_MS = 60 * 1000, /* otherwise */
    /* Octets of series_write(): 2040 steps of six numbers of at most ten digits. */
    SERIES_TEXT_MAX = (SERIES_SECONDS + SERIES_MINUTES) * 6 * 11 + 1024
};

struct series_setup {
    struct loop *loop;
    struct event_hub *events;
    size_t (*waiting)(void *context); /* messages that wait or are under way; fast */
    void *context;
};

struct series *series_new(const struct series_setup *setup);
void series_free(struct series **series);

/* {"now_ms", "since_ms", "second": {"step_ms", ...}, "minute": {...}}, each with an array
 * of numbers, oldest first: `accepted` messages (of all sources, as
 * petrel_messages_accepted_total), `refused` commands, recipients `delivered`, `deferred`
 * and `bounced` (or expired), and messages `waiting` at the end of the step. The last
 * step is not over. False: no room. */
bool series_write(struct series *series, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
