/* Edits the file of http_keys, which is whole at any time. */
#include "admin/tool/post_key.h"

#include "admin/post/post_keys.h"
#include "admin/settings/complaint.h"
#include "admin/settings/whole_file.h"
#include "base/loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum {
    KEY_PATH_MAX = 4096,
    KEY_MODE = 0600,
    ERRORS_MAX = 16 * 1024,
    LOCK_MS = 50,
    LOCK_TRIES = 200
};

static const char program[] = "petrel key";
static const char separators[] = ", \t";

static int
key_usage(void)
{
    fputs("usage: petrel key add NAME SENDER... | ls | rm NAME\n", stderr);
    return EX_USAGE;
}

/* A file that is not there yet has no keys. */
static int
key_read_file(const char *path, char **content)
{
    size_t length;
    int error = disk_read_regular(path, POST_KEY_FILE_MAX, content, &length);
    if (error == -ENOENT) {
        *content = text_string(TEXT(""));
        return 0;
    }
    return error == 0 ? 0
                      : complaint_say(program, EX_NOINPUT, disk_explain(error), path);
}

/* The daemon must be able to read it. */
static int
key_check_file(struct text content, const char *path)
{
    struct buffer errors;
    buffer_init(&errors, ERRORS_MAX);
    struct post_keys *keys = post_keys_new(content, path, TEXT(""), &errors);
    bool good = keys != NULL;
    post_keys_release(&keys);
    complaint_write(&errors);
    buffer_free(&errors);
    return good ? 0 : EX_DATAERR;
}

/* A command that changes the file has it alone, from reading on. */
struct key_lock {
    struct disk *disk; /* its directory */
    const char *path, *name;
    int file;
};

/* The file that had the name may have been replaced meanwhile. */
static int
key_lock_try(const struct key_lock *k)
{
    struct disk_info held, named;
    int file = disk_lock(k->disk, k->name, 0, 1);
    if (file < 0 ||
        (disk_file_info(k->disk, file, &held) == 0 &&
         disk_inspect(k->disk, k->name, &named) == 0 && held.inode == named.inode))
        return file;
    disk_close_file(k->disk, file);
    return -EWOULDBLOCK;
}

