/* The real disk: paths relative to a directory's descriptor, files as descriptors.
 *
 * Other users may write in directories where the daemon, or root, makes files. So no
 * call follows a link in the last component (DISK_SAFELY), checks ask the open
 * descriptor and not the name, and modes are set on descriptors, independent of the
 * umask of the caller of sendmail(1). */
#include "base/disk/disk.h"

#include "base/disk/disk_internal.h"
#include "base/memory.h"

#include <assert.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    DIRECTORY_MODE = 0711,
    MODE_BITS = 07777,
    OWNER_MODE = 0600,
    PUBLIC_MODE = 0644,
    /* the overflow uid: users that do not exist in our user namespace */
    UNKNOWN_USER = 65534
};

int
disk_answer(int result)
{
    return result < 0 ? -errno : result;
}

int
disk_open_at(int directory, const char *path, int flags, unsigned mode)
{
    int file;
    do {
        file = openat(directory, *path ? path : ".", flags, mode);
    } while (file < 0 && errno == EINTR);
    return disk_answer(file);
}

int
disk_close_with(int file, int result)
{
    close(file);
    return result;
}

/* Asks the open file: between a check of a name and the open another process could
 * replace the file. */
int
disk_only_of_type(int file, mode_t type)
{
    struct stat status;
    if (fstat(file, &status) < 0)
        return disk_close_with(file, -errno);
    if ((status.st_mode & S_IFMT) != type)
        return disk_close_with(file, -EINVAL);
    return file;
}

/* Sets the requested mode, also the bits that the umask has removed. */
static int
disk_set_mode(int file, unsigned mode)
{
    struct stat status;
    if (fstat(file, &status) < 0)
        return -errno;
    if ((status.st_mode & MODE_BITS) == mode)
        return 0;
    return disk_answer(fchmod(file, mode));
}

/* 0 if path is of this type, -otherwise if it is of another one. */
static int
check_type(const struct disk *disk, const char *path, mode_t type, int otherwise)
{
    struct stat status;
    if (fstatat(disk->directory, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return (status.st_mode & S_IFMT) == type ? 0 : -otherwise;
}

static struct disk_info
info_from(const struct stat *status)
{
    return (struct disk_info){
        .kind = S_ISREG(status->st_mode)    ? DISK_FILE
                : S_ISDIR(status->st_mode)  ? DISK_DIRECTORY
                : S_ISSOCK(status->st_mode) ? DISK_SOCKET
                                            : DISK_OTHER,
        .size = status->st_size,
        .changed_ms =
            (int64_t)status->st_ctim.tv_sec * 1000 + status->st_ctim.tv_nsec / 1000000,
        .owner = status->st_uid,
        .mode = status->st_mode & 07777,
        .links = (unsigned)status->st_nlink,
        .inode = status->st_ino,
    };
}

/* A new directory, whose name is durable. A later sync of a file within promises
 * nothing about the names above it, so that the parent is synced here. */
static int
make_durable(const char *path)
{
    int made = disk_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | DISK_SAFELY, 0);
    int result =
        made < 0 ? made : disk_close_with(made, disk_set_mode(made, DIRECTORY_MODE));
    const char *slash = strrchr(path, '/');
    char *parent;
    if (result < 0)
        return result;
    parent = slash ? text_string(text_of(path, (size_t)(slash - path) + 1)) : NULL;
    result = disk_sync_directory_at(AT_FDCWD, parent ? parent : ".");
    free(parent);
    return result;
}

/* Makes path and its missing parents; 0 if it exists already. */
static int
make_with_parents(const char *path)
{
    char *copy = memory_string(path);
    size_t length = strlen(copy);
    int result = 0;
    for (size_t i = 1; i <= length && result == 0; i++) {
        char cut = copy[i];

        if ((cut != '/' && cut != '\0') || copy[i - 1] == '/')
            continue;
        copy[i] = '\0';
        if (mkdir(copy, DIRECTORY_MODE) == 0)
            result = make_durable(copy);
        else if (errno != EEXIST)
            result = -errno;
        copy[i] = cut;
    }
    free(copy);
    return result;
}

int
disk_open(struct disk **disk, const char *path, bool create)
{
    int result = create ? make_with_parents(path) : 0;
    int directory;
    *disk = NULL;
    if (result < 0)
        return result;
    /* Links are followed here: an operator may keep the spool on another volume. */
    directory = disk_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    /* A user who may only pass through (0711) can still open the directories below. */
    if (directory == -EACCES)
        directory = disk_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0)
        return directory;
    *disk = memory_new(sizeof(**disk));
    (*disk)->directory = directory;
    (*disk)->path = memory_string(path);
    return 0;
}

