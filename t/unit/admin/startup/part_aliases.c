/* The table and secret for expansion: the table at startup, after a reload and when
 * files have changed, and the secret of SRS as soon as it is needed or can be read. */
/* link: t/sim/loop.c */
#include "admin/startup/parts.h"

#include "base/disk/disk.h"
#include "base/log/log_internal.h"
#include "base/memory.h"
#include "mime/verp.h"
#include "queue/manager/maildir.h"
#include "smtp/session/listener.h"
#include "t/sim/sim.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <sys/stat.h>

/* --- Stand-ins for the manager, its queue and the listener ------------------------ */

static struct disk *spool;
static struct aliases *given; /* to the manager */
static const struct srs *given_srs;
static unsigned handed; /* how often */
static bool same = true;

void
manager_set_aliases(struct manager *manager, struct aliases *aliases,
                    const struct srs *srs)
{
    (void)manager;
    given = aliases;
    given_srs = srs;
    handed++;
}

void
listener_set_aliases(struct listener *listener, struct aliases *aliases,
                     const struct srs *srs)
{
    (void)listener;
    same = same && aliases == given && srs == given_srs;
}

static char *keeper_bounces;
static const struct verp *given_verp;
static bool same_verp = true;

void
manager_set_verp(struct manager *manager, const struct verp *verp)
{
    (void)manager;
    given_verp = verp;
}

void
listener_set_verp(struct listener *listener, const struct verp *verp)
{
    (void)listener;
    same_verp = same_verp && verp == given_verp;
}

void
delivery_set_verp(struct delivery *delivery, const struct verp *verp)
{
    (void)delivery;
    same_verp = same_verp && verp == given_verp;
}

struct queue *
manager_queue(struct manager *manager)
{
    (void)manager;
    return NULL;
}

struct disk *
queue_disk(struct queue *queue)
{
    (void)queue;
    return spool;
}

bool
maildir_exists(const struct target *target, const struct address *address)
{
    (void)target;
    (void)address;
    return true;
}

/* --------------------------------------------------------------------------------- */

static char folder[64];

static const char *
keeper_path(const char *name)
{
    static char paths[4][120];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void
keeper_write(const char *name, const char *content, size_t length)
{
    FILE *f = fopen(keeper_path(name), "w");
    if (f == NULL || fwrite(content, 1, length, f) != length || fclose(f) != 0 ||
        chmod(keeper_path(name), 0644) != 0)
        abort();
}

static void
keeper_text(const char *name, const char *content)
{
    keeper_write(name, content, strlen(content));
}

/* The clock of a file system has ticks of some milliseconds, and here no time passes. */
static void
keeper_repair(const char *name)
{
    struct disk_info before, after;
    if (disk_look(keeper_path(name), &before) != 0)
        abort();
    do {
        if (chmod(keeper_path(name), 0644) != 0 ||
            disk_look(keeper_path(name), &after) != 0)
            abort();
    } while (after.changed_ms == before.changed_ms);
}

struct keeper_world {
    struct daemon daemon;
    struct buffer lines;
};

/* The configuration that configuration_read() leaves to the keeper. NULL: unset. */
static struct configuration *
keeper_configuration(const char *aliases, const char *root, bool srs)
{
    struct configuration *c = memory_new(sizeof(*c));
    struct buffer errors;
    c->options.srs = srs;
    c->options.bounces = keeper_bounces;
    c->options.aliases = aliases != NULL ? memory_string(keeper_path(aliases)) : NULL;
    c->options.root = root != NULL ? memory_string(root) : NULL;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    c->routes = route_new(&(struct route_settings){.routes = TEXT("* mx"),
                                                   .local_domains = TEXT("d.test")},
                          &errors);
    ok(alias_files_read(&c->options, c->routes, &c->aliases, &c->alias_files, &errors));
    is_text(buffer_text(&errors), TEXT(""), "the settings are good");
    buffer_free(&errors);
    return c;
}

static void
keeper_forget(struct configuration **c)
{
    route_free(&(*c)->routes);
    aliases_free(&(*c)->aliases);
    alias_files_free(&(*c)->alias_files);
    free((*c)->options.aliases);
    free((*c)->options.root);
    free(*c);
    *c = NULL;
}

static void
keeper_begin(struct keeper_world *w, const char *aliases, const char *root, bool srs)
{
    *w = (struct keeper_world){
        .daemon = {.loop = sim_loop_new(3),
                   .log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO)}
    };
    buffer_init(&w->lines, 65536);
    log_capture(w->daemon.log, &w->lines);
    w->daemon.configuration = keeper_configuration(aliases, root, srs);
    given = NULL;
    given_srs = NULL;
    handed = 0;
    is_number(part_aliases_start(&w->daemon), 0, "it starts");
}

