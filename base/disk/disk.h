/* Files: the only door to open, write, fsync, link, rename, unlink.
 *
 * A `struct disk` is a directory; paths are relative to it (an absolute path leaves it,
 * for Maildirs and settings). Symbolic links are never followed in the last component.
 * Files are small handles (>= 0). Every call returns a negative errno on failure; short
 * writes are continued here, never seen by callers. A failed sync is never retried: the
 * content counts as unknown (doc/dev/design.md "File systems"). This directory knows
 * nothing of the content of files. t/sim/disk.c is the stand-in with power cuts. */
#ifndef BASE_DISK_DISK_H
#define BASE_DISK_DISK_H

#include "base/text.h"

struct disk;

enum disk_kind { DISK_FILE, DISK_DIRECTORY, DISK_SOCKET, DISK_OTHER };
struct disk_info {
    enum disk_kind kind;
    int64_t size, changed_ms; /* ctime, ms since the epoch */
    unsigned owner;           /* uid */
    unsigned mode;            /* permissions: 0600 */
    unsigned links;
    uint64_t inode; /* another file has another one */
};
struct disk_space {
    int64_t bytes_free, inodes_free; /* for unprivileged users */
    int64_t bytes, inodes;           /* of the whole file system; 0 = without limit */
};

/* create: make the directory (0711) and its parents when missing. */
int disk_open(struct disk **disk, const char *path, bool create);
/* A directory within an open one; a link is not followed. */
int disk_open_below(struct disk **disk, struct disk *above, const char *name);
/* Waits for the syncs in flight; their done is not called, and their structs are no
 * longer used. Other handles stay open. */
void disk_close(struct disk **disk);
const char *disk_path(const struct disk *disk);
bool disk_is_owner(const struct disk *disk); /* our uid owns the directory */

/* Changes the owner of a file of root to user and group; for root alone. -EPERM: root
 * does not own the file. -EINVAL: a link, a device, or a file with a second name. */
int disk_give(struct disk *disk, const char *path, unsigned user, unsigned group)
    __attribute__((warn_unused_result));

/* Returns 0 also when the directory exists; its mode then stays. The umask does not
 * apply. */
int disk_make_directory(struct disk *disk, const char *path, unsigned mode);
int disk_make_fifo(struct disk *disk, const char *path, unsigned mode);

/* A new file for reading and writing; the umask does not apply. -EEXIST: the name is
 * taken. -ELOOP: a relative path leads through a link. */
int disk_create(struct disk *disk, const char *path, unsigned mode);
/* As disk_create(); an access control list lets one other user read the file. Where no
 * list can be set, the file is readable by all. */
int disk_create_for(struct disk *disk, const char *path, unsigned reader);
/* An existing regular file; anything else is -EINVAL. Never blocks. */
int disk_open_file(struct disk *disk, const char *path, bool for_writing);
void disk_close_file(struct disk *disk, int file);
/* Appends. 0 or -errno. */
int disk_write(struct disk *disk, int file, struct text bytes);
int disk_write_at(struct disk *disk, int file, int64_t offset, struct text bytes);
/* Bytes read, 0 at the end. */
int64_t disk_read(struct disk *disk, int file, int64_t offset, char *to, size_t size);
/* The start of a small file, which is not kept open: bytes read. -EAGAIN: they are not
 * in memory, and the device has begun to read them: *file is open, disk_read() waits for
 * them. It may read anything of a file that is not a regular one. */
int64_t disk_peek(struct disk *disk, const char *path, char *to, size_t size, int *file)
    __attribute__((warn_unused_result));
int disk_file_info(struct disk *disk, int file, struct disk_info *info);
/* fsync: content, size and new name. */
int disk_sync(struct disk *disk, int file);
/* fdatasync: in-place overwrites only. */
int disk_sync_data(struct disk *disk, int file);
int disk_sync_directory(struct disk *disk, const char *path); /* names */

