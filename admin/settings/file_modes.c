/* Warns of secret files that all users can read, and of files the daemon cannot. */
#include "admin/settings/file_modes.h"

#include "admin/settings/accounts.h"
#include "base/disk/disk.h"

#include <errno.h>
#include <stdlib.h>

enum { READ_BY_ALL = 04, PATH_LIMIT = 4096 };

static const char separators[] = ", \t\r\n";

static void
file_modes_look(const char *key, const char *path, struct log *log)
{
    struct disk *here;
    struct disk_info info;
    if (path == NULL || disk_open(&here, ".", false) != 0)
        return;
    if (disk_inspect(here, path, &info) == 0 && info.kind == DISK_FILE &&
        (info.mode & READ_BY_ALL) != 0)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: %s can be read by all users: chmod 600", key, path);
    disk_close(&here);
}

static void
look_at_each(const char *key, const char *list, struct log *log)
{
    char path[PATH_LIMIT];
    struct text rest = text_from(list), word;
    while (text_word(&rest, separators, &word))
        if (text_copy(path, sizeof(path), word))
            file_modes_look(key, path, log);
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

void
file_modes_warn(const struct options *options, const struct settings *settings,
                struct log *log)
{
    settings_each_secret(settings, look_at_secret, log);
    file_modes_look("auth_passwords", options->auth_passwords, log);
    file_modes_look("auth_users", options->auth_users, log);
    look_at_each("tls_key", options->tls_key, log);
    accounts_each_file(options, look_at_account, log);
}

static void
try_file(void *context, const char *path)
{
    char *content;
    size_t length;
    /* One byte at most: whether it can be opened is the question, and a larger file is
     * -EFBIG. */
    int error = disk_read_whole(path, 1, &content, &length);
    if (error == 0)
        free(content);
    if (error == -EACCES)
        log_say(
            context, LOG_LEVEL_WARNING, "main", NULL,
            "%s cannot be read by `user`: a reload will be refused; name a copy that "
            "`user` can read (for certbot's files by a deploy hook: petrel.conf(5), "
            "tls_certificate)",
            path);
}

static void
try_each(const char *list, struct log *log)
{
    char path[PATH_LIMIT];
    struct text rest = text_from(list), word;
    while (text_word(&rest, separators, &word))
        if (text_copy(path, sizeof(path), word))
            try_file(log, path);
}

void
file_modes_foresee(const struct options *options, const struct settings *settings,
                   struct log *log)
{
    settings_each_file(settings, try_file, log);
    try_each(options->tls_certificate, log);
    try_each(options->tls_key, log);
    try_each(options->auth_users, log);
    try_each(options->auth_passwords, log);
    try_each(options->tls_ca, log);
    try_each(options->dkim_keys, log);
    accounts_each_file(options, try_file, log);
}
