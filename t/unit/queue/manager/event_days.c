/* Days in virtual time: a smarthost that may have 500 recipients a day, three users with quotas of their own, a receiver of
 * events that is down for six hours, a restart and SIGKILL while it is. Nothing is lost, quotas are exact, every event is
 * there. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c t/sim/http_call.c */
#include "queue/event/event_post.h"
#include "queue/manager/manager_internal.h"
#include "t/sim/sim_disk.h"
#include "t/sim/sim_http.h"
#include "t/support/manager_world.h"

#include <jansson.h>

#define URL "https://app.test/hook"
enum { MINUTE_MS = 60 * 1000, HOUR = 60, DAY = 24 * HOUR, MINUTES = 3 * DAY, USERS = 3, MAILS = 4000 };

static const char table[] = "user:alice 300/d\nuser:bob 600/d,200/h\nuser:* 150/d,60/h\nall 1100/d\n";
static const char *const users[USERS] = {"alice", "bob", "carol"};

/* The mail sent or accepted in each minute. */
static unsigned sent[MINUTES], refused, accepted[USERS][MINUTES], mails;

/* The events that the receiver has taken. */
static struct {
    unsigned verdicts[MAILS]; /* of each mail */
    unsigned wrong, disordered, quota, others, batches, failures;
    int64_t last_ms;
} taken;

static struct {
    struct disk *disk;
    struct event_spool *spool;
    struct http_caller *http;
    struct event_post *post;
    uint64_t lost;
} keeping;

/* --- The receiver ----------------------------------------------------------------- */

static void
take_event(json_t *event)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *to = json_string_value(json_object_get(event, "recipient"));
    int64_t time_ms = json_integer_value(json_object_get(event, "time_ms"));
    if (to == NULL) {
        taken.quota += strcmp(type, "quota") == 0;
        taken.others += strcmp(type, "quota") != 0;
        return;
    }
    bool is_good = strncmp(to, "good", 4) == 0;
    unsigned number = (unsigned)atoi(to + (is_good ? 4 : 3));
    taken.wrong += strcmp(type, is_good ? "delivered" : "bounced") != 0;
    if (taken.verdicts[number]++ > 0)
        return;
    taken.disordered += time_ms < taken.last_ms;
    taken.last_ms = time_ms;
}

static void
on_answer(void *context, unsigned status, struct text body)
{
    (void)context;
    if (status / 100 != 2) {
        taken.failures++;
        return;
    }
    size_t i;
    json_t *event, *batch = json_loadb(body.at, body.length, 0, NULL);
    taken.batches++;
    json_array_foreach (json_object_get(batch, "data"), i, event)
        take_event(event);
    json_decref(batch);
}

/* --- The daemon ------------------------------------------------------------------- */

static void
keeping_stop(struct world *w)
{
    event_post_free(&keeping.post);
    keeping.lost += event_spool_figures(keeping.spool).lost;
    world_stop(w);
    event_spool_close(&keeping.spool);
    disk_close(&keeping.disk);
}

/* With the queue, at each start. */
static void
keeping_start(struct world *w)
{
    if (disk_open(&keeping.disk, w->folder, false) < 0)
        abort();
    (void)disk_sync_on(keeping.disk, w->loop);
    uint64_t kinds;
    struct text word;
    struct event_spool_settings settings = {.loop = w->loop,
                                            .hub = w->events,
                                            .disk = keeping.disk,
                                            .directory = "events",
                                            .host = "h.test",
                                            .bytes_max = 64 << 20};
    ok(event_record_kinds(TEXT("delivered deferred bounced expired quota"), &kinds, &word));
    settings.kinds = kinds;
    is_number(event_spool_open(&keeping.spool, &settings), 0, "events are kept");
    if (keeping.http == NULL)
        keeping.http = http_caller_new(&(struct http_caller_settings){.loop = w->loop});
    sim_http_on_answer(keeping.http, on_answer, NULL);
    keeping.post = event_post_new(&(struct event_post_setup){.loop = w->loop,
                                                             .log = w->log,
                                                             .spool = keeping.spool,
                                                             .http = keeping.http,
                                                             .disk = keeping.disk},
                                  &(struct event_post_settings){.url = TEXT(URL),
                                                                .batch = 100,
                                                                .linger_ms = 2000});
}

static void
happen(struct world *w, int minute)
{
    switch (minute) {
    case 3 * HOUR: /* down: nobody is there, then a proxy says so */
        sim_http_fail(keeping.http, URL, "app.test: connection refused");
        break;
    case 5 * HOUR:
        sim_http_answer(keeping.http, URL, 503, "text/html", "<p>down");
        break;
    case 6 * HOUR:
        keeping_stop(w);
        manager_world_start(w);
        break;
    case 8 * HOUR: /* SIGKILL, more than a minute after the last mail that was counted */
        sim_disk_die_at(1);
        keeping_stop(w);
        sim_disk_restart();
        manager_world_start(w);
        break;
    case 9 * HOUR:
        sim_http_answer(keeping.http, URL, 200, NULL, "");
        break;
    default:
        break;
    }
}

