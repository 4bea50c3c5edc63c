/* The reader of events that keeps the history: which events, when they are written, when it pauses. */
#include "admin/history/history.h"
#include "admin/history/history_line.h"
#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */

struct world {
    struct loop *loop;
    struct log *log;
    struct buffer said;
    struct event_hub *events;
    struct disk *disk;
    struct history *history;
    bool has_space;
    unsigned asked;
};

static bool
has_space(void *context)
{
    struct world *w = context;
    w->asked++;
    return w->has_space;
}

/* A process, in the system's start of that name. */
static void
start(struct world *w, int64_t size, const char *part, const char *boot)
{
    struct history_settings settings = {.size = size, .age_ms = 3600 * 1000};
    *w = (struct world){.loop = sim_loop_new(1), .has_space = true};
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    buffer_init(&w->said, 1 << 20);
    log_capture(w->log, &w->said);
    w->events = event_hub_new(w->log);
    ok(disk_open(&w->disk, "/spool", true) == 0);
    struct history_setup setup = {.loop = w->loop,
                                  .log = w->log,
                                  .events = w->events,
                                  .spool = w->disk,
                                  .part = part,
                                  .boot = boot,
                                  .has_space = has_space,
                                  .context = w};
    w->history = history_new(&setup, &settings);
}

static void
make(struct world *w, int64_t size, const char *part)
{
    sim_disk_reset();
    start(w, size, part, NULL);
}

static void
end(struct world *w)
{
    history_free(&w->history);
    is_number(sim_disk_open_files(), 0, "no file stays open");
    disk_close(&w->disk);
    event_hub_free(&w->events);
    log_free(&w->log);
    buffer_free(&w->said);
    loop_free(&w->loop);
}

static void
tell_ended(struct world *w, uint64_t number)
{
    event_tell(w->events, &(struct event){.kind = EVENT_ENDED, .id = {.time_ms = 1, .hash = number}});
}

static void
tell_refused(struct world *w, bool is_quiet)
{
    static const struct event_client client = {.name = "[192.0.2.1]", .helo = "x", .uid = EVENT_NO_UID};
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = 554, .enhanced = "5.7.1", .text = "no"};
    event_tell(w->events,
               &(struct event){.kind = EVENT_REFUSED, .client = &client, .outcome = &outcome, .is_quiet = is_quiet});
}

struct sum {
    struct world *world;
    const char *directory, *word;
    char bytes[1 << 18];
    size_t length;
};

static bool
add_file(void *context, const char *name)
{
    struct sum *s = context;
    char path[100];
    if (strncmp(name, s->word, strlen(s->word)) != 0)
        return true;
    snprintf(path, sizeof(path), "%s/%s", s->directory, name);
    int file = disk_open_file(s->world->disk, path, false);
    int64_t got = disk_read(s->world->disk, file, 0, s->bytes + s->length, sizeof(s->bytes) - 1 - s->length);
    s->length += got > 0 ? (size_t)got : 0;
    disk_close_file(s->world->disk, file);
    return true;
}

static const char *
files_of(struct world *w, const char *directory, const char *word)
{
    static struct sum s;
    s = (struct sum){.world = w, .directory = directory, .word = word};
    (void)disk_list(w->disk, directory, add_file, &s);
    return s.bytes;
}

static unsigned
lines_in(const char *bytes)
{
    unsigned count = 0;
    for (; *bytes != '\0'; bytes++)
        count += *bytes == '\n';
    return count;
}

