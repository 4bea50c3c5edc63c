/* The spool: the files of a message, and the steps between S1 and S5 as file
 * operations.
 *
 * The one place that knows file names. A directory is a directory; each message has at most
 * one file in each, named by its id; corrupt/ holds ID.DIRECTORY and ID.note.
 *
 *   S1, S2 mess, S3 +intd    draft.c, commit.c
 *   S3 -> S4 +todo           spool_enter_todo; durable once its directory is synced
 *   S4 -> S5 info, channels  spool_write_preprocessed (preprocess.c), spool_leave_todo
 *   S5 bounce text, D marks  spool_append_failures, spool_mark
 *   S4 or S5 -> S1           spool_remove_all
 *
 * A name is durable when its directory has been synced; a new file's name when the file has
 * been synced itself (doc/design.md "File systems"). Results are 0 or -errno; every
 * failed call has been logged, and EIO or a file system that turned read-only latches
 * `trouble`: no new mail is taken until a restart, delivery goes on. */
#ifndef QUEUE_SPOOL_H
#define QUEUE_SPOOL_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "queue/envelope.h"
#include "queue/spool/guard.h"

/* In the order in which a start-up lists them: mess last, so that what an injector
 * makes meanwhile is never seen without its mess. */
enum spool_dir {
    SPOOL_PID,
    SPOOL_TODO,
    SPOOL_INTD,
    SPOOL_INFO,
    SPOOL_LOCAL,
    SPOOL_REMOTE,
    SPOOL_BOUNCE,
    SPOOL_HOLD,
    SPOOL_DEFRAG, /* marks alone: marker.h */
    SPOOL_MESS,
    SPOOL_CORRUPT,
    SPOOL_LOCK,
    SPOOL_DIRS
};
#define SPOOL_BIT(dir) (1u << (unsigned)(dir))

enum {
    SPOOL_PATH_MAX = 96,
    /* above every form of an envelope */
    SPOOL_FILE_MAX = ENVELOPE_BYTES_MAX + 16 * 1024 * 1024
};

struct loop;

struct spool {
    struct disk *disk;
    struct log *log;
    struct loop *loop;   /* the daemon's, for the time; or NULL */
    bool foreign;        /* an injector that is another user than the daemon: what it */
    unsigned reader;     /* writes is for this one's eyes */
    bool adopts;         /* the daemon: content of others is made its own, see load.h */
    unsigned user;       /* then: who we are */
    int64_t foreign_max; /* then: bytes of others' content; 0 = no limit */
    int64_t bytes_reserve;     /* what copies of it leave free: see space.h */
    bool unsynced[SPOOL_DIRS]; /* names changed since the last sync */
    uint64_t syncs, quarantined;
    uint64_t bytes_read; /* of contents that were checked */
    bool marker_failed;  /* see marker.h */
    char trouble[160];   /* why no mail is taken; "" = all is well */
    struct guard guard;  /* the daemon: opened by queue.c */
};

/* Opens the directory, making what is missing; error names path and remedy. An injector
 * needs no right to make a directory that exists. 0 or -errno. */
int spool_open(struct spool *s, const char *path, bool injector, struct log *log,
               char *error, size_t error_size);
/* The daemon's: the FIFO of its slice. 0 or -errno. */
int spool_make_trigger(struct spool *s, const char *path);
void spool_close(struct spool *s);

void spool_path(enum spool_dir dir, struct id id, char out[SPOOL_PATH_MAX]);
const char *spool_dir_name(enum spool_dir dir);
extern const char spool_lock[];
/* The FIFO that wakes the daemon of a slice. */
void spool_trigger_path(unsigned slices, unsigned slice, char out[SPOOL_PATH_MAX]);
/* Wakes whoever handles id, if there is one, whatever its number of slices. */
void spool_pull_trigger(struct spool *s, struct id id);

/* Logs what could not be done (error < 0), with the id if there is one, and latches.
 * Returns error. id may be NULL. */
int spool_trouble(struct spool *s, int error, const struct id *id, const char *doing);
/* One line on what could not be done at the start, with this error (< 0), and what
 * makes the spool writable. s->disk may be NULL. Returns error. */
