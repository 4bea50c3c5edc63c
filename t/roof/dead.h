/* Mail to addresses that are dead, and the law "dead": while the settings say `suppress`, none
 * of them is tried again once the log has told that it is suppressed; over reloads, restarts,
 * kills, and power cuts but for the last seconds before them; at no host of a group with Redis, by no
 * slice of a spool. No other address is suppressed ("truth")
 * but by its refusal, or a true report (returner.h). */
#ifndef T_ROOF_DEAD_H
#define T_ROOF_DEAD_H

#include "base/text.h"
#include "base/net_address.h"
#include "t/roof/model.h"

#include <stdbool.h>
#include <stdint.h>

/* domains: those of the run; forgives: the disk fails, and may forget. */
void dead_begin(const char *const *domains, unsigned domain_count, bool forgives);
/* There are so many of them, mail to one comes in each run of ten acts, and `suppress` stays. */
void dead_begin_day(unsigned addresses);
/* All mail has a copy (copy_to). */
void dead_copy(void);
/* A hop has stored that for the archive. False: it is not such mail. */
bool dead_archived(struct text content);
/* Mail to one of them. */
void dead_act(void);
/* Before the settings are written: `suppress` ends, or begins again. */
void dead_edit(void);
/* A report has come back that suppresses it: what is left of its mail is refused. */
void dead_returned(struct model_rcpt *r);
/* The hosts of a group get mail to them; shares: what one knows the others know, too, once
 * Redis has been well for DEAD_SHARED_MS and both ran. `suppress` stays. */
void dead_begin_group(bool shares);
/* The first host is several daemons: what one of them knows all do. `suppress` stays. */
void dead_begin_slices(void);
bool dead_in_slices(void);
/* A line of that host of a group; 0: the first. */
void dead_log_line(unsigned host, struct text line);
/* slowest: that a sync may take */
void dead_host_ended(unsigned host, int64_t slowest_ms);
/* At a hop, from that address. is_late: the client has gone since it sent this. False: it
 * is not one of them. */
bool dead_tried(struct text address, const struct net_address *from, bool is_late);
/* Mail that was acknowledged is in the archive. */
void dead_judge(void);
/* Mail to them, tries at a hop, and addresses that were tried. */
void dead_tally(unsigned *mail, unsigned *tries, unsigned *addresses);

#endif
