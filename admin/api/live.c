/* Keeps the last events for live readers. */
#include "admin/api/live.h"

#include "admin/history/life.h"
#include "admin/control/shorten.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/event/event_log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define SESSIONS                                                                       \
    (EVENT_BIT(EVENT_CONNECTED) | EVENT_BIT(EVENT_DISCONNECTED) |                      \
     EVENT_BIT(EVENT_SECURED))
#define REFUSALS                                                                       \
    (EVENT_BIT(EVENT_REFUSED) | EVENT_BIT(EVENT_DENIED) | EVENT_BIT(EVENT_LOCKED) |    \
     EVENT_BIT(EVENT_LOST) | EVENT_BIT(EVENT_TIMED_OUT) | EVENT_BIT(EVENT_CUT_OFF))
/* A step within the queue that the verdict shows anyway. */
#define STEPS EVENT_BIT(EVENT_LOADED)

/* Events that attackers cause must not push out those of mail. */
static const struct live_share {
    uint64_t kinds;
    unsigned most; /* in a second */
} live_shares[] = {
    {SESSIONS,                           LIVE_SESSIONS_A_SECOND},
    {REFUSALS,                           LIVE_REFUSALS_A_SECOND},
    {EVENT_ALL & ~(SESSIONS | REFUSALS), LIVE_A_SECOND         },
};
enum { LIVE_SHARES = sizeof(live_shares) / sizeof(live_shares[0]) };

struct live_entry {
    uint64_t number;
    char *text; /* JSON */
    size_t length;
};

struct live_reader {
    struct live_reader *prev, *next;
    struct live *live;
    void (*wake)(void *context);
    void *context;
    uint64_t known;   /* the last number that it has, or that was left out */
    uint64_t entry;   /* how many entries were ever added before its next one */
    uint64_t version; /* of the status that it has */
    int64_t said_ms;  /* monotonic */
    bool is_lost;     /* the number that it missed is not known */
};

struct live {
    struct live_setup setup;
    struct live_reader *readers;
    size_t reader_count;
    struct loop_timer timer;
    struct log *lines; /* NULL: nobody reads */
    uint64_t number;   /* of the last event, kept or not */
    uint64_t since;    /* the number when reading began: none up to it is known */
    struct live_entry *entries; /* a ring of LIVE_KEPT_MAX; NULL: nobody reads */
    uint64_t added, dropped;    /* entries */
    size_t bytes;
    struct id id;      /* of the event that is read */
    int64_t second_ms; /* monotonic: since when these were counted */
    unsigned counts[LIVE_SHARES], count;
    char *status; /* NULL: none yet */
    char *status_compared;
    uint64_t version;
    int64_t status_ms; /* monotonic: not before */
};

/* --- Events ----------------------------------------------------------------------- */

static struct live_entry *
live_entry(const struct live *l, uint64_t index)
{
    return &l->entries[index % LIVE_KEPT_MAX];
}

static void
live_drop(struct live *l)
{
    struct live_entry *e = live_entry(l, l->dropped++);
    l->bytes -= e->length;
    free(e->text);
    e->text = NULL;
}

/* Takes the text. */
static void
live_add(struct live *l, char *text)
{
    size_t length = strlen(text);
    while (l->added > l->dropped && (l->added - l->dropped == LIVE_KEPT_MAX ||
                                     l->bytes + length > LIVE_KEPT_BYTES_MAX))
        live_drop(l);
    *live_entry(l, l->added++) = (struct live_entry){l->number, text, length};
    l->bytes += length;
}

static void
live_wake(struct live *l)
{
    struct live_reader *r;
    DL_FOREACH (l->readers, r)
        r->wake(r->context);
}

/* NULL: it is no UTF-8, or too long. */
static char *
live_dump(const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (text == NULL || strlen(text) <= LIVE_TEXT_MAX)
        return text;
    free(text);
    return NULL;
}

/* A log's taker: the line of the history, read back, is the event as others show it. */
static void
live_take_line(void *context, struct text line)
{
    struct live *l = context;
    char name[ID_LENGTH + 1];
    json_t *event = life_event(text_before(line, text_find(line, '\n')));
    if (event == NULL)
        return;
    if (l->id.time_ms != 0)
        id_format(l->id, name);
    json_object_set_new(event, "message",
                        l->id.time_ms != 0 ? json_string(name) : json_null());
    char *text = live_dump(event);
    json_decref(event);
    if (text != NULL)
        live_add(l, text);
}

