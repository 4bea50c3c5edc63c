/* Events are handed over a batch at a time: each answer of a receiver and each failure of a
 * file has its outcome, no answer makes an event vanish, and requests are signed. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c t/sim/http_call.c */
#include "base/event/event_post.h"

#include "base/crypto/base64.h"
#include "base/crypto/digest.h"
#include "base/log/log_internal.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/sim/sim_http.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

#define URL   "https://app.test/hook?token=canary"
#define OTHER "https://other.test/hook"
enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS, HOUR_MS = 60 * MINUTE_MS };

struct posting {
    struct loop *loop;
    struct log *log;
    struct event_hub *hub;
    struct disk *disk;
    struct event_spool *spool;
    struct http_caller *http;
    struct event_post *post;
    struct event_post_settings settings;
    struct buffer said;
    unsigned told;
};

static void
post_turn(void *context)
{
    gate_write(event_hub_gate(((struct posting *)context)->hub));
}

static void
post_begin(struct posting *p, const char *url)
{
    *p = (struct posting){.loop = sim_loop_new(1)};
    p->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&p->said, 1 << 24);
    log_capture(p->log, &p->said);
    p->hub = event_hub_new(p->log);
    if (disk_open(&p->disk, "/spool", true) < 0)
        abort();
    (void)disk_sync_on(p->disk, p->loop);
    struct event_spool_settings spool = {.loop = p->loop,
                                         .hub = p->hub,
                                         .disk = p->disk,
                                         .directory = "events",
                                         .host = "mx.example.org",
                                         .kinds = EVENT_RECORD_KINDS,
                                         .bytes_max = 1 << 26};
    is_number(event_spool_open(&p->spool, &spool), 0, "open");
    loop_at_end(p->loop, LOOP_SYNC_MARKS, post_turn, p);
    p->http = http_caller_new(&(struct http_caller_settings){.loop = p->loop});
    p->settings = (struct event_post_settings){.url = text_from(url),
                                               .secrets = TEXT("canary-secret-of-24-octets"),
                                               .batch = 10,
                                               .linger_ms = 2 * SECOND_MS};
    p->post = event_post_new(&(struct event_post_setup){.loop = p->loop,
                                                        .log = p->log,
                                                        .spool = p->spool,
                                                        .http = p->http,
                                                        .disk = p->disk},
                             &p->settings);
}

static void
post_end(struct posting *p)
{
    ok_named(p->said.length == 0 || memmem(p->said.at, p->said.length, "canary", 6) == NULL,
             "no secret in the log");
    event_post_free(&p->post);
    http_caller_free(&p->http);
    event_spool_close(&p->spool);
    disk_close(&p->disk);
    event_hub_free(&p->hub);
    log_free(&p->log);
    buffer_free(&p->said);
    loop_free(&p->loop);
}

/* So many recipients have their mail. */
static void
post_tell(struct posting *p, unsigned count)
{
    struct outcome outcome = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "ok");
    while (count-- > 0) {
        struct event_origin origin = {.recipient = ++p->told};
        event_tell(p->hub, &(struct event){.kind = EVENT_DELIVERED,
                                           .id = {.time_ms = 1750000000000, .hash = 5},
                                           .recipient = TEXT("r@a.example"),
                                           .reason = "",
                                           .origin = &origin,
                                           .outcome = &outcome});
    }
}

static bool
post_said(const struct posting *p, const char *words)
{
    return p->said.length > 0 &&
           memmem(p->said.at, p->said.length, words, strlen(words)) != NULL;
}

/* The id of the last request. */
static const char *
last_id(const struct posting *p)
{
    static char id[EVENT_ID_MAX];
    struct text fields = sim_http_fields(p->http), line;
    id[0] = '\0';
    if (text_cut(&fields, '\r', &line) && text_starts(line, TEXT("webhook-id: ")))
        text_copy(id, sizeof(id), text_after(line, 12));
    return id;
}

