/* Outcomes, kept as long as mail waits because of them; equal ones of a destination are
 * kept once.
 *
 * An outcome has 850 bytes, and a dead host gives the same one to thousands of
 * recipients. */
#ifndef SCHED_LIMITS_REASON_H
#define SCHED_LIMITS_REASON_H

#include "base/outcome.h"

struct reason; /* one outcome, shared by its holders */

/* Adds a holder to an equal reason in *list, or makes a new one. */
struct reason *reason_open(struct reason **list, const struct outcome *outcome);
struct reason *reason_share(struct reason *reason);
/* Sets *reason to NULL; it is freed with its last holder. May be NULL. */
void reason_close(struct reason **list, struct reason **reason);

void reason_read(const struct reason *reason, struct outcome *outcome);
enum verdict reason_verdict(const struct reason *reason);

#endif