/* Root gives away files below directories of another user (queue/spool/spool_owner.c):
 * a link would lead elsewhere. */
int
disk_open_below(struct disk **disk, struct disk *above, const char *name)
{
    int directory =
        disk_open_at(above->directory, name, O_RDONLY | O_DIRECTORY | DISK_SAFELY, 0);
    *disk = NULL;
    if (directory < 0)
        return directory;
    *disk = memory_new(sizeof(**disk));
    (*disk)->directory = directory;
    (*disk)->path = memory_string(name);
    return 0;
}

void
disk_close(struct disk **disk)
{
    if (!*disk)
        return;
    disk_ring_free(&(*disk)->ring);
    close((*disk)->directory);
    free((*disk)->path);
    free(*disk);
    *disk = NULL;
}

const char *
disk_path(const struct disk *disk)
{
    return disk->path;
}

bool
disk_is_owner(const struct disk *disk)
{
    struct stat status;
    return fstat(disk->directory, &status) == 0 && status.st_uid == geteuid();
}

int
disk_make_directory(struct disk *disk, const char *path, unsigned mode)
{
    int made;
    if (mkdirat(disk->directory, path, mode) < 0)
        return errno == EEXIST ? check_type(disk, path, S_IFDIR, ENOTDIR) : -errno;
    made = disk_open_at(disk->directory, path, O_RDONLY | O_DIRECTORY | DISK_SAFELY, 0);
    return made < 0 ? made : disk_close_with(made, disk_set_mode(made, mode));
}

int
disk_make_fifo(struct disk *disk, const char *path, unsigned mode)
{
    int made;
    if (mkfifoat(disk->directory, path, mode) < 0)
        return errno == EEXIST ? check_type(disk, path, S_IFIFO, EEXIST) : -errno;
    made = disk_open_at(disk->directory, path, O_RDONLY | DISK_SAFELY, 0);
    return made < 0 ? made : disk_close_with(made, disk_set_mode(made, mode));
}

/* Links in the middle of a path are not followed either: sendmail(1) of root makes
 * files in directories of the daemon's user. Systems and containers without openat2()
 * do without. */
static int
create_at(const struct disk *disk, const char *path, unsigned mode)
{
    const unsigned flags = O_RDWR | O_CREAT | O_EXCL | DISK_SAFELY;
    int file;
    struct open_how how = {.flags = flags,
                           .mode = mode,
                           .resolve = *path != '/' ? (unsigned)RESOLVE_NO_SYMLINKS : 0};
    do {
        file = (int)syscall(SYS_openat2, disk->directory, path, &how, sizeof(how));
    } while (file < 0 && errno == EINTR);
    if (file < 0 && (errno == ENOSYS || errno == EPERM))
        return disk_open_at(disk->directory, path, (int)flags, mode);
    return disk_answer(file);
}

/* A file with a wrong mode is removed, since its name would be taken for the next try.
 */
int
disk_create(struct disk *disk, const char *path, unsigned mode)
{
    int file = create_at(disk, path, mode);
    int result;
    if (file < 0)
        return file;
    result = disk_set_mode(file, mode);
    if (result < 0) {
        unlinkat(disk->directory, path, 0);
        return disk_close_with(file, result);
    }
    return file;
}

