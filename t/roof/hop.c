/* Next hops. */
#include "t/roof/hop.h"

#include "base/memory.h"
#include "t/roof/dead.h"
#include "t/roof/editor.h"
#include "t/roof/law_adoption.h"
#include "t/roof/law_group.h"
#include "t/roof/limits.h"
#include "t/roof/login.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"
#include "t/roof/policy.h"
#include "t/roof/returner.h"
#include "t/roof/secrecy.h"
#include "t/roof/token.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    RCPTS_MAX = 1000,
    DATA_MAX = 16 << 20,
    REPLY_MAX = 512,
    IDLE_MS = 5 * 60 * 1000,
    HANDSHAKE = 2000,
    EARLY_LINES = 40,
    ON_ITS_WAY_MS = 50, /* a connection, on a path that is not narrow */
    HEARD_MS = 5000,    /* at the latest, behind a slow path */
    WHERE_MAX = 48
};

struct hop {
    struct hop *next;
    const char *name;
    char address[WHERE_MAX]; /* "[10.0.1.2]:" */
    int64_t lied_ms;         /* the last reply out of step; 0: there is none */
    bool lmtp, pipelining, chunking, tls, dsn;
    unsigned requires;        /* in a thousand: REQUIRETLS is offered */
    bool has_login, by_login; /* AUTH LOGIN alone */
    bool by_token;            /* XOAUTH2 alone */
    unsigned user, domain;
    int route; /* that leads here alone; -1: there are several */
    bool is_shared;
    unsigned site; /* of the group */
    struct hop_mood mood;
    struct network_service *service;
    struct grey {
        const struct model_rcpt *rcpt;
        int64_t since_ms;
    } * grey;
    size_t grey_count;
    bool judges_window;
    unsigned window_of; /* the domain */
};

struct visit {
    struct visit *prev, *next;
    struct hop *hop;
    struct peer peer;
    int64_t began_ms;
    int client; /* law_adoption_host() */
    struct roof_timer reply_timer, idle;
    struct buffer reply; /* that is late */
    bool waits;          /* for reply_timer: no line is read */
    char from[128];      /* in MAIL */
    bool has_mail, in_data;
    bool chunk_last, chunk_refused;
    bool logged_in, counts;                 /* counts: as a session of the group */
    unsigned auth_words;                    /* of AUTH LOGIN that are to come */
    bool offers_requiretls, has_requiretls; /* in reply to EHLO; in MAIL */
    bool strange;                           /* its certificate proves nothing */
    bool lies; /* a reply came twice: what the client makes of the others is open */
    bool
        is_last; /* replies of LMTP to the end: a second one would be that of the next */
    unsigned early_in; /* lines of content; 0: no reply is early */
    enum {
        EARLY_NOT,
        EARLY_GOOD,
        EARLY_LATER,
        EARLY_NEVER
    } early;                    /* it has been said */
    struct model_message *back; /* the recipient of a report */
    bool has_sender, to_archive;
    struct model_rcpt *asked[RCPTS_MAX]; /* in this transaction */
    unsigned asked_count;
    unsigned counted; /* of those that a quota counts: those not stored yet */
    struct model_rcpt *rcpts[RCPTS_MAX];
    unsigned rcpt_count;
    struct buffer data;
    /* Stored, and the reply is not confirmed by another command. */
    struct unsure {
        struct model_rcpt *rcpt; /* NULL: a report */
        struct model_message *back;
        int64_t since_ms;
    } unsure[RCPTS_MAX];
    unsigned unsure_count;
};

static struct hop *all_hops;
static struct visit *visits;
static unsigned open_count, most_count, most_rcpts, visit_count;
static uint64_t requires_chance;
static int64_t windows_since_ms; /* sessions of before do not count */

unsigned
hops_open(void)
{
    return open_count;
}

unsigned
hops_most(void)
{
    return most_count;
}

unsigned
hops_visits(void)
{
    return visit_count;
}

void
hops_forget_visits(void)
{
    visit_count = 0;
}

void
hops_forget_most(void)
{
    most_count = open_count;
}

unsigned
hops_take_most_rcpts(void)
{
    unsigned most = most_rcpts;
    most_rcpts = 0;
    return most;
}

/* Recipients that were not stored count in no quota. */
static void
count_no_more(struct visit *v)
{
    if (v->counted > 0)
        limits_unheard((unsigned)v->hop->route, v->counted);
    v->counted = 0;
}

static void
forget_transaction(struct visit *v)
{
    count_no_more(v);
    v->has_mail = v->in_data = false;
    v->rcpt_count = v->asked_count = 0;
    v->back = NULL;
    v->to_archive = false;
    v->early_in = 0;
    v->early = EARLY_NOT;
    buffer_clear(&v->data);
}