TEST(kinds)
{
    FIXTURE(world, w, make, end, 1 << 20, "");
    struct disk_info info;
    ok(disk_inspect(w.disk, "history", &info) == 0 && info.kind == DISK_DIRECTORY);
    tell_ended(&w, 1);
    event_tell(w.events, &(struct event){.kind = EVENT_LOADED, .id = {.time_ms = 1, .hash = 1}});
    event_tell(w.events, &(struct event){.kind = EVENT_STARTED, .text = TEXT("started")});
    event_tell(w.events, &(struct event){.kind = EVENT_TROUBLE, .command = TEXT("x"), .text = TEXT("y")});
    event_tell(w.events, &(struct event){.kind = EVENT_HELD, .id = {.time_ms = 1, .hash = 1}, .text = TEXT("z")});
    tell_refused(&w, false);
    tell_refused(&w, true);
    is_number(lines_in(files_of(&w, "history", "mail.")), 0, "nothing before the end of the turn");
    loop_turn(w.loop, 0);
    const char *mail = files_of(&w, "history", "mail.");
    ok(strstr(mail, "00000001: event=ended\n") && strstr(mail, "event=trouble, code=x (y)\n") &&
       strstr(mail, "event=held (z)\n"));
    is_number(lines_in(mail), 3, "mail and troubles");
    const char *refused = files_of(&w, "history", "refused.");
    ok(strstr(refused, " smtpd: event=refused, refused=554 5.7.1, client=[192.0.2.1]"));
    is_number(lines_in(refused), 1, "refusals apart, and only those that may be logged");
    uint64_t calls = sim_disk_calls();
    for (int i = 0; i < 100; i++)
        loop_turn(w.loop, 0);
    ok_named(sim_disk_calls() == calls, "turns without events cost nothing");
    for (uint64_t i = 0; i < 10; i++)
        tell_ended(&w, 10 + i);
    calls = sim_disk_calls();
    loop_turn(w.loop, 0);
    is_number(sim_disk_calls() - calls, 1, "one write for a turn");
}

TEST(off)
{
    FIXTURE(world, w, make, end, 0, "");
    tell_ended(&w, 1);
    loop_turn(w.loop, 0);
    ok_named(sim_disk_count("") == 0, "off: no file");
    struct history_settings on = {.size = 1 << 20, .age_ms = 1000};
    history_reload(w.history, &on);
    tell_ended(&w, 2);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "mail.")), 1, "on after a reload");
    struct history_settings off = {.age_ms = 1000};
    tell_ended(&w, 3);
    history_reload(w.history, &off);
    tell_ended(&w, 4);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "mail.")), 2, "off again: the files stay");
    is_number(history_state(w.history).size, 0, "the state says so");
}

TEST(part)
{
    FIXTURE(world, w, make, end, 1 << 20, "0000-0511");
    tell_ended(&w, 1);
    history_free(&w.history);
    is_number(lines_in(files_of(&w, "history/0000-0511", "mail.")), 1, "a slice's directory; written at the end");
}

TEST(pause)
{
    FIXTURE(world, w, make, end, 1 << 20, "");
    w.has_space = false;
    for (uint64_t i = 0; i < 5; i++) {
        tell_ended(&w, i + 1);
        loop_turn(w.loop, 0);
    }
    is_number(w.asked, 1, "free space is asked for once a second");
    is_number(lines_in(files_of(&w, "history", "mail.")), 0, "below the reserve nothing is written");
    struct history_state state = history_state(w.history);
    ok(state.paused && state.lost == 5);
    (void)!buffer_add_byte(&w.said, '\0');
    ok_named(strstr(w.said.at, "warning: the history pauses: the disk has less free space than its reserve\n"),
             "a warning, once");
    w.has_space = true;
    sim_loop_advance(w.loop, 2000);
    tell_ended(&w, 9);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "mail.")), 1, "it goes on");
    ok(!history_state(w.history).paused);
    sim_disk_count_anew();
    sim_disk_fail_at(1, 5);
    tell_ended(&w, 10);
    loop_turn(w.loop, 0);
    ok_named(history_state(w.history).paused, "a disk that fails");
    uint64_t calls = sim_disk_calls();
    tell_ended(&w, 11);
    loop_turn(w.loop, 0);
    ok_named(sim_disk_calls() == calls, "is left alone for a second");
    sim_loop_advance(w.loop, 2000);
    tell_ended(&w, 12);
    loop_turn(w.loop, 0);
    const char *mail = files_of(&w, "history", "mail.");
    const char *last = strstr(mail, "0000000C: event=ended\n");
    ok(last != NULL && !history_state(w.history).paused);
    struct text rest = text_from(mail), line;
    unsigned good = 0;
    while (text_cut(&rest, '\n', &line)) {
        struct history_line read;
        good += history_line_read(line, &read);
    }
    is_number(good, 2, "the torn line spoils no other");
}

