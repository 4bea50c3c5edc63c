/* SMTP from one host to another. */
#include "t/roof/wire.h"

#include "base/memory.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_MAX = 1000, ASKED_MAX = 2100, CHUNK_MAX = 16 << 20 };

struct wire {
    const char *name;
    struct net_address from, to;
};

enum awaited { AWAITED_RCPT, AWAITED_DATA, AWAITED_END, AWAITED_OTHER };

struct hand_over {
    const struct wire *wire;
    struct peer giver, taker;
    struct wire_asked {
        enum awaited what;
        struct model_rcpt *rcpt;
        unsigned transaction;
    } asked[ASKED_MAX]; /* whose reply is awaited */
    unsigned asked_first, asked_count;
    struct wire_named {
        struct model_rcpt *rcpt;
        unsigned transaction;
    } named[NAMED_MAX]; /* not refused; of transactions that are not answered */
    unsigned named_count;
    unsigned transaction, ended; /* the present one; the last whose end was said */
    bool in_data;
    struct model_rcpt *unsure[NAMED_MAX]; /* taken; the reply is not confirmed */
    int64_t unsure_ms;
    unsigned unsure_count;
    unsigned open; /* sides */
    struct roof_timer release;
};

static unsigned cuts;
static uint64_t chance;

void
wire_set_cuts(unsigned permille)
{
    cuts = permille;
    chance = roof_fork("wire");
}

static void
ask_reply(struct hand_over *h, enum awaited what, struct model_rcpt *rcpt)
{
    assert(h->asked_count < ASKED_MAX);
    h->asked[(h->asked_first + h->asked_count++) % ASKED_MAX] =
        (struct wire_asked){what, rcpt, h->transaction};
}

static void
forget_named(struct hand_over *h, unsigned transaction)
{
    unsigned left = 0;
    for (unsigned i = 0; i < h->named_count; i++)
        if (h->named[i].transaction != transaction)
            h->named[left++] = h->named[i];
    h->named_count = left;
}

/* The end of the present transaction is said, or the next one begins: it may come before
 * the answer to the last. */
static void
next_transaction(struct hand_over *h, bool has_ended)
{
    if (has_ended)
        h->ended = h->transaction;
    else if (h->ended != h->transaction)
        forget_named(h, h->transaction);
    if (!has_ended)
        h->transaction++;
}

/* A command that was sent after the reply had come confirms it. */
static void
confirm_taken(struct hand_over *h)
{
    if (h->unsure_ms < roof_now_ms() - network_round_ms(h->giver.end))
        h->unsure_count = 0;
}

/* The taker may have done all that was under way, and the giver does not know it. */
static void
note_lost(struct hand_over *h)
{
    for (unsigned i = 0; i < h->unsure_count; i++)
        model_relay_unconfirmed(h->unsure[i]);
    bool any = h->unsure_count > 0;
    for (unsigned i = 0; i < h->named_count; i++)
        if (h->named[i].transaction <= h->ended) {
            model_relay_unconfirmed(h->named[i].rcpt);
            any = true;
        }
    if (any)
        roof_note("%s: ended before a reply was confirmed", h->wire->name);
    h->unsure_count = h->named_count = 0;
}

static void
side_over(struct hand_over *h, struct peer *other)
{
    note_lost(h);
    if (--h->open > 0)
        peer_cut(other, PEER_FIN);
    else
        roof_timer_start(&h->release, 0, free, h);
}

static void
giver_on_over(void *context)
{
    struct hand_over *h = context;
    side_over(h, &h->taker);
}

static void
taker_on_over(void *context)
{
    struct hand_over *h = context;
    side_over(h, &h->giver);
}

static void
pass(struct peer *to, struct text line)
{
    peer_say(to, line);
    peer_say(to, TEXT("\r\n"));
}

static void
giver_on_raw(void *context, struct text bytes)
{
    struct hand_over *h = context;
    peer_say(&h->taker, bytes);
}

static struct model_rcpt *
rcpt_of(struct text line)
{
    size_t from = text_find(line, '<');
    return from != TEXT_NONE ? model_find(text_after(line, from + 1)) : NULL;
}

