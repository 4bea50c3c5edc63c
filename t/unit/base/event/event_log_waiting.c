/* The lines of mail that waits: how many an outage makes, and that none is missing which
 * tells of the first or the last of a message. */
/* link: t/sim/loop.c */
#include "base/log/log_internal.h"
#include "base/event/event.h"
#include "base/event/event_log.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <string.h>

struct world {
    struct loop *loop;
    struct log *log;
    struct event_hub *hub;
    struct buffer lines;
    unsigned heard; /* by another reader */
};

static void
hear(void *context, const struct event *event)
{
    struct world *w = context;
    w->heard += event->kind == EVENT_DEFERRED;
}

static void
begin(struct world *w, enum log_style style, enum log_level level, bool counts)
{
    *w = (struct world){.loop = sim_loop_new(1)};
    w->log = log_new(w->loop, style, level);
    buffer_init(&w->lines, 1 << 26);
    log_capture(w->log, &w->lines);
    w->hub = event_hub_new(w->log);
    event_read(w->hub, EVENT_ALL, hear, w);
    if (counts)
        event_hub_count_waiting(w->hub, w->loop);
}

static void
finish(struct world *w)
{
    event_hub_free(&w->hub);
    log_capture(w->log, NULL);
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->lines);
}

static unsigned
lines_with(const struct world *w, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text(&w->lines);
    size_t end;
    while ((end = text_find(rest, '\n')) != TEXT_NONE) {
        count += memmem(rest.at, end, words, strlen(words)) != NULL;
        rest = text_after(rest, end + 1);
    }
    return count;
}

static struct id
message_id(unsigned message)
{
    return (struct id){.time_ms = SIM_WALL_START_MS + message, .hash = message};
}

/* A verdict about the message of that number. */
static void
tell(struct world *w, enum event_kind kind, unsigned message, bool is_again,
     const char *site)
{
    char recipient[64], helo[] = "client.example.org";
    static const char suspended[] = "delivery temporarily suspended: connect to "
                                    "mx1.receiver.example[192.0.2.25]:25: "
                                    "Connection refused";
    struct event_client client = {.name = "[192.0.2.200]",
                                  .helo = helo,
                                  .protocol = "ESMTP",
                                  .uid = EVENT_NO_UID};
    struct outcome outcome =
        kind == EVENT_DELIVERED ? outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250,
                                               "2.0.0", "250 2.0.0 Ok: queued as 4XyZ")
        : kind == EVENT_DEFERRED
            ? outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.1", "%s", suspended)
            : outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                           "550 5.1.1 no such user");
    snprintf(outcome.remote, sizeof(outcome.remote), "%s",
             kind == EVENT_DELIVERED ? "mx1.receiver.example[192.0.2.25]:25" : "");
    snprintf(recipient, sizeof(recipient), "customer%u@receiver.example", message);
    event_tell(w->hub,
               &(struct event){
                   .kind = kind,
                   .id = message_id(message),
                   .client = &client,
                   .sender = TEXT("orders@shop.example"),
                   .recipient = text_from(recipient),
                   .size = 4000,
                   .recipients = 1,
                   .total_ms = 61000,
                   .delay_ms = {0, 60000, 0, 0},
                   .tls = text_from(kind == EVENT_DELIVERED ? "TLSv1.3/dane" : ""),
                   .site = site,
                   .is_again = is_again,
                   .outcome = &outcome
    });
}

TEST(quiet)
{
    FIXTURE(world, w, begin, finish, LOG_STYLE_PETREL, LOG_LEVEL_INFO, true);
    for (unsigned i = 0; i < 10; i++) {
        for (unsigned j = 0; j < EVENT_LOG_WAITING_LINES; j++)
            tell(&w, EVENT_DEFERRED, j, true, "smtp:a.example");
        sim_loop_advance(w.loop, EVENT_LOG_WAITING_MS);
    }
    is_number(lines_with(&w, "status=deferred"), 10 * EVENT_LOG_WAITING_LINES,
              "few deferrals have their lines");
    is_number(lines_with(&w, "more_deferred"), 0, "and no other");
}

