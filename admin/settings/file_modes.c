/* Warns of secret files that all users can read, and of files the daemon cannot. */
#include "admin/settings/file_modes.h"

#include "admin/settings/accounts.h"
#include "base/disk/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { READ_BY_ALL = 04, PATH_LIMIT = 4096 };

static const char separators[] = ", \t\r\n";

/* One of both: each is logged, or the first is kept. */
struct file_modes {
    struct log *log;
    char *found;
    size_t size;
};

static void
file_modes_look(const char *key, const char *path, const struct file_modes *to)
{
    struct disk *here;
    struct disk_info info;
    if (path == NULL || disk_open(&here, ".", false) != 0)
        return;
    bool is_open = disk_inspect(here, path, &info) == 0 && info.kind == DISK_FILE &&
                   (info.mode & READ_BY_ALL) != 0;
    if (is_open && to->found == NULL)
        log_say(to->log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: %s can be read by all users: chmod 600", key, path);
    else if (is_open && to->found[0] == '\0')
        (void)!text_copy(to->found, to->size,
                         text_before(text_from(path), to->size - 1));
    disk_close(&here);
}

static void
look_at_each(const char *key, struct text rest, const struct file_modes *to)
{
    char path[PATH_LIMIT];
    struct text word;
    while (text_word(&rest, separators, &word))
        if (text_copy(path, sizeof(path), word))
            file_modes_look(key, path, to);
}

/* A secret setting, which stands in a file of settings or has one of its own. */
static void
look_at_secret(void *context, const char *key, const char *path)
{
    file_modes_look(key, path, context);
}

static void
look_at_account(void *context, const char *path)
{
    file_modes_look("oauth", path, context);
}

static void
look_at_all(const struct options *options, const struct settings *settings,
            struct file_modes *to)
{
    settings_each_secret(settings, look_at_secret, to);
    file_modes_look("auth_passwords", options->auth_passwords, to);
    if (options->server.auth_users.length > 0)
        file_modes_look("auth_users", options->server.auth_users.at, to);
    look_at_each("tls_key", options->server.tls_key, to);
    accounts_each_file(options, look_at_account, to);
}

void
file_modes_warn(const struct options *options, const struct settings *settings,
                struct log *log)
{
    look_at_all(options, settings, &(struct file_modes){.log = log});
}

bool
file_modes_find(const struct options *options, const struct settings *settings,
                char *path, size_t size)
{
    path[0] = '\0';
    look_at_all(options, settings, &(struct file_modes){.found = path, .size = size});
    return path[0] != '\0';
}

static void
say_unreadable(struct log *log, const char *path)
{
    log_say(log, LOG_LEVEL_WARNING, "main", NULL,
            "%s cannot be read by `user`: a reload will be refused, and a start by the "
            "unit of systemd; make `user` its owner (chown), or name a copy (of "
            "certbot's files by a deploy hook: petrel.conf(5), tls_certificate)",
            path);
}

static void
try_file(void *context, const char *path)
{
    char *content;
    size_t length;
    /* One byte at most: whether it can be opened is the question, and a larger file is
     * -EFBIG. */
    int error = disk_read_regular(path, 1, &content, &length);
    if (error == 0)
        free(content);
    if (error == -EACCES)
        say_unreadable(context, path);
}

static void
try_each(struct text rest, struct log *log)
{
    char path[PATH_LIMIT];
    struct text word;
    while (text_word(&rest, separators, &word))
        if (text_copy(path, sizeof(path), word))
            try_file(log, path);
}

struct key_folder {
    const char *path;
    struct log *log;
};

static bool
try_key(void *context, const char *name)
{
    const struct key_folder *f = context;
    char path[PATH_LIMIT];
    if (text_ends_nocase(text_from(name), TEXT(".pem")) &&
        snprintf(path, sizeof(path), "%s/%s", f->path, name) < (int)sizeof(path))
        try_file(f->log, path);
    return true;
}

/* A directory, or rows of a domain, a selector and a path. */
static void
try_keys(const struct options *options, struct log *log)
{
    struct key_folder folder = {.path = options_key_directory(options), .log = log};
    struct disk *keys;
    struct text rest = text_from(options->dkim_keys), line, word;
    if (folder.path != NULL) {
        int error = disk_open(&keys, folder.path, false);
        if (error == 0) {
            error = disk_list(keys, ".", try_key, &folder);
            disk_close(&keys);
        }
        if (error == -EACCES)
            say_unreadable(log, folder.path);
        return;
    }
    while (text_cut(&rest, '\n', &line)) {
        char path[PATH_LIMIT];
        bool is_row = text_word(&line, " \t\r", &word) &&
                      text_word(&line, " \t\r", &word) &&
                      text_word(&line, " \t\r", &word);
        if (is_row && text_copy(path, sizeof(path), word))
            try_file(log, path);
    }
}

void
file_modes_foresee(const struct options *options, const struct settings *settings,
                   struct log *log)
{
    settings_each_file(settings, try_file, log);
    try_each(options->server.tls_certificate, log);
    try_each(options->server.tls_key, log);
    try_each(options->server.auth_users, log);
    try_each(text_from(options->auth_passwords), log);
    try_each(text_from(options->tls_ca), log);
    try_keys(options, log);
    accounts_each_file(options, try_file, log);
}
