/* Files: the only door to open, write, fsync, link, rename, unlink.
 *
 * A `struct disk` is a directory; paths are relative to it (an absolute path leaves it,
 * for Maildirs and settings). Symbolic links are never followed in the last component.
 * Files are small handles (>= 0). Every call answers a negative errno on failure; short
 * writes are continued here, never seen by callers. A failed sync is never retried: the
 * content counts as unknown (doc/design.md "File systems"). t/sim/disk.c is the
 * stand-in with power cuts. */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include "base/text.h"

struct disk;

enum disk_kind { DISK_FILE, DISK_DIRECTORY, DISK_OTHER };
struct disk_info {
    enum disk_kind kind;
    int64_t size, changed_ms; /* ctime, ms since the epoch */
    unsigned owner;           /* uid */
    unsigned mode;            /* permissions: 0600 */
    unsigned links;
};
struct disk_space {
    int64_t bytes_free, inodes_free; /* for unprivileged users */
    int64_t bytes, inodes;           /* of the whole file system; 0 = without limit */
};

/* create: make the directory (0711) and its parents when missing. */
int disk_open(struct disk **disk, const char *path, bool create);
/* A directory in one that is open; a link is not followed. */
int disk_open_below(struct disk **disk, struct disk *above, const char *name);
/* Syncs in flight are waited for, but their owners do not hear: done is not called any
 * more, and their structs are not touched. Other handles stay open. */
void disk_close(struct disk **disk);
const char *disk_path(const struct disk *disk);
bool disk_is_owner(const struct disk *disk); /* our uid owns the directory */

/* Makes user and group the owners of what is root's; for root alone. -EPERM: it is not
 * root's. -EINVAL: a link, a device, or a file that has another name besides. */
int disk_give(struct disk *disk, const char *path, unsigned user, unsigned group)
    __attribute__((warn_unused_result));

/* Exists already = success; the mode is then left alone. The exact mode, no umask. */
int disk_make_directory(struct disk *disk, const char *path, unsigned mode);
int disk_make_fifo(struct disk *disk, const char *path, unsigned mode);

/* A new file for reading and writing; -EEXIST if the name is taken. Exact mode. -ELOOP:
 * a relative path leads through a link. */
int disk_create(struct disk *disk, const char *path, unsigned mode);
/* The same, for our eyes and those of one other user, by an access control list. Where
 * the file system or the system has none, or none for that user: for everybody's. */
int disk_create_for(struct disk *disk, const char *path, unsigned reader);
/* An existing regular file; anything else is -EINVAL. Never blocks. */
int disk_open_file(struct disk *disk, const char *path, bool for_writing);
void disk_close_file(struct disk *disk, int file);
int disk_write(struct disk *disk, int file,
               struct text bytes); /* at the end: 0 or -errno */
int disk_write_at(struct disk *disk, int file, int64_t offset, struct text bytes);
/* Bytes read, 0 at the end. */
int64_t disk_read(struct disk *disk, int file, int64_t offset, char *to, size_t size);
int disk_file_info(struct disk *disk, int file, struct disk_info *info);
int disk_sync(struct disk *disk, int file); /* fsync: content, size and new name */
int disk_sync_data(struct disk *disk,
                   int file); /* fdatasync: in-place overwrites only */
int disk_sync_directory(struct disk *disk, const char *path); /* names */

/* --- Syncing while the loop goes on --------------------------------------------------
 *
 * Native AIO (IOCB_CMD_FDSYNC, IOCB_CMD_FSYNC) with an eventfd that the loop watches:
 * asynchronous without a thread, and allowed where io_uring is not
 * (doc/design.md "Syncs in the background"). */

struct loop;

enum disk_syncing { DISK_SYNC_BLOCKS, DISK_SYNC_AIO };
/* Tries it with a sync of the directory itself; says what disk_sync_begin() will do.
 * Without this call syncs block. The loop must outlive the disk. */