/* After an answer: events wait or not, and when the next request comes. */
static int64_t
next_call_ms(struct posting *p)
{
    unsigned before = sim_http_calls(p->http);
    for (int64_t ms = 0; ms <= 3 * HOUR_MS; ms += 100) {
        if (sim_http_calls(p->http) > before)
            return ms;
        sim_loop_advance(p->loop, 100);
    }
    return -1;
}

static void
is_about(int64_t got, int64_t want, const char *name)
{
    char text[300];
    snprintf(text, sizeof(text), "%s: %lld ms", name, (long long)got);
    ok_named(got >= want - 200 && got <= want + 200, text);
}

/* --- Answers ---------------------------------------------------------------------- */

TEST(taken)
{
    static const char page[300 * 1024] = {[0 ... 300 * 1024 - 2] = 'x'};
    struct {
        unsigned status;
        const char *type, *body;
    } rows[] = {{200, NULL, ""},
                {204, NULL, ""},
                {202, "text/html", "<p>thank you"},
                {200, "text/html", page},
                {200, "text/html\r\nContent-Encoding: gzip", "zzz"}};
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, URL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char name[60];
        sim_http_answer(p.http, URL, rows[i].status, rows[i].type, rows[i].body);
        post_tell(&p, 1);
        is_about(next_call_ms(&p), 2 * SECOND_MS, "one event lingers");
        sim_loop_advance(p.loop, SECOND_MS);
        struct event_post_view view = event_post_look(p.post);
        snprintf(name, sizeof(name), "%u with %zu octets takes it", rows[i].status,
                 strlen(rows[i].body));
        ok_named(view.state == EVENT_POST_IDLE && view.batches == i + 1 && view.failures == 0,
                 name);
        is_number((long)event_spool_figures(p.spool).pending_bytes, 0, "none waits");
    }
    post_tell(&p, 10);
    is_about(next_call_ms(&p), 0, "a whole batch does not linger");
}

/* A failed batch comes again, with the same id and body, and later each time. */
TEST(backoff)
{
    static const int64_t waits[] = {5, 10, 20, 40, 80, 160, 320, 640, 900, 900};
    char id[EVENT_ID_MAX], want[200];
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, URL);
    sim_http_answer(p.http, URL, 500, "text/html", "<p>no");
    post_tell(&p, 3);
    next_call_ms(&p);
    snprintf(id, sizeof(id), "%s", last_id(&p));
    ok_named(text_ends_nocase(text_from(id), TEXT("-1-1")), "the id is that of the first event");
    struct text body = sim_http_body(p.http);
    char *first = text_string(body);
    for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
        post_tell(&p, 20);
        snprintf(want, sizeof(want), "try %zu", i + 2);
        is_about(next_call_ms(&p), waits[i] * SECOND_MS, want);
        is_string(last_id(&p), id, "its id");
        is_text(sim_http_body(p.http), text_from(first), "its body");
    }
    struct event_post_view view = event_post_look(p.post);
    is_string(view.why, "status 500", "why");
    ok_named(view.failing_ms > 40 * MINUTE_MS, "how long");
    is_number((long)view.failures, 10, "how often");
    ok(post_said(&p, "warning: https://app.test does not take events, which wait: status 500"));
    sim_http_answer(p.http, URL, 200, NULL, "");
    next_call_ms(&p);
    sim_loop_advance(p.loop, MINUTE_MS);
    ok(post_said(&p, "https://app.test takes events again, after 10 failed tries"));
    is_number((long)event_spool_figures(p.spool).pending_bytes, 0, "all are taken");
    sim_http_fail(p.http, URL, "app.test: certificate has expired");
    post_tell(&p, 1);
    next_call_ms(&p);
    is_about(next_call_ms(&p), 5 * SECOND_MS, "then it begins anew");
    is_string(event_post_look(p.post).why, "app.test: certificate has expired", "another why");
    free(first);
}

