/* The spool: the files of a message, and the steps between S1 and S5 as file
 * operations.
 *
 * No other module knows file names; this one never knows when a step is due. Each
 * message has at most one file in each directory, named by its id; corrupt/ holds
 * ID.DIRECTORY and ID.note.
 *
 *   S1, S2 mess, S3 +intd    draft.c, commit.c
 *   S3 -> S4 +todo           spool_enter_todo; durable once its directory is synced
 *   S4 -> S5 info, channels  spool_write_preprocessed (preprocess.c), spool_leave_todo
 *   S5 bounce text, D marks  spool_append_failures, spool_mark
 *   S4 or S5 -> S1           spool_remove_all
 *
 * A name is durable when its directory has been synced; a new file's name when the file
 * has been synced itself (doc/dev/design.md "File systems"). Results are 0 or -errno; every
 * failed call has been logged, and EIO, ESTALE or a file system that turned read-only latches
 * `trouble`: no new mail is accepted until a restart; delivery goes on. */
#ifndef QUEUE_SPOOL_SPOOL_H
#define QUEUE_SPOOL_SPOOL_H

#include "base/disk/disk.h"
#include "base/gate.h"
#include "base/log/log.h"
#include "queue/envelope/envelope.h"
#include "queue/spool/queue_settings.h"
#include "queue/spool/guard.h"
#include "queue/spool/holder.h"
#include "queue/spool/junk.h"

/* In the order in which startup lists them: mess last, so that a message that an
 * injector makes meanwhile is never seen without its mess. */
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
/* The directories of a message's files, in the order of their removal. */
enum { SPOOL_LEAVING = 8 };
extern const enum spool_dir spool_leaving[SPOOL_LEAVING];

/* A content of this mode is a daemon's, and its envelope is a file: without one it was left
 * by a daemon that died, and no client has a 250 for it. Everything else is SPOOL_OWN_MODE:
 * what injectors write, who may be at work, and content whose envelope is, or was, in the
 * journal. */
enum { SPOOL_OWN_MODE = 0600, SPOOL_DAEMON_MODE = 0400 };

enum {
    SPOOL_PATH_MAX = 96,
    /* above every form of an envelope */
    SPOOL_FILE_MAX = ENVELOPE_BYTES_MAX + 16 * 1024 * 1024
};

struct loop;

struct spool {
    struct disk *disk;
    struct log *log;
    struct loop *loop;     /* the daemon's, for the time; or NULL */
    struct gate *gate;     /* of results: events go first; NULL: nothing does */
    bool foreign;          /* an injector of another user than the daemon's */
    unsigned reader;       /* then: the daemon's user, which may read its files */
    bool adopts;           /* the daemon: copies content of other users, see load.h */
    unsigned user;         /* then: our user */
    int64_t foreign_max;   /* then: limit of their content in bytes; 0 = none */
    int64_t bytes_reserve; /* then: the copies leave that free, see space.h */
    /* Names changed since the last sync began; and syncs under way (preprocess.c): until
     * they have ended, nothing that they cover is durable: spool_needs_sync(). */
    bool unsynced[SPOOL_DIRS];
    unsigned syncing[SPOOL_DIRS];
    bool
        has_scrap; /* files of an S5 were removed that did not count, and may come back */
    /* Whether S5 has the recipient in local/: is_local of queue_settings. NULL: none. */
    queue_is_local *is_local;
    void *is_local_context;
    uint64_t syncs, quarantined;
    uint64_t bytes_read;  /* of contents that were checked */
    bool marker_failed;   /* see marker.h */
    char trouble[160];    /* why no mail is accepted; "" = healthy */
    struct guard guard;   /* the daemon: opened by queue.c */
    struct holder holder; /* with the lock: share.c */
    struct junk junk;     /* of other users */
};

/* Opens the directory and makes missing ones; error names path and remedy. An injector
 * needs no permission for directories that exist. 0 or -errno. */
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
/* Wakes the daemon that handles id, if there is one, with any number of slices. */
void spool_pull_trigger(struct spool *s, struct id id);

/* Logs the failure (error < 0), with the id unless id is NULL, and latches. Returns
 * error. */
int spool_trouble(struct spool *s, int error, const struct id *id, const char *doing);
/* Writes one line: the failure at startup, with this error (< 0), and the remedy.
 * s->disk may be NULL. Returns error. */
