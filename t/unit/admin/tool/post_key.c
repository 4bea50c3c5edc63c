/* `petrel key`: the file it edits, and the key that is printed once. */
#include "admin/tool/post_key.h"

#include "admin/post/post_keys.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static char path[200], printed[4096];

/* Its exit code; its output is in printed. */
static int
key(const char *file, const char *one, const char *two, const char *three)
{
    struct options options = {.http_keys = (char *)(uintptr_t)file};
    char *arguments[] = {(char *)(uintptr_t)one, (char *)(uintptr_t)two, (char *)(uintptr_t)three};
    int out[2], old = dup(1);
    if (pipe(out) != 0)
        abort();
    fflush(stdout);
    dup2(out[1], 1);
    int code = post_key_command(three != NULL ? 3 : two != NULL ? 2 : one != NULL ? 1 : 0, arguments, &options);
    fflush(stdout);
    dup2(old, 1);
    close(old);
    close(out[1]);
    ssize_t length = read(out[0], printed, sizeof(printed) - 1);
    printed[length > 0 ? length : 0] = '\0';
    close(out[0]);
    return code;
}

static struct post_keys *
keys_of(const char *file)
{
    struct buffer errors;
    buffer_init(&errors, 10000);
    struct post_keys *keys = post_keys_read(file, TEXT(""), &errors);
    buffer_free(&errors);
    return keys;
}

TEST(keys_come_and_go)
{
    char folder[100];
    struct stat info;
    folder_make(folder, sizeof(folder), "keys");
    snprintf(path, sizeof(path), "%s/keys", folder);
    is_number(key(path, "ls", NULL, NULL), 0, "a file that is not there has no keys");
    is_number(key(path, "add", "app", "app@x.example"), 0, "a key");
    char *end = strchr(printed, '\n');
    ok(end != NULL && end[1] == '\0');
    struct text token = text_of(printed, (size_t)(end - printed));
    struct post_keys *keys = keys_of(path);
    ok(keys != NULL && keys->count == 1 && post_keys_find(keys, token) == &keys->list[0]);
    post_keys_release(&keys);
    ok(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
    is_number(key(path, "add", "app", "*"), EX_DATAERR, "a name twice");
    is_number(key(path, "add", "b", "@"), EX_DATAERR, "no sender");
    is_string(printed, "", "no key is printed");
    is_number(key(path, "add", "b", "y.example"), 0, "another key");
    is_number(key(path, "ls", NULL, NULL), 0, "both");
    is_string(printed, "app app@x.example\nb y.example\n", "without their digests");
    is_number(key(path, "rm", "c", NULL), EX_DATAERR, "no such key");
    is_number(key(path, "rm", "app", NULL), 0, "one goes");
    is_number(key(path, "ls", NULL, NULL), 0, "the other");
    is_string(printed, "b y.example\n", "stays");
    folder_remove(folder);
}

/* Each reads the file, and writes what it has read. */
TEST(keys_that_come_together)
{
    enum { TOGETHER = 12 };
    char folder[100], name[TOGETHER][8];
    folder_make(folder, sizeof(folder), "keys");
    snprintf(path, sizeof(path), "%s/keys", folder);
    for (int i = 0; i < TOGETHER; i++) {
        snprintf(name[i], sizeof(name[i]), "k%d", i);
        fflush(NULL);
        if (fork() == 0)
            _exit(key(path, "add", name[i], "*"));
    }
    for (int i = 0, status = 1; i < TOGETHER; i++)
        ok(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    struct post_keys *keys = keys_of(path);
    is_number(keys != NULL ? keys->count : 0, TOGETHER, "none is lost");
    post_keys_release(&keys);
    ok_named(key(path, "add", "k0", "*") == EX_DATAERR && key(path, "rm", "k0", NULL) == 0, "no lock is left");
    folder_remove(folder);
    folder_make(folder, sizeof(folder), "keys");
    snprintf(path, sizeof(path), "%s/keys", folder);
    is_number(key(path, "add", "b", "@"), EX_DATAERR, "a first key that is refused");
    is_number(access(path, F_OK), -1, "leaves no file");
    folder_remove(folder);
}

TEST(usage)
{
    is_number(key(path, NULL, NULL, NULL), EX_USAGE, "nothing");
    is_number(key(path, "ls", "x", NULL), EX_USAGE, "more than ls");
    is_number(key(path, "add", "x", NULL), EX_USAGE, "no sender");
    is_number(key(path, "rm", NULL, NULL), EX_USAGE, "no name");
    is_number(key(NULL, "ls", NULL, NULL), EX_CONFIG, "no file is set");
    is_number(key("/nonexistent/x/keys", "add", "a", "*"), EX_CANTCREAT, "no directory");
    is_number(key("/", "ls", NULL, NULL), EX_NOINPUT, "no file");
}
