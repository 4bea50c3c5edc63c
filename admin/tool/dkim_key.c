/* Makes a key and prints its record. The key is durable before anything is printed. */
#include "admin/tool/dkim_key.h"

#include "admin/settings/complaint.h"
#include "admin/settings/whole_file.h"
#include "base/crypto/sign.h"
#include "base/disk/disk.h"
#include "base/dns/idna.h"
#include "base/loop/loop.h"
#include "base/sandbox/identity.h"
#include "mime/auth/dkim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum {
    PATH_SIZE = 4096,
    FILE_NAME_SIZE = 600,
    NAME_FILE_MAX = 255, /* of a file name, for Linux */
    KEY_NAME_SIZE = FILE_NAME_SIZE + 8,
    LOCK_TRIES = 100,
    BITS_DEFAULT = 2048,
    STRING_MAX = 255, /* of a string in a TXT record */
    KEY_MODE = 0600,
    DIRECTORY_MODE = 0700
};

static const char dkim_key_program[] = "petrel dkim-key";
/* Not the ending of a key. */
static const char while_made[] = ".lock";

/* The arguments. */
struct key_request {
    char domain[IDNA_NAME_MAX], selector[DKIM_NAME_MAX];
    const char *directory;
    bool in_setting; /* dkim_keys names the directory */
    bool may_be_set; /* ... may name it: it is for keys, and there are no rows */
    enum sign_kind kind;
    unsigned bits;
    bool show;
    char file[FILE_NAME_SIZE];
};

/* --- Arguments -------------------------------------------------------------------- */

static int
dkim_key_usage(void)
{
    fputs("usage: petrel dkim-key DOMAIN [SELECTOR] [--bits 1024..4096 | --ed25519] "
          "[--directory DIR] [--show]\n",
          stderr);
    return EX_USAGE;
}

/* One option and its value. False: it is unknown or wrong. */
static bool
take_key_option(struct key_request *r, char **arguments, int *at, int count)
{
    uint64_t bits;
    const char *name = arguments[*at];
    if (strcmp(name, "--show") == 0) {
        r->show = true;
        return true;
    }
    if (strcmp(name, "--ed25519") == 0) {
        r->kind = SIGN_ED25519;
        return r->bits == 0;
    }
    if (++*at == count)
        return false;
    if (strcmp(name, "--directory") == 0) {
        r->directory = arguments[*at];
        return true;
    }
    if (strcmp(name, "--bits") != 0 || r->kind == SIGN_ED25519 ||
        !text_number(text_from(arguments[*at]), SIGN_BITS_MAX, &bits) ||
        bits < SIGN_BITS_MIN || bits % 8 != 0)
        return false;
    r->bits = (unsigned)bits;
    return true;
}

static void
name_selector(char out[DKIM_NAME_MAX])
{
    struct loop *loop = loop_new();
    time_t now = (time_t)(loop_now_ms(loop) / 1000);
    struct tm tm;
    loop_free(&loop);
    gmtime_r(&now, &tm);
    snprintf(out, DKIM_NAME_MAX, "p%04d%02d", (tm.tm_year + 1900) % 10000,
             tm.tm_mon + 1);
}

static int
read_key_request(struct key_request *r, int count, char **arguments)
{
    const char *names[2] = {NULL, NULL};
    size_t named = 0;
    for (int i = 0; i < count; i++) {
        if (arguments[i][0] != '-' && named < 2)
            names[named++] = arguments[i];
        else if (arguments[i][0] != '-' || !take_key_option(r, arguments, &i, count))
            return dkim_key_usage();
    }
    if (named == 0)
        return dkim_key_usage();
    if (!idna_to_ascii(text_from(names[0]), r->domain) ||
        !dkim_is_name(text_from(r->domain)))
        return complaint_say(dkim_key_program, EX_DATAERR, "not a domain", names[0]);
    if (names[1] == NULL)
        name_selector(r->selector);
    else if (!dkim_is_name(text_from(names[1])))
        return complaint_say(dkim_key_program, EX_DATAERR,
                             "not a selector: use letters, digits and hyphens",
                             names[1]);
    else
        (void)text_copy(r->selector, sizeof(r->selector), text_from(names[1]));
    text_lower(r->selector, strlen(r->selector));
    int length = snprintf(r->file, sizeof(r->file), "%s._domainkey.%s.pem", r->selector,
                          r->domain);
    if (length + (int)strlen(while_made) > NAME_FILE_MAX)
        return complaint_say(dkim_key_program, EX_DATAERR, "the names are too long",
                             r->file);
    return 0;
}