TEST(many)
{
    FIXTURE(world, w, begin, finish, LOG_STYLE_PETREL, LOG_LEVEL_INFO, true);
    for (unsigned i = 0; i < 500; i++)
        tell(&w, EVENT_DEFERRED, i, false, "smtp:a.example");
    is_number(lines_with(&w, "status=deferred"), 500,
              "the first of each message has its line");
    for (unsigned i = 0; i < 500; i++)
        tell(&w, EVENT_DEFERRED, i, true,
             i % 5 == 0 ? "smtp:b.example" : "smtp:a.example");
    is_number(lines_with(&w, "status=deferred"), 500 + EVENT_LOG_WAITING_LINES,
              "later ones are counted");
    sim_loop_advance(w.loop, EVENT_LOG_WAITING_MS);
    is_number(lines_with(&w, "more_deferred"), 2, "a line a site and minute");
    is_number(lines_with(&w,
                         "queue: site=smtp:a.example, more_deferred=384 (delivery "
                         "temporarily suspended: connect to "
                         "mx1.receiver.example[192.0.2.25]:25: Connection refused)"),
              1, "with the number and the reason");
    is_number(lines_with(&w, "queue: site=smtp:b.example, more_deferred=96 ("), 1,
              "of each");
    for (unsigned i = 0; i < 500; i++)
        tell(&w, i % 2 ? EVENT_DELIVERED : EVENT_BOUNCED, i, true, "smtp:a.example");
    is_number(lines_with(&w, "status=sent") + lines_with(&w, "status=bounced"), 500,
              "the last of each message has its line");
    sim_loop_advance(w.loop, 10 * EVENT_LOG_WAITING_MS);
    is_number(lines_with(&w, "more_deferred"), 2, "a minute without any has none");
    is_number(w.heard, 1000, "other readers have all");
    for (unsigned i = 0; i < 100; i++)
        tell(&w, EVENT_DEFERRED, i, true, NULL);
    event_hub_free(&w.hub);
    is_number(lines_with(&w, "queue: site=none, more_deferred=80 ("), 1,
              "a stop loses nothing");
}

TEST(many_sites)
{
    char site[40];
    FIXTURE(world, w, begin, finish, LOG_STYLE_JSON, LOG_LEVEL_INFO, true);
    for (unsigned i = 0; i < 3 * EVENT_LOG_WAITING_SITES; i++) {
        snprintf(site, sizeof(site), "smtp:%u.example", i);
        tell(&w, EVENT_DEFERRED, i, true, site);
    }
    sim_loop_advance(w.loop, EVENT_LOG_WAITING_MS);
    is_number(lines_with(&w, "\"event\":\"waiting\""), EVENT_LOG_WAITING_SITES + 1,
              "the sites have a limit");
    char others[80];
    snprintf(others, sizeof(others), "\"site\":\"others\",\"more_deferred\":%d,",
             2 * EVENT_LOG_WAITING_SITES - EVENT_LOG_WAITING_LINES);
    is_number(lines_with(&w, others), 1, "those beyond are counted together");
}

/* A line each for 100 first deferrals, of which those at an even place are to this host. */
static void
tell_firsts(struct world *w, unsigned from)
{
    for (unsigned i = from; i < from + 100; i++)
        tell(w, EVENT_DEFERRED, i, false, i % 2 ? "smtp:b.example" : "smtp:a.example");
}

