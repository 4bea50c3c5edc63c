/* The start of a file, with or without waiting for the device. */
#include "base/disk/disk.h"

#include "t/support/tap.h"
#include "t/support/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

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

int
main(void)
{
    static const char *const names[] = {"one", "none", "fifo", "link"};
    char root[] = "/tmp/petrel-peek-XXXXXX";
    struct disk *disk = NULL;
    ok(mkdtemp(root) != NULL && disk_open(&disk, root, true) == 0);
    test_file(disk);
    test_others(disk);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_number(disk_unlink(disk, names[i]), 0, names[i]);
    ok(rmdir("directory") == 0 && rmdir(root) == 0);
    disk_close(&disk);
    return done();
}
