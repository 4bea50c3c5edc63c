/* Judges of files: secrets that all users can read, files that the daemon cannot. */
#include "admin/findings/faults_internal.h"

#include "admin/settings/accounts.h"
#include "base/disk/disk.h"
#include "base/sandbox/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BY_ALL = 04, PATH_LIMIT = 4096 };

static const char separators[] = ", \t\r\n";

/* --- Secrets ---------------------------------------------------------------------- */

/* A secret setting stands in a file of settings or has one of its own. A symbolic link
 * is not followed: a file that is mounted into a container is one, and that container
 * alone can read it. */
static void
faults_find_open(void *context, const char *key, const char *path)
{
    struct faults *out = context;
    struct disk *here;
    struct disk_info info;
    if (path == NULL || disk_open(&here, ".", false) != 0)
        return;
    bool is_open = disk_inspect(here, path, &info) == 0 && info.kind == DISK_FILE &&
                   (info.mode & READ_BY_ALL) != 0;
    if (is_open && out->when == FAULT_RUNNING) {
        faults_found(out, "%s can be read by all users", path);
        faults_about(out, path);
    } else if (is_open) {
        faults_found(out, "%s: %s can be read by all users: chmod 600", key, path);
    }
    disk_close(&here);
}

static void
faults_find_open_account(void *context, const char *path)
{
    faults_find_open(context, "oauth", path);
}

/* Calls each with the paths of a list. */
static void
faults_each_path(struct text rest, void (*each)(void *context, const char *path),
                 void *context)
{
    char path[PATH_LIMIT];
    struct text word;
    while (text_word(&rest, separators, &word))
        if (text_copy(path, sizeof(path), word))
            each(context, path);
}

static void
faults_find_open_key(void *context, const char *path)
{
    faults_find_open(context, "tls_key", path);
}

static void
faults_find_open_route_key(void *context, const struct target *target)
{
    const char *certificate, *key;
    if (target_certificate(target, &certificate, &key))
        faults_find_open(context, "key= of a route", key);
}

bool
faults_judge_secrets(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    settings_each_secret(w->settings, faults_find_open, out);
    faults_find_open(out, "auth_passwords", o->auth_passwords);
    if (o->server.auth_users.length > 0)
        faults_find_open(out, "auth_users", o->server.auth_users.at);
    if (o->http_keys != NULL)
        faults_find_open(out, "http_keys", o->http_keys);
    faults_each_path(o->server.tls_key, faults_find_open_key, out);
    accounts_each_file(o, faults_find_open_account, out);
    if (w->routes != NULL)
        route_each_target(w->routes, faults_find_open_route_key, out);
    return false;
}

/* --- Files that a reload could not read ------------------------------------------- */

static void
faults_say_unreadable(struct faults *out, const char *path)
{
    char closed[DISK_REASON_MAX];
    faults_found(
        out,
        "%s cannot be read by `user`: a reload will be refused, and a start by "
        "the unit of systemd%s; or name a copy (of certbot's files by a deploy hook: "
        "petrel.conf(5), tls_certificate)",
        path, disk_explain_closed(path, closed));
}

static void
faults_try_file(void *context, const char *path)
{
    char *content;
    size_t length;
    /* One byte at most: whether it can be opened is the question, and a larger file is
     * -EFBIG. */
    int error = disk_read_regular(path, 1, &content, &length);
    if (error == 0)
        free(content);
    if (error == -EACCES)
        faults_say_unreadable(context, path);
}

struct faults_key_directory {
    const char *path;
    struct faults *out;
};

static bool
faults_try_key(void *context, const char *name)
{
    const struct faults_key_directory *d = context;
    char path[PATH_LIMIT];
    if (text_ends_nocase(text_from(name), TEXT(".pem")) &&
        snprintf(path, sizeof(path), "%s/%s", d->path, name) < (int)sizeof(path))
        faults_try_file(d->out, path);
    return true;
}

/* A directory, or rows of a domain, a selector and a path. */
static void
faults_try_keys(const struct options *options, struct faults *out)
{
    struct faults_key_directory directory = {options_key_directory(options), out};
    struct disk *keys;
    struct text rest = text_from(options->dkim_keys), line, word;
    if (directory.path != NULL) {
        int error = disk_open(&keys, directory.path, false);
        if (error == 0) {
            error = disk_list(keys, ".", faults_try_key, &directory);
            disk_close(&keys);
        }
        if (error == -EACCES)
            faults_say_unreadable(out, directory.path);
        return;
    }
    while (text_cut(&rest, '\n', &line)) {
        char path[PATH_LIMIT];
        bool is_row = text_word(&line, " \t\r", &word) &&
                      text_word(&line, " \t\r", &word) &&
                      text_word(&line, " \t\r", &word);
        if (is_row && text_copy(path, sizeof(path), word))
            faults_try_file(out, path);
    }
}

static void
faults_try_route(void *context, const struct target *target)
{
    const char *certificate, *key;
    if (!target_certificate(target, &certificate, &key))
        return;
    faults_try_file(context, certificate);
    if (strcmp(key, certificate) != 0)
        faults_try_file(context, key);
}

static void
faults_try_all(const struct fault_world *w, struct faults *out)
{
    const struct options *o = w->options;
    const struct text lists[] = {
        o->server.tls_certificate,    o->server.tls_key,
        o->server.auth_users,         o->server.relay_client_certificates,
        text_from(o->auth_passwords), text_from(o->tls_ca),
        text_from(o->http_keys)};
    settings_each_file(w->settings, faults_try_file, out);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        faults_each_path(lists[i], faults_try_file, out);
    faults_try_keys(o, out);
    if (w->routes != NULL)
        route_each_target(w->routes, faults_try_route, out);
    accounts_each_file(o, faults_try_file, out);
}

/* Root can read them all; the daemon that the service manager starts is `user`. At its
 * start it has given up root's rights. */
bool
faults_judge_unreadable(const struct fault_world *w, struct faults *out)
{
    struct identity who;
    if (w->options->user == NULL)
        return false;
    if (out->when == FAULT_START) {
        faults_try_all(w, out);
        return false;
    }
    if (!identity_find(&who, w->options->user) || !who.change)
        return false;
    if (identity_try_on(&who))
        faults_try_all(w, out);
    return !identity_take_off(&who);
}
