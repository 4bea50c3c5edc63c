/* Proves what readers of the live stream get: numbers without an unexplained gap, a share of a second for each kind,
 * places to go on from, a status that is not sent again; and that nothing is kept for nobody. */
#include "admin/api/live.h"

#include "base/loop/loop.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"
/* link: t/sim/loop.c */

#define FIRST (UINT64_C(1750000000000)) /* SIM_WALL_START_MS */

struct world {
    struct loop *loop;
    struct event_hub *events;
    struct live *live;
    unsigned asked, waiting, woken;
    size_t status_size; /* 0: none is made long */
};

static json_t *
status(void *context)
{
    struct world *w = context;
    w->asked++;
    json_t *made = json_pack("{s:i,s:i}", "uptime_s", (int)w->asked, "waiting", (int)w->waiting);
    if (w->status_size > 0) {
        char *text = calloc(1, w->status_size + 1);
        memset(text, 'x', w->status_size);
        json_object_set_new(made, "text", json_string(text));
        free(text);
    }
    return made;
}

static void
wake(void *context)
{
    struct world *w = context;
    w->woken++;
}

static void
begin(struct world *w, bool has_status)
{
    *w = (struct world){.loop = sim_loop_new(1)};
    w->events = event_hub_new(NULL);
    w->live = live_new(&(struct live_setup){
        .loop = w->loop, .events = w->events, .status = has_status ? status : NULL, .context = w});
}

static void
end(struct world *w)
{
    live_free(&w->live);
    ok(w->live == NULL);
    live_free(&w->live);
    event_hub_free(&w->events);
    loop_free(&w->loop);
}

static struct live_reader *
reader(struct world *w)
{
    return live_begin(w->live, &(struct live_place){.is_set = false}, wake, w);
}

static struct live_reader *
reader_from(struct world *w, uint64_t after)
{
    return live_begin(w->live, &(struct live_place){.is_set = true, .after = after}, wake, w);
}

/* The reader's input; "id: " numbers count from FIRST, and the time is left out. */
static const char *
read_more(struct live_reader *r)
{
    static char text[400000];
    struct buffer out;
    text[0] = '\0';
    buffer_init(&out, LIVE_MORE_MAX);
    bool more = live_more(r, &out);
    ok(more == (out.length > 0));
    size_t size = 0;
    struct text rest = buffer_text(&out), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        uint64_t number;
        if (text_starts(line, TEXT("id: ")) && text_number(text_after(line, 4), INT64_MAX, &number))
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%" PRIu64 " ", number - FIRST);
        else if (text_starts(line, TEXT("event: ")))
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%.*s ", TEXT_ARGS(text_after(line, 7)));
        else if (text_starts(line, TEXT("data: ")))
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%.*s\n", TEXT_ARGS(text_after(line, 6)));
        else if (line.length > 0)
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%.*s\n", TEXT_ARGS(line));
    }
    buffer_free(&out);
    return text;
}

static void
tell(struct world *w, enum event_kind kind)
{
    static const struct event_client client = {.name = "[192.0.2.1]", .helo = "x", .uid = EVENT_NO_UID};
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = 554, .enhanced = "5.7.1", .text = "no"};
    event_tell(w->events, &(struct event){.kind = kind,
                                          .id = {.time_ms = kind == EVENT_ENDED ? 1 : 0, .hash = 7},
                                          .client = &client,
                                          .text = TEXT("words"),
                                          .outcome = &outcome});
}

static void
tell_many(struct world *w, enum event_kind kind, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        tell(w, kind);
}

static unsigned
count(const char *text, const char *word)
{
    unsigned found = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word))
        found++;
    return found;
}

#define ENDED(n) #n " event {\"type\":\"ended\",\"time_ms\":1750000000000,\"text\":\"words\",\"message\":\"0000000001-00000007\"}\n"

TEST(events)
{
    FIXTURE(world, w, begin, end, false);
    tell(&w, EVENT_ENDED);
    is_number(live_kept(w.live), 0, "nobody reads: nothing is kept");
    ok_named(!event_is_read(w.events, EVENT_ENDED), "and nothing is looked at");
    struct live_reader *r = reader(&w), *other = reader(&w);
    ok(event_is_read(w.events, EVENT_ENDED) && !event_is_read(w.events, EVENT_LOADED));
    is_string(read_more(r), "", "nothing happens");
    tell(&w, EVENT_ENDED);
    is_number(w.woken, 2, "both readers are woken");
    tell(&w, EVENT_ENDED);
    is_string(read_more(r), ENDED(1) ENDED(2), "two events");
    is_string(read_more(r), "", "once");
    tell(&w, EVENT_LOST);
    is_string(read_more(r),
              "3 event {\"type\":\"lost\",\"time_ms\":1750000000000,\"client\":\"192.0.2.1\",\"text\":\"words\",\"message\":null}\n",
              "a session, without an id");
    ok(count(read_more(other), " event ") == 3);
    live_end(&r);
    live_end(&other);
    ok(r == NULL);
    live_end(&r);
}