/* --- The file --------------------------------------------------------------------- */

/* A file handle, or -errno. The holder of the lock before has removed its file. */
static int
lock_key_file(struct disk *disk, const char *path)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        struct disk_info info = {.links = 0};
        int lock = disk_lock(disk, path, 0, 1);
        int error = lock < 0 ? lock : disk_file_info(disk, lock, &info);
        if (lock >= 0 && error == 0 && info.links > 0)
            return lock;
        if (lock >= 0)
            disk_close_file(disk, lock);
        if (error < 0)
            return error;
    }
    return -EWOULDBLOCK;
}

/* Two commands that make the same key at a time share its draft: one would give the
 * half of the other its name. */
static int
write_key_file(struct disk *disk, const char *name, struct text pem,
               const struct identity *owner)
{
    char path[KEY_NAME_SIZE];
    snprintf(path, sizeof(path), "%s%s", name, while_made);
    int lock = lock_key_file(disk, path);
    if (lock < 0)
        return lock;
    /* Whole before it has its name, under which the daemon would read it. */
    int error = whole_file_write(disk, name, pem, KEY_MODE, owner, false);
    (void)disk_unlink(disk, path);
    disk_close_file(disk, lock);
    return error;
}

/* 0: it is made. */
static int
explain_key_file(const char *name, int error)
{
    switch (error) {
    case 0:
        return 0;
    case -EEXIST:
        return complaint_say(
            dkim_key_program, EX_CANTCREAT,
            "exists, and is not overwritten (--show prints its record)", name);
    case -EWOULDBLOCK:
        return complaint_say(dkim_key_program, EX_TEMPFAIL,
                             "another petrel dkim-key is making it: try again", name);
    default:
        return complaint_say(dkim_key_program, EX_CANTCREAT, strerror(-error), name);
    }
}

/* A missing one is made, within one that is there, for the daemon's user alone. */
static int
open_key_directory(struct disk **disk, const char *path, const struct identity *owner)
{
    char parent[PATH_SIZE];
    struct disk *above;
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    struct text before = text_of(path, (size_t)(name - path));
    int error = disk_open(disk, path, false);
    if (error != -ENOENT || name[0] == '\0' ||
        !text_copy(parent, sizeof(parent), before.length > 0 ? before : TEXT(".")) ||
        disk_open(&above, parent, false) != 0)
        return error;
    error = disk_make_directory(above, name, DIRECTORY_MODE);
    if (error == 0 && owner->change)
        error = disk_give(above, name, owner->uid, owner->gid);
    disk_close(&above);
    return error != 0 ? error : disk_open(disk, path, false);
}

static int
make_key_file(const struct key_request *r, const struct options *options,
              struct sign_random *randomness)
{
    struct buffer pem;
    struct disk *disk;
    struct identity owner;
    const char *why;
    if (!identity_find(&owner, options->user))
        return complaint_say(dkim_key_program, EX_CONFIG, "no such user",
                             options->user);
    int error = open_key_directory(&disk, r->directory, &owner);
    if (error != 0)
        return complaint_say(dkim_key_program, EX_CANTCREAT, strerror(-error),
                             r->directory);
    int code = 0;
    buffer_init(&pem, SIGN_FILE_MAX);
    if (!sign_key_make(randomness, r->kind, r->bits > 0 ? r->bits : BITS_DEFAULT, &pem,
                       &why)) {
        code = complaint_say(dkim_key_program, EX_UNAVAILABLE, why, "");
    } else {
        error = write_key_file(disk, r->file, buffer_text(&pem), &owner);
        code = explain_key_file(r->file, error);
    }
    buffer_forget(&pem);
    disk_close(&disk);
    return code;
}

/* NULL: *code has been explained. */
static struct sign_key *
read_key_back(const char *path, struct sign_random *randomness, int *code)
{
    char *content;
    size_t length;
    const char *why;
    int error = disk_read_regular(path, SIGN_FILE_MAX, &content, &length);
    if (error < 0) {
        *code =
            complaint_say(dkim_key_program, error == -EACCES ? EX_NOPERM : EX_NOINPUT,
                          disk_explain(error), path);
        return NULL;
    }
    struct sign_key *key = sign_key_read(randomness, text_of(content, length), &why);
    digest_forget(content, length);
    free(content);
    if (key == NULL)
        *code = complaint_say(dkim_key_program, EX_DATAERR, why, path);
    return key;
}

