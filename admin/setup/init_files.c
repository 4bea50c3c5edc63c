/* Looks at the files of the settings, and writes them. */
#include "admin/setup/init_files.h"

#include "admin/settings/whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define PASSWORD_NAME "password"

static int
init_files_fail(const struct init_files *f, int error, const char *name,
                char why[INIT_FILES_WHY_MAX])
{
    const char *slash = name[0] != '\0' ? "/" : "";
    if (error == -EROFS)
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s%s%s: the file system is read-only; run `petrel init --print`, and "
                 "put its output where settings are kept",
                 f->directory, slash, name);
    else if (error == -EACCES || error == -EPERM)
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s%s%s: %s; run `sudo petrel init`, or name a file of your own: "
                 "`petrel -c FILE init`",
                 f->directory, slash, name, strerror(-error));
    else
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s%s%s: %s; make space or the directory, and run it again",
                 f->directory, slash, name, strerror(-error));
    return error == -EROFS || error == -EACCES || error == -EPERM ? EX_NOPERM
                                                                  : EX_CANTCREAT;
}

int
init_files_name(struct init_files *f, const char *path, char why[INIT_FILES_WHY_MAX])
{
    char here[INIT_PATH_MAX] = "";
    const char *slash = strrchr(path, '/');
    struct text directory = text_of(path, slash != NULL ? (size_t)(slash - path) : 0);
    struct text name = text_from(slash != NULL ? slash + 1 : path);
    *f = (struct init_files){.force = f->force};
    if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        here[0] = '\0';
    int length = snprintf(f->directory, sizeof(f->directory), "%s%s%.*s", here,
                          here[0] != '\0' && directory.length > 0 ? "/" : "",
                          TEXT_ARGS(directory));
    if (f->directory[0] == '\0')
        (void)text_copy(f->directory, sizeof(f->directory), TEXT("/"));
    if (length >= (int)sizeof(f->directory) || name.length == 0 ||
        name.length >= INIT_NAME_MAX || text_equal(name, TEXT(PASSWORD_NAME))) {
        snprintf(
            why, INIT_FILES_WHY_MAX,
            "this is no name of a settings file; write -c /etc/petrel/petrel.conf");
        return EX_USAGE;
    }
    (void)text_copy(f->name, sizeof(f->name), name);
    snprintf(f->password, sizeof(f->password), "%s/" PASSWORD_NAME,
             strcmp(f->directory, "/") == 0 ? "" : f->directory);
    return 0;
}

/* --- Existing files --------------------------------------------------------------- */

static int
init_files_make_directory(struct init_files *f)
{
    char parent[INIT_PATH_MAX];
    struct disk *above;
    int error = disk_open(&f->disk, f->directory, false);
    const char *slash = strrchr(f->directory, '/');
    if (error != -ENOENT || slash == NULL)
        return error;
    (void)text_copy(parent, sizeof(parent),
                    slash == f->directory
                        ? TEXT("/")
                        : text_of(f->directory, (size_t)(slash - f->directory)));
    if ((error = disk_open(&above, parent, false)) != 0)
        return error;
    error = disk_make_directory(above, slash + 1, 0755);
    disk_close(&above);
    return error != 0 ? error : disk_open(&f->disk, f->directory, false);
}

static int
init_files_read_mark(struct init_files *f)
{
    char start[sizeof(INIT_MARK)];
    int file = disk_open_file(f->disk, f->name, false);
    if (file < 0)
        return file;
    int64_t got = disk_read(f->disk, file, 0, start, sizeof(start));
    disk_close_file(f->disk, file);
    f->is_installed =
        got >= (int64_t)strlen(INIT_MARK) &&
        memcmp(start, INIT_MARK, strlen(INIT_MARK)) == 0 &&
        (got < (int64_t)sizeof(start) || start[strlen(INIT_MARK)] == '\n');
    return 0;
}