TEST(age)
{
    FIXTURE(world, w, make, end, 1 << 20, "");
    tell_ended(&w, 1);
    tell_refused(&w, false);
    loop_turn(w.loop, 0);
    sim_loop_advance(w.loop, 2 * 3600 * 1000 - 1000);
    ok_named(sim_disk_count("/spool/history") == 2 || sim_disk_count("/spool/history") == 0, "older than an hour");
    sim_loop_advance(w.loop, 3600 * 1000);
    is_number(sim_disk_count("/spool/history"), 0, "files go when they are too old");
    tell_ended(&w, 2);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "mail.")), 1, "new ones begin");
}

/* The bar: refusals without end leave all mail, and the size is kept. */
TEST(flood)
{
    FIXTURE(world, w, make, end, 256 * 1024, "");
    for (uint64_t i = 0; i < 500; i++) {
        tell_ended(&w, i + 1);
        for (int j = 0; j < 2000; j++)
            tell_refused(&w, false);
        loop_turn(w.loop, 0);
        if (history_state(w.history).bytes > 256 * 1024 + 64 * 1024)
            ok_named(false, "too large");
    }
    is_number(lines_in(files_of(&w, "history", "mail.")), 500, "a million refusals leave all mail");
    ok(history_state(w.history).bytes <= 256 * 1024);
    struct history_settings small = {.size = 16 * 1024, .age_ms = 1000};
    history_reload(w.history, &small);
    ok_named(history_state(w.history).bytes <= 16 * 1024, "a smaller size after a reload");
}

TEST(no_directory)
{
    FIXTURE(world, w, make, end, 0, "");
    int file = disk_create(w.disk, "history", 0600);
    disk_close_file(w.disk, file);
    struct history_settings on = {.size = 1 << 20, .age_ms = 1000};
    history_reload(w.history, &on);
    tell_ended(&w, 1);
    loop_turn(w.loop, 0);
    ok_named(history_state(w.history).paused, "a file is in the way: mail goes on without a history");
}

struct heard {
    unsigned count;
    uint64_t hash;
};

static void
on_line(void *context, struct id id, struct text line)
{
    struct heard *h = context;
    h->count++;
    h->hash = id.hash;
    ok(line.at[line.length - 1] == '\n');
}

TEST(listener)
{
    struct heard heard = {0};
    FIXTURE(world, w, make, end, 1 << 20, "");
    history_on_line(w.history, on_line, &heard);
    tell_ended(&w, 7);
    tell_refused(&w, false);
    ok_named(heard.count == 1 && heard.hash == 7, "lines of messages, immediately");
    history_on_line(w.history, NULL, NULL);
    tell_ended(&w, 8);
    is_number(heard.count, 1, "until it is ended");
}

/* Many lines are written together, few immediately. */
TEST(load)
{
    uint64_t number = 0;
    sim_disk_reset();
    FIXTURE(world, w, start, end, 0, "", "1");
    ok(disk_make_directory(w.disk, "lock", 0700) == 0);
    history_reload(w.history, &(struct history_settings){.size = 1 << 24, .age_ms = 3600 * 1000});
    tell_ended(&w, ++number);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "mail.")), 1, "a few lines are in the file at the end of the turn");
    uint64_t calls = sim_disk_calls();
    for (int turn = 0; turn < 40; turn++) {
        for (int i = 0; i < 30; i++)
            tell_ended(&w, ++number);
        loop_turn(w.loop, 0);
    }
    ok_named(sim_disk_calls() - calls < 20, "many turns have few writes");
    ok_named(lines_in(files_of(&w, "history", "mail.")) < number, "and their lines wait");
    tell_refused(&w, false);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, "history", "refused.")), 1, "those of the other ring do not");
    sim_loop_advance(w.loop, 50);
    is_number(lines_in(files_of(&w, "history", "mail.")), (int64_t)number, "for some ms");
    for (int i = 0; i < 400; i++) /* more than a tail has */
        tell_ended(&w, ++number);
    loop_turn(w.loop, 0);
    history_free(&w.history);
    is_number(lines_in(files_of(&w, "history", "mail.")), (int64_t)number, "the end writes all");
    is_number(sim_disk_count("/spool/lock"), 0, "and the memory between goes");
}

