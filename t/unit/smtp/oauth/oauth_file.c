/* Proves that the file of an account is written whole and privately, that it is read as
 * it was written or not at all, and that its lock excludes a second one. */
#include "smtp/oauth/oauth_file.h"

#include "base/disk/disk.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct oauth_account
account(const char *user, unsigned port)
{
    struct oauth_account a;
    char row[200], why[OAUTH_REASON_MAX];
    snprintf(row, sizeof(row), "smtp.gmail.com:%u %s google client=c", port, user);
    ok(oauth_parse_account(text_from(row), &a, why));
    return a;
}

static void
spit(const char *folder, const char *name, const char *content, size_t length)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ok(file != NULL && fwrite(content, 1, length, file) == length && fclose(file) == 0);
}

static void
test_file(struct disk *disk, const char *folder)
{
    struct oauth_account joe = account("joe", 587), other = account("jane", 587);
    struct oauth_state state, read;
    struct disk_info info;
    char path[OAUTH_FILE_PATH_MAX], same[OAUTH_FILE_PATH_MAX],
        large[OAUTH_STATE_MAX + 1];
    oauth_state_init(&state);
    oauth_state_init(&read);
    oauth_file_path(&joe, path);
    struct oauth_account second = account("joe", 25);
    oauth_file_path(&second, same);
    is_string(path, same, "one file for all ports");
    oauth_file_path(&other, same);
    ok_named(strcmp(path, same) != 0, "another one for another user");
    int64_t changed_ms = 7;
    is_number(oauth_file_read(disk, path, &joe, &read, &changed_ms), -ENOENT,
              "there is none");
    is_number(changed_ms, 7, "and no time");
    is_number(oauth_file_remove(disk, path), -ENOENT, "none to remove");
    ok(buffer_add(&state.refresh, TEXT("refresh")));
    state.updated_ms = 7;
    is_number(oauth_file_write(disk, path, &joe, &state), 0, "written");
    ok(disk_inspect(disk, path, &info) == 0 && info.mode == 0600);
    ok(disk_inspect(disk, "oauth", &info) == 0 && info.mode == 0700);
    is_number(oauth_file_read(disk, path, &joe, &read, &changed_ms), 0, "read");
    ok_named(changed_ms > 7, "its time");
    is_text(buffer_text(&read.refresh), TEXT("refresh"), "as it was written");
    is_number(read.updated_ms, 7, "with its time");
    oauth_state_free(&read);
    oauth_state_init(&read);
    is_number(oauth_file_read(disk, path, &other, &read, NULL), -EBADMSG,
              "another account's");
    spit(folder, path, "{", 1);
    is_number(oauth_file_read(disk, path, &joe, &read, NULL), -EBADMSG, "damaged");
    memset(large, ' ', sizeof(large));
    spit(folder, path, large, sizeof(large));
    is_number(oauth_file_read(disk, path, &joe, &read, NULL), -EBADMSG, "too large");
    ok_named(read.refresh.length == 0, "nothing was read");
    is_number(oauth_file_write(disk, path, &joe, &state), 0, "replaced");
    is_number(oauth_file_read(disk, path, &joe, &read, NULL), 0, "read");
    is_number(oauth_file_remove(disk, path), 0, "removed");
    is_number(oauth_file_read(disk, path, &joe, &read, NULL), -ENOENT, "gone");
    oauth_state_free(&state);
    oauth_state_free(&read);
}

