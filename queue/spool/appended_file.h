/* A file of lines that are appended, and now and then written anew.
 *
 * It begins with a title. What a turn has changed is written before the turn ends, so that a
 * kill loses none of it; it is synced in the background within sync_ms and the duration of the
 * sync, so that a power cut loses no more than that. A file with twice as many lines as its
 * owner has is written anew beside the old one, some lines in a turn, while both get new
 * lines; the rename follows its sync. A disk that fails costs only what has changed since:
 * one line says so, and the file is written anew each minute until that works. */
#ifndef QUEUE_SPOOL_APPENDED_FILE_H
#define QUEUE_SPOOL_APPENDED_FILE_H

#include "base/buffer.h"
#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"

enum {
    APPENDED_PATH_MAX = 64,
    APPENDED_AGAIN_MS = 60 * 1000,
    APPENDED_LINES_A_TURN = 2000, /* of a file that is written anew */
    APPENDED_LINES_LEAST = 1000,  /* fewer are not worth it */
    APPENDED_LINE_MAX = 4096
};

/* The owner of the lines, whose last for an entry counts. */
struct appended_kind {
    struct text title;   /* with its LF */
    const char *program; /* in the log */
    const char *loss;    /* after a restart, if the file cannot be written */
    int64_t sync_ms;
    /* A line without its LF. False: it is damaged. */
    bool (*read)(void *context, struct text line);
    /* Adds the line of the next entry, in any order: from the first on if it begins. False:
     * there is none. */
    bool (*write)(void *context, bool begins, struct buffer *out);
    size_t (*count)(const void *context); /* entries */
    /* They are written in several turns from now on, or are no longer. May be NULL. */
    void (*hold)(void *context, bool held);
};

/* How far such a file was read. */
struct appended_reading {
    struct disk *disk;
    int file;
    const struct appended_kind *kind;
    void *context;
    int64_t offset;    /* behind the last whole line */
    size_t lines, bad; /* bad: of them, damaged */
    bool begun, skips; /* the title was read; the rest of a long line */
    bool is_torn;      /* a part of a line is left behind offset */
};

/* The file of another process, which appends to it and writes it anew. */
struct appended_follow {
    /* Set before the first call. kind: but for title and read NULL. */
    struct disk *disk;
    const struct appended_kind *kind;
    void *context;
    char path[APPENDED_PATH_MAX];
    /* Private. */
    struct appended_reading reading;
    bool is_open;   /* so the number of the file is no other's */
    bool is_unread; /* it is of another program: until another has its name */
    uint64_t inode;
};

struct appended_file {
    /* Set before it is opened. */
    struct disk *disk;
    struct loop *loop;
    struct log *log;
    const struct appended_kind *kind;
    void *context;
    char path[APPENDED_PATH_MAX];
    /* Private. */
    int file, fresh, directory; /* -1: not open; fresh: the one that is written anew */
    size_t lines, fresh_lines;  /* of them */
    bool begins, is_whole;      /* fresh has none yet; all entries */
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

/* Reads the file at path, if there is one. A line that is damaged is passed over, and one
 * that a power cut has torn is cut off; a line of the log says so. A file that cannot be
 * read, or is of another program, stays as PATH.bad. */
void appended_file_open(struct appended_file *f);
/* Where the line of a change is to be added, with its LF, and is written at the end of the
 * turn; fits: as buffer_add() has said. */
struct buffer *appended_file_lines(struct appended_file *f);
void appended_file_note(struct appended_file *f, bool fits);
/* Writes them now. */
void appended_file_write(struct appended_file *f);
/* Writes and syncs what is left, and waits for it. False: it could not. */
bool appended_file_settle(struct appended_file *f);
/* The same; the file is closed. */
void appended_file_close(struct appended_file *f);

/* Reads some 64 kB of the lines that are new; from the first on if the file was written
 * anew. A line that is not whole yet waits. 1: there may be more; 0: there are none; or
 * -errno, of which -EILSEQ says that it is of another program. */
int appended_follow_read(struct appended_follow *f) __attribute__((warn_unused_result));
void appended_follow_end(struct appended_follow *f);

#endif
