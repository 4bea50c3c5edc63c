/* The disk does what its header says, and says what it cannot do. */
#include "base/disk/disk.h"

#include "base/memory.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 500 };

static char *root; /* a directory of this test's own */

static unsigned
mode_of(const char *name)
{
    char path[PATH_MAX];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return lstat(path, &status) == 0 ? status.st_mode & 07777 : 0;
}

static char *
content_of(const char *name)
{
    char path[PATH_MAX], *content = NULL;
    size_t length;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (disk_read_whole(path, 1 << 20, &content, &length) < 0)
        return memory_string("(cannot read)");
    return content;
}

static void
is_content(const char *name, const char *want, const char *what)
{
    char *content = content_of(name);

    is_string(content, want, what);
    free(content);
}

static void
make_file(struct disk *disk, const char *name, const char *content)
{
    int file = disk_create(disk, name, 0600);

    if (file < 0 || disk_write(disk, file, text_from(content)) < 0)
        abort();
    disk_close_file(disk, file);
}

static void
make_link(const char *to, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    if (symlink(to, path) < 0)
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

TEST(open)
{
    char path[PATH_MAX];
    struct disk *disk = NULL;

    snprintf(path, sizeof(path), "%s/a//b/c", root);
    is_number(disk_open(&disk, path, false), -ENOENT, "a missing directory");
    ok_named(!disk, "gives no disk");
    umask(077);
    is_number(disk_open(&disk, path, true), 0, "is made with all above it");
    is_string(disk_path(disk), path, "and knows its path");
    is_number(mode_of("a"), 0711, "mode 0711 in spite of the umask");
    is_number(mode_of("a/b/c"), 0711, "down to the last");
    ok_named(disk_is_owner(disk), "we own it");
    disk_close(&disk);
    ok_named(!disk, "disk_close() empties the pointer");
    disk_close(&disk);
    chmod(path, 0750);
    is_number(disk_open(&disk, path, true), 0, "opening it again");
    is_number(mode_of("a/b/c"), 0750, "leaves its mode alone");
    disk_close(&disk);

    snprintf(path, sizeof(path), "%s/a/", root);
    is_number(disk_open(&disk, path, true), 0, "a slash at the end is no harm");
    disk_close(&disk);
    is_number(disk_open(&disk, "/dev/null", false), -ENOTDIR, "a file is no directory");
    is_number(disk_open(&disk, "/dev/null/x", true), -ENOTDIR, "nor can hold one");
    make_link("a", "a-link");
    snprintf(path, sizeof(path), "%s/a-link", root);
    is_number(disk_open(&disk, path, false), 0, "the directory itself may be a link");
    disk_close(&disk);
    is_number(disk_open(&disk, "/", false), 0, "the root");
    is_number(disk_is_owner(disk), geteuid() == 0, "is root's");
    disk_close(&disk);
}

TEST(make_directory)
{
    struct disk *disk = open_root();

    umask(077);
    is_number(disk_make_directory(disk, "dir", 0755), 0, "a directory");
    is_number(mode_of("dir"), 0755, "of exactly its mode");
    is_number(disk_make_directory(disk, "dir", 0700), 0, "exists already is success");
    is_number(mode_of("dir"), 0755, "and the mode is left alone");
    is_number(disk_make_directory(disk, "no/dir", 0700), -ENOENT,
              "not without its parent");
    make_file(disk, "file", "");
    is_number(disk_make_directory(disk, "file", 0700), -ENOTDIR,
              "a file is in the way");
    make_link("dir", "dir-link");
    is_number(disk_make_directory(disk, "dir-link", 0700), -ENOTDIR, "so is a link");
    is_number(disk_unlink(disk, "dir"), -EISDIR, "disk_unlink() removes no directory");
    disk_close(&disk);
}

static int
open_as(unsigned user, const char *name)
{
    struct disk *disk = open_root();

    if (seteuid(user) != 0)
        abort();
    int file = disk_open_file(disk, name, false);
    if (seteuid(0) != 0)
        abort();
    if (file >= 0)
        disk_close_file(disk, file);
    disk_close(&disk);
    return file;
}

/* A file for one other user. */
TEST(create_for)
{
    enum { WRITER = 12345, READER, OTHER, UNKNOWN = 65534 };
    struct disk *disk = open_root();
    int file;

    disk_close_file(disk, disk_create_for(disk, "mine", geteuid()));
    is_number(mode_of("mine"), 0600, "what is for us is for nobody else");
    disk_close_file(disk, disk_create_for(disk, "all", UNKNOWN));
    is_number(mode_of("all"), 0644, "who is unknown here reads what all may read");
    is_number(disk_create_for(disk, "all", READER), -EEXIST, "its name is taken");
    if (geteuid() != 0) {
        ok_named(true, "one other reader: # SKIP needs root");
        disk_close(&disk);
        return;
    }
    chmod(root, 0777);
    if (seteuid(WRITER) != 0)
        abort();
    file = disk_create_for(disk, "his", READER);
    if (seteuid(0) != 0)
        abort();
    disk_close_file(disk, file);
    ok_named(open_as(WRITER, "his") >= 0, "its maker reads it");
    ok_named(open_as(READER, "his") >= 0, "so does the other user");
    if (mode_of("his") == 0644)
        ok_named(true, "and nobody else: # SKIP this file system has no lists");
    else
        is_number(open_as(OTHER, "his"), -EACCES, "and nobody else");
    chmod(root, 0700);
    disk_close(&disk);
}

TEST(create)
{
    struct disk *disk = open_root();
    struct disk_info info;
    int file;

    umask(077);
    file = disk_create(disk, "new", 0644);
    ok_named(file >= 0, "a new file");
    is_number(mode_of("new"), 0644, "of exactly its mode under umask 077");
    is_number(fcntl(file, F_GETFD), FD_CLOEXEC, "that no child inherits");
    is_number(disk_create(disk, "new", 0644), -EEXIST, "its name is taken");
    is_number(disk_create(disk, "no/new", 0644), -ENOENT, "no directory to put it in");
    make_link("nowhere", "dangling");
    is_number(disk_create(disk, "dangling", 0644), -EEXIST, "a dangling link is taken");
    umask(0);
    is_number(disk_file_info(disk, file, &info), 0, "about the file:");
    is_number(info.kind, DISK_FILE, "its kind");
    is_number(info.size, 0, "its size");
    is_number(info.owner, geteuid(), "its owner");
    is_number(info.links, 1, "its names");
    ok_named(llabs(info.changed_ms - (int64_t)time(NULL) * 1000) < 60000, "its time");
    disk_close_file(disk, file);
    file = disk_create(disk, "wide", 0666);
    is_number(mode_of("wide"), 0666, "an empty umask gives everything asked for");
    disk_close_file(disk, file);
    file = disk_create(disk, "narrow", 0400);
    is_number(mode_of("narrow"), 0400, "and nothing else");
    is_number(disk_write(disk, file, TEXT("x")), 0, "its maker may write all the same");
    disk_close_file(disk, file);
    is_number(disk_file_info(disk, file, &info), -EBADF, "a closed file has no info");
    disk_close(&disk);
}

/* The owner of the directory above must not lead root elsewhere. */
TEST(create_below_link)
{
    struct disk *disk = open_root();
    struct disk_info info;

    is_number(disk_make_directory(disk, "elsewhere", 0700), 0, "a directory");
    make_link("elsewhere", "led");
    is_number(disk_create(disk, "led/name", 0600), -ELOOP, "a link on the way is refused");
    is_number(disk_inspect(disk, "elsewhere/name", &info), -ENOENT, "nothing is made there");
    int file = disk_create(disk, "elsewhere/name", 0600);
    ok_named(file >= 0, "the directory itself is as good as ever");
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(read_write)
{
    struct disk *disk = open_root();
    int file = disk_create(disk, "data", 0600);
    char at[32];

    is_number(disk_write(disk, file, TEXT("hello ")), 0, "write");
    is_number(disk_write(disk, file, TEXT("")), 0, "write nothing");
    is_number(disk_write(disk, file, TEXT("world")), 0, "writes go to the end");
    is_content("data", "hello world", "both are there");
    is_number(disk_write_at(disk, file, 6, TEXT("W")), 0, "overwrite in place");
    is_number(disk_write_at(disk, file, 11, TEXT("!!")), 0, "and beyond the end");
    is_number(disk_write(disk, file, TEXT(".")), 0, "the end has moved");
    is_content("data", "hello World!!.", "so this came last");
    is_number(disk_read(disk, file, 6, at, 5), 5, "read from the middle");
    is_text(text_of(at, 5), TEXT("World"), "what is there");
    is_number(disk_read(disk, file, 12, at, sizeof(at)), 2,
              "a read may be cut by the end");
    is_number(disk_read(disk, file, 14, at, sizeof(at)), 0,
              "at the end there is nothing");
    is_number(disk_read(disk, file, 9999, at, sizeof(at)), 0, "nor behind it");
    is_number(disk_sync_data(disk, file), 0, "sync the data");
    is_number(disk_sync(disk, file), 0, "sync everything");
    is_number(disk_sync_directory(disk, "."), 0, "sync our directory");
    is_number(disk_sync_directory(disk, ""), 0, "by either name");
    is_number(disk_sync_directory(disk, "missing"), -ENOENT, "a missing one");
    is_number(disk_sync_directory(disk, "data"), -ENOTDIR, "no directory");
    disk_close_file(disk, file);
    is_number(disk_sync(disk, file), -EBADF, "a closed file cannot be synced");
    is_number(disk_sync_data(disk, file), -EBADF, "nor its data");
    is_number(disk_write(disk, file, TEXT("x")), -EBADF, "nor written");
    is_number(disk_read(disk, file, 0, at, 1), -EBADF, "nor read");

    file = disk_open_file(disk, "data", false);
    is_number(disk_read(disk, file, 0, at, 5), 5, "opened for reading");
    is_number(disk_write(disk, file, TEXT("x")), -EBADF, "it cannot be written");
    disk_close_file(disk, file);
    file = disk_open_file(disk, "data", true);
    is_number(disk_write(disk, file, TEXT("~")), 0, "opened for writing it can");
    is_number(disk_read(disk, file, 0, at, 5), 5, "and be read");
    disk_close_file(disk, file);
    is_content("data", "hello World!!.~", "at the end");
    disk_close(&disk);
}

TEST(open_file)
{
    struct disk *disk = open_root();
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);

    disk_make_directory(disk, "directory", 0755);
    disk_make_fifo(disk, "a-fifo", 0600);
    make_file(disk, "target", "x");
    make_link("target", "link");
    snprintf(name.sun_path, sizeof(name.sun_path), "%.80s/socket", root);
    ok_named(bind(listening, (struct sockaddr *)&name, sizeof(name)) == 0, "a socket");
    is_number(disk_open_file(disk, "missing", false), -ENOENT, "missing");
    is_number(disk_open_file(disk, "directory", false), -EINVAL, "a directory to read");
    is_number(disk_open_file(disk, "directory", true), -EINVAL, "a directory to write");
    is_number(disk_open_file(disk, "a-fifo", false), -EINVAL,
              "a FIFO, without waiting");
    is_number(disk_open_file(disk, "a-fifo", true), -EINVAL, "a FIFO to write");
    is_number(disk_open_file(disk, "link", false), -EINVAL, "a symbolic link");
    is_number(disk_open_file(disk, "socket", false), -EINVAL, "a socket in the way");
    is_number(disk_open_file(disk, "/dev/null", false), -EINVAL, "a device");
    close(listening);
    disk_close(&disk);
}

TEST(full)
{
    struct disk *disk = open_root();
    int file = disk_create(disk, "limited", 0600), full = open("/dev/full", O_RDWR);
    struct rlimit before, small;
    struct disk_info info;
    char block[3000];

    is_number(disk_write_at(disk, full, 0, TEXT("x")), -ENOSPC, "no space is reported");
    close(full);
    memset(block, 'x', sizeof(block));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    small = (struct rlimit){5000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    is_number(disk_write(disk, file, text_of(block, sizeof(block))), 0,
              "within a limit");
    is_number(disk_write(disk, file, text_of(block, sizeof(block))), -EFBIG,
              "a write cut short is continued, and then fails");
    setrlimit(RLIMIT_FSIZE, &before);
    disk_file_info(disk, file, &info);
    is_number(info.size, 5000, "having written what it could");
    disk_close_file(disk, file);
    disk_close(&disk);
}

TEST(names)
{
    struct disk *disk = open_root();
    struct disk_info info;

    make_file(disk, "one", "1");
    make_file(disk, "two", "22");
    is_number(disk_link(disk, "one", "uno"), 0, "link");
    is_number(disk_inspect(disk, "uno", &info), 0, "both names");
    is_number(info.links, 2, "are the same file");
    is_number(disk_link(disk, "one", "two"), -EEXIST, "link over a name");
    is_number(disk_link(disk, "missing", "x"), -ENOENT, "link from nothing");
    is_number(disk_rename(disk, "one", "two"), 0, "rename over a name");
    is_content("two", "1", "replaces it");
    is_number(disk_inspect(disk, "one", &info), -ENOENT, "the old name is gone");
    is_number(disk_rename(disk, "one", "x"), -ENOENT, "rename nothing");
    is_number(disk_unlink(disk, "uno"), 0, "unlink");
    is_number(disk_unlink(disk, "uno"), -ENOENT, "unlink it again");
    is_number(disk_inspect(disk, ".", &info), 0, "inspect a directory");
    is_number(info.kind, DISK_DIRECTORY, "is one");
    make_link("two", "two-link");
    is_number(disk_inspect(disk, "two-link", &info), 0, "inspect a link");
    is_number(info.kind, DISK_OTHER, "is not what it points to");
    is_number(disk_link(disk, "two-link", "two-other"), 0, "link a link");
    disk_inspect(disk, "two-other", &info);
    is_number(info.kind, DISK_OTHER, "is not followed either");
    is_number(disk_inspect(disk, "two", &info), 0, "inspect a file");
    is_number(info.kind == DISK_FILE && info.size == 1 && info.owner == geteuid(), 1,
              "kind, size and owner");
    disk_close(&disk);
}

struct listing {
    struct disk *disk;
    int count, stop_at;
    bool unlinks, dots;
};

static bool
on_name(void *context, const char *name)
{
    struct listing *l = context;
    char path[64];

    l->count++;
    l->dots = l->dots || name[0] == '.';
    snprintf(path, sizeof(path), "many/%.40s", name);
    if (l->unlinks && disk_unlink(l->disk, path) < 0)
        return false;
    return l->count != l->stop_at;
}

/* In pieces, while names come and go. */
TEST(list_pieces)
{
    struct disk *disk = open_root();
    struct listing l = {.disk = disk}, some = {.disk = disk, .stop_at = 2};
    struct disk_listing *listing;
    char path[32];
    disk_make_directory(disk, "pieces", 0755);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "pieces/%d", i);
        make_file(disk, path, "");
    }
    is_number(disk_listing_open(disk, "missing", &listing), -ENOENT,
              "a missing one cannot be listed");
    ok_named(listing == NULL, "and is no listing");
    disk_listing_close(&listing);
    is_number(disk_listing_open(disk, "pieces", &listing), 0, "listed in pieces");
    is_number(disk_listing_read(listing, 3, on_name, &l), 1, "there are more");
    is_number(l.count, 3, "three names were asked for");
    disk_unlink(disk, "pieces/0");
    is_number(disk_listing_read(listing, SIZE_MAX, on_name, &l), 0, "the end");
    ok_named(l.count >= MANY - 1 && l.count <= MANY && !l.dots, "all that stayed, once");
    is_number(disk_listing_read(listing, 3, on_name, &l), 0, "still the end");
    disk_listing_close(&listing);
    ok_named(listing == NULL, "closed");
    is_number(disk_listing_open(disk, "pieces", &listing), 0, "listed again");
    is_number(disk_listing_read(listing, 5, on_name, &some), 0, "until each is done");
    is_number(some.count, 2, "two names");
    disk_listing_close(&listing);
    disk_close(&disk);
}

