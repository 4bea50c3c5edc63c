/* The answer of `petrel status` for a manager, and its form for people. */
/* link: t/sim/loop.c */
#include "admin/view/status.h"
#include "queue/queue_operator.h"

#include "t/support/manager_world.h"
#include "t/support/printed.h"

static const json_t *
at(const json_t *status, const char *part, const char *key)
{
    return json_object_get(part ? json_object_get(status, part) : status, key);
}

static void
is_at(const json_t *status, const char *part, const char *key, json_int_t want)
{
    const json_t *value = at(status, part, key);
    char name[60];
    snprintf(name, sizeof(name), "%s.%s", part ? part : "", key);
    is_number(json_is_integer(value) ? json_integer_value(value) : -99, want, name);
}

static const char *
string_at(const json_t *status, const char *part, const char *key)
{
    const char *value = json_string_value(at(status, part, key));
    return value ? value : "(none)";
}

static void
has_line(const char *text, const char *line)
{
    const char *found = strstr(text, line);
    if (!ok_named(found && (found == text || found[-1] == '\n') &&
                      found[strlen(line)] == '\n',
                  line))
        printf("# in: %s\n", text);
}

static const char *
printed(const json_t *status)
{
    static struct printed p;
    printed_begin(&p);
    status_print(status, 0);
    return printed_end(&p);
}

/* --- From a manager --------------------------------------------------------------- */

TEST(counts)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "held.test hold\n* smtp://sink.test");
    world_deliver(&w, "ann@a.test", "good@b.test");
    world_deliver(&w, "ann@a.test", "later@b.test");
    world_deliver(&w, "ann@a.test", "x@held.test");
    json_t *status = status_make(w.manager, 61500, 3, false);
    ok(json_is_true(at(status, NULL, "ok")));
    ok(json_is_true(at(status, NULL, "accepting")));
    is_string(string_at(status, NULL, "reason"), "", "so no reason");
    is_string(string_at(status, NULL, "version"), PETREL_VERSION, "version");
    is_at(status, NULL, "uptime_s", 61);
    is_at(status, "queue", "incoming", 0);
    is_at(status, "queue", "active", 0);
    is_at(status, "queue", "deferred", 1);
    is_at(status, "queue", "hold", 1);
    is_at(status, "queue", "corrupt", 0);
    ok(json_integer_value(at(status, NULL, "oldest_ms")) > 0);
    is_at(status, "sessions", "in", 3);
    is_at(status, "sessions", "out", 0);
    is_at(status, "totals", "stored", 3);
    is_at(status, "totals", "ended", 1);
    is_at(status, "totals", "quarantined", 0);
    is_at(status, "journal", "segments", 0);
    ok(json_integer_value(at(status, NULL, "syncs")) > 0);
    is_string(string_at(status, "spool", "path"), w.folder, "the spool");
    ok(json_integer_value(at(status, "spool", "bytes_free")) > 0);
    ok(json_integer_value(at(status, "spool", "bytes_reserve")) > 0);
    has_line(printed(status), "journal    off");
    json_decref(status);

    queue_quarantine(manager_queue(w.manager), w.id, "no reason");
    status = status_make(w.manager, 0, 0, false);
    is_at(status, "queue", "corrupt", 1);
    is_at(status, "queue", "hold", 0);
    is_at(status, "totals", "quarantined", 1);
    json_decref(status);
}

TEST(journal)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.settings.queue.journal_size = 8 << 20;
    w.settings.queue.journal_message_max = 64 * 1024;
    world_restart(&w);
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good@b.test");
    json_t *status = status_make(w.manager, 0, 0, false);
    ok(json_integer_value(at(status, "journal", "segments")) > 1);
    is_at(status, "journal", "messages", 1);
    is_at(status, "journal", "damages", 0);
    ok(json_integer_value(at(status, "journal", "batches")) >= 1);
    ok(json_is_false(at(status, "journal", "full")));
    is_at(status, "queue", "active", 1);
    is_at(status, "sessions", "out", 1);
    json_decref(status);
    world_unstall(&w);
    world_turns(&w);
}