/* --- Output ----------------------------------------------------------------------- */

static void
print_record(const struct key_request *r, struct text record)
{
    printf("# Record for a zone file:\n%s._domainkey.%s. 3600 IN TXT (", r->selector,
           r->domain);
    for (struct text rest = record; rest.length > 0;
         rest = text_after(rest, STRING_MAX))
        printf(" \"%.*s\"", TEXT_ARGS(text_before(rest, STRING_MAX)));
    printf(" )\n# The same for a web form: type TXT, name %s._domainkey.%s, value:\n"
           "%.*s\n",
           r->selector, r->domain, TEXT_ARGS(record));
}

static void
print_next(const struct key_request *r, const char *path)
{
    struct text directory =
        text_before(text_from(path), strlen(path) - strlen(r->file) - 1);
    if (r->may_be_set)
        printf("# Publish the record, wait until it can be looked up, then set this "
               "and reload:\n#   dkim_keys = %.*s\n",
               TEXT_ARGS(directory));
    else if (r->in_setting)
        printf("# Publish the record, wait until it can be looked up, then reload: "
               "dkim_keys names\n# the directory of the key.\n");
    else
        printf("# Publish the record, wait until it can be looked up, then add this "
               "row and reload:\n#   dkim_keys = %s %s %s\n",
               r->domain, r->selector, path);
    if (r->kind == SIGN_ED25519)
        fputs("petrel dkim-key: warning: large receivers do not verify Ed25519, and "
              "some count it as\na failure: use it beside an RSA key only, or not at "
              "all\n",
              stderr);
}

static int
print_key(struct key_request *r, const char *path, struct sign_random *randomness)
{
    int code = 0;
    struct buffer record;
    struct sign_key *key = read_key_back(path, randomness, &code);
    if (key == NULL)
        return code;
    r->kind = sign_key_kind(key);
    buffer_init(&record, 2 * SIGN_PUBLIC_MAX);
    bool fits =
        buffer_format(&record,
                      "v=DKIM1; k=%s; p=", r->kind == SIGN_RSA ? "rsa" : "ed25519") &&
        sign_key_public(key, &record);
    sign_key_free(&key);
    if (fits) {
        if (!r->show)
            printf("# Private key: %s\n", path);
        print_record(r, buffer_text(&record));
        print_next(r, path);
    }
    buffer_free(&record);
    return !fits || fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
}

/* The daemon may run elsewhere: the path in its settings must be absolute. */
static bool
find_key_path(const struct key_request *r, char path[PATH_SIZE])
{
    char here[PATH_SIZE / 2] = "";
    if (r->directory[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        return false;
    bool is_here = strcmp(r->directory, ".") == 0;
    int length =
        snprintf(path, PATH_SIZE, "%s%s%s/%s", here, here[0] && !is_here ? "/" : "",
                 is_here ? "" : r->directory, r->file);
    return length < PATH_SIZE;
}

/* One that is named is for keys alone, and made; the present one has other files. */
static void
find_key_directory(struct key_request *r, const struct options *options)
{
    const char *set = options_key_directory(options);
    bool has_rows = set == NULL && text_trim(text_from(options->dkim_keys)).length > 0;
    r->in_setting =
        set != NULL && (r->directory == NULL || strcmp(r->directory, set) == 0);
    r->may_be_set = r->directory != NULL && set == NULL && !has_rows;
    if (r->directory == NULL)
        r->directory = set != NULL ? set : ".";
}

int
dkim_key_command(int count, char **arguments, const struct options *options)
{
    struct key_request r = {.kind = SIGN_RSA};
    char path[PATH_SIZE];
    int code = read_key_request(&r, count, arguments);
    if (code != 0)
        return code;
    find_key_directory(&r, options);
    if (!find_key_path(&r, path))
        return complaint_say(dkim_key_program, EX_DATAERR, "the path is too long",
                             r.directory);
    struct sign_random *randomness = sign_random_new();
    if (randomness == NULL)
        return complaint_say(dkim_key_program, EX_OSERR,
                             "the system has no random numbers", "");
    if (!r.show)
        code = make_key_file(&r, options, randomness);
    if (code == 0)
        code = print_key(&r, path, randomness);
    sign_random_free(&randomness);
    return code;
}