int spool_complain(const struct spool *s, const char *path, const char *doing,
                   int error, char *out, size_t size);
/* So many names in a directory are no ids; none: nothing is told. */
void spool_tell_strange(struct spool *s, enum spool_dir dir, size_t count);
/* 452 4.3.1 for a full disk or quota, else 451 4.3.0. */
struct outcome spool_refusal(int error);

/* --- Single files ---------------------------------------------------------------- */

/* A new file that only we, and the daemon, may read; -EEXIST. Unlogged. */
int spool_create(struct spool *s, const char *path);
/* The same with this content; open, not synced. What had the name goes first if
 * replace, else -EEXIST. On failure nothing is left behind. */
int spool_write_new(struct spool *s, enum spool_dir dir, struct id id,
                    struct text bytes, bool replace);
int spool_sync(struct spool *s, int file, const struct id *id);
/* Of the directories with changed names those in the mask; stops at the first error. todo
 * goes first: a todo that came back over a finished info would be delivered again. */
int spool_sync_dirs(struct spool *s, unsigned mask);
/* 0 also when there was none. */
int spool_remove(struct spool *s, enum spool_dir dir, struct id id);
bool spool_has(struct spool *s, enum spool_dir dir, struct id id);
/* Which of the directories have a file of id, as SPOOL_BITs. < 0: the disk did not answer. */
int spool_dirs_of(struct spool *s, struct id id, unsigned *found);
/* The whole file into out (whose limit bounds it). Unlogged: -ENOENT is an answer. */
int spool_read(struct spool *s, enum spool_dir dir, struct id id, struct buffer *out);
/* The same of any file: what fits is in out, -EFBIG when that is not all. */
int spool_read_path(struct disk *disk, const char *path, struct buffer *out);
/* A whole file under its name at once, without any sync: for hints. */
int spool_write_path(struct disk *disk, const char *path, struct text text);

/* --- Steps ----------------------------------------------------------------------- */

int spool_enter_todo(struct spool *s, struct id id);
/* The files of S5, those that are not empty, written and not synced: their handles are
 * the caller's to sync and close. content: of mess/ID, NULL when that is there already.
 * mark_offsets are set. On failure none is left, and count is 0. */
enum { SPOOL_PREPROCESSED_FILES = 5 };
int spool_write_preprocessed(struct spool *s, struct envelope *e,
                             const struct text *content,
                             int files[SPOOL_PREPROCESSED_FILES], unsigned *count);
/* Back: S5 was not reached. with_content: mess/ID goes too. */
void spool_remove_preprocessed(struct spool *s, struct envelope *e, bool with_content);
/* S5 as a start has found it, which may be in memory only: its files and their names.
 */
int spool_sync_preprocessed(struct spool *s, struct id id);
/* From here on e is preprocessed. < 0: todo stayed, which is no harm, but todo/ still
 * shows it. */
int spool_leave_todo(struct spool *s, struct envelope *e);
/* Appends texts (envelope_write_failure) to bounce/ID, durably; before the marks. */
int spool_append_failures(struct spool *s, struct id id, struct text texts);
/* Marks the recipients durably. */
int spool_mark(struct spool *s, const struct envelope *e, const unsigned *marks,
               size_t count);
/* In place, unsynced: after a power cut the old time holds. Only that the sender has
 * been warned is made durable, once. */
int spool_write_due(struct spool *s, const struct envelope *e);
/* Cheap: no sync. todo and info go first, mess last: what a crash leaves is no message.
 * < 0: todo or info could not be removed; then the message stays as it is. */
int spool_remove_all(struct spool *s, struct id id);
/* Note and mess first, todo and info last: a crash in between leaves a message without
 * content, which is quarantined again. */
void spool_quarantine(struct spool *s, struct id id, const char *reason,
                      int64_t now_ms);
/* corrupt/ID.DIRECTORY with this content, durable but for its name. 0 or -errno. */
int spool_put_corrupt(struct spool *s, struct id id, enum spool_dir dir,
                      struct text bytes);
/* What corrupt/ has of it. False: nothing. */
bool spool_erase_corrupt(struct spool *s, struct id id);
/* corrupt/'s names: the id in front of the dot. */
bool spool_corrupt_id(const char *name, struct id *id);

#endif
