/* A daemon reads its secrets again while it runs: a user with write access to their
 * directory must not be able to stop it. */
#include "base/disk/disk.h"

#include "t/support/folder.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void
spit(const char *name, size_t size)
{
    FILE *f = fopen(folder_path(folder, name), "w");
    for (size_t i = 0; f != NULL && i < size; i++)
        fputc('a' + (int)(i % 26), f);
    if (f == NULL || fclose(f) != 0)
        abort();
}

static void
is_read(const char *name, size_t size)
{
    char *content = NULL;
    size_t length = 0;
    bool same = true;
    is_number(disk_read_regular(folder_path(folder, name), 100000, &content, &length), 0, name);
    is_number(length, size, "all of it");
    for (size_t i = 0; i < length; i++)
        same = same && content[i] == (char)('a' + i % 26);
    ok_named(same && content[length] == '\0', "byte by byte, and a NUL");
    free(content);
}

static void
is_refused(const char *path, int error, const char *name)
{
    char *content = NULL;
    size_t length = 7;
    is_number(disk_read_regular(path, 100000, &content, &length), error, name);
    ok_named(content == NULL && length == 7, "nothing comes of it");
}

int
main(void)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 8192, 8193, 100000};
    folder_make(folder, sizeof(folder), "regular");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        spit("file", sizes[i]);
        is_read("file", sizes[i]);
    }
    if (symlink("file", folder_path(folder, "link")) != 0)
        abort();
    is_read("link", 100000);
    spit("file", 100001);
    is_refused(folder_path(folder, "link"), -EFBIG, "one byte too much");
    is_refused(folder_path(folder, "none"), -ENOENT, "missing");
    is_refused(folder, -EISDIR, "a directory");
    is_refused("/dev/zero", -EINVAL, "a device");
    char *content = NULL;
    size_t length = 7;
    is_number(disk_read_regular("/dev/null", 1, &content, &length), 0, "but /dev/null");
    ok_named(length == 0 && content[0] == '\0', "is an empty file");
    free(content);
    is_string(disk_explain(-EINVAL), "it is not a regular file", "words for a user");
    is_string(disk_explain(-ENOENT), strerror(ENOENT),
              "others are those of the system");

    /* SIGALRM would end the test. */
    alarm(60);
    if (mkfifo(folder_path(folder, "fifo"), 0600) != 0)
        abort();
    is_refused(folder_path(folder, "fifo"), -EINVAL, "a FIFO");
    int writer = open(folder_path(folder, "fifo"), O_RDWR);
    is_refused(folder_path(folder, "fifo"), -EINVAL, "one with a writer that says nothing");
    close(writer);
    folder_remove(folder);
    return done();
}
