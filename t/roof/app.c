/* One connection is one POST. */
#include "t/roof/app.h"

#include "base/memory.h"
#include "t/roof/form.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"
#include "t/roof/plan.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BODY_MAX = 16 << 20,
    RCPTS_MAX = 64,
    LATE_MAX_MS = 90 * 1000,
    NEVER = 422,
    OUTAGE_MS = 6 * HOUR_MS,
    OUTAGE_HOURS_MAX = 14 /* from the begin of the day to that of the outage */
};

enum app_mood {
    APP_UP,
    APP_LATE,
    APP_FAILS,
    APP_CUTS,  /* within the request, or in place of an answer */
    APP_LOSES, /* takes it, and does not say so */
    APP_AWAY,
    APP_MOODS
};

static struct {
    bool has_begun, is_plain, is_out, is_json;
    struct roof_timer outage;
    uint64_t chance;
    enum app_mood mood;
    unsigned status; /* of APP_FAILS */
    struct network_service *service;
} app;

struct app_call {
    struct peer peer;
    struct buffer body;
    size_t size; /* of the body */
    struct roof_timer timer;
    struct model_rcpt *rcpts[RCPTS_MAX];
    unsigned count;
    bool has_taken;
    int64_t heard_ms; /* when the answer has come, at the earliest */
};

static unsigned
app_below(unsigned limit)
{
    return roof_below_of(&app.chance, limit);
}

static void
release_app_call(void *context)
{
    struct app_call *c = context;
    buffer_free(&c->body);
    free(c);
}

/* The answer may not have come, and the message comes again. */
static void
app_lose(struct app_call *c)
{
    for (unsigned i = 0; c->has_taken && i < c->count; i++)
        model_unconfirmed(c->rcpts[i]);
    c->has_taken = false;
}

static void
app_on_over(void *context)
{
    struct app_call *c = context;
    if (!app.is_plain || roof_now_ms() < c->heard_ms)
        app_lose(c);
    roof_timer_start(&c->timer, 0, release_app_call, c);
}

/* All recipients of a call are of one message. */
static const char *
app_judge(struct app_call *c)
{
    char addresses[RCPTS_MAX][MODEL_ADDRESS_MAX];
    const char *recipients[RCPTS_MAX];
    struct model_message *m = c->rcpts[0]->message;
    for (unsigned i = 0; i < c->count; i++) {
        model_rcpt_address(c->rcpts[i], addresses[i]);
        recipients[i] = addresses[i];
    }
    return form_differs(m->form, buffer_text(&m->content), recipients, c->count,
                        buffer_text(&c->body));
}

static void
app_take(struct app_call *c)
{
    const char *why = app.is_json && c->count > 0 ? app_judge(c) : NULL;
    for (unsigned i = 0; i < c->count; i++) {
        roof_note("app: takes m%ur%u", c->rcpts[i]->message->number,
                  c->rcpts[i]->index);
        if (app.is_json)
            model_read(c->rcpts[i], why);
        else
            model_stored(c->rcpts[i], buffer_text(&c->body));
    }
    c->has_taken = true;
}

static void
app_say(struct app_call *c, unsigned status, const char *fields)
{
    char text[200];
    bool is_left = network_is_left(c->peer.end);
    c->heard_ms = roof_now_ms() + network_round_ms(c->peer.end);
    if (is_left)
        app_lose(c);
    for (unsigned i = 0; i < c->count; i++)
        if (status == NEVER)
            model_refused(c->rcpts[i]);
        else if (status == 500 && !is_left)
            model_deferred(c->rcpts[i]);
    roof_note("app: answers %u", status);
    snprintf(text, sizeof(text), "HTTP/1.1 %u x\r\n%sContent-Length: 2\r\n\r\nok",
             status, fields);
    peer_say(&c->peer, text_from(text));
}

static void
app_on_late(void *context)
{
    struct app_call *c = context;
    if (c->peer.end == NULL)
        return;
    app_take(c);
    app_say(c, 200, "");
}

