/* Answers the manager's offers: a message passes, waits, is absorbed or redirected.
 *
 * A message is offered each time it is loaded, so the same one comes several times:
 * first it is examined, then it waits in its set, at last it passes or has ended.
 * decide() begins with the messages that the channel knows. A short fragment gets its
 * answer within the first offer. The digest of a longer one is computed in later turns;
 * meanwhile the message waits, and manager_resume() has it offered again for the
 * answer.
 *
 * Within an offer nothing of another message is changed. The effects of a fragment on
 * others of its set (a release, a reassembly) are the work of channel_work(). */
#include "defrag/channel_internal.h"

#include "base/memory.h"
#include "defrag/reassembly/parts_list.h"
#include "defrag/reassembly/origin.h"
#include "mime/date.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAR_MS = 24 * 60 * 60 * 1000,
    ADOPTION_MS = 100,         /* more than a turn: see completion_are_unfinished() */
    GRACE_MS = 60 * 60 * 1000, /* a late part still finds the owner of its set */
    TEXTS_MAX = ENVELOPE_BYTES_MAX,
    RANGES_MAX = 8 /* of missing numbers, in words */
};

static void
channel_offer_say(const struct defragmenter *c, enum log_level level, struct id id,
                  const char *what, const char *why)
{
    log_say(c->log, level, "defrag", ID_TEXT(id), "%s%s%s", what, why ? ": " : "",
            why ? why : "");
}

/* --- Recipients ------------------------------------------------------------------- */

/* A recipient of the offer. */
struct offered {
    struct text address;
    size_t which; /* index in the offer */
};

static int
by_address(const void *a, const void *b)
{
    const struct offered *left = a, *right = b;
    return text_compare(left->address, right->address);
}

/* Sorted: double recipients are neighbours, and tell_absorbed() needs one pass. */
static struct offered *
sort_offered(const struct manager_offer *o)
{
    struct offered *all = memory_array(o->count, sizeof(*all));
    for (size_t i = 0; i < o->count; i++)
        all[i] = (struct offered){
            .address = o->envelope->recipients[o->indexes[i]].address, .which = i};
    qsort(all, o->count, sizeof(*all), by_address);
    return all;
}

static struct text
channel_offer_put(char **space, struct text t)
{
    struct text copy = text_of(*space, t.length);
    if (t.length > 0)
        memcpy(*space, t.at, t.length);
    *space += t.length;
    return copy;
}

/* Copies the sender, the trust and the recipients, each once: the envelope may leave
 * memory before the digest is done. */
static void
copy_texts(struct examining *l, const struct envelope *e, const struct offered *all,
           size_t count)
{
    size_t bytes = e->sender.length + e->trust.length;
    l->recipients = memory_array(count, sizeof(*l->recipients));
    for (size_t i = 0; i < count; i++)
        bytes += all[i].address.length;
    buffer_init(&l->texts, TEXTS_MAX);
    char *space = buffer_reserve(&l->texts, bytes + 1);
    assert(space != NULL); /* envelopes have no more bytes */
    l->sender = channel_offer_put(&space, e->sender);
    l->trust = channel_offer_put(&space, e->trust);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !text_equal(all[i].address, all[i - 1].address))
            l->recipients[l->count++] = channel_offer_put(&space, all[i].address);
    }
}

/* Marks the recipients of the offer for whom the set has absorbed it. */
static void
tell_absorbed(const struct examining *l, const struct offered *all,
              struct manager_offer *o)
{
    const struct set_answer *answer = &l->answer;
    size_t at = 0;
    for (size_t i = 0; i < answer->absorbed_count; i++) {
        struct text t = l->recipients[answer->absorbed[i]];
        while (at < o->count && !text_equal(all[at].address, t))
            at++; /* both are sorted */
        for (; at < o->count && text_equal(all[at].address, t); at++)
            o->absorbed[all[at].which] = true;
    }
}

/* --- Its key ---------------------------------------------------------------------- */

/* Not of fragments from a peer, which bring their key along. */
static void
channel_offer_make_key(const struct defragmenter *c, struct held *h)
{
    struct origin origin;
    origin_read(h->examining->trust, h->examining->sender, &origin);
    origin_key(c->settings.keying, &origin, fragment_id(&h->examining->examine.reading),
               h->key);
}

/* A peer has no quota as a client: it forwards the mail of others. */
static void
note_quotas(const struct held *h, struct fragment *f)
{
    struct origin origin;
    origin_read(h->examining->trust, h->examining->sender, &origin);
    f->sender = sched_sender(origin.sender);
    f->client = h->by_peer ? SET_NOBODY : origin_client(&origin);
}