static void
keeper_reload(struct keeper_world *w, const char *aliases, const char *root, bool srs)
{
    struct configuration *fresh = keeper_configuration(aliases, root, srs);
    part_aliases_reload(&w->daemon, fresh);
    keeper_forget(&w->daemon.configuration);
    w->daemon.configuration = fresh;
}

static void
keeper_end(struct keeper_world *w)
{
    part_aliases_stop(&w->daemon);
    part_aliases_free(&w->daemon);
    loop_free(&w->daemon.loop);
    log_free(&w->daemon.log);
    keeper_forget(&w->daemon.configuration);
    buffer_free(&w->lines);
    (void)!disk_unlink(spool, "lock/srs");
    ok_named(same, "the listener has had the same as the manager");
}

/* The lines since the last time. */
static void
keeper_logged(struct keeper_world *w, const char *want, const char *name)
{
    (void)!buffer_add_byte(&w->lines, '\0');
    const char *lines = w->lines.at;
    if (*want == '\0' ? *lines != '\0' : strstr(lines, want) == NULL)
        is_string(lines, want, name);
    else
        ok_named(true, name);
    buffer_clear(&w->lines);
}

static bool
on_member(void *context, const struct aliases_member *m)
{
    return buffer_format(context, " %.*s", TEXT_ARGS(m->address));
}

static void
ann_goes_to(const struct keeper_world *w, const char *want, const char *name)
{
    struct aliases_question q = {.routes = w->daemon.configuration->routes,
                                 .address = TEXT("ann@d.test")};
    FIXTURE(buffer, got, buffer_init, buffer_free, 1000);
    (void)aliases_expand(given, &q, on_member, &got);
    is_text(buffer_text(&got), text_from(want), name);
}

static void
passes(const struct keeper_world *w, int64_t ms)
{
    sim_loop_advance(w->daemon.loop, ms);
}

TEST(files)
{
    keeper_text("aliases", "ann: a@far.test\n");
    FIXTURE(keeper_world, w, keeper_begin, keeper_end, "aliases", NULL, true);
    is_number(handed, 1, "handed on");
    ann_goes_to(&w, " a@far.test", "at startup");
    ok(w.daemon.configuration->aliases == NULL && w.daemon.configuration->alias_files == NULL);
    passes(&w, 3 * PART_ALIASES_EVERY_MS);
    is_number(handed, 1, "as long as nothing changes nothing is read");
    keeper_logged(&w, "", "and nothing logged");

    keeper_text("aliases", "ann: a@far.test\nbob: b@far.test, c@far.test\n");
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "aliases: read again: 2 names, 3 addresses",
                  "a file has changed");
    is_number(handed, 2, "handed on");

    keeper_text("aliases", "ann: never@far.test\nbob: |/bin/sh\n");
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "the files have errors; the old aliases stay in use", "wrongly");
    ann_goes_to(&w, " a@far.test", "the old ones stay");
    passes(&w, 5 * PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "", "errors are logged once");

    unlink(keeper_path("aliases"));
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "No such file or directory", "the file is gone");
    ann_goes_to(&w, " a@far.test", "the old ones stay");
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "", "once");

    keeper_text("aliases", "ann: z@far.test\n");
    chmod(keeper_path("aliases"), 0666);
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "all users can write it", "there again, but for all to write");
    ann_goes_to(&w, " a@far.test", "the old ones stay");
    keeper_repair("aliases");
    passes(&w, PART_ALIASES_EVERY_MS);
    ann_goes_to(&w, " z@far.test", "as soon as its mode is right it is read");
}