TEST(list)
{
    struct disk *disk = open_root();
    struct listing all = {.disk = disk}, some = {.disk = disk, .stop_at = 3};
    struct listing gone = {.disk = disk, .unlinks = true}, none = {.disk = disk};
    char path[32];

    disk_make_directory(disk, "many", 0755);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof(path), "many/%d", i);
        make_file(disk, path, "");
    }
    is_number(disk_list(disk, "many", on_name, &all), 0, "list");
    is_number(all.count, MANY, "every name");
    ok_named(!all.dots, "without . and ..");
    is_number(disk_list(disk, "many", on_name, &some), 0, "list until false");
    is_number(some.count, 3, "three names");
    is_number(disk_list(disk, "many", on_name, &gone), 0, "list and unlink");
    is_number(gone.count, MANY, "meets every name once");
    is_number(disk_list(disk, "many", on_name, &none), 0, "list an empty directory");
    is_number(none.count, 0, "has nothing");
    is_number(disk_list(disk, "missing", on_name, &none), -ENOENT,
              "list a missing one");
    make_file(disk, "plain", "");
    is_number(disk_list(disk, "plain", on_name, &none), -ENOTDIR, "list a file");
    make_link("many", "many-link");
    is_number(disk_list(disk, "many-link", on_name, &none), -ENOTDIR, "list a link");
    is_number(disk_list(disk, "", on_name, &all), 0, "list the disk itself");
    ok_named(all.count > MANY + 2, "has what was made so far");
    disk_close(&disk);
}