/* --- Into its set ----------------------------------------------------------------- */

void
channel_examining_free(struct held *h)
{
    struct examining *l = h->examining;
    if (l == NULL)
        return;
    examine_end(&l->examine);
    buffer_free(&l->texts);
    free(l->recipients);
    free(l->answer.absorbed);
    free(l);
    h->examining = NULL;
}

static void
tell_answer(const struct defragmenter *c, const struct held *h,
            const struct set_answer *answer)
{
    const struct fragment_reading *r = &h->examining->examine.reading;
    struct text status = TEXT("absorbed");
    struct fragment_event f;
    channel_event_start(&f, h->id, h->key);
    channel_event_add(&f, "partial", EVENT_TEXT, fragment_id(r));
    channel_event_add(&f, "from", EVENT_ADDRESS, h->examining->sender);
    channel_event_add_number(&f, "number", r->number);
    if (r->total > 0)
        channel_event_add_number(&f, "total", r->total);
    if (answer->verdict == SET_HOLDS) {
        channel_event_add_number(&f, "have", answer->have);
        status = TEXT("waiting");
    } else if (answer->verdict == SET_PASSES) {
        status = TEXT("passed");
        f.event.text = text_from(set_reason_text(answer->reason));
    }
    channel_event_add(&f, "status", EVENT_TEXT, status);
    if (r->why)
        f.event.hint = text_from(r->why);
    event_tell(c->events, &f.event);
}

/* A set beyond a quota was not begun here, so it must not stay claimed: an untrusted
 * client would fill the registry and the memory of claims. */
static void
give_claim_back(struct defragmenter *c, const struct held *h)
{
    if (c->claims && !sets_have(c->sets, h->key))
        claims_close(c->claims, h->key, 0);
}

static void
enter_set(struct defragmenter *c, struct held *h)
{
    struct examining *l = h->examining;
    const struct fragment_reading *r = &l->examine.reading;
    struct fragment f = {.id = h->id,
                         .number = r->number,
                         .total = r->total,
                         .size = l->examine.body_size,
                         .until_ms = l->until_ms,
                         .memory_ms = l->memory_ms,
                         .recipients = l->recipients,
                         .count = l->count};
    memcpy(f.digest, l->examine.digest, TAG_SIZE);
    memcpy(f.key, h->key, DIGEST_SIZE);
    note_quotas(h, &f);
    l->answer.absorbed = memory_array(l->count, sizeof(*l->answer.absorbed));
    sets_add(c->sets, &f, loop_now_ms(c->loop), &l->answer);
    tell_answer(c, h, &l->answer);
    switch (l->answer.verdict) {
    case SET_HOLDS:
        h->state = HELD_WAITING;
        c->figures.waited++;
        break;
    case SET_ABSORBS:
        h->state = HELD_LEAVING;
        c->figures.absorbed++;
        break;
    case SET_PASSES:
        h->state = HELD_LEAVING;
        if (l->answer.reason == SET_LIMIT) {
            c->figures.limited++;
            give_claim_back(c, h);
        }
        break;
    }
    /* Releases and reassemblies that this has caused are for channel_work(). */
    channel_stir(c);
}

/* Examined: sends it to the host that owns its set, or enters it into the set here. */
static void
channel_offer_find_place(struct defragmenter *c, struct held *h)
{
    struct examining *l = h->examining;
    if (!h->by_peer)
        channel_offer_make_key(c, h);
    if (fragment_redirect_starts(c, h, l->until_ms, l->memory_ms + GRACE_MS))
        channel_examining_free(h);
    else
        enter_set(c, h);
}

/* Translates the set's answer for the manager. May free h. */
static enum manager_offered
channel_offer_tell(struct defragmenter *c, struct held *h, struct manager_offer *o)
{
    struct set_view view;
    enum set_verdict verdict = h->examining->answer.verdict;
    struct offered *all = sort_offered(o);
    tell_absorbed(h->examining, all, o);
    free(all);
    o->until_ms = h->examining->until_ms;
    /* A little later than the set: the set's timer must come first, and release it. */
    if (verdict == SET_HOLDS && sets_find(c->sets, h->id, &view))
        o->until_ms = view.until_ms + CHANNEL_MOMENT_MS;
    if (verdict == SET_HOLDS)
        channel_examining_free(h);
    else
        channel_forget(c, h);
    return verdict == SET_PASSES ? MANAGER_PASS : MANAGER_AWAIT;
}