/* A site that is down, and one with a full window. */
TEST(sites)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "dead.test smtp://dead.test?initial=1\n* "
                            "smtp://sink.test?concurrency=1&initial=1");
    world_deliver(&w, "ann@a.test", "site@dead.test");
    w.stalled = true;
    world_deliver(&w, "ann@a.test", "good1@b.test");
    world_deliver(&w, "ann@a.test", "good2@b.test");
    json_t *status = status_make(w.manager, 0, 0, false);
    const json_t *sites = at(status, NULL, "sites");
    is_number((long)json_array_size(sites), 2, "two sites");
    is_at(status, "site_totals", "sites", 2);
    is_at(status, "site_totals", "dead", 1);
    is_at(status, "site_totals", "destinations", 2);
    is_at(status, "site_totals", "waiting", 2);
    is_at(status, "site_totals", "backlogged", 1);
    is_at(status, "limits", "active_limit", 1000);
    is_at(status, "limits", "active_recipient_limit", 0);
    is_number((long)json_integer_value(json_object_get(status, "active_recipients")), 2,
              "their recipients");
    is_at(status, "limits", "delivery_session_limit", 100);
    is_at(status, "sessions", "out", 1);
    is_at(status, "sessions", "idle", 0);
    is_at(status, "sessions", "busy", 0);
    const json_t *busy = json_array_get(sites, 0), *dead = json_array_get(sites, 1);
    is_string(string_at(busy, NULL, "site"), "smtp:[sink.test]:25", "most mail first");
    is_string(string_at(busy, NULL, "bound"), "window", "what binds");
    is_string(string_at(dead, NULL, "state"), "dead", "the other is dead");
    is_string(string_at(dead, NULL, "reason"), "site is down", "why");
    const char *text = printed(status);
    has_line(text, "sites      2; dead: 1; destinations: 2; recipients waiting: 2; "
                   "messages backlogged: 1");
    has_line(text,
             "  smtp:[sink.test]:25                      2          0      1    1    0"
             "    0       -        -        -  alive, window");
    json_decref(status);
    world_unstall(&w);
    world_turns(&w);
}

/* More of them than are shown. */
TEST(many_sites)
{
    char to[40];
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* mx?initial=1");
    for (int i = 0; i < 30; i++) {
        snprintf(to, sizeof(to), "site@n%d.test", i);
        world_deliver(&w, "ann@a.test", to);
    }
    json_t *status = status_make(w.manager, 0, 0, false);
    is_number((long)json_array_size(at(status, NULL, "sites")), 20, "20 are told");
    is_at(status, "site_totals", "sites", 30);
    has_line(printed(status), "  (sites with most mail; --sites shows all)");
    json_decref(status);
}

TEST(refusing)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    w.settings.queue.bytes_reserve = INT64_C(1) << 60;
    world_restart(&w);
    json_t *status = status_make(w.manager, 0, 0, false);
    ok(json_is_false(at(status, NULL, "accepting")));
    is_string(string_at(status, NULL, "reason"), "the disk is full", "why");
    has_line(printed(status), "accepting  no: the disk is full");
    json_decref(status);
}

/* --- For people ------------------------------------------------------------------- */

static const char full[] =
    "{\"version\":\"1.2\",\"uptime_s\":11520,\"accepting\":true,\"reason\":\"\","
    "\"syncs\":77,\"spool\":{\"path\":\"/var/spool/x\",\"sync\":\"aio\","
    "\"bytes_free\":20500000000,\"inodes_free\":1234567,\"bytes_reserve\":67108864,"
    "\"inodes_reserve\":1000},\"journal\":{\"segments\":64,\"free_segments\":60,"
    "\"messages\":12,\"batches\":345,\"full\":false,\"damages\":0},\"queue\":{"
    "\"incoming\":1,"
    "\"active\":2,\"deferred\":3,\"hold\":4,\"corrupt\":5,\"defrag\":6},\"sessions\":{"
    "\"in\":6,\"stress\":true,"
    "\"out\":7},\"totals\":{\"stored\":8,\"ended\":9,\"quarantined\":10}}";