static void
app_answer(struct app_call *c)
{
    for (unsigned i = 0; i < c->count; i++)
        model_attempted(c->rcpts[i]);
    switch (app.mood) {
    case APP_UP:
    case APP_AWAY:
        app_take(c);
        app_say(c, 200 + app_below(3), "");
        break;
    case APP_LATE:
        roof_timer_start(&c->timer, roof_between_of(&app.chance, 1, LATE_MAX_MS),
                         app_on_late, c);
        break;
    case APP_FAILS:
        app_say(c, app.status == NEVER && app_below(8) > 0 ? 500 : app.status,
                app.status == 429 ? "Retry-After: 90\r\n" : "");
        break;
    case APP_LOSES:
        app_take(c);
        app_lose(c);
        peer_cut(&c->peer, (enum peer_end)app_below(PEER_ENDS));
        break;
    case APP_CUTS:
    case APP_MOODS:
        peer_cut(&c->peer, (enum peer_end)app_below(PEER_ENDS));
        break;
    }
}

static void
app_on_raw(void *context, struct text bytes)
{
    struct app_call *c = context;
    bool cuts = app.mood == APP_CUTS && app_below(2) == 0;
    bool fits = buffer_add(&c->body, bytes);
    assert(fits);
    if (cuts)
        peer_cut(&c->peer, PEER_RESET);
    else if (c->peer.raw_left == 0)
        app_answer(c);
}

static bool
app_on_line(void *context, struct text line)
{
    struct app_call *c = context;
    uint64_t size;
    if (text_starts(line, TEXT("X-Petrel-To: "))) {
        struct model_rcpt *r = model_find(text_after(line, 13));
        assert(r != NULL && c->count < RCPTS_MAX);
        c->rcpts[c->count++] = r;
    } else if (text_starts_nocase(line, TEXT("content-length:"))) {
        bool good = text_number(text_trim(text_after(line, 15)), BODY_MAX, &size);
        assert(good);
        c->size = (size_t)size;
    } else if (line.length == 0) {
        c->peer.raw_left = c->size;
    }
    return true;
}

static void
app_on_accept(void *context, struct network_end *end)
{
    struct app_call *c = memory_new(sizeof(*c));
    (void)context;
    buffer_init(&c->body, BODY_MAX);
    c->peer = (struct peer){
        .line = app_on_line, .raw = app_on_raw, .over = app_on_over, .context = c};
    peer_take(&c->peer, end);
}

const char *
app_begin(bool is_plain)
{
    uint64_t own = roof_fork("application's form");
    struct net_address at = {
        .family = NET_IPV4, .ip = {10, 0, 5, 1},
             .port = 80
    };
    app.has_begun = true;
    app.is_plain = is_plain;
    app.chance = roof_fork("application's moods");
    app.service = network_serve(&at, app_on_accept, NULL);
    app.is_json = roof_below_of(&own, 2) == 0 && plan_takes("json", 0);
    if (app.is_json)
        model_have_forms();
    return app.is_json ? "http://10.0.5.1:80/in?format=json" : "http://10.0.5.1:80/in";
}

void
app_act(void)
{
    static const unsigned statuses[] = {500, 503, 429, NEVER, 302, 401};
    static const char *const words[APP_MOODS] = {"up",   "late",  "fails",
                                                 "cuts", "loses", "away"};
    app.mood = app.is_out ? APP_AWAY : (enum app_mood)app_below(APP_MOODS);
    app.status = statuses[app_below(6)];
    roof_note("app: %s %u", words[app.mood], app.status);
    network_service_set(app.service, app.mood != APP_AWAY ? NETWORK_ACCEPTS
                                     : app_below(2) == 0  ? NETWORK_REFUSES
                                                          : NETWORK_SILENT);
}

static void
app_on_back(void *context)
{
    (void)context;
    app.is_out = false;
    app_act();
}

static void
app_on_outage(void *context)
{
    (void)context;
    roof_note("app: is away for six hours");
    app.is_out = true;
    app_act();
    roof_timer_start(&app.outage, OUTAGE_MS, app_on_back, NULL);
}

void
app_begin_day(void)
{
    roof_timer_start(&app.outage, app_below(OUTAGE_HOURS_MAX) * HOUR_MS, app_on_outage,
                     NULL);
}

void
app_become_good(void)
{
    app.is_out = false;
    roof_timer_stop(&app.outage);
    app.mood = APP_UP;
    if (app.has_begun)
        network_service_set(app.service, NETWORK_ACCEPTS);
}