/* The digest is done, or the content cannot be read. */
static void
offer_examined(struct defragmenter *c, struct held *h, enum examine_result result)
{
    DL_DELETE(c->examining, h);
    if (result == EXAMINE_DONE) {
        h->examining->answered = true;
        channel_offer_find_place(c, h);
        /* With absorbed recipients the next offer still needs the answer. */
        if (h->state == HELD_WAITING && h->examining->answer.absorbed_count == 0)
            channel_examining_free(h);
    } else {
        channel_offer_say(c, LOG_LEVEL_WARNING, h->id, "passed",
                          "its content cannot be read");
        channel_examining_free(h);
        h->state = HELD_LEAVING;
    }
    /* The next offer returns the answer and the time. The set forgets messages that are
     * gone when its time is over. */
    if (!manager_resume(c->manager, h->id) && h->state == HELD_LEAVING)
        channel_forget(c, h);
}

bool
channel_examine_on(struct defragmenter *c)
{
    struct held *h = c->examining;
    if (h == NULL)
        return false;
    /* After repeated crashes in here the guard quarantines this message. */
    struct id before = queue_enter(c->queue, h->id);
    enum examine_result result = examine_go(&h->examining->examine, CHANNEL_BUDGET);
    queue_leave(c->queue, before);
    if (result != EXAMINE_MORE)
        offer_examined(c, h, result);
    return c->examining != NULL;
}

/* Reads the XDEFRAG mark of a message that a peer has sent. */
static bool
channel_offer_take_mark(const struct envelope *e, unsigned char key[DIGEST_SIZE])
{
    struct set_mark mark;
    bool read = e->fragment.by_peer && set_mark_read(e->fragment.set_mark, &mark);
    if (read)
        memcpy(key, mark.key, DIGEST_SIZE);
    return read;
}

/* --- Offers ----------------------------------------------------------------------- */

static enum manager_offered
offer_examine(struct defragmenter *c, struct manager_offer *o, int64_t until_ms)
{
    const struct envelope *e = o->envelope;
    struct examining *l = memory_new(sizeof(*l));
    struct held *h = memory_new(sizeof(*h));
    h->id = e->id;
    h->examining = l;
    h->by_peer = channel_offer_take_mark(e, h->key);
    h->depth = parts_list_depth(e);
    enum examine_result result =
        examine_start(&l->examine, &c->examine, e, CHANNEL_BUDGET);
    if (result == EXAMINE_NONE || result == EXAMINE_FAILED) {
        if (l->examine.reading.kind == FRAGMENT_MALFORMED)
            c->figures.malformed++;
        if (l->examine.reading.why)
            channel_offer_say(c, LOG_LEVEL_INFO, e->id, "not a fragment",
                              l->examine.reading.why);
        channel_examining_free(h);
        free(h);
        return MANAGER_PASS;
    }
    struct offered *all = sort_offered(o);
    l->until_ms = until_ms;
    l->memory_ms = o->retention_ms;
    copy_texts(l, e, all, o->count);
    free(all);
    HASH_ADD(hh, c->held, id, sizeof(h->id), h);
    if (result == EXAMINE_DONE) {
        channel_offer_find_place(c, h);
        return h->state == HELD_SENT ? fragment_redirect_goes_on(c, h, o)
                                     : channel_offer_tell(c, h, o);
    }
    o->until_ms = until_ms + FAR_MS;
    DL_APPEND(c->examining, h);
    channel_stir(c);
    return MANAGER_AWAIT;
}

static enum manager_offered
channel_offer_bounce(struct manager_offer *o)
{
    o->outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, "5.4.7",
                              "the other fragments of this message have not come");
    return MANAGER_SETTLE;
}

static enum manager_offered
channel_offer_leave(struct defragmenter *c, struct held *h, struct manager_offer *o)
{
    bool bounces = h->expired && c->settings.on_timeout == CHANNEL_BOUNCE;
    channel_forget(c, h);
    return bounces && o->count > 0 ? channel_offer_bounce(o) : MANAGER_PASS;
}

/* A fragment whose time ended while no daemon ran is treated as defrag_on_timeout says;
 * one to be released waits a moment for others of its set, whose own time may not be
 * over. One with attempts has been released already, unless its mark says that it
 * awaits parts: then the attempts were for a peer or for other recipients. */
