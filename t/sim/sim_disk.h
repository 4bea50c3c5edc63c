/* The disk's stand-in (link t/sim/disk.c and t/sim/disk_world.c): files in memory that
 * fail, die and lose power on command.
 *
 * One world for all `struct disk` of the program. It knows two versions of every file
 * and every name: that of programs, and that after a power cut. Calls that make data
 * durable, as measured (doc/dev/design.md "File systems"), the worse where file systems
 * differ:
 *   disk_sync            the content; and the names of a file that never had a durable
 *                        one (old names of it are gone then). Later links, renames and
 *                        unlinks of it wait.
 *   disk_sync_data       the content
 *   disk_sync_directory  its names as they are now, each by itself: after a rename, the
 *                        new name and the loss of the old one belong to two directories
 *   a failed sync        nothing; the pages count as clean: syncing again answers 0 and
 *                        keeps them lost
 *   disk_sync_begin      the same, with what was there when it began, in a later turn
 * Directories and FIFOs are durable at once. Content goes in pages of 4096 bytes. */
#ifndef T_SIM_SIM_DISK_H
#define T_SIM_SIM_DISK_H

#include "base/disk/disk.h"

/* An empty world, no fault set. */
void sim_disk_reset(void);

/* Calls of base/disk/disk.h so far, those of disk_close, disk_close_file, disk_path,
 * disk_is_owner, disk_sync_on, disk_sync_way and disk_unmap not counted. A sync in the
 * background counts twice: when it begins and when it is over. */
uint64_t sim_disk_calls(void);
void sim_disk_count_anew(void);
/* The call-th call from the start of counting (1 = the first) fails once with this
 * errno; a failing write has written half. 0 = none. */
void sim_disk_fail_at(uint64_t call, int error);
/* From now on each call fails with this errno; 0: none does. */
void sim_disk_fail_calls(int error);
/* So many syncs from now on do. */
void sim_disk_fail_syncs(unsigned count, int error);
/* From that call on nothing works (-EIO): the process is dead and does not know it yet.
 * A write has written half. 0 = never. */
void sim_disk_die_at(uint64_t call);
bool sim_disk_is_dead(void);
/* Whether the fault of sim_disk_fail_at has happened. */
bool sim_disk_has_failed(void);

/* Both end every handle and lock, clear the faults, and count anew. */
void sim_disk_restart(void);   /* SIGKILL: what was seen stays */
void sim_disk_power_cut(void); /* what was not durable is gone */

/* Several processes on one disk: whose calls come now (0 without this), and SIGKILL of one
 * of them, which ends its own handles, locks and maps alone. */
void sim_disk_enter(unsigned process);
void sim_disk_end_process(unsigned process);

/* The clock of changed_ms (ms since the epoch), the user, the free space, and what
 * disk_traits() says. */
void sim_disk_set_time(int64_t now_ms);
void sim_disk_set_user(unsigned user);
void sim_disk_set_space(int64_t bytes_free, int64_t inodes_free);
void sim_disk_set_nature(const struct disk_traits *nature);
/* How disk_sync_begin() works once disk_sync_on() was called: DISK_SYNC_AIO (so it is
 * without this) takes so many ms of the loop's time, 0 = until the next turn. */
void sim_disk_set_syncing(enum disk_syncing way, int64_t sync_ms);
/* From now on each of them takes up to spread_ms more, by chance: one that began later may
 * be over first. */
void sim_disk_set_sync_spread(int64_t spread_ms, uint64_t seed);
/* Nothing is in memory: disk_peek() must wait for the device. */
void sim_disk_set_cold(bool cold);
/* Handles of this process that are not closed. */
size_t sim_disk_open_files(void);
/* Syncs of this process that are under way. */
size_t sim_disk_syncs(void);
/* The path of one of sim_disk_open_files(), if it has any; borrowed. */
const char *sim_disk_open_file(void);

/* Files (not directories, not FIFOs) under an absolute or root-less path, "" = all. */
size_t sim_disk_count(const char *under);
/* The bytes of a file as seen, borrowed until the next change; at == NULL: none. */
struct text sim_disk_content(const char *path);
/* For tests of damage: turns one byte into its complement, in both versions. */
bool sim_disk_damage(const char *path, size_t offset);
/* For tests of bad sectors: from now on reading the page around offset is -EIO. One page
 * a file; false: there is no such byte. */
bool sim_disk_wear(const char *path, size_t offset);
/* The handle that waits for the FIFO to be pulled (for sim_loop_ready), or -1. */
int sim_disk_fifo_reader(const char *path);
/* How often it was pulled and not read since. */
size_t sim_disk_fifo_pulled(const char *path);

/* --- Copies of the world (link t/sim/disk_copy.c) ------------------------------------ */

struct world;
/* The current world with all it has seen and kept, but no process: no handle, lock,
 * map, fault or hook. Cheap: pages are shared until somebody writes. */
struct world *sim_disk_copy(void);
/* Makes another world the current one; the caller has the one before. */
struct world *sim_disk_exchange(struct world *other);
void sim_disk_free(struct world **world);
/* As copied elsewhere with cp and back: every name is a file of its own, made now. */
void sim_disk_copy_plainly(void);
/* One number for all that is seen: names, links and contents. For a world after a
 * power cut. */
uint64_t sim_disk_digest(void);
/* After each call that changed something in the current world, also when a sync is over
 * (before its owner hears). The hook may exchange the world if it puts it back. NULL:
 * none. */
void sim_disk_on_change(void (*changed)(void *context), void *context);

/* --- Power cuts that leave something (link t/sim/disk_cut.c) --------------------------
 *
 * Pending items: each dirty page of a file, each change of a file's size, each changed
 * name (of a rename both). */

enum sim_cut_kind {
    SIM_CUT_NOTHING,    /* nothing pending survives: sim_disk_power_cut() */
    SIM_CUT_ALL,        /* all of it does */
    SIM_CUT_ALONE,      /* nothing but the item */
    SIM_CUT_ALL_BUT,    /* all but the item */
    SIM_CUT_TORN,       /* all, but the last write only up to its item-th sector */
    SIM_CUT_TORN_ALONE, /* nothing but those sectors */
    SIM_CUT_GARBAGE,    /* all, but what was written into the item-th page is random */
    SIM_CUT_RANDOM,     /* each item by the toss of a coin; item is the seed */
    SIM_CUT_KINDS
};
struct sim_cut {
    enum sim_cut_kind kind;
    size_t item;
};
const char *sim_cut_name(enum sim_cut_kind kind);
/* How many different items there are for a kind now: 1 for the first two, 0 for RANDOM
 * when nothing is pending. The last write is torn only while its file is not synced;
 * single sectors of what was durable are written whole or not
 * (doc/dev/design.md "File systems") and never are garbage. */
size_t sim_disk_cuts(enum sim_cut_kind kind);
void sim_disk_cut(struct sim_cut cut);
/* All that is pending becomes durable, as it does by itself in time. */
void sim_disk_settle(void);

#endif