/* A command that was sent after the reply has come confirms it. */
static void
confirm(struct visit *v, bool all)
{
    unsigned left = 0;
    int64_t before_ms = roof_now_ms() - network_round_ms(v->peer.end);
    for (unsigned i = 0; i < v->unsure_count; i++)
        if (!all && v->unsure[i].since_ms >= before_ms)
            v->unsure[left++] = v->unsure[i];
    v->unsure_count = left;
}

static void
lose_reply(struct model_rcpt *r, struct model_message *back)
{
    if (r != NULL)
        model_unconfirmed(r);
    else
        model_report_unconfirmed(back);
}

static void
note_unsure(struct visit *v, struct model_rcpt *r, struct model_message *back)
{
    if (network_is_left(v->peer.end)) { /* nobody will hear the reply */
        lose_reply(r, back);
        return;
    }
    if (v->unsure_count == RCPTS_MAX) /* of long ago */
        v->unsure_count = 0;
    v->unsure[v->unsure_count++] = (struct unsure){r, back, roof_now_ms()};
}

static void
release_visit(void *context)
{
    struct visit *v = context;
    buffer_free(&v->data);
    buffer_free(&v->reply);
    free(v);
}

/* For the hosts of a group it has begun, or ended. */
static void
count_session(struct visit *v, bool counts)
{
    if (!v->hop->is_shared || v->counts == counts)
        return;
    v->counts = counts;
    law_group_session(v->hop->site);
}

static void
visit_on_over(void *context)
{
    struct visit *v = context;
    count_session(v, false);
    count_no_more(v);
    roof_timer_stop(&v->reply_timer);
    roof_timer_stop(&v->idle);
    for (unsigned i = 0; i < v->unsure_count; i++)
        lose_reply(v->unsure[i].rcpt, v->unsure[i].back);
    /* A kept connection that ended in the middle is renewed, and its recipients are said
     * again. */
    for (unsigned i = 0; i < v->asked_count; i++)
        v->asked[i]->deferred_ms = 0;
    if (v->unsure_count > 0)
        roof_note("%s: ended before its reply was confirmed", v->hop->name);
    open_count--;
    DL_DELETE(visits, v);
    roof_timer_start(&v->idle, 0, release_visit, v);
}

static void
visit_on_late(void *context)
{
    struct visit *v = context;
    v->waits = false;
    v->hop->lied_ms = v->lies ? roof_now_ms() : v->hop->lied_ms;
    for (unsigned i = 0; i < v->unsure_count; i++)
        v->unsure[i].since_ms = roof_now_ms();
    struct text reply = buffer_text(&v->reply);
    peer_say(&v->peer, reply);
    buffer_clear(&v->reply);
    if (v->peer.end != NULL)
        peer_go_on(&v->peer);
}

static void
hop_refuses(const struct visit *v, struct model_rcpt *r)
{
    law_adoption_storing(v->client, r);
    model_refused(r);
}

/* Replies are out of step: each may count for another command. */
static void
begin_lies(struct visit *v)
{
    roof_note("%s: says it twice", v->hop->name);
    v->lies = true;
    for (unsigned i = 0; i < v->asked_count; i++) {
        hop_refuses(v, v->asked[i]);
        v->asked[i]->deferred_ms = 0;
    }
}

/* All replies go through here: in time, late, twice, in a wrong place, or not at all. */
static bool
say(struct visit *v, const char *text)
{
    const struct hop_mood *m = &v->hop->mood;
    char line[REPLY_MAX];
    if (v->lies)
        v->hop->lied_ms = roof_now_ms();
    if (roof_chance(m->cut)) {
        roof_note("%s: cuts in place of %s", v->hop->name, text);
        peer_cut(&v->peer, (enum peer_end)roof_below(PEER_ENDS));
        return false;
    }
    if (roof_chance(m->close)) {
        roof_note("%s: 421 in place of %s", v->hop->name, text);
        peer_say(&v->peer, TEXT("421 4.3.2 closing\r\n"));
        peer_close(&v->peer);
        return false;
    }
    snprintf(line, sizeof(line), "%s\r\n", text);
    bool twice = !v->hop->chunking && roof_chance(m->twice) && !v->is_last;
    if (twice)
        begin_lies(v);
    int64_t delay_ms = m->reply_ms;
    if (roof_chance(m->late))
        delay_ms += roof_between(1, m->late_ms);
    bool fits = buffer_add(&v->reply, text_from(line)) &&
                (!twice || buffer_add(&v->reply, text_from(line)));
    assert(fits);
    if (delay_ms == 0) {
        struct text reply = buffer_text(&v->reply);
        peer_say(&v->peer, reply);
        buffer_clear(&v->reply);
    } else {
        v->waits = true;
        roof_timer_start(&v->reply_timer, delay_ms, visit_on_late, v);
    }
    return v->peer.end != NULL; /* the connection may be over */
}

