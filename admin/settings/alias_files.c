/* Reads the files of aliases, checks which users can write them, and watches them. */
#include "admin/settings/alias_files.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "base/sandbox/identity.h"
#include "queue/manager/maildir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SETTLED_MS = 2000,
    WRITTEN_BY_ALL = 02,
    WRITTEN_BY_GROUP = 020,
    FOREIGN_MAX = 10,
    NOBODY_MAX = 120
};

static const char separators[] = ", \t\r\n";

/* As it was before it was read; missing: there was none. */
struct alias_file {
    char *path;
    bool missing;
    struct disk_info info;
};

struct alias_files {
    struct alias_file *list;
    size_t count;
};

/* NULL: there are too many. Twice the same file counts once. */
static struct alias_file *
alias_files_add(struct alias_files *files, const char *path)
{
    for (size_t i = 0; i < files->count; i++)
        if (strcmp(files->list[i].path, path) == 0)
            return &files->list[i];
    if (files->count == ALIAS_FILES_MAX)
        return NULL;
    files->list = memory_resize(files->list, (files->count + 1) * sizeof(*files->list));
    struct alias_file *made = &files->list[files->count++];
    *made = (struct alias_file){.path = memory_string(path)};
    made->missing = disk_look(path, &made->info) != 0;
    return made;
}

/* False: error says why. */
static bool
alias_file_read(struct alias_files *files, const char *path, size_t limit,
                char **content, size_t *length, char error[ALIASES_ERROR_MAX])
{
    const struct alias_file *file = alias_files_add(files, path);
    if (file == NULL) {
        snprintf(error, ALIASES_ERROR_MAX, "more than %d files", ALIAS_FILES_MAX);
        return false;
    }
    if (!file->missing && (file->info.mode & WRITTEN_BY_ALL) != 0) {
        snprintf(error, ALIASES_ERROR_MAX,
                 "all users can write it, and would decide where mail goes: chmod o-w");
        return false;
    }
    int result = disk_read_regular(path, limit, content, length);
    if (result < 0)
        snprintf(error, ALIASES_ERROR_MAX, "%s", disk_explain(result));
    return result >= 0;
}

static bool
alias_files_include(void *context, const char *path, char **content, size_t *length,
                    char error[ALIASES_ERROR_MAX])
{
    return alias_file_read(context, path, ALIAS_FILES_INCLUDE_MAX, content, length,
                           error);
}

/* --- All of them ------------------------------------------------------------------ */

struct alias_contents {
    struct aliases_file *list;
    char **paths;
    size_t count;
    bool bad;
};

static void
alias_contents_add(struct alias_contents *c, struct alias_files *files,
                   struct text path, struct buffer *errors)
{
    char error[ALIASES_ERROR_MAX], *content, *name = text_string(path);
    size_t length;
    if (!alias_file_read(files, name, ALIAS_FILES_SIZE_MAX, &content, &length, error)) {
        c->bad = true;
        (void)!buffer_format(errors, "aliases: cannot read '%.1000s': %s\n", name,
                             error);
        free(name);
        return;
    }
    c->list = memory_resize(c->list, (c->count + 1) * sizeof(*c->list));
    c->paths = memory_resize(c->paths, (c->count + 1) * sizeof(*c->paths));
    c->paths[c->count] = name;
    c->list[c->count++] = (struct aliases_file){name, text_of(content, length)};
}

static void
alias_contents_free(struct alias_contents *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free((void *)(uintptr_t)c->list[i].content.at);
        free(c->paths[i]);
    }
    free(c->list);
    free(c->paths);
}

struct alias_files_reading {
    struct alias_contents contents;
    struct alias_files *files;
    struct aliases_making *making;
};