TEST(reload)
{
    struct keeper_world w;
    keeper_text("aliases", "ann: a@far.test\n");
    keeper_text("others", "ann: o@far.test\n");
    keeper_begin(&w, "aliases", NULL, true);
    keeper_reload(&w, "others", NULL, true);
    ann_goes_to(&w, " o@far.test", "another file");
    keeper_text("aliases", "ann: a@far.test\nbob: b@far.test\n");
    passes(&w, 2 * PART_ALIASES_EVERY_MS);
    ann_goes_to(&w, " o@far.test", "the first is not watched any more");
    keeper_text("others", "ann: o@far.test, p@far.test\n");
    passes(&w, PART_ALIASES_EVERY_MS);
    ann_goes_to(&w, " o@far.test p@far.test", "the other one is");
    const struct srs *before = given_srs;
    ok(before != NULL);
    keeper_reload(&w, NULL, NULL, true);
    ok_named(given == NULL, "none");
    ok_named(given_srs != NULL && !srs_is_blind(given_srs),
             "what was forwarded may still come back");
    keeper_reload(&w, NULL, NULL, false);
    ok_named(given_srs == NULL, "srs = no");
    keeper_end(&w);
    struct daemon unused = {.loop = sim_loop_new(3)};
    part_aliases_stop(&unused);
    part_aliases_free(&unused);
    loop_free(&unused.loop);
}

enum { LINES = 20 * ALIASES_STEPS_PER_TURN };

static void
keeper_many(const char *name, const char *first, const char *last)
{
    FILE *f = fopen(keeper_path(name), "w");
    if (f == NULL || fputs(first, f) < 0)
        abort();
    for (int i = 0; i < LINES; i++)
        fprintf(f, "n%d: m%d@far.test\n", i, i);
    if (fputs(last, f) < 0 || fclose(f) != 0)
        abort();
}

/* Until files are read again, or were given up. Turns that it took. */
static int
turns_of_reading(struct keeper_world *w)
{
    int count = 0;
    sim_loop_advance(w->daemon.loop, PART_ALIASES_EVERY_MS - 1);
    loop_turn(w->daemon.loop, 1);
    for (; w->daemon.aliases.reading != NULL; count++) {
        ann_goes_to(w, " a@far.test", "the old ones count");
        loop_turn(w->daemon.loop, 0);
    }
    return count;
}

/* A large file does not hold the loop, and until it is read the old aliases count. */
TEST(steps)
{
    struct keeper_world w;
    keeper_text("aliases", "ann: a@far.test\n");
    keeper_text("others", "ann: o@far.test\n");
    keeper_begin(&w, "aliases", NULL, true);
    keeper_many("aliases", "ann: b@far.test\n", "");
    ok_named(turns_of_reading(&w) > 3 * LINES / ALIASES_STEPS_PER_TURN, "many turns");
    ann_goes_to(&w, " b@far.test", "the new ones count");
    keeper_logged(&w, "aliases: read again: 40001 names, 40001 addresses", "logged");
    is_number(handed, 2, "handed on when all was read");

    keeper_text("aliases", "ann: a@far.test\n");
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "aliases: read again: 1 names", "small again");
    keeper_many("aliases", "ann: b@far.test\n", "bad\n");
    ok_named(turns_of_reading(&w) >= LINES / ALIASES_STEPS_PER_TURN, "many turns");
    ann_goes_to(&w, " a@far.test", "an error in the last line: the old ones stay");
    keeper_logged(&w, "aliases:40002: 'bad': not of the form", "logged");
    passes(&w, 3 * PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "", "once");

    keeper_many("aliases", "ann: c@far.test\n", "");
    for (int i = 0; i < 2; i++) {
        passes(&w, PART_ALIASES_EVERY_MS - 1);
        loop_turn(w.daemon.loop, 1);
        ok_named(w.daemon.aliases.reading != NULL, "it is being read");
        if (i == 0)
            keeper_reload(&w, "others", NULL, true);
        ok_named((w.daemon.aliases.reading == NULL) == (i == 0), "a reload gives it up");
        keeper_many("others", "ann: p@far.test\n", "");
    }
    ann_goes_to(&w, " o@far.test", "the settings count that were reloaded");
    keeper_end(&w); /* while it is being read */
    ok(w.daemon.aliases.reading == NULL);
}