TEST(retry_after)
{
    static const struct {
        unsigned status;
        const char *after;
        int64_t wait_ms;
    } rows[] = {{429, "100", 100 * SECOND_MS},
                {503, "7200", HOUR_MS},
                {429, "1", 5 * SECOND_MS},
                {429, "99999999999999999999", 5 * SECOND_MS},
                {500, "soon", 5 * SECOND_MS},
                {429, "Sun, 15 Jun 2025 15:10:00 GMT", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char type[100], name[100];
        sim_disk_reset();
        FIXTURE(posting, p, post_begin, post_end, URL);
        snprintf(type, sizeof(type), "text/plain\r\nRetry-After: %s", rows[i].after);
        snprintf(name, sizeof(name), "%u, Retry-After: %s", rows[i].status, rows[i].after);
        sim_http_answer(p.http, URL, rows[i].status, type, "x");
        post_tell(&p, 1);
        next_call_ms(&p);
        sim_loop_advance(p.loop, SIM_HTTP_DELAY_MS + 1);
        int64_t until = INT64_C(1750000200000) - loop_now_ms(p.loop);
        is_about(next_call_ms(&p), rows[i].wait_ms > 0 ? rows[i].wait_ms : until, name);
    }
}

TEST(gone)
{
    static const char page[300 * 1024] = {[0 ... 300 * 1024 - 2] = 'x'};
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, URL);
    sim_http_answer(p.http, URL, 410, "text/html", page);
    post_tell(&p, 1);
    next_call_ms(&p);
    is_number(next_call_ms(&p), -1, "410 stops");
    is_number(event_post_look(p.post).state, EVENT_POST_STOPPED, "which is shown");
    ok(post_said(&p, "error: https://app.test answers 410 (gone): events wait for a reload"));
    post_tell(&p, 30);
    is_number(next_call_ms(&p), -1, "whatever comes");
    sim_http_answer(p.http, OTHER, 200, NULL, "");
    p.settings.url = TEXT(OTHER);
    event_post_use(p.post, &p.settings);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_string(sim_http_url(p.http), OTHER, "a reload goes on, elsewhere");
    is_number((long)event_spool_figures(p.spool).pending_bytes, 0, "with all of them");
}

/* The settings change while a request is under way: the batch goes to the new receiver. */
TEST(reload)
{
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, URL);
    sim_http_delay(p.http, 20 * SECOND_MS);
    sim_http_answer(p.http, URL, 200, NULL, "");
    sim_http_answer(p.http, OTHER, 200, NULL, "");
    post_tell(&p, 10);
    next_call_ms(&p);
    char id[EVENT_ID_MAX];
    snprintf(id, sizeof(id), "%s", last_id(&p));
    p.settings.url = TEXT(OTHER);
    p.settings.secrets = TEXT("another-secret-of-28-octets, canary-secret-of-24-octets");
    event_post_use(p.post, &p.settings);
    sim_loop_advance(p.loop, SECOND_MS);
    is_string(sim_http_url(p.http), OTHER, "to the new one");
    is_string(last_id(&p), id, "the same batch");
    struct text fields = sim_http_fields(p.http);
    is_number((long)(text_find_last(fields, ',') - text_find(fields, ',')), 48,
              "with two signatures");
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number((long)event_post_look(p.post).batches, 1, "which takes it, once");
    is_number((long)sim_http_calls(p.http), 2, "nothing else was sent");
}

/* The wall clock says when; waits do not follow it. */
TEST(clock)
{
    static const int64_t steps[] = {-10 * 24 * HOUR_MS, 10 * 24 * HOUR_MS};
    for (size_t i = 0; i < 2; i++) {
        sim_disk_reset();
        FIXTURE(posting, p, post_begin, post_end, URL);
        sim_http_answer(p.http, URL, 500, NULL, "");
        post_tell(&p, 1);
        next_call_ms(&p);
        sim_loop_advance(p.loop, SECOND_MS);
        sim_loop_step_wall(p.loop, steps[i]);
        is_about(next_call_ms(&p), 4 * SECOND_MS + SIM_HTTP_DELAY_MS, "the clock is set");
        ok(event_post_look(p.post).failing_ms < MINUTE_MS);
        char want[40];
        struct text fields = sim_http_fields(p.http);
        snprintf(want, sizeof(want), "webhook-timestamp: %lld\r",
                 (long long)(loop_now_ms(p.loop) / 1000));
        ok_named(memmem(fields.at, fields.length, want, strlen(want)) != NULL ||
                     memmem(fields.at, fields.length, want, strlen(want) - 2) != NULL,
                 "the time of the try is that of the clock");
    }
}