/* Waiting lines are a part of the size, too. */
static void
test_sum(int64_t size)
{
    struct text mail = {0}, refused = {0};
    int64_t most = 0;
    sim_disk_reset();
    FIXTURE(world, w, start, end, 0, "", "1");
    ok(disk_make_directory(w.disk, "lock", 0700) == 0);
    history_reload(w.history, &(struct history_settings){.size = size, .age_ms = 3600 * 1000});
    mail = sim_disk_content("/spool/lock/history.mail");
    refused = sim_disk_content("/spool/lock/history.refused");
    ok(mail.length > 0 && refused.length > 0);
    int64_t waits = (int64_t)(mail.length + refused.length);
    for (int64_t told = 0; told < size + size / 4; told += 64 * 50) {
        for (uint64_t i = 0; i < 50; i++) {
            tell_ended(&w, 1);
            tell_refused(&w, false);
        }
        loop_turn(w.loop, 0);
        int64_t bytes = history_state(w.history).bytes + waits;
        most = bytes > most ? bytes : most;
    }
    ok_named(most <= size + 64 * 1024, "never over the size and 64 KiB");
    ok_named(most > size - size / 4, "which is used");
    history_reload(w.history, &(struct history_settings){.size = 256 * 1024, .age_ms = 3600 * 1000});
    mail = sim_disk_content("/spool/lock/history.mail");
    refused = sim_disk_content("/spool/lock/history.refused");
    ok_named(history_state(w.history).bytes + (int64_t)(mail.length + refused.length) <= (256 + 64) * 1024,
             "nor after a reload");
}

/* Killed under load, and started again: in the same start of the system, or in another one, after which the memory
 * of the last one cannot be believed. */
static void
test_kill(const char *part, const char *boot, bool is_same)
{
    struct world w;
    uint64_t number = 0;
    char directory[64];
    snprintf(directory, sizeof(directory), "history%s%s", part[0] != '\0' ? "/" : "", part);
    sim_disk_reset();
    start(&w, 0, part, "1");
    ok(disk_make_directory(w.disk, "lock", 0700) == 0);
    history_reload(w.history, &(struct history_settings){.size = 1 << 20, .age_ms = 3600 * 1000});
    for (int i = 0; i < 450; i++)
        tell_ended(&w, ++number);
    loop_turn(w.loop, 0);
    for (int i = 0; i < 20; i++) {
        tell_ended(&w, ++number);
        tell_refused(&w, false);
        loop_turn(w.loop, 0);
    }
    tell_ended(&w, ++number); /* of a turn that does not end */
    ok_named(lines_in(files_of(&w, directory, "mail.")) < number, "lines wait");
    sim_disk_die_at(sim_disk_calls() + 1);
    ok(disk_unlink(w.disk, "none") != 0 && sim_disk_is_dead());
    end(&w);
    sim_disk_restart();
    start(&w, 1 << 20, part, boot);
    const char *mail = files_of(&w, directory, "mail.");
    unsigned after = lines_in(mail);
    ok_named(is_same ? after == number : after < number, is_same ? "all are found, once" : "none is trusted");
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = 1, .hash = number}, id);
    ok((strstr(mail, id) != NULL) == is_same);
    is_number(lines_in(files_of(&w, directory, "refused.")), 20, "of refusals, too");
    tell_ended(&w, ++number);
    loop_turn(w.loop, 0);
    is_number(lines_in(files_of(&w, directory, "mail.")), (int64_t)after + 1, "it goes on");
    end(&w);
}

int
main(void)
{
    tap_tests("");
    test_sum(256 * 1024);
    test_sum(4 * 1024 * 1024);
    test_kill("", "1", true);
    test_kill("0000-0511", "1", true);
    test_kill("", "2", false);
    return done();
}