struct alias_files_reading *
alias_files_begin(const struct options *o, const struct route_table *routes,
                  struct buffer *errors)
{
    struct text rest = text_from(o->aliases), path;
    if (o->aliases == NULL && o->root == NULL)
        return NULL;
    struct alias_files_reading *r = memory_new(sizeof(*r));
    r->files = memory_new(sizeof(*r->files));
    while (text_word(&rest, separators, &path))
        alias_contents_add(&r->contents, r->files, path, errors);
    r->making =
        aliases_begin(&(struct aliases_settings){.files = r->contents.list,
                                                 .file_count = r->contents.count,
                                                 .root = text_from(o->root),
                                                 .has_local = o->local != NULL,
                                                 .routes = routes,
                                                 .include = alias_files_include,
                                                 .context = r->files},
                      errors);
    return r;
}

bool
alias_files_go_on(struct alias_files_reading *r)
{
    return r == NULL || aliases_go_on(r->making);
}

bool
alias_files_end(struct alias_files_reading **reading, struct aliases **table,
                struct alias_files **files)
{
    struct alias_files_reading *r = *reading;
    *reading = NULL;
    *table = NULL;
    *files = NULL;
    if (r == NULL)
        return true;
    *table = aliases_end(&r->making);
    *files = r->files;
    if (r->contents.bad)
        aliases_free(table);
    alias_contents_free(&r->contents);
    free(r);
    return *table != NULL;
}

void
alias_files_stop(struct alias_files_reading **reading)
{
    struct aliases *table;
    struct alias_files *files;
    (void)!alias_files_end(reading, &table, &files);
    aliases_free(&table);
    alias_files_free(&files);
}

bool
alias_files_read(const struct options *o, const struct route_table *routes,
                 struct aliases **table, struct alias_files **files,
                 struct buffer *errors)
{
    struct alias_files_reading *r = alias_files_begin(o, routes, errors);
    while (!alias_files_go_on(r))
        ;
    return alias_files_end(&r, table, files);
}

/* --- Later ------------------------------------------------------------------------ */

static bool
alias_file_has_changed(const struct alias_file *f, int64_t now_ms)
{
    struct disk_info info;
    bool missing = disk_look(f->path, &info) != 0;
    if (missing || f->missing)
        return missing != f->missing;
    bool same = info.changed_ms == f->info.changed_ms && info.size == f->info.size;
    int64_t age_ms = now_ms - info.changed_ms;
    return !same && (age_ms >= SETTLED_MS || age_ms < 0);
}

bool
alias_files_have_changed(const struct alias_files *files, int64_t now_ms)
{
    for (size_t i = 0; files != NULL && i < files->count; i++)
        if (alias_file_has_changed(&files->list[i], now_ms))
            return true;
    return false;
}

void
alias_files_each(const struct alias_files *files,
                 void (*each)(void *context, const char *path), void *context)
{
    for (size_t i = 0; files != NULL && i < files->count; i++)
        each(context, files->list[i].path);
}

void
alias_files_free(struct alias_files **files)
{
    if (*files == NULL)
        return;
    for (size_t i = 0; i < (*files)->count; i++)
        free((*files)->list[i].path);
    free((*files)->list);
    free(*files);
    *files = NULL;
}

/* --- Warnings --------------------------------------------------------------------- */

struct alias_warning {
    struct log *log;
    unsigned foreign;
};

static void
warn_of_foreign(void *context, const char *file, unsigned line, const char *name)
{
    struct alias_warning *w = context;
    if (w->foreign++ < FOREIGN_MAX)
        log_say(w->log, LOG_LEVEL_WARNING, "main", NULL,
                "aliases: %s:%u: the domain of '%s' is not in local_domains: only mail "
                "of clients that may relay comes to it",
                file, line, name);
}

static void
warn_of_writers(const struct alias_file *f, unsigned user, struct log *log)
{
    if (!f->missing && f->info.owner != 0 && f->info.owner != user)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "aliases: %s belongs to uid %u, which decides where mail goes", f->path,
                f->info.owner);
    else if (!f->missing && (f->info.mode & WRITTEN_BY_GROUP) != 0)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "aliases: the group of %s can write it, and decides where mail goes: "
                "chmod g-w",
                f->path);
}