static void
on_command(struct hand_over *h, struct text line)
{
    uint64_t size = 0;
    struct text rest, number;
    if (text_starts(line, TEXT("RCPT "))) {
        struct model_rcpt *r = rcpt_of(line);
        if (r != NULL && h->named_count < NAMED_MAX)
            h->named[h->named_count++] = (struct wire_named){r, h->transaction};
        ask_reply(h, AWAITED_RCPT, r);
    } else if (text_starts(line, TEXT("DATA"))) {
        ask_reply(h, AWAITED_DATA, NULL);
    } else if (text_starts(line, TEXT("BDAT "))) {
        rest = text_after(line, 5);
        text_cut(&rest, ' ', &number);
        bool good = text_number(number, CHUNK_MAX, &size), last = rest.length > 0;
        assert(good);
        h->giver.raw_left = (size_t)size;
        if (last)
            next_transaction(h, true);
        ask_reply(h, last ? AWAITED_END : AWAITED_OTHER, NULL);
    } else if (text_starts(line, TEXT("MAIL ")) || text_starts(line, TEXT("RSET"))) {
        next_transaction(h, false);
        ask_reply(h, AWAITED_OTHER, NULL);
    } else {
        ask_reply(h, AWAITED_OTHER, NULL);
    }
}

static bool
giver_on_line(void *context, struct text line)
{
    struct hand_over *h = context;
    if (!h->in_data) {
        confirm_taken(h);
        on_command(h, line);
    } else if (text_equal(line, TEXT("."))) {
        h->in_data = false;
        next_transaction(h, true);
        ask_reply(h, AWAITED_END, NULL);
    }
    pass(&h->taker, line);
    return true;
}

static void
drop_named(struct hand_over *h, const struct model_rcpt *r)
{
    unsigned left = 0;
    for (unsigned i = 0; i < h->named_count; i++)
        if (h->named[i].rcpt != r)
            h->named[left++] = h->named[i];
    h->named_count = left;
}

/* False: the reply is lost. */
static bool
on_end_reply(struct hand_over *h, char first, unsigned transaction)
{
    h->unsure_count = 0;
    h->unsure_ms = roof_now_ms();
    for (unsigned i = 0; i < h->named_count; i++) {
        struct model_rcpt *r = h->named[i].rcpt;
        if (h->named[i].transaction != transaction)
            continue;
        if (first == '5')
            model_refused(r);
        if (first != '2')
            continue;
        model_relayed(r);
        h->unsure[h->unsure_count++] = r;
    }
    forget_named(h, transaction);
    return cuts == 0 || roof_random_of(&chance) % 1000 >= cuts;
}

static bool
on_reply(struct hand_over *h, struct text line)
{
    if (h->asked_count == 0) /* 421 of its own accord */
        return true;
    struct wire_asked a = h->asked[h->asked_first];
    h->asked_first = (h->asked_first + 1) % ASKED_MAX;
    h->asked_count--;
    switch (a.what) {
    case AWAITED_RCPT:
        if (line.at[0] == '5' && a.rcpt != NULL)
            model_refused(a.rcpt);
        if (line.at[0] != '2' && a.rcpt != NULL)
            drop_named(h, a.rcpt);
        break;
    case AWAITED_DATA:
        h->in_data = line.at[0] == '3';
        break;
    case AWAITED_END:
        return on_end_reply(h, line.at[0], a.transaction);
    case AWAITED_OTHER:
        break;
    }
    return true;
}

static bool
taker_on_line(void *context, struct text line)
{
    struct hand_over *h = context;
    bool is_last = line.length >= 3 && (line.length == 3 || line.at[3] != '-');
    if (is_last && !on_reply(h, line)) {
        roof_note("%s: cuts in place of %.*s", h->wire->name, TEXT_ARGS(line));
        peer_cut(&h->giver, PEER_RESET);
        return true;
    }
    pass(&h->giver, line);
    return true;
}

static void
wire_on_accept(void *context, struct network_end *end)
{
    struct hand_over *h = memory_new(sizeof(*h));
    h->wire = context;
    h->open = 2;
    h->transaction = 1;
    h->giver = (struct peer){.line = giver_on_line,
                             .raw = giver_on_raw,
                             .over = giver_on_over,
                             .context = h};
    h->taker =
        (struct peer){.line = taker_on_line, .over = taker_on_over, .context = h};
    ask_reply(h, AWAITED_OTHER, NULL); /* the greeting */
    peer_take(&h->giver, end);
    peer_connect(&h->taker, &h->wire->from, &h->wire->to);
}

void
wire_new(const char *name, const struct net_address *at, const struct net_address *from,
         const struct net_address *to)
{
    struct wire *w = memory_new(sizeof(*w));
    *w = (struct wire){.name = name, .from = *from, .to = *to};
    network_serve(at, wire_on_accept, w);
}