/* --- Files ------------------------------------------------------------------------ */

#define LOG_PATH "/var/events.jsonl"

static void
put_file(struct posting *p, const char *path, struct text content)
{
    (void)disk_unlink(p->disk, path);
    int file = disk_create(p->disk, path, 0600);
    if (file < 0 || disk_write(p->disk, file, content) < 0)
        abort();
    disk_close_file(p->disk, file);
}

/* Lines of the file that are whole events; *others: what is none. */
static unsigned
count_events(const char *path, unsigned *others)
{
    struct text rest = sim_disk_content(path), line;
    unsigned count = 0;
    *others = 0;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        char id[EVENT_ID_MAX];
        int64_t time_ms;
        bool whole = line.length > 0 && event_record_read(line, id, &time_ms) &&
                     memmem(line.at + 1, line.length - 1, "{\"id\"", 5) == NULL;
        count += whole;
        *others += !whole;
    }
    return count;
}

TEST(file)
{
    unsigned others;
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, "file:" LOG_PATH);
    if (disk_make_directory(p.disk, "/var", 0755) < 0)
        abort();
    post_tell(&p, 3);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 3, "a line an event");
    is_number(disk_rename(p.disk, LOG_PATH, LOG_PATH ".1"), 0, "moved away");
    post_tell(&p, 1);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH ".1", &others), 3, "which is complete");
    is_number(count_events(LOG_PATH, &others), 1, "a new file is made, without a reload");
    event_post_use(p.post, &p.settings);
    post_tell(&p, 1);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 2, "and stays after one");
    put_file(&p, LOG_PATH, TEXT("half a line of a crash"));
    event_post_use(p.post, &p.settings);
    post_tell(&p, 2);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 2, "a line that was cut off is ended first");
    is_number(others, 1, "and stays what it is");
}

/* A program may rotate the file at any time, and without a word: events are in the old file or the new one. */
TEST(rotation)
{
    unsigned others;
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, "file:" LOG_PATH);
    if (disk_make_directory(p.disk, "/var", 0755) < 0)
        abort();
    post_tell(&p, 1);
    sim_loop_advance(p.loop, MINUTE_MS);
    /* rename, create: "create" of logrotate. */
    is_number(disk_rename(p.disk, LOG_PATH, LOG_PATH ".1"), 0, "moved away");
    put_file(&p, LOG_PATH, TEXT(""));
    post_tell(&p, 1);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 1, "the file that stands in its place");
    /* compress, without a reload: what it still held open would be written to nowhere. */
    (void)disk_unlink(p.disk, LOG_PATH);
    post_tell(&p, 2);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 2, "removed: a new one");
    /* Something else in its place: it waits. */
    is_number(disk_rename(p.disk, LOG_PATH, LOG_PATH ".2"), 0, "moved away");
    if (disk_make_fifo(p.disk, LOG_PATH, 0644) < 0)
        abort();
    post_tell(&p, 2);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_number(count_events(LOG_PATH ".2", &others), 2, "the old one is complete");
    is_string(event_post_look(p.post).why, "cannot append to it: it is a link, or no regular file", "a FIFO");
    ok(post_said(&p, "warning: file:" LOG_PATH " does not take events, which wait"));
    (void)disk_unlink(p.disk, LOG_PATH);
    sim_loop_advance(p.loop, 15 * MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 2, "none is lost");
}

