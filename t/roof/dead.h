/* Mail to addresses that are dead, and the law "dead": while the settings say `suppress`, none
 * of them is tried again once the log has told that it is suppressed; over reloads, restarts,
 * kills, and power cuts but for the last seconds before them. */
#ifndef T_ROOF_DEAD_H
#define T_ROOF_DEAD_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* domains: those of the run; forgives: the disk fails, and may forget. */
void dead_begin(const char *const *domains, unsigned domain_count, bool forgives);
/* Mail to one of them. */
void dead_act(void);
/* Before the settings are written: `suppress` ends, or begins again. */
void dead_edit(void);
/* A line of the first host. */
void dead_log_line(struct text line);
void dead_host_ended(int64_t slowest_ms); /* slowest: that a sync may take */
/* At a hop. False: the address is not one of them. */
bool dead_tried(struct text address);
/* Replies of RCPT that said it, and tries. */
unsigned dead_refused(void);

#endif