/* 4yz, or for good. */
static bool
is_refused(struct visit *v, unsigned permille, bool *good)
{
    *good = roof_chance(permille);
    if (!*good)
        return false;
    *good = roof_chance(v->hop->mood.never);
    return true;
}

/* A host that has gone does not hear it, and its next process may try at once. */
static void
hear_deferred(const struct visit *v, struct model_rcpt *r)
{
    if (!network_is_left(v->peer.end))
        model_deferred(r);
}

static void
all_refused(struct visit *v, bool never, bool said)
{
    for (unsigned i = 0; i < v->rcpt_count; i++) {
        if (never || v->lies)
            hop_refuses(v, v->rcpts[i]);
        else if (said)
            hear_deferred(v, v->rcpts[i]);
    }
}

static bool
is_grey(struct hop *h, const struct model_rcpt *r)
{
    if (h->mood.grey_ms == 0)
        return false;
    for (size_t i = 0; i < h->grey_count; i++)
        if (h->grey[i].rcpt == r)
            return roof_now_ms() - h->grey[i].since_ms < h->mood.grey_ms;
    h->grey = memory_resize(h->grey, (h->grey_count + 1) * sizeof(*h->grey));
    h->grey[h->grey_count++] = (struct grey){r, roof_now_ms()};
    return true;
}

static struct text
path_of(struct text line)
{
    size_t from = text_find(line, '<'), to = text_find(line, '>');
    if (from == TEXT_NONE || to == TEXT_NONE || to < from)
        return TEXT("");
    return text_before(text_after(line, from + 1), to - from - 1);
}

/* The client may have another reply for that of MAIL, and names no recipient then. */
static void
refuse_unnamed(const struct visit *v, const struct model_message *m)
{
    for (unsigned i = 0; m != NULL && v->lies && i < m->rcpt_count; i++)
        if (m->rcpts[i].stored == 0)
            hop_refuses(v, &m->rcpts[i]);
}

static void
on_mail(struct visit *v, struct text line)
{
    const struct hop_mood *m = &v->hop->mood;
    bool never;
    if ((v->has_mail && !v->lies) || roof_breaks("reset"))
        roof_break("whole", NULL, "%s hears MAIL within a transaction", v->hop->name);
    forget_transaction(v);
    law_adoption_mail(v->client, path_of(line));
    refuse_unnamed(v, model_find_sender(path_of(line)));
    /* A refusal here would be one of recipients that are not known yet. */
    if (v->hop->has_login && !v->logged_in) {
        say(v, "530 5.7.0 log in first");
        return;
    }
    if (roof_chance(m->slow_down)) {
        say(v, "421 4.7.0 too fast, slow down"); /* the client hangs up */
        return;
    }
    if (path_of(line).length == 0 && roof_chance(m->null)) {
        say(v, "501 5.1.7 nobody sends this");
        return;
    }
    if (is_refused(v, m->mail, &never)) {
        say(v, "451 4.3.0 not now");
        return;
    }
    v->has_mail = true;
    v->has_sender = path_of(line).length > 0;
    v->has_requiretls = text_ends_nocase(line, TEXT(" REQUIRETLS"));
    (void)text_copy(v->from, sizeof(v->from), path_of(line));
    if (say(v, "250 2.1.0 ok") && v->hop->is_shared)
        law_group_transaction(v->hop->site);
}

/* No mail goes in cleartext, or to a stranger, while its route has always forbidden it. */
static void
judge_secrecy(const struct visit *v, const struct model_rcpt *r)
{
    enum editor_tls demand = editor_tls_of(r->domain);
    if (demand >= EDITOR_TLS_ENCRYPT && !v->peer.secured)
        roof_break("bounds", v->hop->name, "mail for m%ur%u comes in cleartext",
                   r->message->number, r->index);
    if (demand == EDITOR_TLS_VERIFY && v->strange)
        roof_break("bounds", v->hop->name, "mail for m%ur%u comes to a stranger",
                   r->message->number, r->index);
    policy_judge(r->domain, v->hop->name, v->began_ms, v->peer.secured && !v->strange);
}

/* Mail whose sender requires TLS comes under it, to the host that was meant, which has to
 * protect it further. */