/* The events of clients, as the stream has them. */
TEST(sessions)
{
    static const struct event_client client = {.name = "[IPv6:2001:db8::1]", .uid = EVENT_NO_UID};
    FIXTURE(world, w, begin, end, false);
    struct live_reader *r = reader(&w);
    event_tell(w.events, &(struct event){.kind = EVENT_SECURED, .client = &client,
                                         .tls = TEXT("TLSv1.3 with cipher X"), .text = TEXT("Anonymous")});
    event_tell(w.events, &(struct event){.kind = EVENT_SECURED, .relay = TEXT("mx.test[192.0.2.1]:25"),
                                         .tls = TEXT("TLSv1.2 with cipher X"), .text = TEXT("Verified")});
    event_tell(w.events, &(struct event){.kind = EVENT_CUT_OFF, .client = &client, .command = TEXT("RCPT, <"),
                                         .text = TEXT("too many errors")});
    const char *got = read_more(r);
    ok_named(strstr(got, "\"client\":\"2001:db8::1\",\"tls\":\"TLSv1.3\",\"text\":\"Anonymous\","), "TLS in");
    ok_named(strstr(got, "\"relay\":\"mx.test[192.0.2.1]:25\",\"tls\":\"TLSv1.2\",\"text\":\"Verified\","), "TLS out");
    ok_named(strstr(got, "\"command\":\"RCPT"), "the last command");
    ok_named(count(got, "\"text\":\"too many errors\",") == 1, "and why it ended");
    live_end(&r);
}

TEST(shares)
{
    FIXTURE(world, w, begin, end, false);
    struct live_reader *r = reader(&w);
    tell_many(&w, EVENT_CONNECTED, 1000);
    tell_many(&w, EVENT_REFUSED, 1000);
    is_number(live_kept(w.live), LIVE_SESSIONS_A_SECOND + LIVE_REFUSALS_A_SECOND, "what clients cause");
    tell_many(&w, EVENT_ENDED, 1000);
    is_number(live_kept(w.live), LIVE_A_SECOND, "leaves room for mail");
    const char *got = read_more(r);
    is_number(count(got, "\"type\":\"connected\""), LIVE_SESSIONS_A_SECOND, "sessions");
    is_number(count(got, "\"type\":\"refused\""), LIVE_REFUSALS_A_SECOND, "refusals");
    is_number(count(got, "\"type\":\"ended\""), 30, "mail");
    ok(strstr(got, "1000 skipped {\"count\":970}\n1001 event "));
    ok(strstr(got, "2000 skipped {\"count\":960}\n2001 event "));
    ok_named(strstr(got, "\n3000 skipped {\"count\":970}\n"), "each gap is explained, and the last");
    is_string(read_more(r), "", "once");
    sim_loop_advance(w.loop, 1000);
    tell(&w, EVENT_ENDED);
    ok_named(strstr(read_more(r), "3001 event "), "the next second has its own");
    unsigned woken = w.woken;
    event_tell(w.events, &(struct event){.kind = EVENT_REFUSED, .is_quiet = true});
    is_number(w.woken, woken, "what the log does not say wakes nobody");
    sim_loop_advance(w.loop, 1000);
    is_string(read_more(r), "3002 skipped {\"count\":1}\n", "but is counted");
    live_end(&r);
}

/* A reader that does not read costs nothing, and hears how much it missed. */
TEST(slow)
{
    FIXTURE(world, w, begin, end, false);
    struct live_reader *r = reader(&w);
    for (int i = 0; i < 15; i++) {
        tell_many(&w, EVENT_ENDED, LIVE_A_SECOND);
        sim_loop_advance(w.loop, 1000);
    }
    is_number(live_kept(w.live), LIVE_KEPT_MAX, "the last are kept");
    const char *got = read_more(r);
    ok_named(strncmp(got, "500 skipped {\"count\":500}\n501 event ", 36) == 0, "the others were missed");
    unsigned events = count(got, " event ");
    ok_named(events > 0 && events < LIVE_KEPT_MAX, "a piece at a time");
    for (int i = 0; i < 20 && events < LIVE_KEPT_MAX; i++)
        events += count(read_more(r), " event ");
    is_number(events, LIVE_KEPT_MAX, "all that are kept");
    is_string(read_more(r), "", "and no more");
    live_end(&r);
}

/* Events that are large push out more of the old ones. */
TEST(bytes)
{
    static char large[6000];
    memset(large, '\\', sizeof(large));
    FIXTURE(world, w, begin, end, false);
    struct live_reader *r = reader(&w);
    for (int i = 0; i < 20; i++) {
        for (int n = 0; n < 50; n++)
            event_tell(w.events, &(struct event){.kind = EVENT_HELD, .id = {.time_ms = 1, .hash = 7},
                                                 .text = text_of(large, sizeof(large))});
        sim_loop_advance(w.loop, 1000);
    }
    size_t kept = live_kept(w.live);
    ok_named(kept > 50 && kept < LIVE_KEPT_MAX, "bytes are limited");
    unsigned events = 0;
    for (int i = 0; i < 1000 && events < kept; i++) {
        const char *got = read_more(r);
        events += count(got, " event ");
        ok(got[0] != '\0');
    }
    is_number(events, kept, "what is kept is read");
    live_end(&r);
}

