/* The traits of file systems, of real ones and of simulated ones. */
/* link: t/sim/clock.c */
#include "base/disk/disk.h"

#include "t/sim/clock.h"
#include "t/support/tap.h"
#include "t/support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { EXT4 = 0xef53, TMPFS = 0x01021994, XFS = 0x58465342 };
enum { DELAYS = 7, SUPERBLOCK = 1024 };
#define BTRFS 0x9123683eU

static char *root; /* a directory of this test's own */

/* --- The system, which can be told to be another ---------------------------------- */

static struct {
    unsigned type;            /* of the file system; 0: the real one */
    int flags;                /* of the file, with this type */
    const char *device;       /* its name; NULL: none */
    const char *count;        /* content of fc_info; NULL: not to be read */
    const char *mounts;       /* content of mountinfo; NULL: not to be read */
    const char *super;        /* file to be read as the device; NULL: not permitted */
    bool plain;               /* and it is no device at all */
    long delays_ms[DELAYS];   /* of each sync */
    int fails;                /* the sync that fails, from 1 on */
    int syncs, writes, other; /* fdatasync calls; contents seen; files looked for */
    int at_device;            /* descriptor that stands for the device */
    char before;
} system_is;

int
fstatfs(int file, struct statfs *status)
{
    int (*real)(int, struct statfs *) = NULL;
    int result;

    *(void **)&real = dlsym(RTLD_NEXT, "fstatfs");
    result = real(file, status);
    if (system_is.type)
        status->f_type = system_is.type;
    return result;
}

#ifdef __GLIBC__
typedef unsigned long ioctl_request;
#else
typedef int ioctl_request; /* of POSIX */
#endif

int
ioctl(int file, ioctl_request request, ...)
{
    va_list arguments;
    int *flags;

    va_start(arguments, request);
    flags = va_arg(arguments, int *);
    va_end(arguments);
    if ((unsigned)request != FS_IOC_GETFLAGS || file < 0)
        abort();
    if (!system_is.flags) {
        errno = ENOTTY;
        return -1;
    }
    *flags = system_is.flags;
    return 0;
}

ssize_t
readlink(const char *path, char *to, size_t size)
{
    int length;

    if (strncmp(path, "/sys/dev/block/", 15) != 0)
        abort();
    if (!system_is.device) {
        errno = ENOENT;
        return -1;
    }
    length = snprintf(to, size, "../../devices/virtual/%s", system_is.device);
    return length;
}

int
openat(int directory, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, ...) = NULL;
    char expected[128], name[64];
    va_list arguments;
    unsigned mode;

    va_start(arguments, flags);
    mode = flags & O_CREAT ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    *(void **)&real = dlsym(RTLD_NEXT, "openat");
    if (strcmp(path, "/proc/self/mountinfo") == 0) {
        errno = EACCES;
        return system_is.mounts ? real(AT_FDCWD, "mounts", flags, mode) : -1;
    }
    if (strncmp(path, "/proc/fs/", 9) != 0 && strncmp(path, "/dev/", 5) != 0)
        return real(directory, path, flags, mode);
    snprintf(name, sizeof(name), "%s", system_is.device);
    snprintf(expected, sizeof(expected), "/proc/fs/ext4/%s/fc_info", name);
    if (strcmp(path, expected) == 0) {
        int file = system_is.count ? real(AT_FDCWD, "count", flags, mode) : -1;

        errno = system_is.count ? errno : ENOENT;
        return file;
    }
    for (char *at = name; (at = strchr(at, '!'));)
        *at = '/';
    snprintf(expected, sizeof(expected), "/dev/%s", name);
    system_is.other += strcmp(path, expected) != 0;
    errno = EACCES;
    if (!system_is.super)
        return -1;
    system_is.at_device = real(AT_FDCWD, system_is.super, flags, mode);
    return system_is.at_device;
}

int
fstat(int file, struct stat *status)
{
    int (*real)(int, struct stat *) = NULL;
    struct stat of_root;
    int result;

    *(void **)&real = dlsym(RTLD_NEXT, "fstat");
    result = real(file, status);
    if (result == 0 && file == system_is.at_device && !system_is.plain &&
        stat(root, &of_root) == 0) {
        status->st_mode = S_IFBLK | 0660;
        status->st_rdev = of_root.st_dev;
    }
    return result;
}