/* A write that a crash has ended before the rename. */
static void
test_rest(struct disk *disk, const char *folder)
{
    struct oauth_account joe = account("joe", 587);
    struct oauth_state state;
    struct disk_info info;
    char path[OAUTH_FILE_PATH_MAX], fresh[OAUTH_FILE_PATH_MAX + 8];
    oauth_state_init(&state);
    oauth_file_path(&joe, path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    is_number(oauth_file_settle(disk, path, &joe), 0, "nothing to settle");
    ok(buffer_add(&state.refresh, TEXT("r1")));
    is_number(oauth_file_write(disk, path, &joe, &state), 0, "written");
    is_number(disk_rename(disk, path, fresh), 0, "as a crash leaves it");
    is_number(oauth_file_settle(disk, path, &joe), 1, "settled");
    oauth_state_free(&state);
    is_number(oauth_file_read(disk, path, &joe, &state, NULL), 0, "has its name");
    is_text(buffer_text(&state.refresh), TEXT("r1"), "and its content");
    spit(folder, fresh, "rest of a crash", 15);
    is_number(oauth_file_write(disk, path, &joe, &state), 0, "written beside a rest");
    is_number(disk_inspect(disk, fresh, &info), -ENOENT, "which is removed");
    is_number(disk_make_directory(disk, fresh, 0700), 0, "its name is taken");
    char inner[OAUTH_FILE_PATH_MAX + 16];
    snprintf(inner, sizeof(inner), "%s/x", fresh);
    is_number(disk_make_directory(disk, inner, 0700), 0, "by a full directory");
    ok_named(oauth_file_write(disk, path, &joe, &state) < 0, "an error");
    oauth_state_free(&state);
    is_number(oauth_file_read(disk, path, &joe, &state, NULL), 0, "the old one stays");
    is_text(buffer_text(&state.refresh), TEXT("r1"), "with its content");
    is_number(disk_remove_directory(disk, inner), 0, "the directory");
    is_number(disk_remove_directory(disk, fresh), 0, "is removed");
    oauth_state_free(&state);
    spit(folder, fresh, "{\"host\":", 8);
    is_number(oauth_file_settle(disk, path, &joe), 0, "half a file");
    is_number(disk_inspect(disk, fresh, &info), -ENOENT, "is removed");
    is_number(oauth_file_read(disk, path, &joe, &state, NULL), 0, "the old one stays");
    spit(folder, fresh, "secrets", 7);
    is_number(oauth_file_remove(disk, path), 0, "a login is forgotten");
    is_number(disk_inspect(disk, fresh, &info), -ENOENT, "with what a crash left");
    ok_named(!oauth_file_is_there(disk, path), "nothing is left");
    spit(folder, fresh, "secrets", 7);
    ok_named(oauth_file_is_there(disk, path), "a crash in the first login");
    is_number(oauth_file_remove(disk, path), 0, "is forgotten, too");
    is_number(disk_inspect(disk, fresh, &info), -ENOENT, "with its secrets");
    is_number(oauth_file_remove(disk, path), -ENOENT, "nobody has logged in");
    oauth_state_free(&state);
}

static void
test_lock(struct disk *disk)
{
    int first = oauth_file_lock(disk, "oauth/k");
    ok_named(first >= 0, "locked");
    is_number(oauth_file_lock(disk, "oauth/k"), -EWOULDBLOCK, "once");
    int other = oauth_file_lock(disk, "oauth/l");
    ok_named(other >= 0, "another account is free");
    disk_close_file(disk, first);
    disk_close_file(disk, other);
    first = oauth_file_lock(disk, "oauth/k");
    ok_named(first >= 0, "free again");
    disk_close_file(disk, first);
}

static void
test_secret(const char *folder)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/secret", folder);
    FIXTURE(buffer, out, buffer_init, buffer_free, 6);
    is_number(oauth_file_secret(path, &out), -ENOENT, "no such file");
    spit(folder, "secret", " word\n", 6);
    is_number(oauth_file_secret(path, &out), 0, "read");
    is_text(buffer_text(&out), TEXT("word"), "without white space at its ends");
    buffer_clear(&out);
    spit(folder, "secret", "1234567", 7);
    is_number(oauth_file_secret(path, &out), -EFBIG, "longer than its limit");
    ok(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    int writer = open(path, O_RDWR);
    alarm(60);
    is_number(oauth_file_secret(path, &out), -EINVAL, "a FIFO is not waited for");
    alarm(0);
    close(writer);
}

int
main(void)
{
    char folder[200];
    struct disk *disk;
    folder_make(folder, sizeof(folder), "oauth_file");
    ok(disk_open(&disk, folder, true) == 0);
    test_file(disk, folder);
    test_rest(disk, folder);
    test_lock(disk);
    test_secret(folder);
    disk_close(&disk);
    folder_remove(folder);
    return done();
}
