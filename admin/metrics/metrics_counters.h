/* Counts of events since startup. Pure: no time, no chance. */
#ifndef ADMIN_METRICS_METRICS_COUNTERS_H
#define ADMIN_METRICS_METRICS_COUNTERS_H

#include "admin/metrics/metrics_writer.h"
#include "base/event/event.h"

/* Where accepted mail came from. */
enum {
    METRICS_SMTP,
    METRICS_LMTP,
    METRICS_SENDMAIL,
    METRICS_NOTIFICATION,
    METRICS_REASSEMBLED,
    METRICS_PEER,
    METRICS_SOURCES
};
enum { METRICS_STATUSES = 4, METRICS_CHANNELS = 4, METRICS_STAGES = 4 };
enum {
    METRICS_REASONS = 17, /* of refusals */
    METRICS_CLASSES = 17, /* of replies: those of refusal.h, and none */
    METRICS_KINDS = 4,    /* of notifications */
    METRICS_TLS = 3
};
extern const char *const metrics_sources[METRICS_SOURCES];
extern const char *const metrics_statuses[METRICS_STATUSES];
extern const char *const metrics_channels[METRICS_CHANNELS];
extern const char *const metrics_reasons[METRICS_REASONS];
extern const char *const metrics_kinds[METRICS_KINDS];
extern const char *const metrics_tls[METRICS_TLS];
extern const char *const metrics_stages[METRICS_STAGES];
enum { METRICS_DELAYS = 8 };
extern const double metrics_delays[METRICS_DELAYS];
/* "none" for the one behind those of refusal.h. */
const char *metrics_class(size_t index);

struct metrics_counters {
    uint64_t messages[METRICS_SOURCES], recipients[METRICS_SOURCES],
        bytes[METRICS_SOURCES];
    uint64_t refusals[2][METRICS_REASONS]; /* 4yz, 5yz */
    uint64_t denied, locked;
    uint64_t deliveries[METRICS_STATUSES][METRICS_CHANNELS];
    uint64_t replies[METRICS_CLASSES];
    struct metric_histogram delays[METRICS_STAGES];
    uint64_t delivered[METRICS_TLS][2]; /* not verified, verified */
    uint64_t notifications[METRICS_KINDS];
};

/* The kinds that metrics_count() wants. */
uint64_t metrics_events(void);
/* The samples of the family that w has begun, if it is one of these. */
enum { METRICS_LABELS_MAX = 200 };
void metrics_counters_write(const struct metrics_counters *counters,
                            struct metrics_writer *w);
/* An event_reader; context is a struct metrics_counters. */
void metrics_count(void *context, const struct event *event);

#endif