/* Whether this second has room for the event. */
static bool
live_has_room(struct live *l, uint64_t bit)
{
    int64_t now_ms = loop_monotonic_ms(l->setup.loop);
    if (now_ms - l->second_ms >= 1000) {
        l->second_ms = now_ms;
        l->count = 0;
        memset(l->counts, 0, sizeof(l->counts));
    }
    for (size_t i = 0; i < LIVE_SHARES; i++)
        if ((live_shares[i].kinds & bit) != 0 && l->counts[i] >= live_shares[i].most)
            return false;
    if (l->count >= LIVE_A_SECOND)
        return false;
    for (size_t i = 0; i < LIVE_SHARES; i++)
        l->counts[i] += (live_shares[i].kinds & bit) != 0;
    l->count++;
    return true;
}

static void
live_read_event(void *context, const struct event *event)
{
    struct live *l = context;
    l->number++;
    if (event->is_quiet || !live_has_room(l, EVENT_BIT(event->kind)))
        return;
    l->id = event->id;
    event_log_history(l->lines, event);
    live_wake(l);
}

/* --- The status ------------------------------------------------------------------- */

/* The status but for the times that pass by themselves. */
static char *
live_comparable(json_t *status)
{
    json_t *uptime = json_incref(json_object_get(status, "uptime_s"));
    (void)json_object_del(status, "uptime_s");
    char *text = json_dumps(status, JSON_COMPACT);
    if (uptime != NULL)
        json_object_set_new(status, "uptime_s", uptime);
    return text;
}

static void
live_forget_status(struct live *l)
{
    free(l->status);
    free(l->status_compared);
    l->status = l->status_compared = NULL;
}

static void
live_look_at_status(struct live *l)
{
    int64_t now_ms = loop_monotonic_ms(l->setup.loop), began_us = loop_clock_us();
    if (l->setup.status == NULL || now_ms < l->status_ms)
        return;
    json_t *status = l->setup.status(l->setup.context);
    char *compared = live_comparable(status);
    if (compared != NULL &&
        (l->status_compared == NULL || strcmp(compared, l->status_compared) != 0)) {
        live_forget_status(l);
        l->status_compared = compared;
        compared = NULL;
        l->status = shorten_write(json_incref(status), LIVE_TEXT_MAX);
        l->version++;
    }
    free(compared);
    json_decref(status);
    int64_t rest_ms = (loop_clock_us() - began_us) * LIVE_STATUS_SHARE / 1000;
    l->status_ms = now_ms + (rest_ms > LIVE_TICK_MS ? rest_ms : LIVE_TICK_MS);
}

/* --- Beginning and end ------------------------------------------------------------ */

static void
live_stop(struct live *l)
{
    if (l->lines == NULL)
        return;
    loop_timer_stop(l->setup.loop, &l->timer);
    event_read(l->setup.events, 0, live_read_event, l);
    while (l->dropped < l->added)
        live_drop(l);
    free(l->entries);
    l->entries = NULL;
    live_forget_status(l);
    log_free(&l->lines);
}

static void
live_on_time(void *context)
{
    struct live *l = context;
    if (l->readers == NULL) {
        live_stop(l);
        return;
    }
    live_look_at_status(l);
    live_wake(l);
    loop_timer_start(l->setup.loop, &l->timer, LIVE_TICK_MS, live_on_time, l);
}

/* Numbers are never used again, not after a restart either: they begin with the time. */
static void
live_start(struct live *l)
{
    uint64_t now_ms = (uint64_t)loop_now_ms(l->setup.loop);
    if (l->lines != NULL)
        return;
    l->number = l->number + 1 > now_ms ? l->number + 1 : now_ms;
    l->since = l->number;
    l->status_ms = 0;
    l->entries = memory_new(LIVE_KEPT_MAX * sizeof(*l->entries));
    l->lines = log_new_apart(l->setup.loop, live_take_line, l);
    event_read(l->setup.events, EVENT_ALL & ~STEPS, live_read_event, l);
}

struct live *
live_new(const struct live_setup *setup)
{
    struct live *l = memory_new(sizeof(*l));
    l->setup = *setup;
    return l;
}