static void
judge_requires(const struct visit *v, const struct model_rcpt *r)
{
    bool is_certain = v->peer.secured && !v->strange;
    bool is_told = v->hop->lmtp || (v->offers_requiretls && v->has_requiretls);
    if (r->message->requires_tls &&
        (!is_certain || !is_told || roof_breaks("requiretls")))
        roof_break("bounds", v->hop->name, "m%ur%u requires TLS, and comes %s",
                   r->message->number, r->index,
                   !v->peer.secured        ? "in cleartext"
                   : v->strange            ? "to a stranger"
                   : !v->offers_requiretls ? "to a host without REQUIRETLS"
                                           : "without a word of it");
}

/* A hop that reports by itself knows what the sender wants. */
static void
judge_notify(const struct model_rcpt *r, struct text line)
{
    char want[MODEL_ORIGINAL_MAX];
    const char *notify = model_notify_words(r->message);
    struct text rest = text_after(line, text_find(line, '>') + 1);
    if (notify[0] != '\0' &&
        memmem(rest.at, rest.length, notify, strlen(notify)) == NULL)
        roof_break("truth", r->message->id, "a hop gets '%.*s' in place of%s",
                   TEXT_ARGS(rest), notify);
    model_rcpt_original(r, want);
    if (want[0] != '\0' && memmem(rest.at, rest.length, want, strlen(want)) == NULL)
        roof_break("truth", r->message->id, "a hop gets '%.*s' in place of %s",
                   TEXT_ARGS(rest), want);
}

static void
on_rcpt(struct visit *v, struct text line)
{
    struct text path = path_of(line);
    struct model_rcpt *r = model_find(path);
    struct model_message *back = r == NULL ? model_find_sender(path) : NULL;
    bool never;
    if (!v->has_mail) {
        if (r != NULL && v->lies) /* the client has another reply for that of MAIL */
            hop_refuses(v, r);
        say(v, "503 5.5.1 MAIL first");
        return;
    }
    roof_note("%s: RCPT %.*s", v->hop->name, TEXT_ARGS(path));
    bool to_archive = text_equal(path, TEXT(MODEL_ARCHIVE));
    if (dead_tried(path, network_from(v->peer.end), network_is_left(v->peer.end))) {
        say(v, "550 5.1.1 User unknown");
        return;
    }
    if (r == NULL && back == NULL && !to_archive)
        roof_break("whole", NULL, "a recipient that nobody has given: %.*s",
                   TEXT_ARGS(path));
    if (r != NULL) {
        judge_secrecy(v, r);
        judge_requires(v, r);
        if (v->hop->route >= 0)
            v->counted += limits_heard((unsigned)v->hop->route);
        if (v->hop->dsn && !r->message->is_aliased)
            judge_notify(r, line);
        if (!network_is_left(v->peer.end))
            model_attempted(r);
    }
    if (r != NULL && v->asked_count < RCPTS_MAX)
        v->asked[v->asked_count++] = r;
    if (r != NULL && v->lies)
        hop_refuses(v, r);
    if (r != NULL && is_grey(v->hop, r)) {
        if (say(v, "450 4.2.0 greylisted") && !v->lies)
            hear_deferred(v, r);
        return;
    }
    if (v->hop->mood.most > 0 && v->rcpt_count >= v->hop->mood.most) {
        if (say(v, "452 4.5.3 too many recipients") && r != NULL)
            r->deferred_ms = 0; /* it comes in the next transaction */
        return;
    }
    if (is_refused(v, v->hop->mood.rcpt, &never)) {
        never = never && r != NULL; /* reports are taken in the end */
        if (never)
            hop_refuses(v, r);
        if (say(v, never ? "550 5.1.1 nobody" : "450 4.2.0 not now") && r != NULL &&
            !v->lies)
            hear_deferred(v, r);
        return;
    }
    if (r != NULL && v->rcpt_count < RCPTS_MAX)
        v->rcpts[v->rcpt_count++] = r;
    if (back != NULL)
        v->back = back;
    v->to_archive = v->to_archive || to_archive;
    if (v->to_archive && (v->has_sender || v->rcpt_count > 0 || v->back != NULL))
        roof_break("whole", NULL, "a copy comes from its author, or with other mail");
    if (v->rcpt_count > most_rcpts)
        most_rcpts = v->rcpt_count;
    say(v, "250 2.1.5 ok");
}

static void
on_data(struct visit *v)
{
    bool never;
    if (v->rcpt_count == 0 && v->back == NULL && !v->to_archive) {
        say(v, "503 5.5.1 RCPT first");
        return;
    }
    if (is_refused(v, v->hop->mood.data, &never)) {
        never = never && v->back == NULL;
        all_refused(v, never, say(v, never ? "554 5.7.0 never" : "451 4.3.0 not now"));
        forget_transaction(v);
        return;
    }
    v->in_data = true;
    if (v->hop->mood.early > 0 && !v->to_archive && roof_chance(v->hop->mood.early))
        v->early_in = 1 + roof_below(EARLY_LINES);
    say(v, "354 go on");
}

