/* A search: all queries for a message, the newest first to stay, in all slices, and what comes later. */
#include "admin/history/trace.h"
#include "t/sim/sim_disk.h"
#include "t/support/tap.h"
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */

enum { FIRST_MS = 1749600000 };

static struct disk *disk;

static void
fresh(void)
{
    sim_disk_reset();
    ok_named(disk_open(&disk, "/spool", true) == 0 && disk_make_directory(disk, "history", 0700) == 0, "a spool");
}

static void
append(const char *path, const char *what)
{
    int file = disk_open_file(disk, path, true);
    if (file < 0)
        file = disk_create(disk, path, 0600);
    if (disk_write(disk, file, text_from(what)) != 0)
        ok_named(false, path);
    disk_close_file(disk, file);
}

/* A line of the message of that number, at its time + ms. */
static const char *
line_of(uint64_t number, int ms, const char *fields)
{
    static char line[1000];
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = FIRST_MS + number * 1000, .hash = number}, id);
    snprintf(line, sizeof(line), "1970-01-21T06:%02d:%02d.%03dZ smtp: %s: %s\n", (int)(number / 60 % 60), (int)(number % 60),
             ms, id, fields);
    return line;
}

static void
file_name(const char *directory, const char *word, uint64_t number, char out[100])
{
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = FIRST_MS + number * 1000}, id);
    snprintf(out, 100, "history%s/%s.%.10s", directory, word, id);
}

static struct trace *
search(size_t limit, int64_t since_ms, const char *one, const char *other)
{
    struct trace_request *r = calloc(1, sizeof(*r));
    struct trace *t = NULL;
    r->limit = limit;
    r->since_ms = since_ms;
    if (one != NULL)
        ok(trace_query_read(text_from(one), &r->queries[r->count++]));
    if (other != NULL)
        ok(trace_query_read(text_from(other), &r->queries[r->count++]));
    ok(trace_begin(&t, disk, r) == 0);
    free(r);
    return t;
}

/* The hashes of the lives, "1 2 3"; "-" has no id; (n) events if not one. */
static const char *
answer(struct trace *t)
{
    static char said[4096];
    json_t *life;
    said[0] = '\0';
    while (trace_step(t, 1000) == PROGRESS_MORE)
        ;
    while ((life = trace_take(t)) != NULL) {
        struct id id = {0};
        const char *name = json_string_value(json_object_get(life, "id"));
        size_t length = strlen(said), events = json_array_size(json_object_get(life, "events"));
        if (name != NULL)
            ok_named(id_parse(text_from(name), &id), name);
        snprintf(said + length, sizeof(said) - length, length > 0 ? " " : "");
        length = strlen(said);
        if (name == NULL)
            snprintf(said + length, sizeof(said) - length, "-");
        else
            snprintf(said + length, sizeof(said) - length, "%d(%d)", (int)id.hash, (int)events);
        json_decref(life);
    }
    return said;
}

static void
is_answer(size_t limit, int64_t since_ms, const char *one, const char *other, const char *want)
{
    struct trace *t = search(limit, since_ms, one, other);
    is_string(answer(t), want, one != NULL ? one : "everything");
    trace_end(&t);
}

TEST(search)
{
    char name[100];
    fresh();
    file_name("", "mail", 1, name);
    append(name, line_of(1, 0, "event=accepted, from=<a@x>"));
    append(name, line_of(2, 0, "event=accepted, from=<b@x>"));
    append(name, line_of(1, 5, "event=delivered, to=<c@y>"));
    append(name, "torn");
    file_name("", "mail", 3, name);
    append(name, line_of(3, 0, "event=accepted, from=<a@x>"));
    append(name, line_of(2, 9, "event=delivered, to=<c@y>"));
    append(name, line_of(1, 9, "event=ended"));
    append(name, "1970-01-21T06:00:03.000Z ma");
    file_name("", "refused", 2, name);
    append(name, "1970-01-21T06:00:02.500Z smtpd: event=refused, client=[192.0.2.1], from=<a@x>\n");
    append(name, "1970-01-21T06:00:02.600Z smtpd: event=refused, client=[192.0.2.2]\n");
    is_answer(20, 0, NULL, NULL, "1(3) 2(2) - - 3(1)");
    is_answer(20, 0, "a@x", NULL, "1(3) - 3(1)");
    is_answer(2, 0, "a@x", NULL, "- 3(1)");
    is_answer(1, 0, "a@x", NULL, "3(1)");
    is_answer(20, 0, "a@x", "c@y", "1(3)");
    is_answer(20, 0, "c@y", NULL, "1(3) 2(2)");
    is_answer(20, 0, "a@x", "192.0.2.1", "-");
    is_answer(20, 0, "nobody@x", NULL, "");
    is_answer(20, 0, "01M0000000-00000001", NULL, "");
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = FIRST_MS + 1000, .hash = 1}, id);
    is_answer(20, 0, id, NULL, "1(3)");
    is_answer(20, 0, id, "c@y", "1(3)");
    is_answer(20, INT64_C(1749602000), "x>", NULL, "2(2) - 3(1)");
    is_answer(20, INT64_C(1850000000), NULL, NULL, "");
    struct trace *t = search(20, 0, "a@x", NULL);
    is_number(trace_reaches_ms(t), FIRST_MS + 1000, "how far back it reaches");
    trace_end(&t);
    disk_close(&disk);
}

