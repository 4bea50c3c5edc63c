/* A file is whole or not there; an existing one stays unless it is to be replaced. */
#include "admin/settings/whole_file.h"

#include "t/support/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct disk *disk;

static void
has(const char *name, const char *want, unsigned mode)
{
    char content[100] = "";
    struct disk_info info = {0};
    int file = disk_open_file(disk, name, false);
    int64_t got = file < 0 ? 0 : disk_read(disk, file, 0, content, sizeof(content) - 1);
    content[got > 0 ? got : 0] = '\0';
    if (file >= 0)
        disk_close_file(disk, file);
    is_string(content, want, name);
    ok(disk_inspect(disk, name, &info) == 0 && info.mode == mode && info.links == 1);
}

int
main(void)
{
    char folder[] = "/tmp/petrel-whole-file-XXXXXX", longest[300];
    struct identity owner = {.change = false};
    if (mkdtemp(folder) == NULL || disk_open(&disk, folder, false) != 0)
        abort();
    umask(077);
    is_number(whole_file_write(disk, "a", TEXT("one"), 0644, NULL, false), 0, "a new one");
    has("a", "one", 0644);
    is_number(whole_file_write(disk, "a", TEXT("two"), 0600, NULL, false), -EEXIST, "is not replaced");
    has("a", "one", 0644);
    is_number(whole_file_write(disk, "a", TEXT("two"), 0600, &owner, true), 0, "unless it is to be");
    has("a", "two", 0600);
    is_number(whole_file_write(disk, "b", TEXT(""), 0600, NULL, true), 0, "nothing to replace");
    has("b", "", 0600);
    struct disk_info info;
    is_number(disk_inspect(disk, "a.new", &info), -ENOENT, "nothing is left");
    is_number(disk_make_directory(disk, "c", 0700), 0, "a directory");
    ok(whole_file_write(disk, "c", TEXT("x"), 0600, NULL, true) < 0 && whole_file_write(disk, "c", TEXT("x"), 0600, NULL, false) == -EEXIST);
    is_number(disk_inspect(disk, "c.new", &info), -ENOENT, "nothing is left");
    memset(longest, 'x', sizeof(longest));
    longest[WHOLE_FILE_NAME_MAX + 10] = '\0';
    is_number(whole_file_write(disk, longest, TEXT("x"), 0600, NULL, true), -ENAMETOOLONG, "too long a name");
    if (geteuid() == 0) {
        owner = (struct identity){.change = true, .uid = 12345, .gid = 12345};
        is_number(whole_file_write(disk, "d", TEXT("x"), 0600, &owner, false), 0, "given away");
        ok(disk_inspect(disk, "d", &info) == 0 && info.owner == 12345);
    }
    disk_close(&disk);
    char command[100];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command) == 0 ? done() : 1;
}
