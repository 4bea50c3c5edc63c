/* Properties of the file system: its type, its guarantees, and the time of a sync. */
#include "base/disk/disk.h"

#include "base/disk/disk_internal.h"
#include "base/loop/loop.h"

#include <errno.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { ROUNDS = 7, BLOCK = 4096, LIMIT_US = 300000, NAME_SIZE = 64 };
enum { MOUNTS_MAX = 4 * 1024 * 1024 };
enum { PROBE_MODE = 0600 };

enum { FORGETS = 1, COPIES = 2, SHARED = 4 };

/* Some of these numbers are not in linux/magic.h, only in the file systems' sources. */
static const struct {
    uint32_t magic;
    unsigned traits;
    const char *name;
} types[] = {
    {0x0000ef53, 0,       "ext4"    }, /* or ext2, ext3 */
    {0x58465342, 0,       "xfs"     },
    {0x9123683e, COPIES,  "btrfs"   },
    {0x2fc12fc1, COPIES,  "zfs"     },
    {0xca451a4e, COPIES,  "bcachefs"},
    {0x01021994, FORGETS, "tmpfs"   },
    {0x858458f6, FORGETS, "ramfs"   },
    {0x794c7630, 0,       "overlay" },
    {0xf2f52010, 0,       "f2fs"    },
    {0x00006969, SHARED,  "nfs"     },
    {0xff534d42, SHARED,  "cifs"    },
    {0xfe534d42, SHARED,  "smb2"    },
    {0x01021997, SHARED,  "9p"      },
    {0x65735546, SHARED,  "fuse"    }, /* virtiofs too */
    {0x00c36400, SHARED,  "ceph"    },
    {0x01161970, SHARED,  "gfs2"    },
    {0x7461636f, SHARED,  "ocfs2"   },
    {0x0bd00bd0, SHARED,  "lustre"  },
    {0x47504653, SHARED,  "gpfs"    },
    {0x3153464a, 0,       "jfs"     },
    {0x52654973, 0,       "reiserfs"},
    {0x00003434, COPIES,  "nilfs2"  },
    {0x24051905, COPIES,  "ubifs"   },
    {0x000072b6, COPIES,  "jffs2"   },
    {0x00004d44, 0,       "vfat"    },
    {0x2011bab0, 0,       "exfat"   },
    {0x7366746e, 0,       "ntfs3"   },
    {0x61756673, 0,       "aufs"    },
    {0x0000f15f, 0,       "ecryptfs"},
};

static int
know_type(int file, struct disk_traits *nature)
{
    struct statfs status;
    if (fstatfs(file, &status) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].magic != (uint32_t)status.f_type)
            continue;
        snprintf(nature->type, sizeof(nature->type), "%s", types[i].name);
        nature->forgets = types[i].traits & FORGETS;
        nature->copies = types[i].traits & COPIES;
        nature->shared = types[i].traits & SHARED;
    }
    return 0;
}

/* btrfs overwrites in place if the file or its directory has the attribute of `chattr
 * +C`. */
static bool
is_told_not_to_copy(int file)
{
    int flags = 0;
    return ioctl(file, FS_IOC_GETFLAGS, &flags) == 0 && flags & FS_NOCOW_FL;
}

/* --- ext4's fast_commit ----------------------------------------------------------- */

/* The kernel's name of the device: "sda1", "dm-0". */
static bool
device_name(dev_t device, char name[static NAME_SIZE])
{
    char path[NAME_SIZE], target[256];
    const char *slash;
    ssize_t length;
    snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(device), minor(device));
    length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    slash = strrchr(target, '/');
    return slash && snprintf(name, NAME_SIZE, "%s", slash + 1) < NAME_SIZE;
}

/* The kernel's count, readable for all users. With fast_commit each fsync is either
 * counted or not eligible, and there has just been an fsync. */
static bool
has_committed_fast(const char *name)
{
    char path[NAME_SIZE + 32], *content, *at;
    long commits, ineligible = 0;
    size_t length;
    snprintf(path, sizeof(path), "/proc/fs/ext4/%s/fc_info", name);
    if (disk_read_whole(path, BLOCK, &content, &length) < 0)
        return false;
    at = strchr(content, '\n');
    commits = at ? strtol(at, &at, 10) : 0;
    at = at ? strchr(at, '\n') : NULL;
    if (at)
        ineligible = strtol(at, NULL, 10);
    free(content);
    return commits > 0 || ineligible > 0;
}

/* From the superblock, for users who may read the device. */
static bool
has_fast_commit_feature(const char *name, dev_t device)
{
    enum { SUPERBLOCK = 1024, MAGIC = 0x38, COMPATIBLE = 0x5c, FAST_COMMIT = 0x0400 };
    char path[NAME_SIZE + 8];
    unsigned char block[BLOCK];
    struct stat status;
    ssize_t got = -1;
    int file;

    snprintf(path, sizeof(path), "/dev/%s", name);
    /* The kernel writes '!' for the '/' in the name of a device. */
    for (char *at = path; (at = strchr(at, '!'));)
        *at = '/';
    file = disk_open_at(AT_FDCWD, path, O_RDONLY | DISK_SAFELY, 0);
    if (file < 0)
        return false;
    /* The name is a guess: in /dev it may be another device, or none. */
    if (fstat(file, &status) == 0 && S_ISBLK(status.st_mode) &&
        status.st_rdev == device)
        got = pread(file, block, sizeof(block), 0);
    close(file);
    const unsigned char *super = block + SUPERBLOCK;
    return got == (ssize_t)sizeof(block) && super[MAGIC] == 0x53 &&
           super[MAGIC + 1] == 0xef && super[COMPATIBLE + 1] & FAST_COMMIT >> 8;
}

