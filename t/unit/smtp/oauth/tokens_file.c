/* States of accounts in files: whole or not at all. */
#include "smtp/oauth/tokens_file.h"

#include "base/disk/disk.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct disk *spool;

static void
is_read(const char *expected)
{
    char content[OAUTH_STATE_MAX + 1] = "";
    int64_t changed_ms = 0;
    int64_t length = tokens_file_read(spool, "oauth/key", content, &changed_ms);
    is_text(text_of(content, length > 0 ? (size_t)length : 0), text_from(expected),
            "what is read");
    ok_named(changed_ms > 0, "its time");
}

int
main(void)
{
    static char large[OAUTH_STATE_MAX + 2];
    char content[OAUTH_STATE_MAX + 1];
    struct stat info;
    int64_t changed_ms = 7;
    folder_make(folder, sizeof(folder), "tokens-file");
    if (disk_open(&spool, folder, true) != 0)
        abort();
    is_number(tokens_file_read(spool, "oauth/key", content, &changed_ms), -ENOENT,
              "none");
    is_number(changed_ms, 7, "and no time");
    is_number(tokens_file_write(spool, "oauth/key", TEXT("one")), 0,
              "with its directory");
    is_read("one");
    ok(stat(folder_path(folder, "oauth"), &info) == 0 && (info.st_mode & 07777) == 0700);
    ok(stat(folder_path(folder, "oauth/key"), &info) == 0 && (info.st_mode & 07777) == 0600);
    is_number(tokens_file_write(spool, "oauth/key", TEXT("two")), 0, "replaced");
    is_read("two");

    FILE *rest = fopen(folder_path(folder, "oauth/key.new"), "w");
    ok(rest != NULL && fputs("rest of a crash", rest) > 0 && fclose(rest) == 0);
    is_number(tokens_file_write(spool, "oauth/key", TEXT("three")), 0,
              "a rest is removed");
    is_read("three");
    ok_named(access(folder_path(folder, "oauth/key.new"), F_OK) != 0, "no rest");

    ok(mkdir(folder_path(folder, "oauth/key.new"), 0700) == 0 &&
       mkdir(folder_path(folder, "oauth/key.new/x"), 0700) == 0);
    ok_named(tokens_file_write(spool, "oauth/key", TEXT("four")) < 0, "an error");
    is_read("three");

    memset(large, 'x', sizeof(large) - 1);
    rest = fopen(folder_path(folder, "oauth/key"), "w");
    ok(rest != NULL && fputs(large, rest) > 0 && fclose(rest) == 0);
    is_number(tokens_file_read(spool, "oauth/key", content, &changed_ms), -EFBIG,
              "too large");
    disk_close(&spool);
    folder_remove(folder);
    return done();
}
