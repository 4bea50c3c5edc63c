/* Shared by event_spool.c and event_cursor.c; no other file includes it. */
#ifndef BASE_EVENT_EVENT_SPOOL_INTERNAL_H
#define BASE_EVENT_EVENT_SPOOL_INTERNAL_H

#include "base/event/event_spool.h"

enum {
    EVENT_PATH_MAX = 96,
    /* the number of a file; a higher one is not ours: the disk would have taken 90 TB of
     * events */
    EVENT_NUMBER_MAX = 90 * 1000 * 1000,
    EVENT_SAY_MS = 60 * 1000 /* between lines of the log about the same */
};

/* A file with events that wait, or may wait. */
struct event_file {
    uint32_t number;
    uint32_t events; /* 0: not known */
    int64_t size;    /* durable, or given up */
};

struct event_slot {
    uint64_t hash; /* of message and recipient; 0: free */
    int64_t told_ms;
};

/* Up to where the program has the events. */
struct event_cursor {
    uint32_t number; /* of the file; 0: there has been none */
    int64_t offset, end;
    unsigned taken;                    /* events of the file before offset */
    bool is_fixed;                     /* `done` knows the extent */
    unsigned dropped;                  /* bytes_max has moved it */
    unsigned batch_dropped;            /* when the batch was read */
    unsigned batch_limit, batch_count; /* of it: events asked for, events */
    bool writing;
    bool owed; /* a batch is taken, and `done` does not say so yet */
    struct loop_timer owing;
    unsigned unread; /* times in a row that a file could not be read */
    int64_t said_ms; /* that `done` cannot be written; 0: it can */
    struct loop_timer again;
    int file;      /* `done`; -1: it is made anew */
    bool is_new;   /* file has not its name yet */
    int directory; /* while that becomes durable */
    struct disk_sync sync;
};

struct event_spool {
    struct event_spool_settings settings;
    char *directory, *host;
    struct gate *gate;
    uint64_t run, serial;
    struct event_file *files;
    size_t file_count, file_capacity;
    int file;         /* of the last row; -1: a new one is needed */
    int64_t reserved; /* size of `file`; zeros behind the lines are overwritten */
    struct buffer
        open; /* lines that are not durable; the first `flying` bytes are written */
    size_t flying;
    uint64_t flying_events, open_events;
    int64_t flying_ms, open_ms; /* monotonic: since when the first of them waits */
    bool ungated;               /* the disk has not answered, or failed */
    struct disk_sync sync;
    struct loop_timer deadline, again;
    struct loop_task stir;
    uint64_t kept, lost, lost_said;
    int64_t said_ms;
    struct event_slot *slots; /* NULL: no deferral yet */
    struct event_cursor cursor;
    struct loop_task more_task;
    void (*more)(void *context);
    void *more_context;
};

void event_spool_path(const struct event_spool *s, uint32_t number,
                      char out[EVENT_PATH_MAX]);
/* Calls more in the next turn. */
void event_spool_tell_more(struct event_spool *s);
/* Events that nobody will have; why begins a line of the log, at most once a minute. */
void event_spool_lose(struct event_spool *s, uint64_t events, const char *why);

/* --- event_cursor.c --------------------------------------------------------------- */

/* Reads `done`; files are listed before. */
void event_cursor_open(struct event_spool *s);
void event_cursor_close(struct event_spool *s);
/* A file has been added, or the cursor has reached the end of one. */
void event_cursor_settle(struct event_spool *s);
/* Removes the oldest files while more than bytes_max wait. */
void event_cursor_limit(struct event_spool *s);

#endif
