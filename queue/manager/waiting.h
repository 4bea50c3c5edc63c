/* Why messages wait: a bounded map from id to the outcome of the last attempt.
 *
 * A dead site gives one outcome to thousands of messages: equal ones are kept once, and
 * a message costs 16 bytes in a table that is at most seven eighths full. */
#ifndef QUEUE_WAITING_H
#define QUEUE_WAITING_H

#include "base/id.h"
#include "base/outcome.h"

enum {
    /* Of all outcomes; those that no message has had for longest are forgotten first.
     */
    WAITING_BYTES_MAX = 8 << 20
};

struct waiting;

/* limit: messages, less than 2^24; beyond it any other one is forgotten. */
struct waiting *waiting_new(unsigned limit);
void waiting_free(struct waiting **r);
/* Replaces what was known of id. Of the outcome code, enhanced, text and remote are
 * copied. */
void waiting_keep(struct waiting *r, struct id id, const struct outcome *outcome);
void waiting_forget(struct waiting *r, struct id id); /* may be unknown */
/* Its text; "" if unknown; borrowed until the next change. */
const char *waiting_find(const struct waiting *r, struct id id);

/* How many messages; those whose outcome was forgotten count. */
unsigned waiting_count(const struct waiting *r);
/* Grows with each change. */
uint64_t waiting_changes(const struct waiting *r);
/* Bytes allocated. */
size_t waiting_memory(const struct waiting *r);
/* Numbers of outcomes are less than this until the next change. */
unsigned waiting_numbers(const struct waiting *r);
/* In no order; each must not change anything. number names the outcome. */
void waiting_each(const struct waiting *r,
                  void (*each)(void *context, struct id id, unsigned number),
                  void *context);
/* False: it was forgotten. verdict is DEFERRED. */
bool waiting_read(const struct waiting *r, unsigned number, struct outcome *outcome);

#endif