/* --- Syncs in the background ------------------------------------------------------ */

/* Native AIO (IOCB_CMD_FDSYNC, IOCB_CMD_FSYNC) with an eventfd that the loop watches:
 * asynchronous without a thread, and allowed where io_uring is not
 * (doc/dev/design.md "Syncs in the background"). */

struct loop;

enum disk_syncing { DISK_SYNC_BLOCKS, DISK_SYNC_AIO };
/* Tries AIO with a sync of the directory, and returns the mode that disk_sync_begin()
 * will use. Without this call syncs block. The loop must outlive the disk. */
enum disk_syncing disk_sync_on(struct disk *disk, struct loop *loop);
enum disk_syncing disk_sync_way(const struct disk *disk);

/* Embedded in its owner, which keeps it and the open file until done is called. */
struct disk_sync {
    void (*done)(void *context, int result); /* 0 or -errno */
    void *context;
    struct disk_sync *prev, *next; /* from here on private to disk_sync.c */
    int64_t began_us;
    uint64_t turn;
    int result;
};
enum { DISK_SYNCING = 1 };
/* How long syncs took, since startup. */
enum { DISK_PACE_BOUNDS = 5 }; /* 0.1, 1, 10, 100 ms, 1 s */
struct disk_pace {
    uint64_t syncs[DISK_PACE_BOUNDS + 1]; /* by those bounds; the last: beyond */
    int64_t sum_us;
};
const struct disk_pace *disk_pace(const struct disk *disk);

/* Starts a sync: of content alone (data_only: in-place overwrites), or of content,
 * size and new name; file may be a directory (its names). DISK_SYNCING: done is called
 * in a later turn, before its end-of-turn stages; with -EIO if the system has lost
 * track of the sync (syncs block from then on). Otherwise the system refused AIO, or
 * 256 syncs are in flight: the sync has blocked and its result, 0 or -errno, is
 * returned; done is not called. */
int disk_sync_begin(struct disk *disk, int file, bool data_only,
                    struct disk_sync *sync);
/* Starts several syncs, with one system call for many of them: results[i] is the result
 * of disk_sync_begin(). */
void disk_sync_begin_many(struct disk *disk, const int *files, bool data_only,
                          struct disk_sync *const *syncs, int *results, size_t count);
/* Waits for all syncs in flight, and calls their done before it returns. For the end
 * of a program. */
void disk_sync_wait(struct disk *disk);
/* A directory as a handle for disk_sync_begin() and disk_close_file(). */
int disk_open_directory(struct disk *disk, const char *path);

/* -EEXIST if the name is taken. */
int disk_link(struct disk *disk, const char *from, const char *to);
int disk_rename(struct disk *disk, const char *from, const char *to);
int disk_unlink(struct disk *disk, const char *path); /* -EISDIR: it is a directory */
int disk_remove_directory(struct disk *disk, const char *path); /* an empty one */
int disk_inspect(struct disk *disk, const char *path, struct disk_info *info);
/* For a path in the working directory; links are followed. */
int disk_look(const char *path, struct disk_info *info);
/* Calls each with the names in a directory, without . and .., in no order, until it
 * returns false. The directory may change meanwhile. */
int disk_list(struct disk *disk, const char *path,
              bool (*each)(void *context, const char *name), void *context);
/* Lists a large directory in pieces: names that are there from open to the end are met
 * once, others perhaps. */
struct disk_listing;
int disk_listing_open(struct disk *disk, const char *path,
                      struct disk_listing **listing);
/* Calls each for at most `most` names. 1: there may be more; 0: there are none, or each
 * returned false; or -errno. */
int disk_listing_read(struct disk_listing *listing, size_t most,
                      bool (*each)(void *context, const char *name), void *context);
void disk_listing_close(struct disk_listing **listing); /* NULL inside: nothing */
int disk_space(struct disk *disk, struct disk_space *space);