TEST(places)
{
    FIXTURE(world, w, begin, end, false);
    struct live_reader *r = reader(&w);
    tell_many(&w, EVENT_ENDED, 3);
    live_end(&r);
    r = reader_from(&w, FIRST + 1);
    is_string(read_more(r), ENDED(2) ENDED(3), "it goes on where it was");
    live_end(&r);
    r = reader_from(&w, FIRST + 3);
    is_string(read_more(r), "", "where it was at the end");
    live_end(&r);
    r = reader_from(&w, 0);
    is_string(read_more(r), ENDED(1) ENDED(2) ENDED(3), "all that is kept");
    live_end(&r);
    r = reader_from(&w, FIRST - 10);
    is_string(read_more(r), "0 skipped {\"count\":null}\n" ENDED(1) ENDED(2) ENDED(3), "before anybody read");
    live_end(&r);
    r = reader_from(&w, FIRST + 100);
    is_string(read_more(r), "3 skipped {\"count\":null}\n", "a number that is not ours");
    live_end(&r);
    r = reader(&w);
    is_string(read_more(r), "", "without a place: what comes");
    live_end(&r);
    sim_loop_advance(w.loop, LIVE_KEEP_MS - 1);
    is_number(live_kept(w.live), 3, "kept for a minute");
    sim_loop_advance(w.loop, 1);
    is_number(live_kept(w.live), 0, "and no longer");
    ok(!event_is_read(w.events, EVENT_ENDED));
    tell(&w, EVENT_ENDED);
    r = reader_from(&w, FIRST + 3);
    ok_named(strstr(read_more(r), "skipped {\"count\":null}"), "nobody knows what happened meanwhile");
    live_end(&r);
    r = reader_from(&w, 0);
    is_string(read_more(r), "", "nothing is kept");
    live_end(&r);
}

TEST(readers)
{
    struct live_reader *readers[LIVE_READERS_MAX];
    FIXTURE(world, w, begin, end, true);
    for (int i = 0; i < LIVE_READERS_MAX; i++)
        readers[i] = reader(&w);
    is_number(live_readers(w.live), LIVE_READERS_MAX, "so many");
    ok_named(reader(&w) == NULL, "and no more");
    is_number(w.asked, 1, "one status for all");
    live_end(&readers[3]);
    readers[3] = reader(&w);
    ok_named(readers[3] != NULL, "where one goes, one may come");
    ok(strstr(read_more(readers[0]), "0 status {") && strstr(read_more(readers[3]), "0 status {"));
    for (int i = 0; i < LIVE_READERS_MAX; i++)
        live_end(&readers[i]);
}

TEST(status)
{
    FIXTURE(world, w, begin, end, true);
    struct live_reader *r = reader(&w);
    is_string(read_more(r), "0 status {\"waiting\":0,\"uptime_s\":1}\n", "first of all");
    sim_loop_advance(w.loop, 5000);
    is_number(w.asked, 6, "it is looked at each second");
    is_string(read_more(r), "", "time alone does not change it");
    w.waiting = 3;
    sim_loop_advance(w.loop, 500);
    is_string(read_more(r), "", "not before the second is over");
    sim_loop_advance(w.loop, 500);
    is_string(read_more(r), "0 status {\"waiting\":3,\"uptime_s\":7}\n", "what has changed");
    sim_loop_advance(w.loop, LIVE_COMMENT_MS - 1);
    is_string(read_more(r), "", "silence");
    sim_loop_advance(w.loop, 1);
    is_string(read_more(r), ":\n", "a comment, so that the way is known to be open");
    is_string(read_more(r), "", "once");
    w.status_size = LIVE_TEXT_MAX;
    sim_loop_advance(w.loop, 1000);
    is_string(read_more(r), "", "one that is too large is not sent");
    w.status_size = LIVE_TEXT_MAX - 100;
    tell_many(&w, EVENT_ENDED, LIVE_A_SECOND);
    sim_loop_advance(w.loop, 1000);
    is_number(count(read_more(r), " event "), LIVE_A_SECOND, "events,");
    live_end(&r);
    r = reader(&w);
    ok_named(strstr(read_more(r), "100 status {"), "and a large status");
    live_end(&r);
    sim_loop_advance(w.loop, LIVE_KEEP_MS);
    unsigned asked = w.asked;
    sim_loop_advance(w.loop, LIVE_KEEP_MS);
    is_number(w.asked, asked, "nobody reads, nobody asks");
}