enum disk_syncing disk_sync_on(struct disk *disk, struct loop *loop);
enum disk_syncing disk_sync_way(const struct disk *disk);

/* Embedded in its owner, who keeps it and the open file until done is called. */
struct disk_sync {
    void (*done)(void *context, int result); /* 0 or -errno */
    void *context;
    struct disk_sync *prev, *next; /* this and the rest: the door's own */
    uint64_t turn;
    int result;
};
enum { DISK_SYNCING = 1 };
/* Starts a sync: of content alone (data_only: in-place overwrites), or of content, size
 * and new name; file may be a directory (its names). DISK_SYNCING: done is called in a
 * later turn, before its end-of-turn stages; with -EIO when the system does not say any
 * more what became of it (syncs block from then on). Else the sync is over, with 0 or
 * -errno, and done is not called: the system refused to do it in the background, or 256
 * are under way already. */
int disk_sync_begin(struct disk *disk, int file, bool data_only,
                    struct disk_sync *sync);
/* Waits until no sync is under way; their done callbacks come before it returns. For
 * the end of a program. */
void disk_sync_wait(struct disk *disk);
/* A directory as a handle for disk_sync_begin() and disk_close_file(). */
int disk_open_directory(struct disk *disk, const char *path);

int disk_link(struct disk *disk, const char *from,
              const char *to); /* -EEXIST if taken */
int disk_rename(struct disk *disk, const char *from, const char *to);
int disk_unlink(struct disk *disk, const char *path);
int disk_inspect(struct disk *disk, const char *path, struct disk_info *info);
/* Names in a directory, without . and .., in no order; each returns false to stop. The
 * directory may be changed meanwhile. */
int disk_list(struct disk *disk, const char *path,
              bool (*each)(void *context, const char *name), void *context);
int disk_space(struct disk *disk, struct disk_space *space);

/* Exclusive lock on count bytes from first on (whether the file has them or not), kept
 * until the handle is closed; -EWOULDBLOCK when somebody has one of them. Creates the
 * file. Two handles of one process exclude each other too. */
int disk_lock(struct disk *disk, const char *path, unsigned first, unsigned count);

/* size bytes of a file (made, or zero-extended) as shared memory: what is stored there
 * outlives the process without a system call, but no power cut. NULL: not possible. */
void *disk_map(struct disk *disk, const char *path, size_t size);
void disk_unmap(struct disk *disk, void *map, size_t size);

/* What a file system promises, for warnings at start. */
struct disk_traits {
    char type[24];    /* "ext4", "tmpfs", ...; "?" if unknown */
    bool forgets;     /* in memory: nothing survives a power cut */
    bool fast_commit; /* ext4 with fast_commit: see doc/design.md "File systems" */
    bool copies;      /* copy on write: overwriting in place needs free space */
    int64_t sync_us;  /* median of some overwrite + fdatasync; -1: not measured */
};
/* Takes some milliseconds, on a slow disk 0.3 s and a sync: it writes and syncs a small
 * file of its own at path, which is replaced and removed. Where that cannot be made
 * (full, read-only) the rest is told all the same. fast_commit is seen in the kernel's
 * count of such commits, else in the superblock by those who may read the device. */
int disk_traits(struct disk *disk, const char *path, struct disk_traits *nature);

/* A FIFO's reading end as a descriptor for loop_watch_new(); never blocks. */
int disk_open_fifo(struct disk *disk, const char *path);
/* Writes one byte into a FIFO without blocking; -ENXIO when nobody reads. */
int disk_pull_fifo(struct disk *disk, const char *path);

/* The whole of a small file (at most limit bytes, else -EFBIG), malloc'ed with a NUL
 * behind it; path is taken from the working directory and links are followed. */
int disk_read_whole(const char *path, size_t limit, char **content, size_t *length);

/* Opens /dev/null in the place of each of the descriptors 0, 1, 2 that the caller has
 * left closed: else the next file would get that number, and complaints end up in it.
 */
int disk_fill_standard(void);

#endif