int spool_complain(const struct spool *s, const char *path, const char *doing,
                   int error, char *out, size_t size);
/* Logs that count names in a directory are not ids; not if count is 0. */
void spool_log_strange(struct spool *s, enum spool_dir dir, size_t count);
/* 452 4.3.1 for a full disk or quota, else 451 4.3.0. */
struct outcome spool_refusal(int error);

/* --- Single files ---------------------------------------------------------------- */

/* A new file that only we, and the daemon, may read; -EEXIST. Unlogged. mode: one of the
 * two above; of another user's injector it says nothing. */
int spool_create(struct spool *s, const char *path, unsigned mode);
/* The same with this content; open, not synced. replace: an existing file is removed
 * first; else -EEXIST. On failure nothing is left behind. */
int spool_write_new(struct spool *s, enum spool_dir dir, struct id id,
                    struct text bytes, bool replace);
int spool_sync(struct spool *s, int file, const struct id *id);
/* Whether a name of the directory may not be durable. */
bool spool_needs_sync(const struct spool *s, enum spool_dir dir);
/* Syncs the directories in the mask that have changed names; stops at the first error.
 * todo is first: a todo that came back beside a complete info would be delivered
 * again. */
int spool_sync_dirs(struct spool *s, unsigned mask);
/* 0 also when there was none. */
int spool_remove(struct spool *s, enum spool_dir dir, struct id id);
bool spool_has(struct spool *s, enum spool_dir dir, struct id id);
/* Which of the directories have a file of id, as SPOOL_BITs. < 0: the disk did not
 * answer. */
int spool_dirs_of(struct spool *s, struct id id, unsigned *found);
/* The whole file into out (whose limit bounds it). Unlogged: -ENOENT is an answer. */
int spool_read(struct spool *s, enum spool_dir dir, struct id id, struct buffer *out);
/* The same for any file. -EFBIG: out has only the beginning. */
int spool_read_path(struct disk *disk, const char *path, struct buffer *out);
/* Writes a file under its final name, without a sync: for hints. */
int spool_write_path(struct disk *disk, const char *path, struct text text);

/* --- Steps ----------------------------------------------------------------------- */

int spool_enter_todo(struct spool *s, struct id id);
/* Writes the files of S5 that are not empty, unsynced; the caller syncs and closes
 * their handles. content: of mess/ID, NULL when that exists. places: one for
 * each recipient, gets its place. On failure none is left, and count is
 * 0. */
enum { SPOOL_PREPROCESSED_FILES = 5 };
int spool_write_preprocessed(struct spool *s, const struct envelope *e,
                             const struct text *content, struct mark_place *places,
                             int files[SPOOL_PREPROCESSED_FILES], unsigned *count);
/* Undoes that, when S5 was not reached. with_content: removes mess/ID, too. */
void spool_remove_preprocessed(struct spool *s, struct id id, bool with_content);
/* Syncs the files and names of S5 as startup has found it: they may be in memory
 * only. */
int spool_sync_preprocessed(struct spool *s, struct id id);
/* Removes todo. released: info/ID says so, too. < 0: todo is left, which is harmless, but
 * a scan of todo/ still finds it. */
int spool_leave_todo(struct spool *s, struct id id, bool released);
/* Appends texts (envelope_write_failure) to bounce/ID, durably; before the marks. */
int spool_append_failures(struct spool *s, struct id id, struct text texts);
/* Marks the recipients durably. */
int spool_mark(struct spool *s, const struct envelope *e, const unsigned *marks,
               size_t count);
/* In place, unsynced: after a power cut the old time holds. A new age of warnings alone is
 * made durable, once. */
int spool_write_due(struct spool *s, const struct envelope *e);
/* That an operator releases the message, beside its due time, durably. */
int spool_keep_release(struct spool *s, const struct envelope *e);
/* Without a sync. todo and info go first, mess last: files left by a crash are not a
 * message. < 0: todo or info could not be removed; the message stays as it is. */
int spool_remove_all(struct spool *s, struct id id);
/* The same in these directories alone, SPOOL_BITs; SPOOL_DEFRAG, SPOOL_LOCK: its marks. */
#define SPOOL_ANYWHERE (~0U)
int spool_remove_in(struct spool *s, struct id id, unsigned places);
/* Where the message may have files. In S5 that is known; a name that is not there costs as
 * much as a question. */
unsigned spool_places_of(const struct envelope *e);

#endif
