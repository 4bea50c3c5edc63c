/* The files of the audit among themselves. Each question begins and ends with a quiet host
 * whose mail is gone. */
#ifndef T_ROOF_AUDIT_INTERNAL_H
#define T_ROOF_AUDIT_INTERNAL_H

#include "admin/settings/options.h"
#include "t/roof/model.h"

#include <stdbool.h>
#include <stdint.h>

enum { AUDIT_FLOOD = 13 }; /* messages whose ends come together */

/* Those in force. */
const struct options *audit_options(void);
/* The latest end of a wait for the next attempt that begins now. */
int64_t audit_longest_ms(void);
/* A message for recipients of this domain: acknowledged, by a session of its own. */
struct model_message *audit_give(unsigned domain, unsigned rcpts);
/* The same, and whether it is over in time; the session lasts until then. */
bool audit_give_and_stay(unsigned domain, unsigned rcpts, int64_t ms,
                         bool (*over)(void));
/* A message that is not given yet. */
struct model_message *audit_message(unsigned domain, unsigned rcpts, size_t size);
/* So many for the first domain, by one session. */
void audit_give_to_first(unsigned count);
/* The code of its reply; 0: none came. */
int audit_try(struct model_message *m);
/* Its client goes before the reply. */
void audit_give_and_leave(struct model_message *m);
/* One whose host dies after so many calls of the disk, counted from its end on; by_cut: the
 * power goes then, also behind the reply. False: it has lived to reply. */
bool audit_give_to_dying(struct model_message *m, unsigned calls, bool by_cut);
/* No mail is open; false: not within that time. */
bool audit_has_gone(int64_t ms);
/* More mail at once than the journal has room for, if it takes such mail; it leaves. */
void audit_flood(void);
/* All but the last octet of each; false: the settings take no flood. Then the rest. */
bool audit_begin_flood(struct model_message *m[AUDIT_FLOOD]);
void audit_end_flood(struct model_message *m[AUDIT_FLOOD], bool may_fail);
/* Removals so far are durable, also without a journal. */
void audit_settle(void);
/* All that was given leaves soon, with the weather good, or the run has failed. */
void audit_departure(const char *what);

/* Clocks that were ahead, and lifetimes (audit_ages.c). */
void audit_clock_ahead(void);
void audit_lifetimes(void);
/* A rate of a route is used, and kept (audit_sites.c). */
void audit_rate(void);
/* Sites that are away, slow down, take few, and have no place (audit_sites.c). */
void audit_sites(void);
void audit_turned_away(void);
void audit_occupied(void);
void audit_crowd(void);
/* A disk that fails for a moment, and a host that ends time and again (audit_disk.c). */
void audit_disk(void);
/* Ends between two steps that belong to each other (audit_order.c). */
void audit_order(void);
/* Results, reports and orders at kills, stops, reloads, and with a full disk
 * (audit_results.c). */
void audit_results(void);

/* Content that has rotted (audit_rot.c). */
void audit_rot(void);
/* Luck decides these questions, which come once more, at a host with the least journal, or with none
 * (audit_again.c). */
void audit_again(void);
void audit_note(void);
void audit_torn_batches(void);
void audit_refused_moves(void);
void audit_removed_files(void);
void audit_failures(void);
void audit_moves(void);
void audit_removals(void);
/* Such a flood on a disk that fails as its end comes: what is refused is gone. */
void audit_failed_flood(void);
/* The same when only the next sync fails. */
void audit_failed_sync(void);
void audit_refused_removals(void);

#endif