/* Exclusive lock on count bytes from first on (whether the file has them or not), kept
 * until the handle is closed. -EWOULDBLOCK: one of them is locked. Creates the file.
 * Two handles of one process exclude each other, too. */
int disk_lock(struct disk *disk, const char *path, unsigned first, unsigned count);

/* Maps size bytes of a file (made, or extended by zeros) as shared memory: bytes
 * stored there survive the process without a system call, but not a power cut. NULL:
 * not possible. */
void *disk_map(struct disk *disk, const char *path, size_t size);
void disk_unmap(struct disk *disk, void *map, size_t size);

/* The guarantees of a file system, for warnings at startup. */
struct disk_traits {
    char type[24];    /* "ext4", "tmpfs", ...; "?" if unknown */
    bool forgets;     /* in memory: nothing survives a power cut */
    bool fast_commit; /* ext4 with fast_commit: see doc/dev/design.md "File systems" */
    bool copies;      /* copy on write: overwriting in place needs free space */
    bool shared;      /* several hosts may mount it */
    bool soft;        /* NFS: a server that is away is an error, not a wait */
    bool locks_stay;  /* NFS 2 or 3: locks outlive their host */
    int64_t sync_us;  /* median of several overwrite + fdatasync; -1: not measured */
};
/* Takes some milliseconds, on a slow disk 0.3 s and a sync: writes and syncs a small
 * file at path, which is replaced and removed. If that fails (full, read-only), the
 * other members are still set. fast_commit is read from the kernel's count of such
 * commits, or else from the superblock if the device is readable; soft and locks_stay
 * from the mount's options. */
int disk_traits(struct disk *disk, const char *path, struct disk_traits *nature);
/* Whether several hosts may mount the file system: of a network, or by FUSE. */
bool disk_is_shared(const struct disk *disk);

/* The reading end of a FIFO as a descriptor for loop_watch_new(); never blocks. */
int disk_open_fifo(struct disk *disk, const char *path);
/* Writes one byte into a FIFO without blocking; -ENXIO without a reader. */
int disk_pull_fifo(struct disk *disk, const char *path);

/* Opens a regular file, reads at that offset and closes it: the number of bytes, or
 * -errno. */
int64_t disk_read_at(struct disk *disk, const char *path, int64_t offset, char *to,
                     size_t size) __attribute__((warn_unused_result));
/* Makes a file with that content, which is durable, but not the name. 0 or -errno: then a
 * part of it may be there. */
int disk_write_new(struct disk *disk, const char *path, unsigned mode, struct text text)
    __attribute__((warn_unused_result));
/* Reads a whole small file (at most limit bytes, else -EFBIG) into malloc'ed memory
 * with a NUL behind it. path is relative to the working directory; links are followed.
 * Waits for the writer of a FIFO. */
int disk_read_whole(const char *path, size_t limit, char **content, size_t *length);
/* As disk_read_whole(), of a path in settings: never waits. Anything but a regular file is
 * -EINVAL, a directory -EISDIR. A daemon reads such files while it runs, and another user may
 * own the directory and put a FIFO there. /dev/null is an empty file. */
int disk_read_regular(const char *path, size_t limit, char **content, size_t *length);
/* The reason, for a user, of an error of disk_read_whole() or disk_read_regular(). */
const char *disk_explain(int error);
enum { DISK_REASON_MAX = 2048 };
/* Why permissions keep the file from this user, as the end of a sentence: whose it is, or
 * the directory above it that may not be passed, and the command that opens it. "": they
 * do not. Returns out. */
const char *disk_explain_closed(const char *path, char out[DISK_REASON_MAX]);
/* disk_explain(), and all that is known of a closed file. Returns out. */
const char *disk_explain_file(const char *path, int error, char out[DISK_REASON_MAX]);

/* Opens /dev/null as each of the descriptors 0, 1, 2 that is closed. Otherwise the next
 * file would get that number, and error messages would be written into it. */
int disk_fill_standard(void);

#endif