struct alias_end {
    const struct route_table *routes;
    bool found;
};

static bool
alias_end_on_member(void *context, const struct aliases_member *m)
{
    struct alias_end *end = context;
    struct address parsed;
    if (!address_parse(m->address, &parsed))
        return true;
    const struct target *target = route_find(end->routes, &parsed);
    end->found = target->kind == TARGET_MAILDIR ? maildir_exists(target, &parsed)
                                                : target->kind != TARGET_UNKNOWN;
    return !end->found;
}

enum alias_fate { ALIAS_ARRIVES, ALIAS_NOWHERE, ALIAS_DEAD };

/* postmaster is written to from elsewhere (RFC 5321 §4.5.1), root by cron. */
static enum alias_fate
alias_fate_of(const struct route_table *routes, struct aliases *table,
              struct text address, bool ours)
{
    struct alias_end end = {.routes = routes};
    struct aliases_question q = {.routes = routes, .address = address, .ours = ours};
    if (aliases_expand(table, &q, alias_end_on_member, &end) != ALIASES_NONE)
        return end.found ? ALIAS_ARRIVES : ALIAS_DEAD;
    (void)alias_end_on_member(&end, &(struct aliases_member){.address = address});
    return end.found ? ALIAS_ARRIVES : ALIAS_NOWHERE;
}

/* Their mail is refused (550 5.1.1). */
void
alias_files_each_nobody(const struct route_table *routes, struct aliases *table,
                        void (*each)(void *context, const char *line), void *context)
{
    struct text domain = route_first_local_domain(routes);
    char root[ALIAS_NAME_MAX], master[ALIAS_NAME_MAX], line[NOBODY_MAX];
    if (domain.length == 0)
        return;
    snprintf(root, sizeof(root), "root@%.*s", TEXT_ARGS(domain));
    snprintf(master, sizeof(master), "postmaster@%.*s", TEXT_ARGS(domain));
    enum alias_fate of_root = alias_fate_of(routes, table, text_from(root), true);
    enum alias_fate of_master = alias_fate_of(routes, table, text_from(master), false);
    for (enum alias_fate fate = ALIAS_NOWHERE; fate <= ALIAS_DEAD; fate++) {
        if (of_root != fate && of_master != fate)
            continue;
        snprintf(line, sizeof(line), "nobody gets mail for %s%s%s: %s",
                 of_root == fate ? "root" : "", of_root == of_master ? " and " : "",
                 of_master == fate ? "postmaster" : "",
                 fate == ALIAS_NOWHERE ? "set root" : "the alias leads to no user");
        each(context, line);
    }
}

static void
warn_of_nobody(void *context, const char *line)
{
    log_say(context, LOG_LEVEL_WARNING, "main", NULL, "%s", line);
}

/* sendmail(1) appends the hostname to root, cron and others. */
static void
warn_of_unset(const struct options *o, const struct route_table *routes,
              const struct aliases *table, struct log *log)
{
    if (table != NULL && !route_is_local_domain(routes, text_from(o->hostname)))
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: the hostname %s is not in local_domains: mail of cron to "
                "root@%s is not redirected",
                o->root != NULL ? "root" : "aliases", o->hostname, o->hostname);
}

void
alias_files_warn(const struct options *o, const struct route_table *routes,
                 struct aliases *table, const struct alias_files *files,
                 struct log *log)
{
    struct alias_warning w = {.log = log};
    struct identity who;
    unsigned user = identity_find(&who, o->user) ? (unsigned)who.uid : 0;
    for (size_t i = 0; files != NULL && i < files->count; i++)
        warn_of_writers(&files->list[i], user, log);
    aliases_each_foreign(table, routes, warn_of_foreign, &w);
    if (w.foreign > FOREIGN_MAX)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "aliases: %u more names are in domains that are not local",
                w.foreign - FOREIGN_MAX);
    warn_of_unset(o, routes, table, log);
    alias_files_each_nobody(routes, table, warn_of_nobody, log);
}