int
fdatasync(int file)
{
    int (*real)(int) = NULL;
    int number = system_is.syncs++;
    char now[4096] = "";

    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    if (pread(file, now, sizeof(now), 0) == sizeof(now) && now[0] != system_is.before)
        system_is.writes++;
    system_is.before = now[0];
    clock_pass(system_is.delays_ms[number < DELAYS ? number : DELAYS - 1]);
    if (system_is.syncs == system_is.fails) {
        errno = EIO;
        return -1;
    }
    return real(file);
}

/* --- Helpers ---------------------------------------------------------------------- */

static void
system_reset(unsigned type)
{
    memset(&system_is, 0, sizeof(system_is));
    system_is.type = type;
    system_is.at_device = -1;
}

static void
make_file(const char *name, const char *content, size_t size)
{
    FILE *file = fopen(name, "w");

    if (!file || fwrite(content, 1, size, file) != size || fclose(file) != 0)
        abort();
}

static struct disk *
open_root(void)
{
    struct disk *disk;

    if (disk_open(&disk, root, false) < 0)
        abort();
    return disk;
}

/* The traits now; nothing must be left behind. */
static struct disk_traits
nature_now(const char *why)
{
    struct disk *disk = open_root();
    struct disk_traits nature = {.type = "@"};
    struct disk_info info;

    system_is.at_device = -1; /* the number may be another file's now */
    is_number(disk_traits(disk, "probe", &nature), 0, why);
    is_number(nature.shared, disk_is_shared(disk), "both say whether other hosts may mount it");
    if (disk_inspect(disk, "probe", &info) != -ENOENT || nature.type[0] == '@')
        abort();
    disk_close(&disk);
    return nature;
}

/* --- Real ones -------------------------------------------------------------------- */

static void
test_here(void)
{
    struct disk_traits nature;
    struct disk *disk = open_root();
    struct stat status;

    system_reset(0);
    make_file("probe", "left by somebody who was killed", 31);
    nature = nature_now("the nature of a disk");
    printf("# %s%s%s, a sync takes %" PRId64 " us\n", nature.type,
           nature.forgets ? ", forgets" : "", nature.copies ? ", copies" : "",
           nature.sync_us);
    ok_named(nature.type[0] != '\0', "is told");
    ok_named(nature.sync_us >= 0, "with the time of a sync");

    make_file("file", "mine", 4);
    is_number(symlink("file", "probe"), 0, "a link in the way");
    nature_now("goes");
    ok_named(stat("file", &status) == 0 && status.st_size == 4,
             "and not what it points to");
    is_number(mkdir("probe", 0700), 0, "a directory in the way");
    is_number(disk_traits(disk, "probe", &nature), 0, "is a pity");
    ok_named(rmdir("probe") == 0, "but it stays");
    is_number(nature.sync_us, -1, "so nothing is measured");
    ok_named(strcmp(nature.type, "?") != 0, "though the type is known");
    is_number(disk_traits(disk, "no/probe", &nature), 0,
              "so it is without a directory");
    is_number(nature.sync_us, -1, "for the file");
    unlink("file");
    disk_close(&disk);
}

static void
test_there(void)
{
    struct disk_traits nature;
    struct disk *disk;

    system_reset(0);
    if (disk_open(&disk, "/dev/shm", false) == 0) {
        disk_traits(disk, "petrel-probe", &nature);
        is_string(nature.type, "tmpfs", "/dev/shm");
        is_number(nature.forgets, true, "forgets");
        is_number(nature.copies || nature.fast_commit, false, "and nothing else");
        ok_named(nature.sync_us >= 0, "and has the time of a sync");
        disk_close(&disk);
    }
    if (disk_open(&disk, "/proc", false) == 0) {
        is_number(disk_traits(disk, "probe", &nature), 0, "/proc");
        is_string(nature.type, "?", "is of no type that keeps mail");
        is_number(nature.sync_us, -1, "and has no files of ours");
        disk_close(&disk);
    }
}

/* --- Pretended ones --------------------------------------------------------------- */