static enum manager_offered
come_overdue(struct defragmenter *c, struct manager_offer *o)
{
    const struct envelope *e = o->envelope;
    struct examine examine;
    bool was_tried = e->delivery.attempts > 0 && !e->fragment.awaits_parts;
    bool was_let_go = was_tried || (int64_t)e->id.time_ms >= c->started_ms;
    if (was_let_go)
        return MANAGER_PASS;
    if (c->settings.on_timeout == CHANNEL_RELEASE)
        return offer_examine(c, o, loop_now_ms(c->loop) + CHANNEL_OVERDUE_MS);
    /* The header decides; the digest is not needed. */
    enum examine_result result = examine_start(&examine, &c->examine, e, 1);
    examine_end(&examine);
    if (result == EXAMINE_NONE || result == EXAMINE_FAILED)
        return MANAGER_PASS;
    if (c->settings.on_timeout == CHANNEL_BOUNCE) {
        channel_offer_say(c, LOG_LEVEL_INFO, e->id, "returned",
                          set_reason_text(SET_TIMEOUT));
        c->figures.timed_out++;
        return channel_offer_bounce(o);
    }
    /* manager_hold() would change the message under its own offer: hold_overdue() does
     * it. */
    struct held *h = memory_new(sizeof(*h));
    h->id = e->id;
    h->state = HELD_LEAVING;
    h->is_overdue = true;
    HASH_ADD(hh, c->held, id, sizeof(h->id), h);
    DL_APPEND(c->overdue, h);
    channel_stir(c);
    o->until_ms = loop_now_ms(c->loop) + FAR_MS;
    return MANAGER_AWAIT_ALL;
}

/* The routes have changed or an operator released it: it passes, unless reassembly has
 * begun. */
static enum manager_offered
channel_offer_let_go(struct defragmenter *c, struct held *h, struct manager_offer *o)
{
    if (h->state == HELD_LOOKING || sets_forget(c->sets, h->id)) {
        channel_forget(c, h);
        channel_stir(c);
        return MANAGER_PASS;
    }
    o->until_ms = loop_now_ms(c->loop) + CHANNEL_MOMENT_MS;
    return MANAGER_AWAIT_ALL;
}

/* After a reload its route may let it wait for a shorter time than when it came. A longer
 * time is for those that come. The moment of an overdue set counts here, too. */
static void
channel_offer_shorten(struct defragmenter *c, struct held *h,
                      const struct manager_offer *o)
{
    int64_t until = o->envelope->birth_ms + o->retention_ms;
    int64_t soonest = loop_now_ms(c->loop) + CHANNEL_OVERDUE_MS;
    until = until > soonest ? until : soonest;
    if (h->examining && until < h->examining->until_ms)
        h->examining->until_ms = until;
    if (h->state == HELD_SENT)
        fragment_redirect_shorten(c, h, until);
    else
        sets_shorten(c->sets, h->id, until);
    channel_stir(c);
}

static enum manager_offered
offer_again(struct defragmenter *c, struct held *h, struct manager_offer *o)
{
    struct set_view view;
    if (h->is_overdue) {
        o->until_ms = loop_now_ms(c->loop) + FAR_MS;
        return MANAGER_AWAIT_ALL;
    }
    /* Before the states: a waiting fragment may have recipients to be absorbed. */
    if (h->examining && h->examining->answered && o->count > 0)
        return channel_offer_tell(c, h, o);
    if (h->state == HELD_LEAVING)
        return channel_offer_leave(c, h, o);
    if (o->count > 0)
        channel_offer_shorten(c, h, o);
    if (h->state == HELD_SENT)
        return fragment_redirect_goes_on(c, h, o);
    if (o->count == 0 || o->envelope->delivery.released)
        return channel_offer_let_go(c, h, o);
    if (h->state == HELD_LOOKING) {
        o->until_ms = loop_now_ms(c->loop) + FAR_MS;
        return MANAGER_AWAIT;
    }
    bool found = sets_find(c->sets, h->id, &view);
    o->until_ms = (found && !view.reassembling ? view.until_ms : loop_now_ms(c->loop)) +
                  CHANNEL_MOMENT_MS;
    return MANAGER_AWAIT;
}

/* Until completion_finish() has done it, and that is durable. */
static enum manager_offered
channel_offer_put_off(struct defragmenter *c, struct manager_offer *o, int64_t now)
{
    o->until_ms = now + ADOPTION_MS;
    if (completion_are_unfinished(c))
        channel_stir(c);
    return MANAGER_AWAIT_ALL;
}

