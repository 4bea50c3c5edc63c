/* The crash-loop guard: what it counts, what it forgets, and a message that really
 * kills the process: after two crashes it is quarantined, and the others are delivered. */
/* link: t/sim/loop.c */
#include "queue/queue_operator.h"
#include "t/support/manager_world.h"

#include "base/log/log_internal.h"
#include "t/support/guard_kit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* --- The page alone -------------------------------------------------------------- */

struct lab {
    char folder[40];
    struct disk *disk;
    struct log *log;
    struct buffer lines;
    struct guard guard;
};

static void
lab_open(struct lab *l)
{
    buffer_clear(&l->lines);
    l->guard = (struct guard){0};
    guard_open(&l->guard, l->disk, l->log, 1, 0);
}

static void
lab_begin(struct lab *l)
{
    snprintf(l->folder, sizeof(l->folder), "/tmp/petrel-guard-XXXXXX");
    if (mkdtemp(l->folder) == NULL || disk_open(&l->disk, l->folder, false) < 0 ||
        disk_make_directory(l->disk, "lock", 0700) < 0)
        abort();
    buffer_init(&l->lines, 1024 * 1024);
    l->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log_capture(l->log, &l->lines);
    lab_open(l);
}

static void
lab_end(struct lab *l)
{
    char command[80];
    guard_close(&l->guard);
    disk_close(&l->disk);
    log_free(&l->log);
    buffer_free(&l->lines);
    snprintf(command, sizeof(command), "rm -r %s", l->folder);
    if (system(command) != 0)
        abort();
}

/* The process is killed as it stands, and the next one starts. */
static void
lab_kill(struct lab *l)
{
    guard_close(&l->guard);
    lab_open(l);
}

/* The same by a signal of its own, which leaves a note. */
static void
lab_crash(struct lab *l)
{
    l->guard.page->crashed = 1;
    lab_kill(l);
}

static bool
logged(const struct lab *l, const char *words)
{
    return l->lines.length > 0 &&
           memmem(l->lines.at, l->lines.length, words, strlen(words)) != NULL;
}

static struct id
name(unsigned number)
{
    return (struct id){1700000000000 + number, number * 77 + 1};
}

TEST(counting)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    is_number(l.lines.length, 0, "nothing to say of an empty page");
    (void)guard_enter(&l.guard, name(1));
    is_number(guard_ends(&l.guard, name(1)), 0, "being at work is no crash");
    for (unsigned i = 1; i <= 5; i++) {
        bool deadly = guard_is_deadly(&l.guard, name(1));
        ok_named(deadly == (i > GUARD_CRASHES_MAX), "deadly from the second crash on");
        lab_crash(&l);
        is_number(guard_ends(&l.guard, name(1)), i, "one crash more");
        ok_named(l.lines.length > 0, "which is logged");
        (void)guard_enter(&l.guard, name(1));
    }
    guard_leave(&l.guard, (struct id){0});
    lab_crash(&l);
    is_number(l.lines.length, 0, "a crash beside it is not put down to it");
    is_number(guard_ends(&l.guard, name(1)), 5, "but nothing is forgotten");
    guard_forget(&l.guard, name(1));
    is_number(guard_ends(&l.guard, name(1)), 0, "unless told so");
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 0, "for good");
}

/* An end from outside says little of what was at work: six of them are needed. */
TEST(kills)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    for (unsigned i = 1; i <= 7; i++) {
        ok_named(guard_is_deadly(&l.guard, name(1)) == (i > GUARD_ENDS_MAX),
                 "deadly from the sixth kill on");
        (void)guard_enter(&l.guard, name(1));
        lab_kill(&l);
        ok_named(logged(&l, "was killed (end"), "which is logged");
    }
    is_text(text_from(guard_reason(&l.guard, name(1))),
            TEXT("processed when the daemon was killed six times"), "the reason says so");
    (void)guard_enter(&l.guard, name(2));
    lab_kill(&l);
    (void)guard_enter(&l.guard, name(2));
    lab_crash(&l);
    ok_named(logged(&l, "crashed (1 of 2 before"), "a kill is no crash");
    (void)guard_enter(&l.guard, name(2));
    lab_kill(&l);
    ok_named(!guard_is_deadly(&l.guard, name(2)), "before it nor behind it");
    (void)guard_enter(&l.guard, name(2));
    lab_crash(&l);
    is_text(text_from(guard_reason(&l.guard, name(2))),
            TEXT("processed in two crashes of the daemon"), "two crashes are");
}

