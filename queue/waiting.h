/* Why messages that have left memory wait: a bounded map from id to one sentence. */
#ifndef QUEUE_WAITING_H
#define QUEUE_WAITING_H

#include "base/id.h"

struct waiting;

/* limit: entries; the oldest is forgotten first. */
struct waiting *waiting_new(unsigned limit);
void waiting_free(struct waiting **r);
/* Replaces what was known of id. The text is copied. */
void waiting_keep(struct waiting *r, struct id id, const char *reason);
void waiting_forget(struct waiting *r, struct id id); /* may be unknown */
/* "" if unknown; borrowed until the next change. */
const char *waiting_find(const struct waiting *r, struct id id);

#endif
