/* The disk's stand-in (link t/sim/disk.c and t/sim/disk_world.c): files in memory that
 * fail, die and lose power on command.
 *
 * One world for all `struct disk` of the program. Of every file and every name it knows
 * two versions: what a program sees, and what a power cut leaves. What makes things
 * durable, as measured (spec/queue.md §4.1, §4.4), the worse where file systems differ:
 *   disk_sync            the content; and the names of a file that never had a durable
 * one (old names of it are gone then). Later links, renames and unlinks of it wait.
 *   disk_sync_data       the content
 *   disk_sync_directory  its names as they are now, each by itself: after a rename, the
 * new name and the loss of the old one belong to two directories a failed sync nothing;
 * the pages count as clean: syncing again answers 0 and keeps them lost Directories
 * themselves are durable at once. Content goes in pages of 4096 bytes. */
#ifndef T_SIM_DISK_H
#define T_SIM_DISK_H

#include "base/disk.h"

/* An empty world, no fault set. */
void sim_disk_reset(void);

/* Calls of base/disk.h so far, those of disk_close, disk_close_file, disk_path and
 * disk_is_owner not counted. */
uint64_t sim_disk_calls(void);
void sim_disk_count_anew(void);
/* The call-th call from the start of counting (1 = the first) fails once with this
 * errno; a failing write has written half. 0 = none. */
void sim_disk_fail_at(uint64_t call, int error);
/* From that call on nothing works (-EIO): the process is dead and does not know it yet.
 * A write has written half. 0 = never. */
void sim_disk_die_at(uint64_t call);
bool sim_disk_is_dead(void);
/* Whether the fault of sim_disk_fail_at has happened. */
bool sim_disk_has_failed(void);

/* Both end every handle and lock, clear the faults, and count anew. */
void sim_disk_restart(void);   /* SIGKILL: what was seen stays */
void sim_disk_power_cut(void); /* what was not durable is gone */

/* The clock of changed_ms (ms since the epoch), the user, and the free space. */
void sim_disk_set_time(int64_t now_ms);
void sim_disk_set_user(unsigned user);
void sim_disk_set_space(int64_t bytes_free, int64_t inodes_free);

/* Files (not directories, not FIFOs) under an absolute or root-less path, "" = all. */
size_t sim_disk_count(const char *under);
/* The bytes of a file as seen, borrowed until the next change; at == NULL: none. */
struct text sim_disk_content(const char *path);
/* For tests of damage: turns one byte into its complement, in both versions. */
bool sim_disk_damage(const char *path, size_t offset);
/* The handle that waits for the FIFO to be pulled (for sim_loop_ready), or -1. */
int sim_disk_fifo_reader(const char *path);
/* How often it was pulled and not read since. */
size_t sim_disk_fifo_pulled(const char *path);

#endif