void
live_free(struct live **live)
{
    if (*live == NULL)
        return;
    assert((*live)->readers == NULL);
    live_stop(*live);
    free(*live);
    *live = NULL;
}

static void
live_place_reader(struct live_reader *r, const struct live_place *place)
{
    const struct live *l = r->live;
    r->known = l->number;
    r->entry = l->added;
    if (!place->is_set)
        return;
    r->is_lost =
        place->after != 0 && (place->after < l->since || place->after > l->number);
    if (place->after > l->number) /* not a number of ours */
        return;
    r->known = place->after > l->since ? place->after : l->since;
    for (r->entry = l->dropped; r->entry < l->added; r->entry++)
        if (live_entry(l, r->entry)->number > r->known)
            break;
    if (place->after == 0 && r->entry < l->added)
        r->known = live_entry(l, r->entry)->number - 1;
}

struct live_reader *
live_begin(struct live *l, const struct live_place *place, void (*wake)(void *context),
           void *context)
{
    if (l->reader_count == LIVE_READERS_MAX)
        return NULL;
    live_start(l);
    struct live_reader *r = memory_new(sizeof(*r));
    r->live = l;
    r->wake = wake;
    r->context = context;
    r->said_ms = loop_monotonic_ms(l->setup.loop);
    live_place_reader(r, place);
    DL_APPEND(l->readers, r);
    if (l->reader_count++ == 0)
        loop_timer_start(l->setup.loop, &l->timer, LIVE_TICK_MS, live_on_time, l);
    if (l->status == NULL)
        live_look_at_status(l);
    return r;
}

void
live_end(struct live_reader **reader)
{
    struct live_reader *r = *reader;
    if (r == NULL)
        return;
    *reader = NULL;
    struct live *l = r->live;
    DL_DELETE(l->readers, r);
    free(r);
    if (--l->reader_count == 0)
        loop_timer_start(l->setup.loop, &l->timer, LIVE_KEEP_MS, live_on_time, l);
}

/* --- Reading ---------------------------------------------------------------------- */

static void
live_add_frame(const struct live_reader *r, const char *kind, struct text data,
               struct buffer *out)
{
    (void)!(buffer_format(out, "id: %" PRIu64 "\nevent: %s\ndata: ", r->known, kind) &&
            buffer_add(out, data) && buffer_add(out, TEXT("\n\n")));
}

/* All up to that number was left out. */
static void
live_skip(struct live_reader *r, uint64_t until, struct buffer *out)
{
    char data[64];
    if (r->is_lost)
        snprintf(data, sizeof(data), "{\"count\":null}");
    else
        snprintf(data, sizeof(data), "{\"count\":%" PRIu64 "}", until - r->known);
    bool is_worth_saying = r->is_lost || until > r->known;
    r->known = until;
    r->is_lost = false;
    if (is_worth_saying)
        live_add_frame(r, "skipped", text_from(data), out);
}

static void
live_add_events(struct live_reader *r, struct buffer *out)
{
    const struct live *l = r->live;
    if (r->is_lost)
        live_skip(r, r->known, out);
    if (r->entry < l->dropped)
        r->entry = l->dropped;
    for (; r->entry < l->added && out->length < LIVE_PIECE; r->entry++) {
        const struct live_entry *e = live_entry(l, r->entry);
        live_skip(r, e->number - 1, out);
        r->known = e->number;
        live_add_frame(r, "event", text_of(e->text, e->length), out);
    }
    if (r->entry == l->added)
        live_skip(r, l->number, out);
}

bool
live_more(struct live_reader *r, struct buffer *out)
{
    const struct live *l = r->live;
    int64_t now_ms = loop_monotonic_ms(l->setup.loop);
    size_t before = out->length;
    live_add_events(r, out);
    if (r->version != l->version && l->status != NULL && out->length < LIVE_PIECE) {
        r->version = l->version;
        live_add_frame(r, "status", text_from(l->status), out);
    }
    if (out->length == before && now_ms - r->said_ms >= LIVE_COMMENT_MS)
        (void)!buffer_add(out, TEXT(":\n\n"));
    if (out->length == before)
        return false;
    r->said_ms = now_ms;
    return true;
}

size_t
live_readers(const struct live *l)
{
    return l->reader_count;
}

size_t
live_kept(const struct live *l)
{
    return (size_t)(l->added - l->dropped);
}
