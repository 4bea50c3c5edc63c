/* Proves that the file of an account is written whole and privately, that it is read as
 * it was written or not at all, and that its lock excludes a second one. */
#include "smtp/oauth/oauth_file.h"

#include "base/disk/disk.h"
#include "t/support/folder.h"
#include "t/support/tap.h"
#include "base/memory.h"

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

/* --- Proves that the state of an account is read as it was writte ----------------- */

/* Proves that the state of an account is read as it was written, or not at all. */

static struct oauth_account
account_of(const char *row)
{
    struct oauth_account a;
    char why[OAUTH_REASON_MAX];
    ok(oauth_parse_account(text_from(row), &a, why));
    return a;
}

#define ROW "smtp.gmail.com u@gmail.com google client=c"

static void
test_round(void)
{
    struct oauth_account a = account_of(ROW), other = account_of("smtp.gmail.com v google client=c");
    struct oauth_state state, read;
    struct buffer out;
    oauth_state_init(&state);
    buffer_init(&out, OAUTH_STATE_MAX);
    ok_named(oauth_state_write(&out, &a, &state), "an empty state");
    oauth_state_init(&read);
    ok(oauth_state_read(buffer_text(&out), &a, &read) && read.access.length == 0);
    oauth_state_free(&read);
    ok(buffer_add(&state.access, TEXT("access")) && buffer_add(&state.refresh, TEXT("r/1")));
    state.expires_ms = 1766000000123;
    state.updated_ms = 1766000000000;
    snprintf(state.error, sizeof(state.error), "status 503");
    buffer_clear(&out);
    ok(oauth_state_write(&out, &a, &state));
    oauth_state_init(&read);
    ok_named(oauth_state_read(buffer_text(&out), &a, &read), "read as it was written");
    is_text(buffer_text(&read.access), TEXT("access"), "the token");
    is_text(buffer_text(&read.refresh), TEXT("r/1"), "the other");
    ok(read.expires_ms == state.expires_ms && read.updated_ms == state.updated_ms);
    is_string(read.error, "status 503", "the error");
    ok_named(!oauth_state_read(buffer_text(&out), &other, &read), "another user's");
    ok_named(read.access.length == 0 && read.expires_ms == 0, "  leaves nothing");
    int wrong = 0;
    for (size_t length = 0; length + 2 < out.length; length++)
        wrong += oauth_state_read(text_before(buffer_text(&out), length), &a, &read);
    is_number(wrong, 0, "a file that is cut is not read");
    buffer_free(&out);
    buffer_init(&out, 20);
    ok_named(!oauth_state_write(&out, &a, &state), "no space");
    buffer_free(&out);
    oauth_state_free(&state);
    oauth_state_free(&read);
}

static void
test_foreign(void)
{
    static const char *const contents[] = {
        "", "null", "[]", "{}", "7",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\"}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
        "\"access\":\"a\\r\\nb\",\"refresh\":\"\"}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
        "\"access\":\"\",\"refresh\":7}",
        "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"d\","
        "\"access\":\"\",\"refresh\":\"\"}",
    };
    struct oauth_account a = account_of(ROW);
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct oauth_state state;
        oauth_state_init(&state);
        ok_named(!oauth_state_read(text_from(contents[i]), &a, &state), contents[i]);
        ok(state.access.length == 0 && state.refresh.length == 0);
        oauth_state_free(&state);
    }
}

/* Text of another program does no harm: a time that is before all times, an error that a
 * terminal would obey, or one that could not be written again. */
static void
test_odd(void)
{
    struct oauth_account a = account_of(ROW);
    struct oauth_state state;
    struct buffer out;
    char content[1600], error[1000];
    buffer_init(&out, OAUTH_STATE_MAX);
    for (size_t i = 0; i + 1 < sizeof(error); i += 2)
        memcpy(error + i, "\xc2\x9b", 2);
    error[801] = '\0';
    error[800] = 'x';
    snprintf(content, sizeof(content),
             "{\"host\":\"smtp.gmail.com\",\"user\":\"u@gmail.com\",\"client\":\"c\","
             "\"access\":\"a\",\"refresh\":\"\",\"expires\":-9223372036854775808,"
             "\"updated\":-1,\"error\":\"%s\"}",
             error);
    oauth_state_init(&state);
    ok(oauth_state_read(text_from(content), &a, &state));
    ok_named(state.expires_ms == 0 && state.updated_ms == 0, "no time before 1970");
    is_string(state.error, "", "no control characters beyond ASCII");
    ok_named(oauth_state_write(&out, &a, &state), "it can be written");
    buffer_free(&out);
    oauth_state_free(&state);
}

/* The longest tokens fit. */
static void
test_long(void)
{
    struct oauth_account a = account_of(ROW);
    struct oauth_state state, read;
    struct buffer out;
    char *token = memory_new(OAUTH_TOKEN_MAX);
    memset(token, '"', OAUTH_TOKEN_MAX); /* twice as long in JSON */
    oauth_state_init(&state);
    oauth_state_init(&read);
    ok(buffer_add(&state.access, text_of(token, OAUTH_TOKEN_MAX)) &&
       buffer_add(&state.refresh, text_of(token, OAUTH_TOKEN_MAX)));
    buffer_init(&out, OAUTH_STATE_MAX);
    memset(state.error, '"', sizeof(state.error) - 1);
    ok_named(oauth_state_write(&out, &a, &state), "the longest there are");
    memset(state.access.at, 'x', OAUTH_TOKEN_MAX);
    memset(state.refresh.at, 'y', OAUTH_TOKEN_MAX);
    buffer_clear(&out);
    ok(oauth_state_write(&out, &a, &state) && out.length <= OAUTH_STATE_MAX);
    ok(oauth_state_read(buffer_text(&out), &a, &read));
    is_number(read.access.length + read.refresh.length, 2 * OAUTH_TOKEN_MAX, "8 KiB each");
    buffer_free(&out);
    oauth_state_free(&state);
    oauth_state_free(&read);
    free(token);
}

static void
oauth_state_tests(void)
{
    test_round();
    test_foreign();
    test_odd();
    test_long();
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
    oauth_state_tests();
    return done();
}