TEST(types)
{
    static const struct {
        unsigned magic;
        const char *name;
        bool forgets, copies;
    } rows[] = {
        {EXT4,        "ext4",     false, false},
        {XFS,         "xfs",      false, false},
        {TMPFS,       "tmpfs",    true,  false},
        {0x858458f6U, "ramfs",    true,  false},
        {BTRFS,       "btrfs",    false, true },
        {0x2fc12fc1U, "zfs",      false, true },
        {0xca451a4eU, "bcachefs", false, true },
        {0x794c7630U, "overlay",  false, false},
        {0x6969U,     "nfs",      false, false},
        {0x12345678U, "?",        false, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct disk_traits nature;

        system_reset(rows[i].magic);
        nature = nature_now(rows[i].name);
        is_string(nature.type, rows[i].name, "its name");
        is_number(nature.forgets, rows[i].forgets, "whether it forgets");
        is_number(nature.copies, rows[i].copies, "whether it copies");
        is_number(nature.fast_commit, false, "no fast commits");
    }
    system_reset(BTRFS);
    system_is.flags = FS_NOCOW_FL;
    is_number(nature_now("btrfs after chattr +C").copies, false, "does not copy");
    system_is.flags = FS_COMPR_FL;
    is_number(nature_now("another flag").copies, true, "does not matter");
}

TEST(nfs_options)
{
    static const struct {
        const char *rest; /* of the line of this device */
        bool soft, locks_stay;
    } rows[] = {
        {"/ /mail rw,relatime shared:5 - nfs4 server:/mail rw,vers=4.2,hard,proto=tcp", false, false},
        {"/ /mail rw - nfs4 server:/mail rw,vers=4.2,soft,proto=tcp", true, false},
        {"/ /mail rw - nfs4 server:/mail soft", true, false},
        {"/ /mail rw - nfs4 server:/mail rw,softerr", true, false},
        {"/ /mail rw - nfs server:/mail rw,vers=3,hard", false, true},
        {"/ /mail rw - nfs server:/mail rw,soft,vers=2", true, true},
        {"/ /mail rw - nfs server:/soft rw,nosoft,xvers=3", false, false},
        {"/ /soft,vers=3 rw,soft - ext4 /dev/soft rw,soft,vers=3", false, false},
        {"/ /mail rw - nfs4 server:/mail", false, false},
        {"/ /mail rw - nfs4", false, false},
        {"/ /mail", false, false},
        {"", false, false},
    };
    char lines[1024];
    struct stat status;
    if (stat(root, &status) < 0)
        abort();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        system_reset(0x6969);
        snprintf(lines, sizeof(lines), "1 0 0:99999 / / rw - nfs4 other:/ rw,soft,vers=3\n\n20 1 %u:%u %s\n21 1 0:99998 / /x rw - nfs4 other:/ rw,soft,vers=3\n",
                 major(status.st_dev), minor(status.st_dev), rows[i].rest);
        make_file("mounts", lines, strlen(lines));
        system_is.mounts = lines;
        int before = folder_descriptors();
        struct disk_traits nature = nature_now(rows[i].rest);
        is_number(nature.soft, rows[i].soft, "soft");
        is_number(nature.locks_stay, rows[i].locks_stay, "locks stay");
        is_number(folder_descriptors(), before, "nothing stays open");
    }
    unlink("mounts");
    system_reset(0x6969);
    is_number(nature_now("without /proc").soft, false, "nothing is known");
    system_reset(EXT4);
    system_is.mounts = "";
    is_number(nature_now("another type").soft, false, "is not asked");
}