/* Never through a link: it may lead to a file of somebody else. */
static int
init_files_look_at(const struct init_files *f, const char *name, bool *is_there,
                   char why[INIT_FILES_WHY_MAX])
{
    struct disk_info info;
    int error = disk_inspect(f->disk, name, &info);
    *is_there = error == 0;
    if (error != 0 && error != -ENOENT)
        return init_files_fail(f, error, name, why);
    if (error == 0 && info.kind != DISK_FILE) {
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s/%s is a link or no file; remove it, or write -c and the name of "
                 "the file that it stands for",
                 f->directory, name);
        return EX_CANTCREAT;
    }
    return 0;
}

static int
init_files_try(const struct init_files *f, char why[INIT_FILES_WHY_MAX])
{
    char fresh[INIT_PATH_MAX];
    snprintf(fresh, sizeof(fresh), "%.200s.new", f->name);
    (void)disk_unlink(f->disk, fresh);
    int file = disk_create(f->disk, fresh, 0600);
    if (file < 0)
        return init_files_fail(f, file, "", why);
    disk_close_file(f->disk, file);
    (void)disk_unlink(f->disk, fresh);
    return 0;
}

int
init_files_open(struct init_files *f, const char *path, bool force,
                char why[INIT_FILES_WHY_MAX])
{
    f->force = force;
    int code = init_files_name(f, path, why);
    if (code != 0)
        return code;
    int error = init_files_make_directory(f);
    if (error != 0)
        return init_files_fail(f, error, "", why);
    code = init_files_look_at(f, f->name, &f->has_settings, why);
    if (code == 0)
        code = init_files_look_at(f, PASSWORD_NAME, &f->has_password, why);
    if (code != 0)
        return code;
    if (f->has_settings && (error = init_files_read_mark(f)) != 0)
        return init_files_fail(f, error, f->name, why);
    if (f->has_settings && !f->is_installed && !force) {
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s/%s has settings already; run it with --force to replace them (the "
                 "old ones stay as %s.old), or with --print to see the new ones",
                 f->directory, f->name, f->name);
        return EX_CANTCREAT;
    }
    return init_files_try(f, why);
}

/* --- Writing ---------------------------------------------------------------------- */

static int
init_files_keep(const struct init_files *f, const char *name)
{
    char old[INIT_PATH_MAX];
    snprintf(old, sizeof(old), "%.200s.old", name);
    int error = disk_unlink(f->disk, old);
    return error == 0 || error == -ENOENT ? disk_link(f->disk, name, old) : error;
}

static int
init_files_put(const struct init_files *f, const char *name, struct text content,
               unsigned mode, const struct identity *whose, bool keeps)
{
    int error = keeps ? init_files_keep(f, name) : 0;
    return error != 0 ? error
                      : whole_file_write(f->disk, name, content, mode, whose, true);
}

/* The settings come last: they name the other file. */
int
init_files_write(struct init_files *f, struct text settings, struct text password,
                 const char *user, char why[INIT_FILES_WHY_MAX])
{
    struct identity owner;
    if (!identity_find(&owner, user)) {
        snprintf(why, INIT_FILES_WHY_MAX,
                 "there is no user %s; make it, or run `make install`", user);
        return EX_NOUSER;
    }
    if (password.length > 0 && f->has_password && !f->force) {
        snprintf(why, INIT_FILES_WHY_MAX,
                 "%s is there already; remove it, or run it with --force to replace it "
                 "(the old one stays as " PASSWORD_NAME ".old)",
                 f->password);
        return EX_CANTCREAT;
    }
    int error = password.length > 0 ? init_files_put(f, PASSWORD_NAME, password, 0600,
                                                     &owner, f->has_password)
                                    : 0;
    if (error != 0)
        return init_files_fail(f, error, PASSWORD_NAME, why);
    error = init_files_put(f, f->name, settings, 0644, NULL,
                           f->has_settings && !f->is_installed);
    return error != 0 ? init_files_fail(f, error, f->name, why) : 0;
}

void
init_files_close(struct init_files *f)
{
    if (f->disk != NULL)
        disk_close(&f->disk);
}