TEST(nesting)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    struct id outer = guard_enter(&l.guard, name(1));
    struct id inner = guard_enter(&l.guard, name(2));
    ok(outer.time_ms == 0 && id_compare(inner, name(1)) == 0);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(2)), 1, "the inner one was at work");
    is_number(guard_ends(&l.guard, name(1)), 0, "not the outer one");
    outer = guard_enter(&l.guard, name(1));
    inner = guard_enter(&l.guard, name(2));
    guard_leave(&l.guard, inner);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "which is at work again then");
    is_number(guard_ends(&l.guard, name(2)), 1, "and the inner one is not");
    outer = guard_enter(&l.guard, name(1));
    guard_leave(&l.guard, outer);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "nobody is");
}

/* Deferred in order is as good as ended; a deferral that crashes is not in order. */
TEST(resting)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    (void)guard_enter(&l.guard, name(1));
    lab_crash(&l);
    struct id before = guard_enter(&l.guard, name(1));
    guard_rest(&l.guard, name(1));
    guard_leave(&l.guard, before);
    is_number(guard_ends(&l.guard, name(1)), 1, "it is still to be written down");
    (void)guard_enter(&l.guard, name(1));
    is_number(guard_ends(&l.guard, name(1)), 0, "taken up again: that went well");
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "the first crash anew");

    before = guard_enter(&l.guard, name(1));
    guard_rest(&l.guard, name(1));
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 2, "it died in its deferral");
    before = guard_enter(&l.guard, name(1));
    guard_rest(&l.guard, name(1));
    guard_leave(&l.guard, before);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 0, "a restart after it forgets too");
    guard_rest(&l.guard, name(9));
    guard_forget(&l.guard, name(9));
    is_number(guard_ends(&l.guard, name(9)), 0, "what never crashed needs nothing");
}

TEST(many)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    for (unsigned i = 0; i < 2; i++) {
        (void)guard_enter(&l.guard, name(1000));
        lab_crash(&l);
    }
    for (unsigned i = 0; i < 3 * GUARD_ROWS; i++) {
        (void)guard_enter(&l.guard, name(i));
        lab_crash(&l);
    }
    ok_named(guard_is_deadly(&l.guard, name(1000)), "those with most crashes stay");
    is_number(guard_ends(&l.guard, name(3 * GUARD_ROWS - 1)), 1, "and the latest");
    is_number(guard_ends(&l.guard, name(0)), 0, "the others make room");
}

/* Ends without anything at work: the second early one makes us careful. */
TEST(unknown)
{
    struct lab l;
    lab_begin(&l);
    ok_named(!guard_is_careful(&l.guard), "a new one is careless");
    lab_crash(&l);
    ok_named(!guard_is_careful(&l.guard), "one end may be an operator's");
    lab_crash(&l);
    ok_named(guard_is_careful(&l.guard), "two early ones are not");
    is_number(l.lines.length > 0, true, "which is logged");
    lab_crash(&l);
    ok_named(guard_is_careful(&l.guard), "so it stays");
    guard_stop(&l.guard);
    lab_crash(&l);
    ok_named(!guard_is_careful(&l.guard), "until it was stopped in order");
    lab_crash(&l);
    guard_survive(&l.guard);
    lab_crash(&l);
    ok_named(!guard_is_careful(&l.guard), "or has lived for a while");
    lab_crash(&l);
    (void)guard_enter(&l.guard, name(1));
    lab_crash(&l);
    ok_named(guard_is_careful(&l.guard), "an end with a reason forgets nothing");
    lab_end(&l);

    lab_begin(&l);
    for (unsigned i = 1; i <= GUARD_ENDS_MAX; i++) {
        ok_named(!guard_is_careful(&l.guard), "an impatient supervisor is no reason yet");
        lab_kill(&l);
    }
    ok_named(guard_is_careful(&l.guard), "six early kills are");
    lab_end(&l);
}

TEST(suspect)
{
    FIXTURE(lab, l, lab_begin, lab_end);
    guard_suspect(&l.guard, name(1));
    struct id before = guard_enter(&l.guard, name(2));
    guard_leave(&l.guard, before);
    before = guard_enter(&l.guard, (struct id){0});
    guard_leave(&l.guard, before);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "at work when nothing else is");
    is_number(guard_ends(&l.guard, name(2)), 0, "what was done is not");
    l.guard.suspect = name(1);
    guard_suspect(&l.guard, name(1));
    before = guard_enter(&l.guard, name(2));
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(2)), 1, "what is being done is");
    is_number(guard_ends(&l.guard, name(1)), 1, "and not the suspect");
    guard_suspect(&l.guard, name(1));
    (void)guard_enter_none(&l.guard);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "nor when a client is served");
    guard_suspect(&l.guard, name(1));
    before = guard_enter_none(&l.guard);
    guard_leave(&l.guard, before);
    guard_suspect(&l.guard, (struct id){0});
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(1)), 1, "nor when there is none any more");
}