TEST(commit_count)
{
    static const struct {
        const char *content;
        bool fast;
    } rows[] = {
        {"fc stats:\n0 commits\n0 ineligible\n0 numblks\n",     false},
        {"fc stats:\n1 commits\n0 ineligible\n2 numblks\n",     true },
        {"fc stats:\n0 commits\n12 ineligible\n0 numblks\n",    true },
        {"fc stats:\n77777 commits\n8 ineligible\n9 numblks\n", true },
        {"5 fc stats:\n0 commits\n0 ineligible\n6 numblks\n",   false},
        {"",                                                    false},
        {"\n",                                                  false},
        {"fc stats:",                                           false},
        {"fc stats:\n0 commits",                                false},
        {"fc stats:\nno commits\nnone ineligible\n",            false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int before = folder_descriptors();

        system_reset(EXT4);
        system_is.device = "sda1";
        system_is.count = rows[i].content;
        make_file("count", rows[i].content, strlen(rows[i].content));
        is_number(nature_now("by the kernel's count").fast_commit, rows[i].fast,
                  rows[i].fast ? "commits are fast" : "there are no fast commits");
        is_number(folder_descriptors(), before, "no handle stays");
        system_is.type = XFS;
        is_number(nature_now("on xfs").fast_commit, false, "nobody asks");
    }
    unlink("count");
}

/* The result for a superblock, in a file that stands for the device. */
static bool
super_says(size_t size, int magic, unsigned features, const char *device)
{
    char block[8192] = {0};

    block[SUPERBLOCK + 0x38] = (char)(magic & 0xff);
    block[SUPERBLOCK + 0x39] = (char)(magic >> 8);
    block[SUPERBLOCK + 0x5c] = (char)(features & 0xff);
    block[SUPERBLOCK + 0x5d] = (char)(features >> 8);
    make_file("super", block, size);
    system_is.device = device;
    system_is.super = "super";
    return nature_now("by the superblock").fast_commit;
}

TEST(superblock)
{
    int before = folder_descriptors();
    char name[100];

    system_reset(EXT4);
    is_number(nature_now("no device").fast_commit, false, "unknown is no");
    system_is.device = "dm-0";
    is_number(nature_now("not permitted").fast_commit, false, "is unknown, too");
    is_number(super_says(8192, EXT4, 0x0400, "dm-0"), true, "fast_commit");
    is_number(super_says(8192, EXT4, 0xffff & ~0x0400U, "dm-0"), false, "all others");
    is_number(super_says(8192, XFS & 0xffff, 0x0400, "dm-0"), false, "no superblock");
    is_number(super_says(8192, EXT4 ^ 1, 0x0400, "dm-0"), false, "nor is this");
    is_number(super_says(2000, EXT4, 0x0400, "dm-0"), false, "a short device");
    is_number(super_says(8192, EXT4, 0x0400, "cciss!c0d0"), true, "in a directory");
    is_number(system_is.other, 0, "looked for where they are");
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    is_number(super_says(8192, EXT4, 0x0400, name), false, "a name without end");
    system_is.plain = true;
    is_number(super_says(8192, EXT4, 0x0400, "dm-0"), false, "a file is no device");
    is_number(folder_descriptors(), before, "no handle stays");
    unlink("super");
}

/* --- How long a sync takes -------------------------------------------------------- */

TEST(median)
{
    struct disk_traits nature;

    system_reset(TMPFS);
    for (int i = 0; i < DELAYS; i++)
        system_is.delays_ms[i] = i == 0 || i == 3 ? 80 : 10;
    nature = nature_now("a disk that is slow now and then");
    is_number(nature.sync_us, 10000, "has the time of most syncs");
    is_number(system_is.syncs, 7, "of seven");
    is_number(system_is.writes, 7, "each of them of something new");
}

TEST(slow)
{
    struct disk_traits nature;

    system_reset(TMPFS);
    for (int i = 0; i < DELAYS; i++)
        system_is.delays_ms[i] = 160;
    nature = nature_now("a slow disk");
    is_number(system_is.syncs, 2, "is not asked for longer than 0.3 s");
    is_number(nature.sync_us, 160000, "but it is seen to be slow");
    system_reset(TMPFS);
    system_is.delays_ms[0] = 700;
    nature = nature_now("one that takes longer for one sync");
    is_number(system_is.syncs, 1, "is asked once");
    is_number(nature.sync_us, 700000, "and says so");
}

TEST(failing)
{
    for (int i = 1; i <= 7; i += 3) {
        int before = folder_descriptors();

        system_reset(TMPFS);
        system_is.fails = i;
        is_number(nature_now("a sync that fails").sync_us, -1, "is not measured");
        is_number(system_is.syncs, i, "nor tried again");
        is_number(folder_descriptors(), before, "and leaves no handle");
    }
}

int
main(void)
{
    char template[] = "/tmp/petrel-nature-XXXXXX";

    root = mkdtemp(template);
    if (!root || chdir(root) < 0)
        return 1;
    test_here();
    test_there();
    clock_stop(); /* a disk is as fast as its syncs, however busy this machine is */
    tap_tests("");
    if (chdir("/") < 0 || rmdir(root) < 0)
        printf("# %s stays\n", root);
    return done();
}