static int
key_lock_take(struct key_lock *k, const char *path)
{
    char directory[KEY_PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct loop *loop = loop_new();
    k->path = path;
    k->name = slash != NULL ? slash + 1 : path;
    struct text before = text_of(path, (size_t)(k->name - path));
    k->file =
        text_copy(directory, sizeof(directory), before.length > 0 ? before : TEXT("."))
            ? disk_open(&k->disk, directory, false)
            : -ENAMETOOLONG;
    if (k->file == 0)
        k->file = key_lock_try(k);
    for (int i = 0; k->file == -EWOULDBLOCK && i < LOCK_TRIES; i++) {
        loop_turn(loop, LOCK_MS);
        k->file = key_lock_try(k);
    }
    loop_free(&loop);
    return k->file == -EWOULDBLOCK
               ? complaint_say(program, EX_TEMPFAIL,
                               "another petrel key changes the file", path)
           : k->file < 0
               ? complaint_say(program, EX_CANTCREAT, strerror(-k->file), path)
               : 0;
}

/* One that the lock has made, and that nobody has filled, goes. */
static void
key_lock_release(struct key_lock *k)
{
    struct disk_info named;
    if (k->file >= 0 && disk_inspect(k->disk, k->name, &named) == 0 && named.size == 0)
        (void)disk_unlink(k->disk, k->name);
    if (k->file >= 0)
        disk_close_file(k->disk, k->file);
    if (k->disk != NULL)
        disk_close(&k->disk);
}

static int
key_write_file(const struct key_lock *k, struct text content,
               const struct options *options)
{
    struct identity owner;
    if (!identity_find(&owner, options->user))
        return complaint_say(program, EX_CONFIG, "no such user", options->user);
    int error = whole_file_write(k->disk, k->name, content, KEY_MODE, &owner, true);
    return error == 0 ? 0
                      : complaint_say(program, EX_CANTCREAT, strerror(-error), k->path);
}

static int
key_save(const struct key_lock *k, const struct buffer *lines,
         const struct options *options)
{
    int code = key_check_file(buffer_text(lines), k->path);
    if (code == 0)
        code = key_write_file(k, buffer_text(lines), options);
    if (code == 0)
        fputs("`petrel reload` makes it count.\n", stderr);
    return code;
}

static void
post_key_make(char token[POST_KEY_TOKEN_SIZE], char hex[2 * DIGEST_SIZE + 1])
{
    unsigned char bytes[DIGEST_SIZE];
    uint64_t random[DIGEST_SIZE / sizeof(uint64_t)] = {0};
    struct loop *loop = loop_new();
    for (size_t i = 0; i < sizeof(random) / sizeof(*random); i++)
        random[i] = loop_random(loop);
    loop_free(&loop);
    memcpy(bytes, random, sizeof(bytes));
    post_key_write(bytes, token);
    digest_plain(text_from(token), bytes);
    text_hex(bytes, sizeof(bytes), hex);
    digest_forget(random, sizeof(random));
}

static int
key_add(const struct key_lock *k, int count, char **arguments,
        const struct options *options, char *content)
{
    char token[POST_KEY_TOKEN_SIZE], hex[2 * DIGEST_SIZE + 1];
    struct buffer lines;
    size_t length = strlen(content);
    post_key_make(token, hex);
    buffer_init(&lines, POST_KEY_FILE_MAX);
    bool fits =
        buffer_add(&lines, text_from(content)) &&
        (length == 0 || content[length - 1] == '\n' || buffer_add_byte(&lines, '\n')) &&
        buffer_format(&lines, "%s %s", arguments[0], hex);
    for (int i = 1; i < count; i++)
        fits = fits && buffer_format(&lines, " %s", arguments[i]);
    int code =
        fits && buffer_add_byte(&lines, '\n')
            ? key_save(k, &lines, options)
            : complaint_say(program, EX_DATAERR, "too large", options->http_keys);
    if (code == 0)
        printf("%s\n", token);
    buffer_free(&lines);
    digest_forget(token, sizeof(token));
    return code == 0 && fflush(stdout) != 0 ? EX_IOERR : code;
}

static bool
key_line(struct text *rest, struct text *line, struct text *name, struct text *more)
{
    struct text digest;
    if (!text_cut(rest, '\n', line))
        return false;
    *more = text_trim(*line);
    if (more->length == 0 || more->at[0] == '#' || !text_word(more, separators, name) ||
        !text_word(more, separators, &digest))
        *name = TEXT("");
    return true;
}

static int
key_list(struct text rest)
{
    struct text line, name, more;
    while (key_line(&rest, &line, &name, &more))
        if (name.length > 0)
            printf("%.*s %.*s\n", TEXT_ARGS(name), TEXT_ARGS(text_trim(more)));
    return fflush(stdout) != 0 ? EX_IOERR : 0;
}

static int
key_remove(const struct key_lock *k, const char *wanted, const struct options *options,
           struct text rest)
{
    struct text line, name, more;
    struct buffer lines;
    bool found = false, fits = true;
    buffer_init(&lines, POST_KEY_FILE_MAX + 1);
    while (rest.length > 0 && key_line(&rest, &line, &name, &more)) {
        bool is_it = text_equal(name, text_from(wanted));
        found = found || is_it;
        fits = fits &&
               (is_it || (buffer_add(&lines, line) && buffer_add_byte(&lines, '\n')));
    }
    int code = found && fits
                   ? key_save(k, &lines, options)
                   : complaint_say(program, EX_DATAERR, "no such key", wanted);
    buffer_free(&lines);
    return code;
}

int
post_key_command(int count, char **arguments, const struct options *options)
{
    char *content = NULL;
    struct key_lock k = {.file = -1};
    const char *verb = count > 0 ? arguments[0] : "", *path = options->http_keys;
    bool adds = strcmp(verb, "add") == 0, lists = strcmp(verb, "ls") == 0,
         removes = strcmp(verb, "rm") == 0;
    if ((!adds && !lists && !removes) || (adds && count < 3) || (lists && count != 1) ||
        (removes && count != 2))
        return key_usage();
    if (path == NULL)
        return complaint_say(program, EX_CONFIG,
                             "no file is set: write http_keys = FILE", "");
    int code = lists ? 0 : key_lock_take(&k, path);
    if (code == 0)
        code = key_read_file(path, &content);
    if (code == 0)
        code = adds    ? key_add(&k, count - 1, arguments + 1, options, content)
               : lists ? key_list(text_from(content))
                       : key_remove(&k, arguments[1], options, text_from(content));
    key_lock_release(&k);
    free(content);
    return code;
}
