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

/* The reason of -EACCES: words in front of and behind the path that is named twice. */
static void
explains(const char *name, const char *before, const char *within, const char *behind, const char *named)
{
    char want[DISK_REASON_MAX], why[DISK_REASON_MAX], path[300];
    snprintf(path, sizeof(path), "%s", folder_path(folder, name));
    snprintf(want, sizeof(want), "Permission denied; it%s%s%s%s", before, within, named, behind);
    is_string(disk_explain_file(path, -EACCES, why), want, name);
}

/* The owner of a closed file is named, and the command that opens it: to another user than root. */
static void
test_closed(void)
{
    char inner[300], mine[300], why[DISK_REASON_MAX], longest[3000];
    snprintf(mine, sizeof(mine), "%s", folder_path(folder, "mine"));
    snprintf(inner, sizeof(inner), "%s", folder_path(folder, "closed"));
    spit("mine", 1);
    if (mkdir(inner, 0700) != 0 || chmod(folder, 0755) != 0)
        abort();
    spit("closed/far", 1);
    if (chmod(folder_path(folder, "mine"), 0640) != 0)
        abort();
    is_string(disk_explain_file(mine, -EACCES, why), "Permission denied", "our own: no permission forbids it");
    if (geteuid() != 0)
        return;
    if (seteuid(65533) != 0) /* a number without a name */
        abort();
    explains("mine", " belongs to root (mode 0640): `chown 65533 ", "", "` if the daemon runs as 65533", mine);
    is_string(disk_explain_file(mine, -ENOENT, why), strerror(ENOENT), "no more of other errors");
    char before[400];
    snprintf(before, sizeof(before), "s directory %s belongs to root (mode 0700): move it elsewhere, or ", inner);
    explains("closed/far", before, "`chmod o+x ", "`", inner);
    explains("closed/none/far", before, "`chmod o+x ", "`", inner);
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    is_string(disk_explain_file(longest, -EACCES, why), "Permission denied", "a path too long to be looked at");
    is_string(disk_explain_file("x", -EACCES, why), "Permission denied", "one without a directory");
    if (seteuid(0) != 0)
        abort();
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
    test_closed();
    folder_remove(folder);
    return done();
}