/* Killed from outside again and again: three suspects, and then it is not the mail. */
TEST(innocent_suspects)
{
    unsigned lives = 0;
    FIXTURE(lab, l, lab_begin, lab_end);
    lab_crash(&l);
    lab_crash(&l);
    for (; guard_is_careful(&l.guard) && lives < 40; lives++) {
        guard_suspect(&l.guard, name(lives / GUARD_CRASHES_MAX));
        lab_crash(&l);
    }
    is_number(lives, GUARD_SUSPECTS_MAX * GUARD_CRASHES_MAX, "so many lives are careful");
    ok_named(guard_is_deadly(&l.guard, name(GUARD_SUSPECTS_MAX - 1)), "the last suspect");
    lab_crash(&l);
    ok_named(!guard_is_careful(&l.guard), "nor is the next one");
    guard_survive(&l.guard);
    lab_crash(&l);
    lab_crash(&l);
    ok_named(guard_is_careful(&l.guard), "one that lived longer begins anew");
}

static int
open_page(const struct lab *l, int flags)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/lock/guard", l->folder);
    return open(path, flags | O_CREAT, 0600);
}

/* Every byte of the page, turned: it works in any case. */
TEST(damage)
{
    unsigned wrong = 0;
    FIXTURE(lab, l, lab_begin, lab_end);
    (void)guard_enter(&l.guard, name(1));
    lab_crash(&l);
    (void)guard_enter(&l.guard, name(1));
    for (unsigned at = 0; at < 4096; at++) {
        unsigned char byte = 0;
        int file = open_page(&l, O_RDWR);
        guard_close(&l.guard);
        if (pread(file, &byte, 1, at) == 1) {
            byte ^= 0xff;
            if (pwrite(file, &byte, 1, at) != 1)
                abort();
        }
        close(file);
        lab_open(&l);
        wrong += guard_ends(&l.guard, name(1)) > GUARD_ENDS_MAX;
        guard_forget(&l.guard, name(1));
        (void)guard_enter(&l.guard, name(1));
        lab_crash(&l);
        wrong += guard_ends(&l.guard, name(1)) != 1;
        (void)guard_enter(&l.guard, name(1));
    }
    is_number(wrong, 0, "a damaged page is made anew, and counts");
    guard_close(&l.guard);
    int file = open_page(&l, O_RDWR | O_TRUNC);
    close(file);
    lab_open(&l);
    is_number(guard_ends(&l.guard, name(1)), 0, "an empty one too");
}

TEST(file)
{
    struct stat status;
    char path[100];
    FIXTURE(lab, l, lab_begin, lab_end);
    snprintf(path, sizeof(path), "%s/lock/guard", l.folder);
    ok(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    ok(status.st_size <= 4096);
    struct guard other = {0};
    guard_open(&other, l.disk, l.log, 4, 3);
    (void)guard_enter(&other, name(3));
    snprintf(path, sizeof(path), "%s/lock/guard.0768-1023", l.folder);
    ok_named(stat(path, &status) == 0, "a page for each slice");
    guard_close(&other);
    lab_crash(&l);
    is_number(guard_ends(&l.guard, name(3)), 0, "which knows nothing of others");

    guard_close(&l.guard);
    snprintf(path, sizeof(path), "%s/lock/guard", l.folder);
    if (unlink(path) != 0 || mkdir(path, 0700) != 0)
        abort();
    lab_open(&l);
    ok_named(l.guard.page == NULL && l.lines.length > 0, "without one: a warning");
    struct id before = guard_enter(&l.guard, name(1));
    guard_leave(&l.guard, before);
    guard_rest(&l.guard, name(1));
    guard_forget(&l.guard, name(1));
    is_number(guard_ends(&l.guard, name(1)), 0, "and everything else goes on");
}

/* --- A message that kills -------------------------------------------------------- */

enum death { BY_ABORT, BY_KILL };
static enum death death;

struct killer {
    struct world *world;
    struct sched_session *session;
    struct loop_task task;
};

static void
die(void)
{
    if (death == BY_ABORT)
        abort();
    raise(SIGKILL);
}

/* A channel whose process dies of what is for deadly@. */
static void
killer_work(void *context)
{
    struct killer *k = context;
    struct world *w = k->world;
    struct delivery_request errand;
    if (!manager_take(w->manager, k->session, &errand)) {
        manager_session_ended(w->manager, k->session, &outcome_no_trouble);
        loop_release(w->loop, free, k);
        return;
    }
    struct id before = queue_enter(manager_queue(w->manager), errand.envelope->id);
    for (size_t i = 0; i < errand.count; i++) {
        struct text to = errand.envelope->recipients[errand.indexes[i]].address;
        if (text_starts(to, TEXT("deadly")))
            die();
        struct outcome outcome = fake_outcome(w, to);
        manager_settled(w->manager, &errand, i, &outcome, NULL);
    }
    queue_leave(manager_queue(w->manager), before);
    loop_post(w->loop, &k->task, killer_work, k);
}

static void
killer_open(void *context, struct sched_session *session, const struct target *target,
            const char *domain)
{
    struct killer *k = memory_new(sizeof(*k));
    (void)target;
    (void)domain;
    k->world = context;
    k->session = session;
    loop_post(k->world->loop, &k->task, killer_work, k);
}

static void
plug_killer(struct world *w)
{
    manager_set_channel(w->manager, TARGET_SMTP, killer_open, w);
}

/* One life of the daemon in a process of its own, with what it is sent. Returns the
 * signal that ended it. */
static int
live(struct world *w, void (*send)(struct world *w))
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        w->plug = plug_killer;
        manager_world_start(w);
        if (send != NULL)
            send(w);
        sim_loop_advance(w->loop, 2000);
        world_stop(w);
        _exit(0);
    }
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void
send_all(struct world *w)
{
    world_send(w, "ann@a.test", "good@b.test later@b.test");
    world_send(w, "bob@a.test", "first@b.test deadly@b.test good@b.test");
    world_send(w, "cid@a.test", "good@b.test");
}