TEST(page)
{
    json_t *status = json_loads(full, 0, NULL);
    const char *text = printed(status);
    has_line(text, "petrel     1.2, up 3 h 12 min");
    has_line(text, "accepting  yes");
    has_line(text, "spool      /var/spool/x");
    has_line(text,
             "space      20.5 GB and 1234567 files free; the last 67.1 MB and 1000 "
             "files are reserved for accepted mail");
    has_line(text, "syncs      77, in the background (aio)");
    has_line(text, "journal    12 messages; 60 of 64 segments free; 345 batches");
    has_line(
        text,
        "queue      1 incoming, 2 active, 3 deferred, 4 hold, 5 corrupt, 6 defrag");
    json_object_set_new(status, "active_recipients", json_integer(70));
    has_line(printed(status), "queue      1 incoming, 2 active (70 recipients), 3 "
                              "deferred, 4 hold, 5 corrupt, 6 defrag");
    text = printed(status);
    has_line(text, "sessions   6 in (stress: near the limit), 7 out");
    has_line(text, "so far     8 stored, 9 ended, 10 quarantined");

    json_object_set_new(json_object_get(status, "spool"), "sync",
                        json_string("blocking"));
    json_object_set_new(json_object_get(status, "spool"), "bytes_free",
                        json_integer(-1));
    json_object_set_new(json_object_get(status, "spool"), "inodes_free",
                        json_integer(-1));
    json_object_set_new(json_object_get(status, "journal"), "full", json_true());
    json_object_set_new(status, "uptime_s", json_integer(90000));
    text = printed(status);
    has_line(text, "petrel     1.2, up 1 d 1 h");
    has_line(text, "space      unknown; the last 67.1 MB and 1000 files are reserved "
                   "for accepted mail");
    has_line(text, "syncs      77, blocking: all sessions wait for each");
    has_line(text, "journal    12 messages; 60 of 64 segments free; 345 batches; full: "
                   "new mail waits for the spool");
    json_object_set_new(json_object_get(status, "journal"), "full", json_false());
    json_object_set_new(json_object_get(status, "journal"), "damages", json_integer(2));
    has_line(printed(status), "journal    12 messages; 60 of 64 segments free; 345 "
                              "batches; damaged pieces found at startup, kept in "
                              "corrupt/: 2");
    json_object_set_new(status, "uptime_s", json_integer(59));
    has_line(printed(status), "petrel     1.2, up 59 s");
    json_object_set_new(status, "uptime_s", json_integer(60));
    has_line(printed(status), "petrel     1.2, up 1 min");
    json_decref(status);
}

/* The daemon's sandbox, whole, partly, and with calls that it refused. */
TEST(sandbox)
{
    struct sandbox_state state = {.entered = true, .landlock = 7, .seccomp = true};
    json_t *status = json_pack("{s:o}", "sandbox", status_sandbox(&state));
    is_at(status, "sandbox", "landlock", 7);
    is_at(status, "sandbox", "refused", 0);
    ok(json_is_true(at(status, "sandbox", "seccomp")));
    has_line(printed(status), "sandbox    Landlock (ABI 7), seccomp");
    json_object_set_new(json_object_get(status, "sandbox"), "refused", json_integer(3));
    has_line(printed(status),
             "sandbox    Landlock (ABI 7), seccomp; system calls refused: 3");
    json_decref(status);
    state = (struct sandbox_state){.entered = true, .missing = "all of it"};
    status = json_pack("{s:o}", "sandbox", status_sandbox(&state));
    is_string(string_at(status, "sandbox", "missing"), "all of it", "what is missing");
    has_line(printed(status), "sandbox    off; this system lacks: all of it");
    json_decref(status);
}

/* The listeners and their certificates. */
TEST(listeners)
{
    const int64_t day_ms = 24 * 3600 * 1000;
    json_t *status = json_pack(
        "{s:[{s:s,s:s,s:s,s:i,s:i},{s:s,s:s,s:s,s:i,s:i},{s:s,s:s}],s:[{s:[s,s],s:i,s:I,s:b},{s:[],s:i,s:I,s:b}]}",
        "listeners", "address", "127.0.0.1:25", "kind", "smtp", "tls", "starttls", "sessions", 2, "accepted", 7,
        "address", "[::1]:8025", "kind", "http", "tls", "none", "sessions", 0, "accepted", 0, "address", "/run/control", "kind", "control",
        "certificates", "names", "mx.example", "mail.example", "name_count", 3, "not_after_ms", (json_int_t)(89 * day_ms), "valid", 1,
        "names", "name_count", 0, "not_after_ms", (json_int_t)(-2 * day_ms), "valid", 0);
    ok(status != NULL);
    const char *text = printed(status);
    has_line(text, "listening  127.0.0.1:25 smtp, starttls; connections: 2 open, 7 so far");
    has_line(text, "           [::1]:8025 http; connections: 0 open, 0 so far");
    has_line(text, "certs      mx.example and 2 more: valid until 1970-03-31 00:00:00Z (in 89 d 0 h)");
    has_line(text, "           without a name: expired 1969-12-30 00:00:00Z (2 d 0 h ago)");
    ok_named(strstr(text, "/run/control") == NULL, "not the socket by which this was asked");
    json_decref(status);
}