static void
report(struct visit *v)
{
    law_adoption_reporting(v->client, v->back);
    model_reported(v->back, buffer_text(&v->data));
}

static void
store(struct visit *v, struct model_rcpt *r)
{
    roof_note("%s: stores m%ur%u", v->hop->name, r->message->number, r->index);
    law_adoption_storing(v->client, r);
    model_stored(r, buffer_text(&v->data));
    v->counted -= v->counted > 0;
    returner_stored(text_from(v->from), r, buffer_text(&v->data));
    if (v->hop->dsn)
        model_passed_on(r);
    if (v->lies)
        model_unconfirmed(r);
    note_unsure(v, r, NULL);
}

static void
end_lmtp(struct visit *v)
{
    struct model_rcpt *all[RCPTS_MAX];
    unsigned count = v->rcpt_count;
    memcpy(all, v->rcpts, count * sizeof(*all));
    v->is_last = true;
    for (unsigned i = 0; i < count; i++) {
        bool never;
        if (is_refused(v, v->hop->mood.end, &never)) {
            if (never)
                hop_refuses(v, all[i]);
            if (say(v, never ? "552 5.2.2 never" : "450 4.3.0 not now") && !never)
                hear_deferred(v, all[i]);
        } else {
            store(v, all[i]);
            if (roof_chance(v->hop->mood.cut_end)) {
                peer_cut(&v->peer, (enum peer_end)roof_below(PEER_ENDS));
                return;
            }
            say(v, "250 2.0.0 stored");
        }
        if (v->peer.end == NULL)
            return;
    }
}

static void
archive(struct visit *v)
{
    struct text content = buffer_text(&v->data);
    if (!dead_archived(content))
        store(v, model_find_copy(content));
}

static void
end_smtp(struct visit *v)
{
    bool never;
    if (is_refused(v, v->hop->mood.end, &never)) {
        never = never && v->back == NULL;
        all_refused(v, never, say(v, never ? "554 5.6.0 never" : "451 4.3.0 not now"));
        return;
    }
    for (unsigned i = 0; i < v->rcpt_count; i++)
        store(v, v->rcpts[i]);
    if (v->to_archive)
        archive(v);
    if (v->back != NULL) {
        roof_note("%s: stores a report to s%u", v->hop->name, v->back->number);
        report(v);
        note_unsure(v, NULL, v->back);
        if (v->lies)
            model_report_unconfirmed(v->back);
    }
    if (roof_chance(v->hop->mood.cut_end)) {
        roof_note("%s: cuts behind the end", v->hop->name);
        peer_cut(&v->peer, (enum peer_end)roof_below(PEER_ENDS));
        return;
    }
    say(v, "250 2.0.0 stored");
}

static void
visit_on_idle(void *context)
{
    struct visit *v = context;
    peer_cut(&v->peer, PEER_FIN);
}

static void
end_content(struct visit *v)
{
    if (v->hop->lmtp)
        end_lmtp(v);
    else
        end_smtp(v);
    v->is_last = false;
    forget_transaction(v);
    if (v->peer.end != NULL && roof_chance(v->hop->mood.idle_cut))
        roof_timer_start(&v->idle, roof_between(0, 3000), visit_on_idle, v);
}

/* The reply to the end of content that is not there yet. Of a 250 the client may make what
 * it wants. */
static void
reply_early(struct visit *v)
{
    static const char *const replies[] = {
        [EARLY_NOT] = "",
        [EARLY_GOOD] = "250 2.0.0 stored\r\n",
        [EARLY_LATER] = "451 4.3.0 not now\r\n",
        [EARLY_NEVER] = "554 5.6.0 never\r\n",
    };
    v->early = EARLY_GOOD + roof_below(v->back != NULL ? 2 : 3);
    roof_note("%s: says early %.3s", v->hop->name, replies[v->early]);
    for (unsigned i = 0; i < v->rcpt_count; i++) {
        if (v->early == EARLY_GOOD)
            model_lied(v->rcpts[i]);
        if (v->early == EARLY_NEVER || v->lies)
            hop_refuses(v, v->rcpts[i]);
    }
    if (v->early == EARLY_GOOD && v->back != NULL)
        model_report_lied(v->back);
    /* LMTP has one for each recipient: without them the next MAIL's reply is one of them */
    for (unsigned i = 0; i < (v->hop->lmtp ? v->rcpt_count : 1); i++)
        peer_say(&v->peer, text_from(replies[v->early]));
}