static unsigned
count_rooms(const struct world *w)
{
    return world_files(w, "todo") + world_files(w, "info") + world_files(w, "mess");
}

static void
test_killer(int64_t journal_size, const char *how)
{
    int number = death == BY_KILL ? SIGKILL : SIGABRT;
    unsigned ends = death == BY_KILL ? GUARD_ENDS_MAX : GUARD_CRASHES_MAX;
    printf("# %s\n", how);
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?recipients=1&initial=1&concurrency=1");
    world_stop(&w);
    w.settings.queue.journal_size = journal_size;
    is_number(live(&w, send_all), number, "it ends the daemon");
    for (unsigned i = 1; i < ends; i++)
        is_number(live(&w, NULL), number, "it ends the next one");
    is_number(live(&w, NULL), 0, "then it is quarantined, and all goes on");
    ok_named(world_files(&w, "corrupt") >= 2, "it is in corrupt/, with its note");

    buffer_clear(&w.lines);
    manager_world_start(&w);
    ok_named(!world_logged(&w, "crash"), "it counts as no crash any more");
    is_number(sched_count(manager_sched(w.manager)).deferred, 1,
              "of the others there is what must wait");
    world_stop(&w);
    is_number(count_rooms(&w), 2, "and nothing else");
}

static bool
note_quarantined(void *context, struct id id, enum queue_place place)
{
    struct world *w = context;
    if (place == QUEUE_CORRUPT)
        w->id = id;
    return true;
}

/* The operator brings it back, and the reason has gone. Nobody has it twice. */
static void
test_release(int64_t journal_size)
{
    char note[QUEUE_NOTE_MAX] = "";
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "* smtp://sink.test?recipients=1&initial=1&concurrency=1");
    world_stop(&w);
    w.settings.queue.journal_size = journal_size;
    (void)live(&w, send_all);
    (void)live(&w, NULL);
    w.all_good = true;
    buffer_clear(&w.lines);
    manager_world_start(&w);
    sim_loop_advance(w.loop, 1000); /* files of a move that was cut off settle first */
    ok(world_logged(&w, "processed in two crashes"));
    if (queue_each(manager_queue(w.manager), note_quarantined, &w) < 0)
        abort();
    is_number(queue_note(manager_queue(w.manager), w.id, QUEUE_CORRUPT, note), 0,
              "it has a note");
    ok_named(strstr(note, "processed in two crashes") != NULL, "which says why");
    buffer_clear(&w.seen);
    is_number(world_operate(&w, MANAGER_RELEASE), MANAGER_DONE, "it is released");
    world_turns(&w);
    ok_named(w.seen.length > 0 && memmem(w.seen.at, w.seen.length, "deadly@b.test", 13),
             "and delivered, once it does no harm");
    world_turns(&w);
    ok(world_place(&w) == SCHED_UNKNOWN);
    is_number(world_files(&w, "corrupt"), 0, "nothing is left in corrupt/");
}

int
main(void)
{
    tap_tests("");
    death = BY_KILL;
    test_killer(0, "kills, in files");
    test_killer(4 * 1024 * 1024, "kills, in the journal");
    death = BY_ABORT;
    test_killer(0, "crashes, in files");
    test_killer(4 * 1024 * 1024, "crashes, in the journal");
    test_release(0);
    test_release(4 * 1024 * 1024);
    return done();
}