TEST(odd_file)
{
    unsigned others;
    sim_disk_reset();
    FIXTURE(posting, p, post_begin, post_end, "file:" LOG_PATH);
    if (disk_make_directory(p.disk, "/var", 0755) < 0 ||
        disk_make_fifo(p.disk, LOG_PATH, 0644) < 0)
        abort();
    post_tell(&p, 1);
    sim_loop_advance(p.loop, MINUTE_MS);
    is_string(event_post_look(p.post).why, "cannot append to it: it is a link, or no regular file",
              "a FIFO is refused");
    ok(post_said(&p, "warning: file:" LOG_PATH " does not take events"));
    (void)disk_unlink(p.disk, LOG_PATH);
    sim_loop_advance(p.loop, 15 * MINUTE_MS);
    is_number(count_events(LOG_PATH, &others), 1, "it goes on when that is removed");
}

/* Each call of the disk fails once: each event is a line of the file in the end. */
TEST(file_failures)
{
    unsigned missing = 0, glued = 0, calls = 0, others;
    for (uint64_t at = 1;; at++) {
        struct posting p;
        sim_disk_reset();
        post_begin(&p, "file:" LOG_PATH);
        if (disk_make_directory(p.disk, "/var", 0755) < 0)
            abort();
        sim_disk_count_anew();
        sim_disk_fail_at(at, at % 2 == 0 ? ENOSPC : EIO);
        for (int i = 0; i < 3; i++) {
            post_tell(&p, (unsigned)i + 1);
            sim_loop_advance(p.loop, MINUTE_MS);
        }
        unsigned count = count_events(LOG_PATH, &others);
        missing += count < 6;
        glued += others > 1;
        bool failed = sim_disk_has_failed();
        post_end(&p);
        calls++;
        if (!failed)
            break;
    }
    is_number(missing, 0, "no event is missing, whatever call fails");
    is_number(glued, 0, "nothing is glued to a half line");
    ok_named(calls > 20, "many calls were tried");
}

/* --- URLs ------------------------------------------------------------------------- */

TEST(urls)
{
    static const struct {
        const char *url;
        bool good, local;
    } rows[] = {{"https://app.example/", true, false},
                {"https://app.example:8443/a/b?c=d&e=%20", true, false},
                {"https://[2001:db8::1]:8443/a", true, false},
                {"http://[::1]:8080/a", true, true},
                {"http://127.0.0.1/a", true, true},
                {"http://127.9.9.9:1/a", true, true},
                {"http://10.1.2.3/", true, false},
                {"http://[fd00::1]/", true, false},
                {"http://receiver:8080/hook", true, false},
                {"http://localhost/hook", true, true},
                {"file:/var/log/events.jsonl", true, true},
                {"http://app.example/", false, false},
                {"http://8.8.8.8/", false, false},
                {"http://[2001:4860:4860::8888]/", false, false},
                {"http://127.1/", false, false},
                {"http://127.0.0.1.evil.example/", false, false},
                {"https://user:canary@app.example/", false, false},
                {"https://app.example@evil.example/", false, false},
                {"https://app.example/#part", false, false},
                {"https://app.example:0/", false, false},
                {"https://app.example:65536/", false, false},
                {"https://[2001:db8::1/", false, false},
                {"https:///a", false, false},
                {"https://app.example/a b", false, false},
                {"https://app.example/a\r\nX: y", false, false},
                {"ftp://app.example/", false, false},
                {"app.example", false, false},
                {"", false, false},
                {"file:", false, false},
                {"file:/", false, false},
                {"file:events", false, false},
                {"file:/a\nb", false, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct text url = text_from(rows[i].url);
        const char *why = event_post_check_url(url);
        const char *name = text_has_control(url) ? "control characters" : rows[i].url;
        ok_named((why == NULL) == rows[i].good, name);
        if (rows[i].good)
            ok_named(event_post_is_local(url) == rows[i].local, name);
        else
            ok_named(strstr(why, "canary") == NULL, why);
    }
}