/* As a session does it: one recipient, then the message is stored. */
static void
submit(struct world *w, unsigned user, int minute)
{
    char to[40];
    struct quotas_refusal refusal;
    struct quotas_claim claim = {.parts = {{NULL, 0}}};
    struct quotas *q = manager_quotas(w->manager);
    struct quotas_sender who = {
        .user = text_from(users[user]), .uid = QUOTAS_NO_UID, .address = TEXT("s@here.test")};
    if (!quotas_take(q, &who, 1, loop_monotonic_ms(w->loop), &claim, &refusal)) {
        manager_tell_quota(w->manager, &refusal);
        return;
    }
    snprintf(to, sizeof(to), "%s%u@there.test", mails % 10 == 7 ? "bad" : "good", mails);
    world_send(w, "", to);
    quotas_settle(q, &claim, 1, loop_monotonic_ms(w->loop));
    manager_note_quotas(w->manager);
    accepted[user][minute]++;
    mails++;
}

static unsigned
most_within(const unsigned *counts, int minutes)
{
    unsigned sum = 0, most = 0;
    for (int i = 0; i < MINUTES; i++) {
        sum += counts[i];
        if (i >= minutes)
            sum -= counts[i - minutes];
        most = sum > most ? sum : most;
    }
    return most;
}

static void
pass_minute(struct world *w, int minute)
{
    sim_loop_advance(w->loop, MINUTE_MS);
    /* Those refused do not count, and notifications to postmaster@h.test do not go there. */
    struct text rest = buffer_text(&w->seen), one;
    while (text_word(&rest, " ", &one)) {
        sent[minute] += text_starts(one, TEXT(">good"));
        refused += text_starts(one, TEXT(">bad"));
    }
    buffer_clear(&w->seen);
    buffer_clear(&w->lines);
}

int
main(void)
{
    struct world w;
    uint64_t most_waits = 0;
    unsigned at_nine = 0, missing = 0, total = 0;
    char name[100], path[100];
    sim_disk_reset();
    manager_world_begin(&w, "* smtp://smart.test?quota=500/d");
    world_stop(&w);
    w.settings.queue.journal_size = 4 << 20;
    w.settings.quotas = text_from(table);
    w.background = true;
    w.plug = keeping_start;
    manager_world_start(&w);
    sim_http_answer(keeping.http, URL, 200, NULL, "");
    for (int minute = 0; minute < MINUTES; minute++) {
        happen(&w, minute);
        bool calm = minute > 8 * HOUR - 5 && minute <= 8 * HOUR;
        if (minute < DAY && !calm) {
            if (minute % 2 == 0)
                submit(&w, 0, minute);
            for (int i = 0; minute >= 2 * HOUR && minute < 7 * HOUR && i < 4; i++)
                submit(&w, 1, minute);
            if (minute % 3 == 0)
                submit(&w, 2, minute);
        }
        if (minute == 9 * HOUR)
            at_nine = taken.batches;
        pass_minute(&w, minute);
        uint64_t waits = event_spool_figures(keeping.spool).pending_bytes;
        most_waits = waits > most_waits ? waits : most_waits;
    }
    for (int i = 0; i < MINUTES; i++)
        total += sent[i];
    is_number(most_within(accepted[0], DAY), 300, "alice: exactly 300 a day");
    is_number(most_within(accepted[1], HOUR), 200, "bob: exactly 200 an hour");
    is_number(most_within(accepted[1], DAY), 600, "and 600 a day");
    is_number(most_within(accepted[2], DAY), 150, "carol: exactly 150 a day");
    is_number(most_within(sent, DAY), 500, "the smarthost: exactly 500 a day");
    is_number(total + refused, mails, "each message left, once");
    snprintf(path, sizeof(path), "%s/mess", w.folder);
    is_number((long)sim_disk_count(path), 0, "nothing is left");
    for (unsigned i = 0; i < mails; i++)
        missing += taken.verdicts[i] == 0;
    snprintf(name, sizeof(name), "every verdict of %u is there, in %u batches", mails, taken.batches);
    is_number(missing, 0, name);
    is_number(taken.wrong, 0, "each is the right one");
    is_number(taken.disordered, 0, "in order");
    is_number(taken.others, 0, "and there is nothing else");
    ok_named(taken.quota >= 3, "quotas that are used up are reported");
    snprintf(name, sizeof(name), "%u tries failed meanwhile, at least 24 and at most 60", taken.failures);
    ok_named(taken.failures >= 24 && taken.failures <= 60, name);
    ok_named(most_waits > 20000, "events waited");
    ok_named(at_nine < taken.batches, "and went when the receiver was back");
    is_number((long)event_spool_figures(keeping.spool).pending_bytes, 0, "none waits");
    is_number((long)(keeping.lost + event_spool_figures(keeping.spool).lost), 0, "events_lost");
    keeping_stop(&w);
    http_caller_free(&keeping.http);
    manager_world_end(&w);
    return done();
}
