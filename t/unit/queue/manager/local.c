/* The local channel: from the queue into Maildirs, with unknown users, stops in the
 * middle, and reloads. */
/* link: t/sim/loop.c */
#include "queue/manager/local.h"

#include "t/support/manager_world.h"

#include <sys/stat.h>

static void
plug(struct world *w)
{
    w->channel = local_new(w->loop, w->manager, "h.test");
    manager_set_channel(w->manager, TARGET_MAILDIR, local_open, w->channel);
}

static void
stop(struct world *w)
{
    struct local *local = w->channel;
    local_free(&local);
    ok(local == NULL);
    w->channel = NULL;
    world_stop(w);
}

/* A world whose mail goes to Maildirs in its own folder. */
static void
begin(struct world *w, const char *pattern)
{
    static char routes[100];
    manager_world_begin(w, "* discard");
    struct route_table *old = w->routes;
    snprintf(routes, sizeof(routes), "a.test smtp://sink.test\n* maildir:%s/m/%s",
             w->folder, pattern);
    w->routes_text.routes = text_from(routes);
    w->routes = world_routes(w);
    manager_reload(w->manager, &w->settings, w->routes);
    route_free(&old);
    w->plug = plug;
    plug(w);
}

static void
make_home(const struct world *w, const char *user)
{
    char command[200];
    snprintf(command, sizeof(command), "mkdir -p %s/m/%s", w->folder, user);
    if (system(command) != 0)
        abort();
}

static void
end(struct world *w)
{
    stop(w);
    manager_world_end(w);
}

/* The content of a file in new/ of a mailbox, the first one; its name too. */
static const char *
delivered(const struct world *w, const char *user, char name[256])
{
    static char content[1000];
    char path[700];
    content[0] = name[0] = '\0';
    snprintf(path, sizeof(path), "%s/m/%s/new", w->folder, user);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            snprintf(name, 256, "%s", entry->d_name);
    if (directory == NULL || name[0] == '\0')
        return content;
    closedir(directory);
    snprintf(path, sizeof(path), "%s/m/%s/new/%s", w->folder, user, name);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        abort();
    content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
    fclose(file);
    return content;
}

TEST(delivery)
{
    char name[256];
    FIXTURE(world, w, begin, end, "%u");
    make_home(&w, "bob");
    make_home(&w, "dan");
    world_deliver(&w, "ann@a.test", "bob@h.test dan@h.test");
    is_string(
        delivered(&w, "bob", name),
        "Return-Path: <ann@a.test>\nDelivered-To: bob@h.test\nSubject: x\n\nbody\n",
        "a file");
    ok_named(strstr(name, ".h.test") != NULL, "named after the host");
    ok(strstr(delivered(&w, "dan", name), "Delivered-To: dan@h.test") != NULL);
    ok(world_is_empty(&w));
    ok(world_logged(&w, " local: ") && world_logged(&w, "to=<bob@h.test>, relay=/"));
    ok(world_logged(&w, "status=sent (delivered to maildir)"));
}

static void
filed(const struct world *w, unsigned local, unsigned remote, const char *name)
{
    is_number(world_files(w, "local"), local, name);
    is_number(world_files(w, "remote"), remote, name);
}

/* The file of a recipient is that of its route when the file is made. */
TEST(files)
{
    char name[256];
    FIXTURE(world, w, begin, end, "%u");
    make_home(&w, "bob");
    manager_set_channel(w.manager, TARGET_LMTP, fake_open, &w);
    struct route_table *old = w.routes;
    char routes[200];
    snprintf(routes, sizeof(routes),
             "a.test smtp://sink.test\nl.test lmtp://sink.test\n* maildir:%s/m/%%u", w.folder);
    w.routes_text.routes = text_from(routes);
    w.routes = world_routes(&w);
    manager_reload(w.manager, &w.settings, w.routes);
    route_free(&old);
    world_deliver(&w, "ann@a.test", "later@l.test");
    filed(&w, 1, 0, "open, of LMTP: local");
    world_deliver(&w, "ann@a.test", "later@a.test bob@h.test");
    filed(&w, 2, 1, "open, of SMTP: remote; done, of a Maildir: local");
    ok(strstr(delivered(&w, "bob", name), "Delivered-To: bob@h.test") != NULL);

    /* The other way round from now on: the files stay, and take the marks. */
    old = w.routes;
    w.routes_text.routes = TEXT("a.test lmtp://sink.test\n* smtp://sink.test");
    w.routes = world_routes(&w);
    manager_reload(w.manager, &w.settings, w.routes);
    route_free(&old);
    filed(&w, 2, 1, "the files stay");
    w.all_good = true;
    sim_loop_advance(w.loop, 2 * 3600 * 1000);
    ok(world_is_empty(&w));
    ok_named(w.attempts == 4, "each recipient was tried again, once");
}

