/* Counters of the daemon, read at one moment: one table for JSON and for metrics. */
#ifndef ADMIN_VIEW_COUNTERS_H
#define ADMIN_VIEW_COUNTERS_H

#include "admin/view/members.h"
#include "admin/view/site_view.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"
#include "sched/sched.h"

struct counters {
    struct queue_health health;
    struct queue_apart apart;
    struct sched_counts sched;
    struct manager_places places;
    struct manager_fragments fragments;
    struct manager_oldest oldest;
    struct manager_copied copied;
    struct manager_required required;
    struct manager_returns returns;
    struct suppression_counts suppression; /* zero while suppress is off */
    bool suppresses;
    const char *version, *sync, *registry; /* words */
    bool registry_up;
    unsigned used_segments;
    /* The reader's: zero unless it sets them. */
    int64_t uptime_s;
    size_t sessions_in, sessions_in_limit;
    bool is_stressed;
    struct site_view_totals sites;
};

/* Sets all, the reader's to zero. */
void counters_read(struct manager *manager, struct counters *out);

struct counter {
    const char
        *part; /* the object of the status that it is in; "": the status itself */
    struct member member; /* its name NULL: it is for metrics alone */
    const char *family;   /* of metrics; NULL: it is for JSON alone */
    const char *label;    /* of its sample: KEY="WORD", or "" */
};
/* The table. NULL behind the last. */
const struct counter *counters_at(size_t index);

/* Sets them in the object, by their parts. */
void counters_put(json_t *status, const struct counters *counters);
/* The members of that part alone; the caller's. */
json_t *counters_part(const char *part, const struct counters *counters);

#endif