static bool
commits_fast(int file)
{
    char name[NAME_SIZE];
    struct stat status;
    return fstat(file, &status) == 0 && device_name(status.st_dev, name) &&
           (has_committed_fast(name) || has_fast_commit_feature(name, status.st_dev));
}

/* --- The options of a mount by NFS ------------------------------------------------- */

/* Whether options, to the end of their line, have one that starts so. */
static bool
has_option(const char *options, const char *start)
{
    const char *end = options + strcspn(options, "\n");
    size_t length = strlen(start);
    while (options < end) {
        if (strncmp(options, start, length) == 0)
            return true;
        options += strcspn(options, ",\n") + 1;
    }
    return false;
}

/* Lines of proc_pid_mountinfo(5): ID PARENT MAJOR:MINOR ROOT MOUNT OPTIONS [TAG ...] -
 * TYPE SOURCE OPTIONS-OF-THE-FILE-SYSTEM. Blanks within a word are written \040. */
static void
know_nfs_options(int file, struct disk_traits *nature)
{
    char *content, *options, device[NAME_SIZE];
    struct stat status;
    size_t length;
    if (fstat(file, &status) < 0 ||
        disk_read_whole("/proc/self/mountinfo", MOUNTS_MAX, &content, &length) < 0)
        return;
    snprintf(device, sizeof(device), " %u:%u ", major(status.st_dev),
             minor(status.st_dev));
    for (char *at = content; *at != '\0'; at += *at == '\n') {
        char *line = at;
        at += strcspn(at, "\n");
        line += strspn(line, "0123456789");
        line += strspn(line, " ");
        line += strspn(line, "0123456789");
        if (strncmp(line, device, strlen(device)) != 0 ||
            (options = strstr(line, " - nfs")) == NULL || options > at ||
            (options = strchr(options + 3, ' ')) == NULL ||
            (options = strchr(options + 1, ' ')) == NULL || options > at)
            continue;
        nature->soft = has_option(options + 1, "soft");
        nature->locks_stay =
            has_option(options + 1, "vers=2") || has_option(options + 1, "vers=3");
    }
    free(content);
}

/* --- How long a sync takes -------------------------------------------------------- */

static int
disk_traits_compare(const void *left, const void *right)
{
    int64_t l = *(const int64_t *)left, r = *(const int64_t *)right;
    return (l > r) - (l < r);
}

static bool
write_block(int file, int fill)
{
    char block[BLOCK];
    memset(block, fill, sizeof(block));
    return pwrite(file, block, sizeof(block), 0) == (ssize_t)sizeof(block);
}

/* The first write allocates the block. The measured writes are those of the journal:
 * overwrites in place. A median, because one round may wait for writes of other
 * programs. */
static int64_t
disk_traits_measure(int file)
{
    int64_t took[ROUNDS], start = loop_clock_us(), before, now = start;
    size_t rounds = 0;
    if (!write_block(file, 0) || fsync(file) < 0)
        return -1;
    while (rounds < ROUNDS && (rounds == 0 || now - start < LIMIT_US)) {
        before = loop_clock_us();
        if (!write_block(file, (int)rounds + 1) || fdatasync(file) < 0)
            return -1;
        now = loop_clock_us();
        took[rounds++] = now - before;
    }
    qsort(took, rounds, sizeof(took[0]), disk_traits_compare);
    return took[rounds / 2];
}

int
disk_traits(struct disk *disk, const char *path, struct disk_traits *nature)
{
    int file, asked, result;
    *nature = (struct disk_traits){.type = "?", .sync_us = -1};
    unlinkat(disk->directory, path, 0); /* of a process that was killed here */
    file = disk_open_at(disk->directory, path, O_RDWR | O_CREAT | O_EXCL | DISK_SAFELY,
                        PROBE_MODE);
    if (file >= 0)
        nature->sync_us = disk_traits_measure(file);
    asked = file >= 0 ? file : disk->directory; /* full, or read-only */
    result = know_type(asked, nature);
    if (nature->copies && is_told_not_to_copy(asked))
        nature->copies = false;
    if (strcmp(nature->type, "ext4") == 0)
        nature->fast_commit = commits_fast(asked);
    if (strcmp(nature->type, "nfs") == 0)
        know_nfs_options(asked, nature);
    if (file < 0)
        return result;
    unlinkat(disk->directory, path, 0);
    return disk_close_with(file, result);
}

bool
disk_is_shared(const struct disk *disk)
{
    struct disk_traits traits = {.shared = false};
    return know_type(disk->directory, &traits) == 0 && traits.shared;
}
