/* The file of suppressed addresses: lines that are appended, and now and then written anew.
 *
 * It begins with a title; then each change is a line (suppression_record.h), of which the
 * last for an address counts. What a turn has changed is written before the turn ends, so
 * that a kill loses none of it; it is synced in the background within
 * SUPPRESSION_SYNC_MS and the duration of the sync, so that a power cut loses no more than
 * that. A file with twice as many lines as entries is written anew beside the old one, some
 * lines in a turn, while both get new lines; the rename follows its sync. A disk that fails
 * costs only what has changed since: the list stays in memory, one line says so, and the
 * file is written anew each minute until that works. */
#ifndef QUEUE_SUPPRESSION_SUPPRESSION_FILE_H
#define QUEUE_SUPPRESSION_SUPPRESSION_FILE_H

#include "base/buffer.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "queue/suppression/suppression_list.h"

enum {
    SUPPRESSION_PATH_MAX = 64,
    SUPPRESSION_SYNC_MS = 1000,
    SUPPRESSION_AGAIN_MS = 60 * 1000,
    SUPPRESSION_LINES_A_TURN = 2000, /* of a file that is written anew */
    SUPPRESSION_LINES_LEAST = 1000   /* fewer are not worth it */
};

struct suppression_file {
    /* Set before it is opened. */
    struct disk *disk;
    struct loop *loop;
    struct log *log;
    struct suppression_list *list;
    char path[SUPPRESSION_PATH_MAX];
    /* Private. */
    int file, fresh, directory; /* -1: not open; fresh: the one that is written anew */
    size_t lines, fresh_lines;  /* of them */
    size_t at;                  /* in the list: fresh has what is before */
    bool is_whole;              /* fresh has all of the list */
    bool is_stale;              /* file is damaged, or lacks a change */
    bool is_foreign;          /* path could not be read: it is renamed, not replaced */
    bool is_named, is_synced; /* durable: the name of file, its lines */
    bool syncs, drops;        /* a sync is under way; fresh goes when it has ended */
    int syncing;              /* of that handle */
    int error;                /* of the last write, as it was logged */
    struct disk_sync sync;
    struct loop_timer timer, again;
    struct loop_task wake;
    struct buffer pending; /* lines of this turn */
    size_t pending_lines;
};

/* Reads the file at path, if there is one, into the empty list. A line that is damaged is
 * passed over, and one that a power cut has torn is cut off; a line of the log says so. A
 * file that cannot be read, or is of another program, stays as PATH.bad. */
void suppression_file_open(struct suppression_file *f);
/* The change will be written at the end of the turn. */
void suppression_file_note(struct suppression_file *f,
                           const struct suppression_entry *entry);
/* At the end of each turn. */
void suppression_file_turn(struct suppression_file *f);
/* Writes and syncs what is left. */
void suppression_file_close(struct suppression_file *f);

#endif
