/* Plans the sandbox from the settings, and warns of further paths after a reload.
 *
 * There is no table of the settings that name files to read: each word of each value that may
 * be a path counts, so that a setting that is added later is not forgotten. The plan and the
 * review walk the same way (struct walk), and so cannot disagree on the paths that are
 * needed. A plan can only be made before the sandbox is entered; after a reload a path that
 * was not planned is a warning, and needs a restart. */
#include "admin/settings/sandbox_rules.h"

#include "admin/settings/accounts.h"
#include "admin/settings/alias_files.h"
#include "base/disk/disk.h"
#include "queue/manager/maildir.h"
#include "sched/route/secrets.h"

#include <stdio.h>
#include <string.h>

enum { PATH_LIMIT = 4096, DESCRIBED_MAX = 80 };

static const char separators[] = ", \t\r\n";

/* Readable for all: c-ares, mbedTLS, jansson and the C library do, at their time.
 */
static const char *const of_the_system[] = {
    "/etc/hosts", "/etc/passwd", /* maildir: ?create=yes */
    "/etc/resolv.conf",
    /* where it may later link to */
    "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/etc/localtime",
    "/usr/share/zoneinfo", "/etc/ssl/certs", "/etc/pki/ca-trust",
    "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/dev/urandom",
    "/proc/fs/ext4", "/proc/self/mountinfo", /* disk_traits.c */
    NULL};

/* Called for each path that the settings need. */
struct walk {
    void (*on_read)(struct walk *w, const char *path);
    void (*on_write)(struct walk *w, const char *directory, bool make);
    struct sandbox *sandbox;       /* planning */
    const struct sandbox *entered; /* reviewing */
    struct log *log;
};

/* --- Paths in the settings -------------------------------------------------------- */

/* A word may be a path, or have one behind ':' or '=', up to '?' or '&'. A word that is
 * not a file or directory is skipped where it is used. */
static void
look_at_word(struct walk *w, struct text word)
{
    char path[PATH_LIMIT];
    for (size_t at = 0; at < word.length; at++) {
        bool begins = at == 0 || word.at[at - 1] == ':' || word.at[at - 1] == '=';
        struct text rest = text_after(word, at), tail;
        if (!begins || (at > 0 && rest.at[0] != '/'))
            continue;
        tail = rest;
        for (const char *end = "?&"; *end; end++)
            tail = text_before(tail, text_find(tail, *end));
        if (tail.length > 0 && text_copy(path, sizeof(path), tail))
            w->on_read(w, path);
    }
}

static void
look_at_values(struct walk *w, const struct options *options)
{
    for (const struct setting *row = options_rows; row->key; row++) {
        if (row->secret || (row->kind != SETTING_STRING && row->kind != SETTING_LIST))
            continue;
        struct text value = settings_text(row, options), word;
        /* Most words of these tables are patterns and hosts. */
        bool many = strcmp(row->key, "routes") == 0 ||
                    strcmp(row->key, "sender_routes") == 0 ||
                    strcmp(row->key, "dkim_keys") == 0;
        while (text_word(&value, separators, &word))
            if (!many || text_find(word, '/') != TEXT_NONE)
                look_at_word(w, word);
    }
}

static void
look_at_file(void *context, const char *path)
{
    struct walk *w = context;
    w->on_read(w, path);
}

static void
look_at_target(void *context, const struct target *target)
{
    struct walk *w = context;
    char root[TARGET_PATH_MAX];
    if (target->kind != TARGET_MAILDIR)
        return;
    maildir_root(target, root);
    w->on_write(w, root, maildir_may_be_made(target));
}

/* The directory that hosts share; NULL: there is none. */
static const char *
registry_directory(const struct options *options)
{
    static const char prefix[] = "dir:";
    bool is_shared =
        text_starts(text_from(options->defrag_registry), text_from(prefix));
    return is_shared ? options->defrag_registry + strlen(prefix) : NULL;
}

/* It is not ours to make. */
static void
look_at_registry(struct walk *w, const struct options *options)
{
    const char *directory = registry_directory(options);
    if (directory)
        w->on_write(w, directory, false);
}

/* The directory, so that the file may be made anew when another program moves it away. */
static void
look_at_events(struct walk *w, const struct options *options)
{
    struct text url = options->post.url, scheme = TEXT("file:");
    char path[PATH_LIMIT];
    size_t end = text_find_last(url, '/');
    if (!text_starts(url, scheme) || end == TEXT_NONE)
        return;
    struct text directory = text_after(text_before(url, end), scheme.length);
    if (text_copy(path, sizeof(path), directory.length > 0 ? directory : TEXT("/")))
        w->on_write(w, path, false);
}