static void
end_early(struct visit *v)
{
    for (unsigned i = 0; i < v->rcpt_count && v->early == EARLY_GOOD; i++)
        store(v, v->rcpts[i]);
    if (v->early == EARLY_GOOD && v->back != NULL)
        report(v);
    forget_transaction(v);
}

static void
on_content(struct visit *v, struct text line)
{
    if (v->early_in > 0 && --v->early_in == 0)
        reply_early(v);
    if (v->peer.end == NULL)
        return;
    if (text_equal(line, TEXT("."))) {
        v->in_data = false;
        if (v->early != EARLY_NOT)
            end_early(v);
        else
            end_content(v);
        return;
    }
    if (text_starts(line, TEXT(".")))
        line = text_after(line, 1);
    bool fits = buffer_add(&v->data, line) && buffer_add(&v->data, TEXT("\r\n"));
    assert(fits);
}

static void
on_hello(struct visit *v)
{
    char text[REPLY_MAX];
    v->offers_requiretls = v->peer.secured && v->hop->requires > 0 &&
                           roof_below_of(&requires_chance, 1000) < v->hop->requires;
    snprintf(text, sizeof(text), "250-%s\r\n%s%s%s%s%s%s250 ENHANCEDSTATUSCODES",
             v->hop->name,
             !v->hop->has_login ? ""
             : v->hop->by_token ? "250-AUTH XOAUTH2\r\n"
             : v->hop->by_login ? "250-AUTH LOGIN\r\n"
                                : "250-AUTH LOGIN PLAIN\r\n",
             v->hop->dsn ? "250-DSN\r\n" : "",
             v->hop->tls && !v->peer.secured ? "250-STARTTLS\r\n" : "",
             v->offers_requiretls ? "250-REQUIRETLS\r\n" : "",
             v->hop->pipelining ? "250-PIPELINING\r\n" : "",
             v->hop->chunking ? "250-CHUNKING\r\n250-BINARYMIME\r\n" : "");
    if (v->hop->mood.ahead > 0 && roof_chance(v->hop->mood.ahead))
        strcat(text, "\r\n421 4.7.0 too many connections");
    say(v, text);
}

static void
judge_password(const struct visit *v, struct text word, enum login_part part)
{
    char want[LOGIN_WORD_MAX];
    login_word('h', v->hop->user, part, true, want);
    if (!text_equal(word, text_from(want)))
        roof_break("truth", v->hop->name, "not our password: %.*s", TEXT_ARGS(word));
    if (!v->peer.secured && editor_tls_of(v->hop->domain) >= EDITOR_TLS_ENCRYPT)
        roof_break("bounds", v->hop->name, "a password in cleartext");
}

static void
end_login(struct visit *v)
{
    const struct hop_mood *m = &v->hop->mood;
    if (roof_chance(m->auth_refused)) {
        token_refused();
        say(v, "535 5.7.8 who?");
    } else if (roof_chance(m->auth_later)) {
        say(v, "454 4.7.0 not now");
    } else if (roof_chance(m->auth_closed)) {
        peer_say(&v->peer, TEXT("235 2.7.0 ok\r\n421 4.7.0 too many\r\n"));
        peer_close(&v->peer);
    } else if (roof_chance(m->auth_surplus)) {
        peer_say(&v->peer, TEXT("235 2.7.0 ok\r\n250 2.0.0 and this\r\n"));
        v->logged_in = v->lies = true;
    } else {
        v->logged_in = say(v, "235 2.7.0 ok");
    }
}

static void
on_token(struct visit *v, struct text word)
{
    if (!v->peer.secured && editor_tls_of(v->hop->domain) >= EDITOR_TLS_ENCRYPT)
        roof_break("bounds", v->hop->name, "a token in cleartext");
    if (token_is_good(word, v->began_ms))
        end_login(v);
    else
        say(v, "535 5.7.8 that token is over");
}

static void
on_auth(struct visit *v, struct text line)
{
    if (!v->hop->has_login || v->logged_in) {
        say(v, "503 5.5.1 no");
    } else if (v->hop->by_token && text_starts(line, TEXT("AUTH XOAUTH2 "))) {
        on_token(v, text_after(line, sizeof("AUTH XOAUTH2 ") - 1));
    } else if (text_starts(line, TEXT("AUTH PLAIN "))) {
        judge_password(v, text_after(line, sizeof("AUTH PLAIN ") - 1), LOGIN_PLAIN);
        end_login(v);
    } else if (text_equal(line, TEXT("AUTH LOGIN"))) {
        if (say(v, "334 VXNlcm5hbWU6"))
            v->auth_words = 2;
    } else {
        say(v, "504 5.5.4 what");
    }
}