TEST(reasons)
{
    struct world w;
    begin(&w, LOG_STYLE_PETREL, LOG_LEVEL_INFO, true);
    tell_firsts(&w, 0);
    is_number(lines_with(&w, "status=deferred ("), 100, "each has a line");
    is_number(lines_with(&w, "Connection refused)"), EVENT_LOG_WAITING_LINES + 2,
              "whole are some, and one of each site");
    char id[ID_LENGTH + 1], words[200];
    for (unsigned i = EVENT_LOG_WAITING_LINES; i < EVENT_LOG_WAITING_LINES + 2; i++) {
        id_format(message_id(i), id);
        snprintf(words, sizeof(words), "status=deferred (for the reason of %s)", id);
        is_number(lines_with(&w, words), 39, "the others name its message");
    }
    snprintf(words, sizeof(words),
             ": to=<customer99@receiver.example>, dsn=4.4.1, status=deferred (for the "
             "reason of %s)",
             id);
    is_number(lines_with(&w, words), 1, "beside what is their own");
    sim_loop_advance(w.loop, EVENT_LOG_WAITING_MS);
    is_number(lines_with(&w, "more_deferred"), 0, "nothing was omitted");
    tell_firsts(&w, 100);
    is_number(lines_with(&w, "Connection refused)"), 2 * (EVENT_LOG_WAITING_LINES + 2),
              "each minute has the reason");
    is_number(w.heard, 200, "other readers have all");
    finish(&w);
    begin(&w, LOG_STYLE_JSON, LOG_LEVEL_INFO, true);
    tell_firsts(&w, 0);
    is_number(lines_with(&w, "Connection refused"), 100,
              "programs read each line alone");
    finish(&w);
}

/* Programs that read these count each attempt. */
TEST(other_styles)
{
    static const struct {
        enum log_style style;
        enum log_level level;
        const char *words;
    } all[] = {
        {LOG_STYLE_POSTFIX, LOG_LEVEL_INFO,  "status=deferred"},
        {LOG_STYLE_PETREL,  LOG_LEVEL_DEBUG, "status=deferred"}
    };
    for (size_t i = 0; i < 2; i++) {
        FIXTURE(world, w, begin, finish, all[i].style, all[i].level, true);
        for (unsigned j = 0; j < 100; j++)
            tell(&w, EVENT_DEFERRED, j, true, "smtp:a.example");
        is_number(lines_with(&w, all[i].words), 100, "every deferral has its line");
    }
}

/* 33 minutes in which a host is away for three minutes of four; 7,000 messages, each
 * tried again after 20 s, and then at twice its age. Says the bytes. */
static size_t
outage(bool counts, unsigned *deferrals, size_t *waiting)
{
    enum { MESSAGES = 7000, SECONDS = 33 * 60 };
    static int64_t due_s[MESSAGES], tries[MESSAGES];
    struct world w;
    begin(&w, LOG_STYLE_PETREL, LOG_LEVEL_INFO, counts);
    unsigned come = 0;
    size_t others = 0;
    for (int64_t s = 0; s < SECONDS; s++) {
        for (; come < MESSAGES * (s + 1) / SECONDS; come++) {
            size_t before = w.lines.length;
            tell(&w, EVENT_ACCEPTED, come, false, NULL);
            others += w.lines.length - before;
            due_s[come] = s;
            tries[come] = 0;
        }
        for (unsigned i = 0; i < come; i++) {
            int64_t age_s = s - (int64_t)i * SECONDS / MESSAGES;
            if (due_s[i] != s)
                continue;
            bool is_up = s % 240 >= 180 || s > SECONDS - 60;
            size_t before = w.lines.length;
            tell(&w, is_up ? EVENT_DELIVERED : EVENT_DEFERRED, i, tries[i]++ > 0,
                 "smtp:receiver.example");
            others += is_up ? w.lines.length - before : 0;
            due_s[i] = is_up ? -1 : s + (age_s > 20 ? age_s : 20);
        }
        sim_loop_advance(w.loop, 1000);
    }
    *deferrals = w.heard;
    size_t bytes = w.lines.length;
    *waiting = bytes - others;
    finish(&w);
    return bytes;
}

TEST(volume)
{
    unsigned deferrals;
    size_t waiting, all = outage(false, &deferrals, &waiting);
    printf("# a line each: %zu bytes, %zu of them of %u deferrals\n", all, waiting,
           deferrals);
    ok_named(deferrals > 15000, "an outage has many deferrals");
    all = outage(true, &deferrals, &waiting);
    printf("# counted: %zu bytes, %zu of them of %u deferrals\n", all, waiting,
           deferrals);
    ok_named(waiting < 2 << 20,
             "the lines of 7,000 messages that wait take less than 2 MiB");
}