TEST(secret)
{
    struct keeper_world w;
    keeper_text("aliases", "# none yet\n");
    keeper_begin(&w, "aliases", NULL, true);
    ok_named(given_srs == NULL, "nothing is forwarded: no secret is made");
    keeper_text("aliases", "ann: a@far.test\n");
    passes(&w, PART_ALIASES_EVERY_MS);
    ok_named(given_srs != NULL && !srs_is_blind(given_srs), "the first alias: one is");
    struct disk_info info;
    is_number(disk_inspect(spool, "lock/srs", &info), 0, "a file");
    is_number(info.size, 32, "of 32 octets");
    keeper_end(&w);

    keeper_begin(&w, NULL, "alerts@far.test", true);
    ok_named(given_srs != NULL && !srs_is_blind(given_srs), "root alone forwards");
    keeper_end(&w);
    keeper_begin(&w, NULL, NULL, true);
    ok_named(given_srs == NULL, "without anything nothing is made");
    ok(disk_inspect(spool, "lock/srs", &info) != 0);
    keeper_end(&w);
}

/* `bounces` has the same secret: it waits likewise. */
TEST(tags)
{
    struct keeper_world w;
    static const char whole[] = "0123456789abcdef0123456789abcdef";
    char address[] = "bounce@shop.test";
    keeper_text("lock/srs", "cut off");
    keeper_begin(&w, NULL, NULL, false);
    ok_named(given_verp == NULL, "without the setting there are no tags");
    keeper_bounces = address;
    keeper_reload(&w, NULL, NULL, false);
    ok(given_verp != NULL && verp_is_blind(given_verp));
    keeper_logged(&w,
                  "bounces: lock/srs: damaged; remove it to have a new one: senders have no "
                  "tag, and reports wait, until it can be read",
                  "is logged");
    passes(&w, PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "", "once");
    keeper_write("lock/srs", whole, 32);
    passes(&w, PART_ALIASES_EVERY_MS);
    ok(!verp_is_blind(given_verp));
    keeper_logged(&w, "bounces: the secret has been read", "is logged, too");
    keeper_bounces = NULL;
    keeper_reload(&w, NULL, NULL, false);
    ok_named(given_verp == NULL && same_verp, "gone, for all of them");
    keeper_end(&w);
}

/* The file cannot be read: nothing is made in its place, and it is tried again. */
TEST(blind)
{
    struct keeper_world w;
    static const char whole[] = "0123456789abcdef0123456789abcdef";
    keeper_text("aliases", "ann: a@far.test\n");
    keeper_text("lock/srs", "cut off");
    keeper_begin(&w, "aliases", NULL, true);
    ok_named(given_srs != NULL && srs_is_blind(given_srs), "a damaged secret");
    keeper_logged(
        &w,
        "warning: srs: lock/srs: damaged; remove it to have a new one: senders "
        "of forwarded mail stay as they are, and mail to addresses of SRS "
        "waits, until it can be read",
        "is logged");
    ann_goes_to(&w, " a@far.test", "aliases work");
    passes(&w, 5 * PART_ALIASES_EVERY_MS);
    keeper_logged(&w, "", "once");
    keeper_reload(&w, "aliases", NULL, true);
    keeper_logged(&w, "", "also after a reload");
    keeper_write("lock/srs", whole, 32);
    passes(&w, PART_ALIASES_EVERY_MS);
    ok_named(!srs_is_blind(given_srs), "restored from a backup");
    keeper_logged(&w, "srs: the secret has been read", "is logged, too");
    unsigned before = handed;
    passes(&w, 3 * PART_ALIASES_EVERY_MS);
    is_number(handed, before, "and stays");
    keeper_end(&w);

    /* Without aliases, as long as addresses of it may come back. */
    keeper_text("lock/srs", "");
    keeper_begin(&w, NULL, NULL, true);
    ok_named(given_srs != NULL && srs_is_blind(given_srs), "without aliases");
    keeper_write("lock/srs", whole, 32);
    passes(&w, PART_ALIASES_EVERY_MS);
    ok_named(!srs_is_blind(given_srs), "it is tried again");
    keeper_end(&w);

    keeper_text("lock/srs", "cut off");
    keeper_begin(&w, "aliases", NULL, true);
    (void)!disk_unlink(spool, "lock/srs");
    passes(&w, PART_ALIASES_EVERY_MS);
    ok_named(!srs_is_blind(given_srs), "removed: a new one is made");
    keeper_end(&w);
}

int
main(void)
{
    folder_make(folder, sizeof(folder), "aliases");
    if (disk_open(&spool, folder, true) != 0 ||
        disk_make_directory(spool, "lock", 0700) != 0)
        abort();
    tap_tests("");
    disk_close(&spool);
    folder_remove(folder);
    return done();
}