TEST(space)
{
    struct disk *disk = open_root();
    struct disk_space space = {-1, -1, -1, -1};

    is_number(disk_space(disk, &space), 0, "space");
    ok_named(space.bytes_free > 0, "there are bytes");
    ok_named(space.bytes >= space.bytes_free, "no more than there are");
    ok_named(space.inodes_free > 0, "and inodes");
    disk_close(&disk);
}

/* In another process: 1 = refused, 0 = got it, 2 = something else. */
static int
lock_elsewhere(unsigned first, unsigned count)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        struct disk *disk = open_root();
        int file = disk_lock(disk, "lock", first, count);

        _exit(file == -EWOULDBLOCK ? 1 : file >= 0 ? 0 : 2);
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

TEST(lock)
{
    struct disk *disk = open_root();
    int file = disk_lock(disk, "lock", 0, 1), before = folder_descriptors();
    struct disk_info info;

    ok_named(file >= 0, "the lock is ours");
    is_number(mode_of("lock"), 0600, "in a file that was made for it");
    is_number(disk_file_info(disk, file, &info) == 0 && info.size == 0, 1,
              "which is empty");
    is_number(disk_lock(disk, "lock", 0, 1), -EWOULDBLOCK, "once");
    is_number(lock_elsewhere(0, 1), 1, "another process is refused");
    disk_close_file(disk, disk_open_file(disk, "lock", true));
    is_number(lock_elsewhere(0, 1), 1, "also when another handle was closed");
    disk_close_file(disk, file);
    is_number(lock_elsewhere(0, 1), 0, "until we let go");
    disk_make_fifo(disk, "no-lock", 0600);
    is_number(disk_lock(disk, "no-lock", 0, 1), -EINVAL, "a FIFO is no lock");
    make_link("lock", "lock-link");
    is_number(disk_lock(disk, "lock-link", 0, 1), -ELOOP, "nor is a link");
    is_number(disk_lock(disk, "no/lock", 0, 1), -ENOENT, "nor what cannot be made");
    is_number(folder_descriptors(), before - 1, "who is refused keeps no handle");
    disk_close(&disk);
}

