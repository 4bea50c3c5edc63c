/* The receiver of events. */
#include "t/roof/hook.h"

#include "base/memory.h"
#include "t/roof/mailbox.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 16 << 20, LATE_MAX_MS = 45 * 1000, STOPS = 410 };

enum hook_mood {
    HOOK_UP,
    HOOK_LATE,
    HOOK_FAILS,
    HOOK_CUTS,
    HOOK_LOSES,
    HOOK_AWAY,
    HOOK_MOODS
};

static struct {
    uint64_t chance;
    enum hook_mood mood;
    int status; /* of HOOK_FAILS */
    bool is_ordered, has_stopped;
    unsigned batches;
    struct network_service *service;
} hook;

struct call {
    struct peer peer;
    struct buffer body;
    size_t size; /* of the body */
    struct roof_timer timer;
    int status; /* of the answer that waits */
};

unsigned
hook_batches(void)
{
    return hook.batches;
}

bool
hook_has_stopped(void)
{
    return hook.has_stopped;
}

static void
release_call(void *context)
{
    struct call *c = context;
    buffer_free(&c->body);
    free(c);
}

static void
call_on_over(void *context)
{
    struct call *c = context;
    roof_timer_start(&c->timer, 0, release_call, c);
}

/* --- Events ---------------------------------------------------------------- */

static const char *
member_text(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text != NULL ? text : "";
}

static void
take_event(const json_t *event)
{
    static const struct {
        const char *word;
        enum model_news news;
    } rows[] = {
        {"delivered", NEWS_DELIVERED},
        {"bounced",   NEWS_FAILED   },
        {"expired",   NEWS_FAILED   },
        {"deferred",  NEWS_DEFERRED }
    };
    const char *type = member_text(event, "type");
    struct model_rcpt *r = model_find(text_from(member_text(event, "recipient")));
    if (r == NULL || roof_breaks("webhook"))
        return; /* of a report, or of a finding */
    roof_note("hook: %s %s", type, member_text(event, "id"));
    if (roof_breaks("news"))
        type = "bounced";
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(rows[i].word, type) == 0)
            model_heard(r, rows[i].news, text_from(member_text(event, "message")),
                        hook.is_ordered
                            ? json_integer_value(json_object_get(event, "time_ms"))
                            : 0);
}

static void
take_batch(struct call *c)
{
    json_t *batch = json_loadb(c->body.at, c->body.length, 0, NULL), *event;
    const json_t *data = json_object_get(batch, "data");
    size_t i;
    if (json_array_size(data) == 0)
        roof_break("truth", NULL, "a batch without events: %.*s", (int)c->body.length,
                   c->body.at);
    roof_note("hook: takes %zu events", json_array_size(data));
    mailbox_look();
    hook.batches++;
    json_array_foreach (data, i, event)
        take_event(event);
    json_decref(batch);
}

/* --- Answers -------------------------------------------------------------- */

static void
say_answer(struct call *c, int status)
{
    static const char *const tails[] = {
        "Content-Length: 0\r\n\r\n", "Connection: close\r\n\r\nand that is all",
        "Transfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n",
        "Content-Length: 0\r\nRetry-After: 90\r\n\r\n"};
    char text[200];
    unsigned form = roof_below_of(&hook.chance, 4);
    snprintf(text, sizeof(text), "HTTP/1.1 %d it is so\r\n%s", status, tails[form]);
    if (status == STOPS)
        hook.has_stopped = true;
    peer_say(&c->peer, text_from(text));
    if (form == 1)
        peer_close(&c->peer);
}

static void
call_on_late(void *context)
{
    struct call *c = context;
    if (c->peer.end != NULL)
        say_answer(c, c->status);
}

static void
answer_call(struct call *c)
{
    c->status = 200;
    switch (hook.mood) {
    case HOOK_UP:
    case HOOK_AWAY:
        take_batch(c);
        say_answer(c, 200 + (int)roof_below_of(&hook.chance, 5));
        break;
    case HOOK_LATE:
        take_batch(c);
        roof_timer_start(&c->timer, roof_between_of(&hook.chance, 1, LATE_MAX_MS),
                         call_on_late, c);
        break;
    case HOOK_FAILS:
        roof_note("hook: answers %d", hook.status);
        say_answer(c, hook.status);
        break;
    case HOOK_LOSES:
        take_batch(c);
        peer_cut(&c->peer, (enum peer_end)roof_below_of(&hook.chance, PEER_ENDS));
        break;
    case HOOK_CUTS:
    case HOOK_MOODS:
        peer_cut(&c->peer, (enum peer_end)roof_below_of(&hook.chance, PEER_ENDS));
        break;
    }
}

static void
call_on_raw(void *context, struct text bytes)
{
    struct call *c = context;
    bool cuts = hook.mood == HOOK_CUTS && roof_below_of(&hook.chance, 2) == 0;
    bool fits = buffer_add(&c->body, bytes);
    assert(fits);
    if (cuts)
        peer_cut(&c->peer, PEER_RESET);
    else if (c->peer.raw_left == 0)
        answer_call(c);
}

static bool
call_on_line(void *context, struct text line)
{
    struct call *c = context;
    uint64_t size;
    if (text_starts(line, TEXT("POST "))) {
        buffer_clear(&c->body);
        c->size = 0;
    } else if (text_starts_nocase(line, TEXT("content-length:"))) {
        struct text number = text_trim(text_after(line, 15));
        bool good = text_number(number, BODY_MAX, &size);
        assert(good);
        c->size = (size_t)size;
    } else if (line.length == 0) {
        c->peer.raw_left = c->size;
    }
    return true;
}

static void
hook_on_accept(void *context, struct network_end *end)
{
    struct call *c = memory_new(sizeof(*c));
    (void)context;
    buffer_init(&c->body, BODY_MAX);
    c->peer = (struct peer){
        .line = call_on_line, .raw = call_on_raw, .over = call_on_over, .context = c};
    peer_take(&c->peer, end);
}

/* --- Its moods -------------------------------------------------------------------- */

void
hook_begin(bool is_ordered)
{
    struct net_address at = {
        .family = NET_IPV4, .ip = {10, 0, 3, 1},
             .port = 8080
    };
    hook.chance = roof_fork("webhook's moods");
    hook.is_ordered = is_ordered;
    hook.service = network_serve(&at, hook_on_accept, NULL);
}

void
hook_act(void)
{
    static const int statuses[] = {500, 503, 429, 404, 301, 410};
    static const char *const words[HOOK_MOODS] = {"up",   "late",  "fails",
                                                  "cuts", "loses", "away"};
    hook.mood = (enum hook_mood)roof_below_of(&hook.chance, HOOK_MOODS);
    hook.status = statuses[roof_below_of(&hook.chance, 6)];
    roof_note("hook: %s", words[hook.mood]);
    network_service_set(hook.service, hook.mood != HOOK_AWAY ? NETWORK_ACCEPTS
                                      : roof_below_of(&hook.chance, 2) == 0
                                          ? NETWORK_REFUSES
                                          : NETWORK_SILENT);
}

void
hook_become_good(void)
{
    hook.mood = HOOK_UP;
    if (hook.service != NULL)
        network_service_set(hook.service, NETWORK_ACCEPTS);
}