TEST(slices)
{
    char name[100];
    fresh();
    ok(disk_make_directory(disk, "history/0000-0511", 0700) == 0 && disk_make_directory(disk, "history/0512-1023", 0700) == 0);
    ok(disk_make_directory(disk, "history/notes", 0700) == 0);
    file_name("/0512-1023", "mail", 1, name);
    append(name, line_of(7, 8, "event=ended"));
    file_name("/0000-0511", "mail", 2, name);
    append(name, line_of(7, 1, "event=accepted, from=<a@x>"));
    file_name("/notes", "mail", 2, name);
    append(name, line_of(9, 1, "event=accepted, from=<a@x>"));
    struct trace *t = search(20, 0, "a@x", NULL);
    while (trace_step(t, 1) == PROGRESS_MORE)
        ;
    json_t *life = trace_take(t);
    const json_t *events = json_object_get(life, "events");
    ok_named(json_array_size(events) == 2 && json_is_true(json_object_get(life, "ended")) &&
                 strcmp(json_string_value(json_object_get(json_array_get(events, 0), "type")), "accepted") == 0,
             "a message whose slice was taken over, in the order of time");
    json_decref(life);
    ok(trace_take(t) == NULL);
    trace_end(&t);
    disk_close(&disk);
}

/* More messages than candidates are kept, and one with more lines than are gathered. */
TEST(many)
{
    char name[100], tail[40];
    fresh();
    file_name("", "mail", 1, name);
    int file = disk_create(disk, name, 0600);
    char *all = malloc(200 * 1000);
    for (uint64_t i = 0; i < TRACE_FOUND_MAX + 20000; i += 1000) {
        size_t length = 0;
        for (uint64_t j = i; j < i + 1000; j++)
            length += (size_t)snprintf(all + length, 200, "%s", line_of(j + 1, 0, "event=accepted, from=<a@x>"));
        if (disk_write(disk, file, text_of(all, length)) != 0)
            ok_named(false, "written");
    }
    free(all);
    disk_close_file(disk, file);
    snprintf(tail, sizeof(tail), "%d(1) %d(1)", TRACE_FOUND_MAX + 19999, TRACE_FOUND_MAX + 20000);
    is_answer(2, 0, "a@x", NULL, tail);
    file_name("", "mail", 90000, name);
    append(name, line_of(5, 9, "event=delivered, to=<b@y>"));
    append(name, line_of(TRACE_FOUND_MAX + 20000, 9, "event=delivered, to=<b@y>"));
    snprintf(tail, sizeof(tail), "%d(2)", TRACE_FOUND_MAX + 20000);
    is_answer(2, 0, "a@x", "b@y", tail);
    file_name("", "mail", 100000, name);
    for (int i = 0; i < 500; i++)
        append(name, line_of(100000, 0, "event=deferred, to=<many@x>, status=deferred (a reason that is as long as such reasons are)"));
    struct trace *t = search(TRACE_LIMIT_MAX, 0, "many@x", NULL);
    while (trace_step(t, TRACE_STEP_BYTES) == PROGRESS_MORE)
        ;
    json_t *life = trace_take(t);
    json_int_t more = json_integer_value(json_object_get(life, "more"));
    ok_named(more > 0 && (size_t)more + json_array_size(json_object_get(life, "events")) == 500, "lines left out are counted");
    json_decref(life);
    trace_end(&t);
    disk_close(&disk);
}

TEST(life)
{
    char name[100];
    struct id id = {.time_ms = FIRST_MS + 1000, .hash = 1};
    sim_disk_reset();
    ok(disk_open(&disk, "/spool", true) == 0);
    ok_named(trace_life(disk, id) == NULL, "there is no history");
    disk_close(&disk);
    fresh();
    file_name("", "mail", 1, name);
    append(name, line_of(1, 0, "event=accepted, from=<a@x>"));
    append(name, line_of(2, 0, "event=accepted, from=<b@x>"));
    append(name, line_of(1, 1, "event=delivered, to=<c@y>"));
    json_t *life = trace_life(disk, id);
    is_number(json_array_size(json_object_get(life, "events")), 2, "the events of one message");
    json_decref(life);
    id.hash = 7;
    ok_named(trace_life(disk, id) == NULL, "a message without a line");
    disk_close(&disk);
}