TEST(lock_ranges)
{
    struct disk *disk = open_root();
    int low = disk_lock(disk, "lock", 0, 64), high, last;

    ok_named(low >= 0, "bytes 0 to 63");
    high = disk_lock(disk, "lock", 128, 64);
    ok_named(high >= 0, "and 128 to 191, in one process");
    is_number(disk_lock(disk, "lock", 63, 1), -EWOULDBLOCK, "the last of the first");
    is_number(disk_lock(disk, "lock", 127, 2), -EWOULDBLOCK, "the first of the second");
    is_number(disk_lock(disk, "lock", 0, 256), -EWOULDBLOCK, "all of them");
    is_number(lock_elsewhere(10, 10), 1, "or some: refused elsewhere, too");
    is_number(lock_elsewhere(60, 70), 1, "or what lies between and a bit of both");
    is_number(lock_elsewhere(64, 64), 0, "but not just what lies between");
    is_number(lock_elsewhere(192, 64), 0, "nor what follows");
    is_number(lock_elsewhere(64, 64), 0, "a process that ends lets go");
    last = disk_lock(disk, "lock", UINT_MAX, UINT_MAX);
    ok_named(last >= 0, "the last bytes that can be named");
    is_number(lock_elsewhere(UINT_MAX, 1), 1, "are locked");
    disk_close_file(disk, low);
    is_number(lock_elsewhere(0, 128), 0, "the first is free again");
    is_number(lock_elsewhere(128, 1), 1, "alone");
    disk_close_file(disk, high);
    disk_close_file(disk, last);
    is_number(lock_elsewhere(0, UINT_MAX), 0, "now all are");
    disk_close(&disk);
}