TEST(unknown_user)
{
    char name[256];
    FIXTURE(world, w, begin, end, "%u");
    make_home(&w, "bob");
    world_deliver(&w, "ann@a.test", "bob@h.test nobody@h.test");
    ok(delivered(&w, "bob", name)[0] != '\0');
    world_saw(&w, ">ann@a.test ", "the sender is told");
    ok(world_logged(&w, "to=<nobody@h.test>") && world_logged(&w, "dsn=5.1.1"));
    ok(world_is_empty(&w));
}

static unsigned
count_in(const struct world *w, const char *path)
{
    char space[200];
    snprintf(space, sizeof(space), "m/%s", path);
    return world_files(w, space);
}

TEST(many)
{
    FIXTURE(world, w, begin, end, "all");
    char recipients[4000] = "";
    for (int i = 0; i < 120; i++)
        snprintf(recipients + strlen(recipients), 20, "u%d@h.test ", i);
    world_send(&w, "ann@a.test", recipients);
    for (int i = 0; i < 20; i++)
        world_send(&w, "ann@a.test", "x@h.test");
    world_turns(&w);
    is_number(count_in(&w, "all/new"), 140, "a file for each recipient");
    is_number(count_in(&w, "all/tmp"), 0, "nothing half");
    ok(world_is_empty(&w));
}

/* The daemon ends while sessions are open: nothing is lost, nothing is touched after.
 */
TEST(stop)
{
    char name[256];
    FIXTURE(world, w, begin, end, "all");
    for (int i = 0; i < 30; i++)
        world_send(&w, "ann@a.test", "x@h.test");
    loop_turn(w.loop, 0);
    loop_turn(w.loop, 0);
    stop(&w);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(count_in(&w, "all/new"), 30, "each once");
    ok(delivered(&w, "all", name)[0] != '\0');
    ok(world_is_empty(&w));
}

TEST(drain)
{
    FIXTURE(world, w, begin, end, "all");
    for (int i = 0; i < 30; i++)
        world_send(&w, "ann@a.test", "x@h.test");
    loop_turn(w.loop, 0);
    loop_turn(w.loop, 0);
    manager_drain(w.manager, 60 * 1000, world_drained, &w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.drained, 1, "sessions end after what they carry");
    stop(&w);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(count_in(&w, "all/new"), 30, "the rest later, each once");
}

TEST(reload)
{
    char name[256];
    FIXTURE(world, w, begin, end, "all");
    local_reload(w.channel, "new.test");
    world_deliver(&w, "", "x@h.test");
    ok(text_starts(text_from(delivered(&w, "all", name)), TEXT("Return-Path: <>\n")));
    ok_named(strstr(name, ".new.test") != NULL, "the new name");
}

static bool
is_allowed(const void *context, const char *directory)
{
    return strcmp(context, directory) != 0;
}

/* Outside of what may be written mail waits, and says why; it is not lost. */
TEST(forbidden)
{
    char name[256], root[300];
    FIXTURE(world, w, begin, end, "%u?create=all");
    snprintf(root, sizeof(root), "%s/m/", w.folder);
    local_on_ask(w.channel, is_allowed, root);
    world_deliver(&w, "ann@b.test", "user@h.test");
    ok_named(delivered(&w, "user", name)[0] == 0 && name[0] == '\0',
             "nothing is written");
    char want[400];
    snprintf(
        want, sizeof(want),
        "status=deferred (the sandbox does not permit writing to %s: restart "
        "Petrel)",
        root);
    ok_named(world_logged(&w, want), "it is deferred, with a plain sentence");
}

/* --- Large mail ------------------------------------------------------------------- */

enum { LARGE = 5 * 1000 * 1000, STEP = 1024 * 1024, PIECE = 64 * 1024 };

static void
send_large(struct world *w, const char *recipients)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    struct text rest = text_from(recipients), one;
    char *piece = memory_new(LARGE);
    memset(piece, 'x', LARGE);
    e->sender = envelope_text(e, TEXT("ann@a.test"));
    while (text_word(&rest, " ", &one))
        if (!envelope_add(e, one, NOTIFY_NEVER, TEXT("")))
            abort();
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), LARGE, &refusal);
    if (draft == NULL || !queue_write(draft, text_of(piece, LARGE)))
        abort();
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
    free(piece);
}

/* Bytes of all files in a space of the mailbox that all have. */
static int64_t
bytes_in(const struct world *w, const char *space)
{
    char path[700];
    int64_t bytes = 0;
    struct stat status;
    snprintf(path, sizeof(path), "%s/m/all/%s", w->folder, space);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' &&
            fstatat(dirfd(directory), entry->d_name, &status, 0) == 0)
            bytes += status.st_size;
    if (directory)
        closedir(directory);
    return bytes;
}

/* Turns until so much is written; the most that one of them wrote. */
static int64_t
write_until(struct world *w, int64_t bytes)
{
    int64_t before = bytes_in(w, "tmp") + bytes_in(w, "new"), most = 0;
    for (int i = 0; i < 1000 && before < bytes; i++) {
        loop_turn(w->loop, 0);
        int64_t now = bytes_in(w, "tmp") + bytes_in(w, "new");
        most = now - before > most ? now - before : most;
        before = now;
    }
    return most;
}