static void
on_auth_word(struct visit *v, struct text word)
{
    if (--v->auth_words == 1) {
        judge_password(v, word, LOGIN_USER);
        say(v, "334 UGFzc3dvcmQ6");
        return;
    }
    judge_password(v, word, LOGIN_PASSWORD);
    end_login(v);
}

static void
on_starttls(struct visit *v)
{
    const struct hop_mood *m = &v->hop->mood;
    forget_transaction(v);
    if (!v->hop->tls || roof_chance(m->tls_refused)) {
        say(v, v->hop->tls ? "454 4.7.0 not now" : "502 5.5.1 what");
        return;
    }
    peer_say(&v->peer, TEXT("220 2.0.0 go on\r\n"));
    if (roof_chance(m->tls_broken)) {
        roof_note("%s: speaks no TLS", v->hop->name);
        peer_say(&v->peer, TEXT("220 what is this?\r\n"));
        peer_close(&v->peer);
        return;
    }
    if (v->peer.end != NULL && roof_chance(m->tls_cut)) {
        v->peer.cut_at = v->peer.sent + 1 + roof_below(HANDSHAKE);
        v->peer.cut_how = (enum peer_end)roof_below(PEER_ENDS);
        roof_note("%s: cuts in the handshake or behind it", v->hop->name);
    }
    v->logged_in = false;
    v->strange = roof_chance(m->tls_strange);
    if (v->peer.end != NULL)
        peer_start_tls(&v->peer, secrecy_hop(!v->strange), NULL);
}

static void
end_chunk(struct visit *v)
{
    if (v->chunk_refused)
        say(v, "503 5.5.1 RCPT first");
    else if (v->chunk_last)
        end_content(v);
    else
        say(v, "250 2.0.0 go on");
}

static void
visit_on_raw(void *context, struct text bytes)
{
    struct visit *v = context;
    if (!v->chunk_refused && !buffer_add(&v->data, bytes))
        abort();
    if (v->peer.raw_left == 0)
        end_chunk(v);
}

static void
on_bdat(struct visit *v, struct text line)
{
    uint64_t size = 0;
    struct text rest = text_after(line, 5), number;
    text_cut(&rest, ' ', &number);
    bool good = text_number(number, DATA_MAX, &size);
    assert(good);
    v->chunk_last = text_equal(rest, TEXT("LAST"));
    v->chunk_refused = v->rcpt_count == 0 && v->back == NULL && !v->to_archive;
    v->peer.raw_left = (size_t)size;
    if (size == 0)
        end_chunk(v);
}

static bool
is_verb(struct text line, const char *verb)
{
    return text_starts(line, text_from(verb));
}

static bool
visit_on_line(void *context, struct text line)
{
    struct visit *v = context;
    if (v->waits)
        return false;
    if (v->in_data) {
        on_content(v, line);
        return true;
    }
    if (v->auth_words > 0) {
        on_auth_word(v, line);
        return true;
    }
    confirm(v, false);
    roof_timer_stop(&v->idle);
    if (is_verb(line, "EHLO ") || is_verb(line, "LHLO ") || is_verb(line, "HELO "))
        on_hello(v);
    else if (is_verb(line, "MAIL "))
        on_mail(v, line);
    else if (is_verb(line, "RCPT "))
        on_rcpt(v, line);
    else if (is_verb(line, "DATA"))
        on_data(v);
    else if (is_verb(line, "BDAT "))
        on_bdat(v, line);
    else if (is_verb(line, "AUTH "))
        on_auth(v, line);
    else if (is_verb(line, "STARTTLS"))
        on_starttls(v);
    else if (is_verb(line, "RSET"))
        forget_transaction(v), say(v, "250 2.0.0 ok");
    else if (is_verb(line, "QUIT")) {
        confirm(v, true); /* its replies have come before the one to QUIT */
        count_session(v, false);
        peer_say(&v->peer, TEXT("221 2.0.0 bye\r\n"));
        peer_close(&v->peer);
    } else
        say(v, "500 5.5.2 what");
    return true;
}

static void
greet(struct visit *v)
{
    char text[REPLY_MAX];
    if (roof_chance(v->hop->mood.greeting)) {
        peer_say(&v->peer, TEXT("421 4.3.2 not now\r\n"));
        peer_close(&v->peer);
        return;
    }
    if (roof_chance(v->hop->mood.hang_up)) {
        peer_cut(&v->peer, PEER_FIN);
        return;
    }
    snprintf(text, sizeof(text), "220 %s ESMTP", v->hop->name);
    say(v, text);
}