/* Bytes on the disk, without holes. */
static int64_t
room_of(const char *name)
{
    char path[PATH_MAX];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return stat(path, &status) == 0 ? status.st_blocks * 512 : -1;
}

TEST(map)
{
    struct disk *disk = open_root();
    struct disk_info info;
    int before = folder_descriptors();
    char *map = disk_map(disk, "map", 5000), *other, zeros[5000] = {0};
    pid_t child;
    int status;

    ok_named(map && memcmp(map, zeros, 5000) == 0, "a new file's map is of zeros");
    is_number(mode_of("map"), 0600, "it is ours alone");
    disk_inspect(disk, "map", &info);
    is_number(info.size, 5000, "and as long as it has to be");
    ok_named(room_of("map") >= 5000, "without holes");
    memcpy(map, "first", 5);
    other = disk_map(disk, "map", 5000);
    ok_named(other && other != map && memcmp(other, "first", 5) == 0,
             "another map shows what is stored in the first");
    disk_unmap(disk, map, 5000);
    memcpy(other + 4990, "at the end", 10);
    disk_unmap(disk, other, 5000);
    map = disk_map(disk, "map", 9000);
    ok_named(map && memcmp(map, "first", 5) == 0 &&
                 memcmp(map + 4990, "at the end", 10) == 0,
             "both are still there in a longer one");
    ok_named(map && memcmp(map + 5000, zeros, 4000) == 0, "with zeros behind");

    child = fork();
    if (child == 0) {
        char *own = disk_map(disk, "map", 9000);

        memcpy(own, "child", 5);
        memcpy(map + 8000, "inherited", 9);
        kill(getpid(), SIGKILL);
    }
    waitpid(child, &status, 0);
    ok_named(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a child is killed");
    ok_named(memcmp(map, "child", 5) == 0, "what it stored is there");
    disk_unmap(disk, map, 9000);
    map = disk_map(disk, "map", 100);
    ok_named(map && memcmp(map, "child", 5) == 0, "also for who comes later");
    disk_unmap(disk, map, 100);
    disk_inspect(disk, "map", &info);
    is_number(info.size, 9000, "a short map cuts nothing off");
    is_number(folder_descriptors(), before, "and no map needs a handle");
    disk_close(&disk);
}

TEST(map_limits)
{
    struct disk *disk = open_root();
    char *map;
    int file = disk_create(disk, "holes", 0600);

    is_number(ftruncate(file, 100000), 0, "a file");
    is_number(room_of("holes"), 0, "that is one hole");
    disk_close_file(disk, file);
    map = disk_map(disk, "holes", 100000);
    ok_named(map != NULL, "is mapped");
    ok_named(room_of("holes") >= 100000, "after it was filled, lest a store kill us");
    disk_unmap(disk, map, 100000);
    ok_named(!disk_map(disk, "vast", (size_t)1 << 62), "no disk has so much room");
    disk_make_fifo(disk, "map-fifo", 0600);
    ok_named(!disk_map(disk, "map-fifo", 10), "a FIFO has no map");
    make_link("holes", "map-link");
    ok_named(!disk_map(disk, "map-link", 10), "nor has a link");
    ok_named(!disk_map(disk, "many", 10), "nor a directory");
    ok_named(!disk_map(disk, "no/map", 10), "nor what cannot be made");
    disk_unmap(disk, NULL, 10); /* is allowed */
    disk_close(&disk);
}

TEST(fifo)
{
    struct disk *disk = open_root();
    int reader, pulls = 0;
    char at[8];

    umask(077);
    is_number(disk_make_fifo(disk, "fifo", 0622), 0, "a FIFO");
    is_number(mode_of("fifo"), 0622, "of exactly its mode");
    is_number(disk_make_fifo(disk, "fifo", 0600), 0, "exists already is success");
    is_number(mode_of("fifo"), 0622, "and the mode is left alone");
    make_file(disk, "no-fifo", "");
    is_number(disk_make_fifo(disk, "no-fifo", 0600), -EEXIST, "a file is in the way");
    is_number(disk_pull_fifo(disk, "fifo"), -ENXIO, "nobody reads, nobody waits");
    is_number(disk_pull_fifo(disk, "missing"), -ENOENT, "a missing FIFO");
    is_number(disk_pull_fifo(disk, "no-fifo"), -EINVAL, "a file is not pulled");
    is_content("no-fifo", "", "and gets no byte");

    reader = disk_open_fifo(disk, "fifo");
    ok_named(reader >= 0, "the reading end");
    is_number(disk_read(disk, reader, 0, at, sizeof(at)), -EAGAIN,
              "has nothing, no end");
    is_number(disk_pull_fifo(disk, "fifo"), 0, "pull");
    is_number(disk_pull_fifo(disk, "fifo"), 0, "pull again");
    is_number(disk_read(disk, reader, 0, at, sizeof(at)), 2, "two bytes arrive");
    is_number(disk_read(disk, reader, 0, at, sizeof(at)), -EAGAIN, "and still no end");
    for (int i = 0; i < 70000; i++)
        pulls += disk_pull_fifo(disk, "fifo") == 0;
    is_number(pulls, 70000, "a full FIFO is pulled enough");
    disk_close_file(disk, reader);
    is_number(disk_pull_fifo(disk, "fifo"), -ENXIO, "the reader has gone");
    is_number(disk_open_fifo(disk, "no-fifo"), -EINVAL, "a file is no FIFO");
    is_number(disk_open_fifo(disk, "missing"), -ENOENT, "a missing one is none");
    disk_close(&disk);
}

TEST(read_whole)
{
    struct disk *disk = open_root();
    char path[PATH_MAX], *content = NULL, *big = memory_new(100000);
    size_t length = 0;
    int file;

    make_file(disk, "small", "12345");
    make_link("small", "small-link");
    snprintf(path, sizeof(path), "%s/small-link", root);
    is_number(disk_read_whole(path, 5, &content, &length), 0, "exactly the limit");
    is_number(length, 5, "all of it");
    is_string(content, "12345", "with a NUL behind it, through a link");
    free(content);
    content = NULL;
    is_number(disk_read_whole(path, 4, &content, &length), -EFBIG, "one byte too much");
    ok_named(!content, "gives nothing");
    make_file(disk, "empty", "");
    snprintf(path, sizeof(path), "%s/empty", root);
    is_number(disk_read_whole(path, 0, &content, &length), 0, "an empty file, limit 0");
    is_number(length, 0, "is empty");
    is_string(content, "", "and a string");
    free(content);

    file = disk_create(disk, "big", 0600);
    memset(big, 'b', 100000);
    is_number(disk_write(disk, file, text_of(big, 100000)), 0, "a larger one");
    disk_close_file(disk, file);
    snprintf(path, sizeof(path), "%s/big", root);
    is_number(disk_read_whole(path, 1000000, &content, &length), 0, "is read");
    is_text(text_of(content, length), text_of(big, 100000), "byte by byte");
    free(content);
    free(big);
    is_number(disk_read_whole(root, 100, &content, &length), -EISDIR, "a directory");
    is_number(disk_read_whole("/nowhere", 100, &content, &length), -ENOENT, "missing");
    is_number(disk_read_whole("/dev/zero", 100, &content, &length), -EFBIG, "endless");
    disk_make_fifo(disk, "quiet", 0600);
    snprintf(path, sizeof(path), "%s/quiet", root);
    is_number(disk_read_whole(path, 100, &content, &length), 0,
              "a FIFO that nobody writes to does not hang");
    is_number(length, 0, "but is empty");
    free(content);
    disk_close(&disk);
}

TEST(absolute)
{
    struct disk *disk = open_root(), *elsewhere;
    char path[PATH_MAX];
    int file;

    disk_open(&elsewhere, "/", false);
    snprintf(path, sizeof(path), "%s/absolute", root);
    file = disk_create(elsewhere, path, 0600);
    ok_named(file >= 0, "an absolute path leaves the disk");
    disk_close_file(elsewhere, file);
    is_number(disk_unlink(disk, "absolute"), 0, "to where it says");
    disk_close(&disk);
    disk_close(&elsewhere);
}

TEST(clean_up)
{
    char command[PATH_MAX + 16];

    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    if (system(command) != 0)
        printf("# %s stays\n", root);
}

/* The start of a file, with or without waiting for the device. */

/* As the owner does: what the device is asked for is read after it has come. */
static int64_t
peek(struct disk *disk, const char *path, char *to, size_t size)
{
    int file = -1;
    int64_t got = disk_peek(disk, path, to, size, &file);
    if (got != -EAGAIN) {
        ok_named(file == -1, "no open file is left to its owner");
        return got;
    }
    ok_named(file >= 0, "the file that is being read is open");
    got = disk_read(disk, file, 0, to, size);
    disk_close_file(disk, file);
    return got;
}

static void
test_file(struct disk *disk)
{
    char bytes[10] = "";
    int file = disk_create(disk, "one", 0600), before = folder_descriptors();
    is_number(disk_write(disk, file, TEXT("0123456789abc")), 0, "a file");
    is_number(peek(disk, "one", bytes, 10), 10, "its start");
    ok(memcmp(bytes, "0123456789", 10) == 0);
    /* The device must be asked now, if there is one. */
    ok(disk_sync(disk, file) == 0);
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    memset(bytes, 0, sizeof(bytes));
    is_number(peek(disk, "one", bytes, 10), 10, "when it is not in memory, too");
    ok(memcmp(bytes, "0123456789", 10) == 0);
    disk_close_file(disk, file);
    disk_close_file(disk, disk_create(disk, "none", 0600));
    is_number(peek(disk, "none", bytes, 10), 0, "an empty file has none");
    is_number(folder_descriptors(), before - 1, "every file is closed");
}

static void
test_others(struct disk *disk)
{
    char bytes[10];
    int before = folder_descriptors();
    ok(disk_make_directory(disk, "directory", 0700) == 0);
    ok(disk_make_fifo(disk, "fifo", 0600) == 0);
    ok(chdir(disk_path(disk)) == 0 && symlink("one", "link") == 0);
    is_number(peek(disk, "missing", bytes, 10), -ENOENT, "no file");
    is_number(peek(disk, "link", bytes, 10), -ELOOP, "a link is not followed");
    is_number(peek(disk, "directory", bytes, 10), -EISDIR, "a directory");
    is_number(peek(disk, "fifo", bytes, 10), -ESPIPE, "a FIFO, without waiting");
    is_number(folder_descriptors(), before, "every file is closed");
}

TEST(disk_peek_all)
{
    static const char *const names[] = {"one", "none", "fifo", "link"};
    char folder[] = "/tmp/petrel-peek-XXXXXX";
    struct disk *disk = NULL;
    ok(mkdtemp(folder) != NULL && disk_open(&disk, folder, true) == 0);
    test_file(disk);
    test_others(disk);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_number(disk_unlink(disk, names[i]), 0, names[i]);
    ok(rmdir("directory") == 0 && rmdir(folder) == 0);
    disk_close(&disk);
}

/* Small files in one call. */
static void
test_small(void)
{
    char folder[] = "/tmp/petrel-small-XXXXXX", got[8];
    struct disk *disk = NULL;
    ok(mkdtemp(folder) != NULL && disk_open(&disk, folder, true) == 0);
    is_number(disk_read_at(disk, "one", 0, got, 8), -ENOENT, "nothing is there");
    is_number(disk_write_new(disk, "one", 0640, TEXT("content")), 0, "a file");
    is_number(disk_write_new(disk, "one", 0640, TEXT("other")), -EEXIST, "once");
    ok(disk_read_at(disk, "one", 3, got, 8) == 4 && memcmp(got, "tent", 4) == 0);
    is_number(disk_read_at(disk, "one", 7, got, 8), 0, "at its end");
    ok(disk_unlink(disk, "one") == 0 && rmdir(folder) == 0);
    disk_close(&disk);
}

int
main(void)
{
    char template[] = "/tmp/petrel-disk-XXXXXX";

    root = mkdtemp(template);
    tap_tests("");
    test_small();
    return done();
}