TEST(foreign)
{
    char name[100];
    fresh();
    file_name("", "mail", 1, name);
    char *junk = malloc(200001);
    memset(junk, 'y', 200000);
    junk[200000] = '\0';
    append(name, junk);
    append(name, "\n");
    append(name, line_of(1, 0, "event=accepted, from=<a@x>"));
    free(junk);
    is_answer(20, 0, "a@x", NULL, "1(1)");
    disk_close(&disk);
    sim_disk_reset();
    struct trace_request *r = calloc(1, sizeof(*r));
    struct trace *t = NULL;
    r->limit = 1;
    ok(disk_open(&disk, "/spool", true) == 0 && trace_begin(&t, disk, r) < 0 && t == NULL);
    free(r);
    disk_close(&disk);
}

static unsigned followed;
static struct id followed_id;

static void
on_followed(void *context, struct id id, struct text line)
{
    (void)context;
    (void)line;
    followed++;
    followed_id = id;
}

TEST(follow)
{
    char name[100];
    fresh();
    file_name("", "mail", 1, name);
    append(name, line_of(1, 0, "event=accepted, from=<a@x>"));
    append(name, line_of(2, 0, "event=accepted, from=<b@x>"));
    struct trace *t = search(20, 0, "a@x", "c@y");
    is_string(answer(t), "", "not yet");
    trace_follow(t, on_followed, NULL);
    is_number(followed, 0, "nothing is new");
    append(name, line_of(2, 1, "event=delivered, to=<c@y>"));
    append(name, line_of(1, 1, "event=delivered, to=<c@y>"));
    append(name, "1970-01-21T06:00:03.000Z sm");
    trace_follow(t, on_followed, NULL);
    ok_named(followed == 1 && followed_id.hash == 1, "the line that completes the queries");
    append(name, "tp: event=refused, from=<a@x>, to=<c@y>\n");
    file_name("", "mail", 5, name);
    append(name, line_of(1, 2, "event=ended"));
    trace_follow(t, on_followed, NULL);
    is_number(followed, 3, "a line that was completed; a new file");
    trace_follow(t, on_followed, NULL);
    is_number(followed, 3, "each line once");
    trace_end(&t);
    char id[ID_LENGTH + 1];
    id_format((struct id){.time_ms = FIRST_MS + 1000, .hash = 1}, id);
    t = search(20, 0, id, NULL);
    is_string(answer(t), "1(3)", "by id");
    append(name, line_of(1, 3, "event=removed"));
    append(name, line_of(2, 3, "event=removed"));
    trace_follow(t, on_followed, NULL);
    ok_named(followed == 4 && followed_id.hash == 1, "only what is new");
    trace_end(&t);
    disk_close(&disk);
}

/* Lines written between the begin and the answer come once: with the following ones. */
TEST(follow_meanwhile)
{
    char name[100], old[100], id[ID_LENGTH + 1];
    struct trace *t = NULL;
    fresh();
    followed = 0;
    file_name("", "mail", 1, old);
    append(old, line_of(1, 0, "event=accepted, from=<a@x>"));
    file_name("", "mail", 5, name);
    append(name, line_of(6, 0, "event=accepted, from=<a@x>"));
    id_format((struct id){.time_ms = FIRST_MS + 6000, .hash = 6}, id);
    struct trace_request *r = calloc(1, sizeof(*r));
    r->limit = 20;
    r->follows = true;
    ok(trace_query_read(text_from(id), &r->queries[r->count++]) &&
       trace_begin(&t, disk, r) == 0);
    append(name, line_of(6, 1, "event=delivered, to=<c@y>"));
    is_string(answer(t), "6(1)", "by id: what was there");
    trace_follow(t, on_followed, NULL);
    is_number(followed, 1, "and what came meanwhile");
    trace_end(&t);

    r->count = 0;
    r->since_ms = FIRST_MS + 5500;
    ok(trace_query_read(TEXT("a@x"), &r->queries[r->count++]) &&
       trace_begin(&t, disk, r) == 0);
    is_string(answer(t), "6(2)", "by address, but for an old file");
    append(name, line_of(6, 2, "event=ended"));
    trace_follow(t, on_followed, NULL);
    is_number(followed, 2, "only what is new");
    trace_end(&t);
    free(r);
    disk_close(&disk);
}