/* acl(5): an entry for a single user demands a mask, and the mask limits what that user
 * may do. */
static int
set_reader(int file, unsigned reader)
{
    const struct {
        struct posix_acl_xattr_header header;
        struct posix_acl_xattr_entry entries[5];
    } list = {
        {htole32(POSIX_ACL_XATTR_VERSION)   },
        { {htole16(ACL_USER_OBJ), htole16(ACL_READ | ACL_WRITE), UINT32_MAX},
         {htole16(ACL_USER), htole16(ACL_READ), htole32(reader)},
         {htole16(ACL_GROUP_OBJ), 0, UINT32_MAX},
         {htole16(ACL_MASK), htole16(ACL_READ), UINT32_MAX},
         {htole16(ACL_OTHER), 0, UINT32_MAX}},
    };

    return disk_answer(
        fsetxattr(file, "system.posix_acl_access", &list, sizeof(list), 0));
}

/* Refused permanently, not for lack of space. */
static bool
has_no_lists(int result)
{
    return result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM ||
           result == -EACCES || result == -EINVAL;
}

int
disk_create_for(struct disk *disk, const char *path, unsigned reader)
{
    int file = disk_create(disk, path, OWNER_MODE);
    int result = reader == UNKNOWN_USER ? -EINVAL : 0;
    if (file < 0 || reader == geteuid())
        return file;
    if (result == 0)
        result = set_reader(file, reader);
    if (has_no_lists(result))
        result = disk_set_mode(file, PUBLIC_MODE);
    if (result < 0) {
        unlinkat(disk->directory, path, 0);
        return disk_close_with(file, result);
    }
    return file;
}

int
disk_open_file(struct disk *disk, const char *path, bool for_writing)
{
    int file = disk_open_at(disk->directory, path,
                            (for_writing ? O_RDWR : O_RDONLY) | DISK_SAFELY, 0);
    /* The errors for links, for directories, and for FIFOs and sockets without a
     * peer. */
    if (file == -ELOOP || file == -EISDIR || file == -ENXIO)
        return -EINVAL;
    return file < 0 ? file : disk_only_of_type(file, S_IFREG);
}

void
disk_close_file(struct disk *disk, int file)
{
    (void)disk;
    assert(file >= 0);
    close(file);
}

int
disk_write(struct disk *disk, int file, struct text bytes)
{
    off_t end = lseek(file, 0, SEEK_END);
    /* Not O_APPEND, which on Linux makes pwrite() append too. */
    return end < 0 ? -errno : disk_write_at(disk, file, end, bytes);
}

int
disk_write_at(struct disk *disk, int file, int64_t offset, struct text bytes)
{
    (void)disk;
    assert(offset >= 0);
    while (bytes.length) {
        ssize_t written = pwrite(file, bytes.at, bytes.length, offset);

        if (written < 0 && errno == EINTR)
            continue;
        /* 0 would be repeated forever. */
        if (written <= 0)
            return written < 0 ? -errno : -EIO;
        offset += written;
        bytes = text_after(bytes, (size_t)written);
    }
    return 0;
}

