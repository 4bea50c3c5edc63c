/* One call is one connection: what speaks to these hosts closes it. */
#include "t/roof/web.h"

#include "base/memory.h"
#include "t/roof/peer.h"
#include "t/roof/secrecy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODY_MAX = 1 << 20, REQUEST_MAX = 4096, LATE_MAX_MS = 40 * 1000, SHAKE = 3000 };

enum web_mood {
    WEB_UP,
    WEB_LATE,
    WEB_FAILS,    /* 500, or no HTTP */
    WEB_CUTS,     /* within TLS or the answer */
    WEB_STRANGER, /* its certificate proves nothing */
    WEB_AWAY,
    WEB_MOODS
};

struct web {
    const char *name;
    uint64_t chance;
    enum web_mood mood;
    bool has_left;
    web_asked *asked;
    void *context;
    struct network_service *service;
};

struct web_call {
    struct web *web;
    struct peer peer;
    struct buffer request, body, answer;
    size_t size; /* of the body */
    struct roof_timer timer;
};

static unsigned
web_below(struct web *w, unsigned limit)
{
    return roof_below_of(&w->chance, limit);
}

static void
release_web_call(void *context)
{
    struct web_call *c = context;
    buffer_free(&c->request);
    buffer_free(&c->body);
    buffer_free(&c->answer);
    free(c);
}

static void
web_on_over(void *context)
{
    struct web_call *c = context;
    roof_timer_start(&c->timer, 0, release_web_call, c);
}

static void
web_on_late(void *context)
{
    struct web_call *c = context;
    if (c->peer.end == NULL)
        return;
    peer_say(&c->peer, buffer_text(&c->answer));
    if (c->peer.end != NULL)
        peer_close(&c->peer);
}

static void
web_end(struct web_call *c)
{
    struct web *w = c->web;
    roof_note("%s: is asked", w->name);
    if (w->mood == WEB_FAILS && web_below(w, 2) == 0)
        (void)!buffer_add(&c->answer, TEXT("220 this is no HTTP\r\n\r\n"));
    else if (w->mood == WEB_FAILS)
        web_answer(&c->answer, 500 + web_below(w, 4), "text/plain", TEXT("not now"));
    else
        w->asked(w->context, buffer_text(&c->request), buffer_text(&c->body),
                 &c->answer);
    if (w->mood == WEB_CUTS) {
        peer_say(&c->peer, text_before(buffer_text(&c->answer),
                                       web_below(w, (unsigned)c->answer.length + 1)));
        if (c->peer.end != NULL)
            peer_cut(&c->peer, (enum peer_end)web_below(w, PEER_ENDS));
        return;
    }
    int64_t late_ms =
        w->mood == WEB_LATE ? roof_between_of(&w->chance, 1, LATE_MAX_MS) : 0;
    roof_timer_start(&c->timer, late_ms, web_on_late, c);
}

static void
web_on_raw(void *context, struct text bytes)
{
    struct web_call *c = context;
    bool fits = buffer_add(&c->body, bytes);
    assert(fits);
    if (c->peer.raw_left == 0)
        web_end(c);
}

static bool
web_on_line(void *context, struct text line)
{
    struct web_call *c = context;
    uint64_t size;
    if (c->request.length == 0)
        (void)!buffer_add(&c->request, text_before(line, REQUEST_MAX));
    if (text_starts_nocase(line, TEXT("content-length:"))) {
        bool good = text_number(text_trim(text_after(line, 15)), BODY_MAX, &size);
        assert(good);
        c->size = (size_t)size;
    }
    if (line.length > 0)
        return true;
    c->peer.raw_left = c->size;
    if (c->size == 0)
        web_end(c);
    return true;
}

static void
web_on_accept(void *context, struct network_end *end)
{
    struct web *w = context;
    struct web_call *c = memory_new(sizeof(*c));
    c->web = w;
    buffer_init(&c->request, REQUEST_MAX);
    buffer_init(&c->body, BODY_MAX);
    buffer_init(&c->answer, BODY_MAX);
    c->peer = (struct peer){
        .line = web_on_line, .raw = web_on_raw, .over = web_on_over, .context = c};
    peer_take(&c->peer, end);
    if (w->mood == WEB_CUTS && web_below(w, 2) == 0) {
        c->peer.cut_at = 1 + web_below(w, SHAKE);
        c->peer.cut_how = (enum peer_end)web_below(w, PEER_ENDS);
    }
    peer_start_tls(&c->peer, secrecy_hop(w->mood != WEB_STRANGER), NULL);
}

void
web_answer(struct buffer *out, unsigned status, const char *type, struct text body)
{
    bool fits = buffer_format(out,
                              "HTTP/1.1 %u so it is\r\nContent-Type: %s\r\n"
                              "Content-Length: %zu\r\n\r\n",
                              status, type, body.length) &&
                buffer_add(out, body);
    assert(fits);
}

struct web *
web_new(const char *name, const char *ip, unsigned port, web_asked *asked,
        void *context)
{
    struct net_address at = {0};
    struct web *w = memory_new(sizeof(*w));
    bool good = net_address_parse_ip(text_from(ip), &at);
    assert(good);
    at.port = (uint16_t)port;
    w->name = name;
    w->chance = roof_fork(name);
    w->asked = asked;
    w->context = context;
    w->service = network_serve(&at, web_on_accept, w);
    return w;
}

static void
web_set(struct web *w, enum web_mood mood)
{
    static const char *const words[WEB_MOODS] = {"up",   "late",     "fails",
                                                 "cuts", "stranger", "away"};
    w->mood = mood;
    roof_note("%s: %s", w->name, words[mood]);
    network_service_set(w->service, mood != WEB_AWAY       ? NETWORK_ACCEPTS
                                    : web_below(w, 2) == 0 ? NETWORK_REFUSES
                                                           : NETWORK_SILENT);
}

void
web_act(struct web *w)
{
    /* as often as not it is up */
    unsigned mood = web_below(w, 2 * WEB_MOODS);
    if (!w->has_left)
        web_set(w, mood < WEB_MOODS ? (enum web_mood)mood : WEB_UP);
}

void
web_become_good(struct web *w)
{
    if (!w->has_left)
        web_set(w, WEB_UP);
}

bool
web_is_up(const struct web *w)
{
    return w->mood == WEB_UP;
}

void
web_leave(struct web *w)
{
    web_set(w, WEB_AWAY);
    w->has_left = true;
}