/* Authorities that the table names. */
static void
look_at_clients(struct walk *w, const struct options *options)
{
    char path[PATH_LIMIT];
    struct text file = text_trim(options->server.relay_client_certificates);
    if (file.length > 0 && text_copy(path, sizeof(path), file))
        tls_clients_each_file(path, look_at_file, w);
}

static void
sandbox_rules_look(struct walk *w, const struct sandbox_rules *c)
{
    look_at_registry(w, c->options);
    look_at_events(w, c->options);
    settings_each_file(c->settings, look_at_file, w);
    look_at_values(w, c->options);
    route_each_target(c->routes, look_at_target, w);
    secrets_each_file(route_secrets(c->routes), look_at_file, w);
    accounts_each_file(c->options, look_at_file, w);
    look_at_clients(w, c->options);
    alias_files_each(c->alias_files, look_at_file, w);
}

/* --- Planning --------------------------------------------------------------------- */

static void
plan_reading(struct walk *w, const char *path)
{
    sandbox_let_read(w->sandbox, path);
}

static void
plan_writing(struct walk *w, const char *directory, bool make)
{
    struct disk *disk = NULL;
    /* A directory that cannot be made now cannot be made later, which is reported. */
    if (make && disk_open(&disk, directory, true) == 0)
        disk_close(&disk);
    sandbox_let_write(w->sandbox, directory);
}

static void
plan_unix_sockets(struct sandbox *sandbox, struct text rest)
{
    static const char prefix[] = "unix:";
    struct text word;
    char path[PATH_LIMIT];
    while (text_word(&rest, separators, &word)) {
        if (!text_starts(word, text_from(prefix)))
            continue;
        word = text_after(word, strlen(prefix));
        word = text_before(word, text_find(word, '?'));
        if (text_copy(path, sizeof(path), word))
            sandbox_let_remove(sandbox, path);
    }
}

static void
plan_sockets(struct sandbox *sandbox, const struct options *o)
{
    if (o->control)
        sandbox_let_remove(sandbox, o->control);
    plan_unix_sockets(sandbox, o->server.listen);
    plan_unix_sockets(sandbox, text_from(o->http));
}

void
sandbox_rules_plan(struct sandbox *sandbox, const struct sandbox_rules *c)
{
    struct walk w = {
        .on_read = plan_reading, .on_write = plan_writing, .sandbox = sandbox};
    if (c->options->sandbox == SANDBOX_NO)
        return;
    sandbox_let_write(sandbox, c->options->spool);
    if (registry_directory(c->options))
        sandbox_let_replace(sandbox, registry_directory(c->options));
    plan_sockets(sandbox, c->options);
    sandbox_rules_look(&w, c);
    for (const char *const *path = of_the_system; *path; path++)
        sandbox_let_read(sandbox, *path);
}

bool
sandbox_rules_enter(struct sandbox *sandbox, const struct options *o, struct log *log)
{
    const struct sandbox_state *state = sandbox_get_state(sandbox);
    char is[DESCRIBED_MAX];
    if (o->sandbox == SANDBOX_NO) {
        log_say(log, LOG_LEVEL_INFO, "main", NULL, "sandbox: off, as `sandbox` says");
        return true;
    }
    sandbox_enter(sandbox);
    sandbox_describe(state, is, sizeof(is));
    if (state->missing[0] == '\0')
        log_say(log, LOG_LEVEL_INFO, "main", NULL, "sandbox: %s", is);
    else
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "sandbox: %s; this system lacks: %s", is, state->missing);
    return state->missing[0] == '\0' || o->sandbox != SANDBOX_REQUIRE;
}

/* --- After a reload --------------------------------------------------------------- */

static void
review(struct walk *w, bool good, const char *doing, const char *path)
{
    if (!good)
        log_say(w->log, LOG_LEVEL_WARNING, "main", NULL,
                "needs a restart: the sandbox does not allow to %s %s", doing, path);
}

static void
review_reading(struct walk *w, const char *path)
{
    /* A bare word may not be a file name (log_style = petrel). */
    review(w, strchr(path, '/') == NULL || sandbox_may_read(w->entered, path), "read",
           path);
}

static void
review_writing(struct walk *w, const char *directory, bool make)
{
    (void)make;
    review(w, sandbox_may_write(w->entered, directory), "write to", directory);
}

void
sandbox_rules_review(const struct sandbox *sandbox, const struct sandbox_rules *c,
                     struct log *log)
{
    struct walk w = {.on_read = review_reading,
                     .on_write = review_writing,
                     .entered = sandbox,
                     .log = log};
    sandbox_rules_look(&w, c);
}

bool
sandbox_rules_check(const struct options *o)
{
    struct sandbox_state offer;
    sandbox_offer(&offer);
    if (o->sandbox == SANDBOX_NO || offer.missing[0] == '\0')
        return true;
    fprintf(stderr, "petrel: sandbox: this system lacks: %s\n", offer.missing);
    return o->sandbox != SANDBOX_REQUIRE;
}
