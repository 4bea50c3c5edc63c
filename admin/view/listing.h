/* A message for the operator: one object, printed as a line, a page or JSON. */
#ifndef ADMIN_VIEW_LISTING_H
#define ADMIN_VIEW_LISTING_H

#include "queue/queue.h"
#include "queue/queue_operator.h"
#include "sched/sched.h"

#include <jansson.h>

/* A superset of `postqueue -j`: queue_name, queue_id, arrival_time, message_size,
 * forced_expire, sender, recipients[{address, delay_reason}], and ours: done per
 * recipient, attempts, due_time, encodings, envelope_id. state is the daemon's answer
 * or NULL; place "" uses the state's. */
json_t *listing_make(const struct envelope *e, const char *place, const json_t *state);
/* Adds reason and since: why and when it came to hold or corrupt, from queue_note(). */
void listing_add_note(json_t *listing, const char *note);

/* The queue of a message in the scheduler; "unknown" if it does not have it. */
const char *listing_place_name(enum sched_place place);
/* The same of a message that the scheduler does not know. */
const char *listing_disk_place(enum queue_place place);

/* Text of a peer, escaped for a terminal. */
json_t *listing_text(struct text t);

/* queue ls: ID, place, age, size, sender, recipients, and why it waits. */
void listing_print_line(const json_t *listing, int64_t now_ms);
/* queue show. */
void listing_print_page(const json_t *listing, int64_t now_ms);

#endif