static enum manager_offered
decide(struct defragmenter *c, struct manager_offer *o)
{
    const struct envelope *e = o->envelope;
    int64_t now = loop_now_ms(c->loop), until = e->birth_ms + o->retention_ms;
    struct held *h = channel_find(c, e->id);
    if (h)
        return offer_again(c, h, o);
    /* Delivered and removed before the ends of its parts are durable, it could no
     * longer end them after a power cut: they would be delivered again. */
    if (e->fragment.made_of.length > 0 &&
        (c->is_ending || completion_are_unfinished(c)))
        return channel_offer_put_off(c, o, now);
    if (e->fragment.made_of.length > 0 &&
        ((int64_t)e->id.time_ms < c->started_ms || c->has_adopted))
        completion_settle_parts(c, e, false);
    /* It would be delivered, or reassembled, a second time. */
    if (completion_may_end(c, e->id))
        return channel_offer_put_off(c, o, now);
    if (o->count == 0 || e->delivery.released ||
        parts_list_depth(e) >= PARTS_LIST_DEPTH_MAX)
        return MANAGER_PASS;
    return until > now ? offer_examine(c, o, until) : come_overdue(c, o);
}

enum manager_offered
channel_offer(void *context, struct manager_offer *o)
{
    struct defragmenter *c = context;
    int64_t now = loop_now_ms(c->loop);
    enum manager_offered result = decide(c, o);
    bool waits = result == MANAGER_AWAIT || result == MANAGER_AWAIT_ALL;
    if (waits && o->until_ms <= now) { /* the clock was set: its timer is late */
        o->until_ms = now + CHANNEL_MOMENT_MS;
        channel_stir(c);
    }
    return result;
}

/* --- Explanations for operators --------------------------------------------------- */

/* "2, 4-7 and more" */
static void
list_missing(const struct defragmenter *c, const struct set_view *v, char *out,
             size_t size)
{
    uint32_t last = v->total > 0 ? v->total : v->highest;
    size_t length = 0;
    unsigned ranges = 0;
    out[0] = '\0';
    for (uint32_t from = 1, to; from <= last; from = to + 1) {
        to = from;
        if (sets_has(c->sets, v->key, from))
            continue;
        if (ranges++ == RANGES_MAX) {
            snprintf(out + length, size - length, " and more");
            return;
        }
        while (to < last && !sets_has(c->sets, v->key, to + 1))
            to++;
        int added = snprintf(out + length, size - length,
                             to > from ? "%s%" PRIu32 "-%" PRIu32 : "%s%" PRIu32,
                             ranges > 1 ? ", " : "; missing parts: ", from, to);
        length += added > 0 && (size_t)added < size - length ? (size_t)added : 0;
    }
}

const char *
channel_owner(const struct defragmenter *c, const unsigned char key[DIGEST_SIZE])
{
    struct owner_view view = {.owner = OWNER_US};
    if (c->claims)
        view = claims_find(c->claims, key);
    switch (view.owner) {
    case OWNER_UNKNOWN:
    case OWNER_ALONE:
        return "none (this host works alone)";
    case OWNER_ASKED:
        return "not known yet";
    case OWNER_US:
        break;
    case OWNER_OTHER:
        return view.host;
    }
    return "this host";
}

/* Its treatment when its time is over. */
static const char *
fate_of(const struct defragmenter *c)
{
    switch (c->settings.on_timeout) {
    case CHANNEL_RELEASE:
        break;
    case CHANNEL_BOUNCE:
        return "returned to its sender";
    case CHANNEL_HOLD:
        return "held";
    }
    return "released";
}

bool
channel_explain(void *context, struct id id, char *out, size_t size)
{
    const struct defragmenter *c = context;
    const struct held *h = channel_find(c, id);
    struct set_view v;
    char missing[160], until[DATE_TEXT_MAX], total[24] = "an unknown number";
    if (h == NULL || h->state == HELD_LEAVING)
        return false;
    if (h->state == HELD_SENT) {
        date_format(h->timer.due_ms, until);
        snprintf(out, size, "a fragment: goes to %s, which reassembles it; %s at %s",
                 h->host, fate_of(c), until);
        return true;
    }
    if (h->state == HELD_LOOKING || !sets_find(c->sets, id, &v)) {
        snprintf(out, size, "a fragment: being examined");
        return true;
    }
    if (v.reassembling) {
        snprintf(out, size, "a fragment: its message is being reassembled");
        return true;
    }
    if (v.total > 0)
        snprintf(total, sizeof(total), "%" PRIu32, v.total);
    list_missing(c, &v, missing, sizeof(missing));
    date_format(v.until_ms, until);
    snprintf(out, size,
             "waits for the other fragments: have %" PRIu32
             " of %s%s; owner %s; %s at %s",
             v.have, total, missing, channel_owner(c, h->key), fate_of(c), until);
    return true;
}