TEST(large)
{
    FIXTURE(world, w, begin, end, "all");
    send_large(&w, "a@h.test b@h.test c@h.test");
    int64_t most = write_until(&w, 3 * INT64_C(5000000));
    ok_named(most > STEP / 2 && most < STEP + 2 * PIECE,
             "some of it in a turn, however many get it");
    world_turns(&w);
    is_number(count_in(&w, "all/new"), 3, "all have it");
    is_number(count_in(&w, "all/tmp"), 0, "nothing half");
    ok_named(world_is_empty(&w), "and it is over");
}

TEST(stop_in_the_middle)
{
    FIXTURE(world, w, begin, end, "all");
    send_large(&w, "a@h.test b@h.test");
    write_until(&w, LARGE + LARGE / 2);
    is_number(count_in(&w, "all/new"), 1, "one is done,");
    is_number(count_in(&w, "all/tmp"), 1, "the other half");
    stop(&w);
    is_number(count_in(&w, "all/tmp"), 0, "nothing half is left");
    manager_world_start(&w);
    sim_loop_advance(w.loop, 1000);
    is_number(count_in(&w, "all/new"), 2, "each once");
    ok(world_is_empty(&w));
}

TEST(drain_in_the_middle)
{
    FIXTURE(world, w, begin, end, "all");
    send_large(&w, "a@h.test b@h.test");
    write_until(&w, LARGE / 2);
    manager_drain(w.manager, 60 * 1000, world_drained, &w);
    sim_loop_advance(w.loop, 1000);
    is_number(w.drained, 1, "what is carried is carried to its end");
    is_number(count_in(&w, "all/new"), 2, "for both");
}

TEST(removed_in_the_middle)
{
    FIXTURE(world, w, begin, end, "all");
    send_large(&w, "a@h.test");
    write_until(&w, LARGE / 2);
    is_number(world_operate(&w, MANAGER_REMOVE), MANAGER_LATER, "it is in delivery");
    sim_loop_advance(w.loop, 1000);
    is_number(count_in(&w, "all/new"), 1, "which ends");
    is_number(count_in(&w, "all/tmp"), 0, "whole");
    ok(world_is_empty(&w));
}

/* --- Why mail waits --------------------------------------------------------------- */

struct told {
    struct world *world;
    unsigned hops, sessions, carrying, wrong;
};

static void
see(void *context, const struct activity *a)
{
    struct told *told = context;
    char root[300];
    snprintf(root, sizeof(root), "%s/m/", told->world->folder);
    told->sessions++;
    told->carrying += a->has_message;
    told->wrong += a->kind != ACTIVITY_STORE || strcmp(a->what, root) != 0 ||
                   a->remote[0] != '\0' || a->scheme ||
                   a->since_ms != loop_now_ms(told->world->loop);
}

static void
explain(void *context, const struct manager_wait *wait)
{
    struct told *told = context;
    told->hops++;
    if (wait->site)
        manager_activities(told->world->manager, wait->site, told->world->id, see,
                           told);
}

static struct told
ask(struct world *w)
{
    struct told told = {.world = w};
    const struct envelope *e = manager_active(w->manager, w->id);
    if (e)
        manager_explain(w->manager, e, explain, &told);
    return told;
}

/* A step of the wall clock meanwhile makes no session older. */
TEST(watch)
{
    FIXTURE(world, w, begin, end, "%u?create=all");
    for (int i = 0; i < 40; i++)
        world_send(&w, "ann@a.test", "x@h.test");
    struct told told = ask(&w);
    for (int i = 0; i < 10 && told.sessions == 0; i++) {
        loop_turn(w.loop, 0);
        told = ask(&w);
    }
    ok_named(told.hops == 1 && told.sessions > 0, "open sessions are told");
    sim_loop_step_wall(w.loop, 3600 * 1000);
    loop_turn(w.loop, 0);
    told = ask(&w);
    ok_named(told.sessions > 0, "some of them are open yet");
    is_number(told.wrong, 0, "each with what it does, where and since when");
    is_number(told.carrying, 0, "that message waits");
    w.stalled = true;
    struct id id = w.id;
    world_send(&w, "ann@a.test", "x@a.test");
    world_turns(&w);
    told = ask(&w);
    ok_named(told.hops == 1 && told.sessions == 0, "none of them is of another site");
    ok_named(manager_active(w.manager, id) == NULL, "the Maildirs have theirs");
    world_unstall(&w);
    world_turns(&w);
}

TEST(watch_large)
{
    FIXTURE(world, w, begin, end, "all");
    send_large(&w, "a@h.test");
    write_until(&w, LARGE / 2);
    struct told told = ask(&w);
    ok_named(told.sessions == 1 && told.carrying == 1, "the session carries it");
}
