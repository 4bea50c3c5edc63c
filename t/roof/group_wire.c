/* Bytes between two hosts. */
#include "t/roof/group_wire.h"

#include "base/memory.h"
#include "t/roof/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

enum {
    /* bytes of messages, and of a handshake with some answers */
    CUT_MESSAGES_MAX = 8000,
    CUT_ANSWERS_MAX = 1500
};

enum wire_mood { WIRE_UP, WIRE_CUTS, WIRE_REFUSES, WIRE_SILENT, WIRE_MOODS };

struct group_wire {
    const char *name;
    struct net_address to;
    struct network_service *service;
    enum wire_mood mood;
    uint64_t chance;
    struct pipe *pipes;
    struct roof_timer away_timer;
    void (*away)(const char *taker);
    const char *taker;
};

/* A connection. */
struct pipe {
    struct pipe *prev, *next;
    struct group_wire *wire;
    struct peer caller, called;
    unsigned open; /* sides */
    struct roof_timer release;
};

static void
pipe_over(struct pipe *p, struct peer *other)
{
    if (--p->open > 0) {
        peer_cut(other, PEER_FIN);
        return;
    }
    DL_DELETE(p->wire->pipes, p);
    roof_timer_start(&p->release, 0, free, p);
}

static void
caller_on_over(void *context)
{
    struct pipe *p = context;
    pipe_over(p, &p->called);
}

static void
called_on_over(void *context)
{
    struct pipe *p = context;
    pipe_over(p, &p->caller);
}

/* In a silence nothing passes. */
static void
pass(struct pipe *p, struct peer *from, struct peer *to, struct text bytes)
{
    from->raw_left = SIZE_MAX;
    if (p->wire->mood != WIRE_SILENT)
        peer_say(to, bytes);
}

static void
caller_on_raw(void *context, struct text bytes)
{
    struct pipe *p = context;
    pass(p, &p->caller, &p->called, bytes);
}

static void
called_on_raw(void *context, struct text bytes)
{
    struct pipe *p = context;
    pass(p, &p->called, &p->caller, bytes);
}

/* The bytes that came before it was there. */
static void
called_on_connected(void *context)
{
    struct pipe *p = context;
    p->called.waits = false;
    peer_send(&p->called);
}

static void
cut_later(struct group_wire *w, struct pipe *p)
{
    bool is_answer = roof_below_of(&w->chance, 3) > 0;
    struct peer *side = is_answer ? &p->caller : &p->called;
    side->cut_at =
        side->sent + 1 +
        roof_below_of(&w->chance, is_answer ? CUT_ANSWERS_MAX : CUT_MESSAGES_MAX);
    side->cut_how = PEER_RESET;
}

static void
pipe_on_accept(void *context, struct network_end *end)
{
    struct group_wire *w = context;
    struct pipe *p = memory_new(sizeof(*p));
    p->wire = w;
    p->open = 2;
    p->caller = (struct peer){.raw_left = SIZE_MAX,
                              .raw = caller_on_raw,
                              .over = caller_on_over,
                              .context = p};
    p->called = (struct peer){.connected = called_on_connected,
                              .raw_left = SIZE_MAX,
                              .raw = called_on_raw,
                              .over = called_on_over,
                              .context = p};
    DL_APPEND(w->pipes, p);
    struct net_address from = *network_from(end);
    peer_take(&p->caller, end);
    peer_connect(&p->called, &from, &w->to);
    if (w->mood == WIRE_CUTS)
        cut_later(w, p);
}

static void
wire_on_away(void *context)
{
    struct group_wire *w = context;
    w->away(w->taker);
    roof_timer_start(&w->away_timer, GROUP_WIRE_AWAY_MS, wire_on_away, w);
}

static void
set_mood(struct group_wire *w, enum wire_mood mood)
{
    static const char *const words[WIRE_MOODS] = {"passes", "cuts", "refuses",
                                                  "is silent"};
    struct pipe *p, *next;
    if (mood == w->mood && mood == WIRE_UP)
        return;
    roof_note("%s: %s", w->name, words[mood]);
    bool was_up = w->mood == WIRE_UP, was_silent = w->mood == WIRE_SILENT;
    w->mood = mood;
    network_service_set(w->service,
                        mood == WIRE_REFUSES ? NETWORK_REFUSES : NETWORK_ACCEPTS);
    /* what was swallowed in the silence cannot come later */
    DL_FOREACH_SAFE (w->pipes, p, next) {
        if (mood == WIRE_CUTS && !was_silent)
            cut_later(w, p);
        else if (mood != WIRE_SILENT && (mood != WIRE_UP || was_silent))
            peer_cut(&p->caller, PEER_RESET);
    }
    if (mood == WIRE_UP)
        roof_timer_stop(&w->away_timer);
    else if (was_up)
        roof_timer_start(&w->away_timer, GROUP_WIRE_AWAY_MS, wire_on_away, w);
}

void
group_wire_act(struct group_wire *w, uint64_t *chance)
{
    set_mood(w, roof_below_of(chance, 2) == 0
                    ? WIRE_UP
                    : (enum wire_mood)roof_below_of(chance, WIRE_MOODS));
}

void
group_wire_silence(struct group_wire *w)
{
    set_mood(w, WIRE_SILENT);
}

void
group_wire_become_good(struct group_wire *w)
{
    struct pipe *p;
    set_mood(w, WIRE_UP);
    DL_FOREACH (w->pipes, p)
        p->caller.cut_at = p->called.cut_at = 0;
}

struct group_wire *
group_wire_new(const char *name, const struct net_address *at,
               const struct net_address *to, void (*away)(const char *taker),
               const char *taker)
{
    struct group_wire *w = memory_new(sizeof(*w));
    *w = (struct group_wire){.name = name,
                             .to = *to,
                             .chance = roof_fork(name),
                             .away = away,
                             .taker = taker};
    w->service = network_serve(at, pipe_on_accept, w);
    return w;
}