/* Fewer bytes than asked for: the end, an error behind them, or an empty FIFO. */
int64_t
disk_read(struct disk *disk, int file, int64_t offset, char *to, size_t size)
{
    size_t done = 0;
    (void)disk;
    while (done < size) {
        ssize_t got = pread(file, to + done, size - done, offset + (int64_t)done);

        if (got < 0 && errno == ESPIPE) /* a FIFO: the bytes that are available now */
            got = read(file, to + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return done ? (int64_t)done : -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

int
disk_file_info(struct disk *disk, int file, struct disk_info *info)
{
    struct stat status;
    (void)disk;
    if (fstat(file, &status) < 0)
        return -errno;
    *info = info_from(&status);
    return 0;
}

/* Without AT_SYMLINK_FOLLOW: a symbolic link gets a second name itself. */
int
disk_link(struct disk *disk, const char *from, const char *to)
{
    return disk_answer(linkat(disk->directory, from, disk->directory, to, 0));
}

int
disk_rename(struct disk *disk, const char *from, const char *to)
{
    return disk_answer(renameat(disk->directory, from, disk->directory, to));
}

int
disk_unlink(struct disk *disk, const char *path)
{
    return disk_answer(unlinkat(disk->directory, path, 0));
}

int
disk_remove_directory(struct disk *disk, const char *path)
{
    return disk_answer(unlinkat(disk->directory, path, AT_REMOVEDIR));
}

int
disk_inspect(struct disk *disk, const char *path, struct disk_info *info)
{
    struct stat status;
    if (fstatat(disk->directory, path, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    *info = info_from(&status);
    return 0;
}

int
disk_look(const char *path, struct disk_info *info)
{
    struct stat status;
    if (fstatat(AT_FDCWD, path, &status, 0) < 0)
        return -errno;
    *info = info_from(&status);
    return 0;
}

struct disk_listing {
    DIR *directory;
};

int
disk_listing_open(struct disk *disk, const char *path, struct disk_listing **listing)
{
    *listing = NULL;
    int file =
        disk_open_at(disk->directory, path, O_RDONLY | O_DIRECTORY | DISK_SAFELY, 0);
    if (file < 0)
        return file;
    DIR *directory = fdopendir(file);
    if (!directory)
        return disk_close_with(file, -errno);
    *listing = memory_new(sizeof(**listing));
    (*listing)->directory = directory;
    return 0;
}

int
disk_listing_read(struct disk_listing *listing, size_t most,
                  bool (*each)(void *context, const char *name), void *context)
{
    for (size_t i = 0; i < most;) {
        /* Only errno tells an error of readdir() from the end. */
        errno = 0;
        const struct dirent *entry = readdir(listing->directory);
        if (!entry)
            return -errno;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (!each(context, entry->d_name))
            return 0;
        i++;
    }
    return 1;
}

void
disk_listing_close(struct disk_listing **listing)
{
    if (!*listing)
        return;
    closedir((*listing)->directory);
    free(*listing);
    *listing = NULL;
}

int
disk_list(struct disk *disk, const char *path,
          bool (*each)(void *context, const char *name), void *context)
{
    struct disk_listing *listing;
    int result = disk_listing_open(disk, path, &listing);
    if (result == 0)
        result = disk_listing_read(listing, SIZE_MAX, each, context);
    disk_listing_close(&listing);
    return result;
}

/* Some file systems report an unlimited size. */
static int64_t
bytes_of(fsblkcnt_t blocks, unsigned long size)
{
    int64_t bytes;
    return __builtin_mul_overflow(blocks, size, &bytes) ? INT64_MAX : bytes;
}

int
disk_space(struct disk *disk, struct disk_space *space)
{
    struct statvfs status;
    if (fstatvfs(disk->directory, &status) < 0)
        return -errno;
    /* Some file systems allocate inodes dynamically and report 0; so does a tmpfs
     * without a limit. */
    space->bytes = bytes_of(status.f_blocks, status.f_frsize);
    space->inodes = (int64_t)status.f_files;
    space->bytes_free =
        status.f_blocks ? bytes_of(status.f_bavail, status.f_frsize) : INT64_MAX;
    space->inodes_free = status.f_files ? (int64_t)status.f_favail : INT64_MAX;
    return 0;
}

/* Perhaps a secret: no copy may stay behind. */
static void
disk_drop(char *at, size_t size)
{
    if (at != NULL)
        explicit_bzero(at, size);
    free(at);
}

/* Into memory with a NUL behind the content. Closes the file. */
static int
disk_read_all(int file, size_t limit, char **content, size_t *length)
{
    size_t size = 0, capacity = 4096;
    ssize_t got = 1;
    char *at = memory_new(capacity + 1);
    while (got > 0 && size <= limit) {
        if (size == capacity) {
            char *more = memory_new(2 * capacity + 1);
            memcpy(more, at, size);
            disk_drop(at, size);
            at = more;
            capacity *= 2;
        }
        got = read(file, at + size, capacity - size);
        if (got < 0 && errno == EINTR)
            got = 1; /* interrupted before any data: try again */
        else if (got > 0)
            size += (size_t)got;
    }
    if (got < 0 || size > limit) {
        got = got < 0 ? -errno : -EFBIG;
        disk_drop(at, size);
        return disk_close_with(file, (int)got);
    }
    at[size] = '\0';
    *content = at;
    *length = size;
    return disk_close_with(file, 0);
}

static int
disk_open_any(const char *path)
{
    return disk_open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                        0);
}

int
disk_read_whole(const char *path, size_t limit, char **content, size_t *length)
{
    /* Blocking, for /dev/stdin and <(command); a FIFO without a writer is empty. */
    int file = disk_open_any(path);
    if (file < 0)
        return file;
    if (fcntl(file, F_SETFL, 0) < 0)
        return disk_close_with(file, -errno);
    return disk_read_all(file, limit, content, length);
}

/* 0: it is a regular file, or the null device. */
static int
disk_check_regular(int file)
{
    struct stat status;
    if (fstat(file, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    bool null = S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
    return S_ISREG(status.st_mode) || null ? 0 : -EINVAL;
}

int
disk_read_regular(const char *path, size_t limit, char **content, size_t *length)
{
    int file = disk_open_any(path);
    int error = file < 0 ? file : disk_check_regular(file);
    if (file >= 0 && error < 0)
        return disk_close_with(file, error);
    return error < 0 ? error : disk_read_all(file, limit, content, length);
}

/* Root changes owners in directories of the daemon's user, who can replace any name
 * there. O_PATH opens neither devices nor FIFOs; all checks and the change concern this
 * one descriptor. */
int
disk_give(struct disk *disk, const char *path, unsigned user, unsigned group)
{
    struct stat status;
    int file = disk_open_at(disk->directory, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    if (file < 0)
        return file;
    if (fstat(file, &status) < 0)
        return disk_close_with(file, -errno);
    if (status.st_uid != 0)
        return disk_close_with(file, -EPERM);
    /* A file with a second name may belong elsewhere. */
    if (!S_ISDIR(status.st_mode) &&
        (status.st_nlink != 1 ||
         !(S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode) ||
           S_ISSOCK(status.st_mode))))
        return disk_close_with(file, -EINVAL);
    return disk_close_with(file,
                           disk_answer(fchownat(file, "", user, group, AT_EMPTY_PATH)));
}

int
disk_fill_standard(void)
{
    for (int file = 0; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) >= 0)
            continue;
        /* The lowest free number is this one, since those below are open. */
        int opened = disk_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
        if (opened < 0)
            return opened;
        if (opened != file)
            return disk_close_with(opened, -EBADF);
    }
    return 0;
}

/* --- The start of small files, read together --------------------------------------- */

/* Systems, containers and file systems that cannot tell. */
static bool
cannot_tell(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EPERM || error == EINVAL;
}

/* The kind of the file is not asked: nothing but a regular file has bytes at an offset,
 * except for a few devices. */
int64_t
disk_peek(struct disk *disk, const char *path, char *to, size_t size, int *file)
{
    struct iovec piece = {.iov_base = to, .iov_len = size};
    int opened = disk_open_at(disk->directory, path, O_RDONLY | DISK_SAFELY, 0);
    if (opened < 0)
        return opened;
    /* Its number is in all headers, its name is not in those of musl 1.2.3. */
    ssize_t got = syscall(SYS_preadv2, opened, &piece, 1, 0L, 0L, RWF_NOWAIT);
    if (got < 0 && cannot_tell(errno))
        got = pread(opened, to, size, 0);
    if (got < 0 && errno == EAGAIN) {
        (void)readahead(opened, 0, size);
        *file = opened;
        return -EAGAIN;
    }
    return disk_close_with(opened, got < 0 ? -errno : (int)got);
}