/* Sessions side by side at a hop that one domain of one daemon leads to. */
static void
judge_window(const struct hop *h)
{
    const struct visit *v;
    int64_t count = 0, most = editor_window(h->window_of);
    DL_FOREACH (visits, v)
        count += v->hop == h && v->began_ms >= windows_since_ms &&
                 v->peer.end != NULL && !network_is_left(v->peer.end);
    if (count > (roof_breaks("window") ? 0 : most))
        roof_break("bounds", NULL,
                   "%" PRId64 " sessions at %s, with a limit of %" PRId64, count,
                   h->name, most);
}

static void
hop_on_accept(void *context, struct network_end *end)
{
    struct visit *v = memory_new(sizeof(*v));
    v->hop = context;
    v->began_ms = roof_now_ms();
    v->client = law_adoption_host(network_from(end));
    buffer_init(&v->data, DATA_MAX);
    buffer_init(&v->reply, 1 << 20);
    v->peer = (struct peer){.line = visit_on_line,
                            .raw = visit_on_raw,
                            .over = visit_on_over,
                            .context = v};
    DL_APPEND(visits, v);
    visit_count += strcmp(v->hop->name, "back") != 0;
    if (++open_count > most_count)
        most_count = open_count;
    peer_take(&v->peer, end);
    count_session(v, true);
    if (v->hop->judges_window)
        judge_window(v->hop);
    greet(v);
}

struct hop *
hop_new(const char *name, const char *ip, unsigned port, bool lmtp, bool pipelining,
        bool chunking)
{
    struct net_address at = {0};
    struct hop *h = memory_new(sizeof(*h));
    bool good = net_address_parse_ip(text_from(ip), &at);
    assert(good);
    at.port = (uint16_t)port;
    h->name = name;
    h->lmtp = lmtp;
    h->pipelining = pipelining || lmtp;
    h->chunking = chunking;
    h->route = -1;
    snprintf(h->address, sizeof(h->address), "[%s]:", ip);
    LL_PREPEND(all_hops, h);
    h->service = network_serve(&at, hop_on_accept, h);
    return h;
}

void
hop_set_login(struct hop *h, unsigned user, unsigned domain, bool by_login)
{
    h->has_login = true;
    h->user = user;
    h->domain = domain;
    h->by_login = by_login;
}

void
hop_set_token(struct hop *h, unsigned domain)
{
    h->has_login = h->by_token = true;
    h->domain = domain;
}

void
hop_set_route(struct hop *h, unsigned route)
{
    h->route = (int)route;
}

void
hop_set_shared(struct hop *h, unsigned site)
{
    h->is_shared = true;
    h->site = site;
}

unsigned
hops_shared_sessions(unsigned site)
{
    const struct visit *v;
    unsigned count = 0;
    DL_FOREACH (visits, v)
        count += v->counts && v->hop->site == site && v->peer.end != NULL &&
                 network_has_peer(v->peer.end);
    return count;
}

void
hop_judge_window(struct hop *h, unsigned domain)
{
    h->judges_window = true;
    h->window_of = domain;
}

void
hops_forget_windows(void)
{
    windows_since_ms = roof_now_ms() + ON_ITS_WAY_MS;
}

void
hop_set_dsn(struct hop *h)
{
    h->dsn = true;
}

void
hop_set_tls(struct hop *h, bool offers)
{
    h->tls = offers;
}

void
hop_set_requires(struct hop *h, unsigned permille)
{
    requires_chance = roof_fork("hops that require");
    h->requires = permille;
}

bool
hop_has_lied(struct text line)
{
    const struct hop *h;
    LL_FOREACH (all_hops, h)
        if (h->lied_ms > 0 && roof_now_ms() - h->lied_ms < HEARD_MS &&
            memmem(line.at, line.length, h->address, strlen(h->address)) != NULL)
            return true;
    return false;
}

void
hops_reset(void)
{
    struct visit *v, *next;
    DL_FOREACH_SAFE (visits, v, next)
        peer_cut(&v->peer, PEER_RESET);
}

void
hop_set_mood(struct hop *h, const struct hop_mood *mood)
{
    h->mood = *mood;
}

void
hop_set_weather(struct hop *h, enum hop_weather weather)
{
    static const enum network_answer answers[] = {
        [HOP_UP] = NETWORK_ACCEPTS,
        [HOP_REFUSES] = NETWORK_REFUSES,
        [HOP_SILENT] = NETWORK_SILENT,
    };
    network_service_set(h->service, answers[weather]);
}
