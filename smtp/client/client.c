/* The client's side of an SMTP or LMTP session: reads replies, asks steps, returns
 * events.
 *
 * Replies belong to the transaction in front. The other slot has the message whose
 * commands leave with the final dot of the first one; a third one must wait until the
 * reply to that dot has come.
 *
 * client_next() returns verdicts before it reads another reply, since a transaction has
 * space for the outcome of one reply only. It reads input before it returns other
 * events: bytes behind the 220 of STARTTLS are found before TLS begins, and surplus
 * replies before the message is reported as done. */
#include "smtp/client/client.h"

#include "base/memory.h"
#include "base/number.h"
#include "smtp/client/client_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not reached while the owner keeps the contract. */
enum { OUTPUT_MAX = 4 * 1024 * 1024, REASON_MAX = 300 };

/* --- Verdicts --------------------------------------------------------------------- */

static bool
client_settle(struct client_transaction *l, size_t which, struct client_event *event)
{
    assert(l->states[which] != RECIPIENT_SETTLED);
    l->states[which] = RECIPIENT_SETTLED;
    l->mail_heard = true; /* a message with a verdict uses no other connection */
    bool is_later = l->spread == SPREAD_LATER;
    *event = (struct client_event){.kind = is_later ? CLIENT_LATER : CLIENT_VERDICT,
                                   .which = which,
                                   .outcome = is_later ? &l->later_outcome
                                                       : &l->spread_outcome};
    return true;
}

static bool
spreads_to(enum spread to, enum recipient_state state)
{
    switch (to) {
    case SPREAD_NONE:
    case SPREAD_ONE:
        return false;
    case SPREAD_UNFIT:
        return state == RECIPIENT_UNFIT;
    case SPREAD_ACCEPTED:
        return state == RECIPIENT_ACCEPTED;
    case SPREAD_LATER:
        return state == RECIPIENT_LATER;
    case SPREAD_ALL:
        return state != RECIPIENT_SETTLED;
    }
    abort(); /* not a spread */
}

/* One reply may settle many recipients, and each call returns one event: spread_at is
 * the place reached. Recipients that are already settled keep their verdict. */
static bool
next_verdict(struct client *c, struct client_event *event)
{
    struct client_transaction *l = client_front(c);
    if (l->spread == SPREAD_ONE) {
        l->spread = SPREAD_NONE;
        return client_settle(l, l->spread_at, event);
    }
    for (; l->spread != SPREAD_NONE && l->spread_at < l->mail.count; l->spread_at++)
        if (spreads_to(l->spread, l->states[l->spread_at]))
            return client_settle(l, l->spread_at, event);
    l->spread = SPREAD_NONE;
    if (!l->active || !l->ended || l->later == 0)
        return false;
    l->later = 0;
    client_hand_out(l, c->over ? SPREAD_ALL : SPREAD_LATER, 0, c->end_outcome);
    return next_verdict(c, event);
}

static struct client_transaction *
other(struct client *c)
{
    return &c->slots[!c->front];
}

/* The front has all its verdicts, and another message follows. */
static bool
move_up(struct client *c, struct client_event *event)
{
    struct client_transaction *l = client_front(c);
    if (!l->ended || l->spread != SPREAD_NONE || !other(c)->active)
        return false;
    l->active = l->ended = false;
    c->front = !c->front;
    c->early_due = false;
    *event = (struct client_event){.kind = CLIENT_DONE};
    return true;
}

static const struct awaited_reply *
last(const struct client *c)
{
    return &c->waiting[(c->first + c->in_flight - 1) % CLIENT_IN_FLIGHT_MAX];
}

/* --- The transcript --------------------------------------------------------------- */

/* Notes the bytes that the step has added to the output behind `before`. For a login
 * only its verb. */
static void
note_asked(const struct client *c, enum step_name step, size_t before)
{
    struct text said = text_after(buffer_text((struct buffer *)&c->output), before);
    if (step == STEP_AUTH)
        said = TEXT("AUTH ...");
    if (c->settings.transcript == NULL || said.length == 0 || step == STEP_RESPONSE)
        return;
    transcript_add(c->settings.transcript, TRANSCRIPT_WE, text_without_line_end(said));
}

static void
line_append(char line[TRANSCRIPT_LINE_MAX], size_t *length, struct text t)
{
    t = text_before(t, TRANSCRIPT_LINE_MAX - *length);
    if (t.length > 0)
        memcpy(line + *length, t.at, t.length);
    *length += t.length;
}

/* Since AUTH the host knows our secrets, and could repeat them: from refusals they are
 * removed (client_hide_secrets()), of all else there is the code alone. */
static void
note_heard(const struct client *c)
{
    struct transcript *t = c->settings.transcript;
    const struct reply *r = &c->reply;
    bool is_refusal = r->code >= 400, is_whole = is_refusal || !c->auth.begun;
    char line[TRANSCRIPT_LINE_MAX];
    if (t == NULL)
        return;
    size_t length = number_write(r->code, line);
    line_append(line, &length, TEXT(" "));
    line_append(line, &length, text_from(r->enhanced));
    if (r->enhanced[0] != '\0')
        line_append(line, &length, TEXT(" "));
    if (is_whole)
        line_append(line, &length, text_from(r->text));
    transcript_add(t, TRANSCRIPT_THEY, text_trim(text_of(line, length)));
    t->failed = t->failed || is_refusal;
}

/* --- The driver ------------------------------------------------------------------- */

static const char *
doing(const struct client *c)
{
    if (client_is_working(c))
        return client_steps[STEP_RESPONSE].doing;
    if (c->in_flight > 0)
        return client_steps[c->waiting[c->first].step].doing;
    return c->next != STEP_NONE ? client_steps[c->next].doing : "waiting for more mail";
}

/* Within content only a refusal is legal: a 2yz before the end cannot be about a
 * message that the peer has not got. A second greeting puts all replies out of step. */
static bool
is_expected(const struct step *step, const struct reply *reply)
{
    int class = reply->code / 100;
    if (class >= 4)
        return true;
    if (step->heard == client_heard_auth_reply)
        return true;
    if (step == &client_steps[STEP_CONTENT])
        return false;
    if (reply->code == 220)
        return step == &client_steps[STEP_GREETING] ||
               step == &client_steps[STEP_STARTTLS];
    return class == (step == &client_steps[STEP_DATA] ? 3 : 2);
}

/* 421: the peer closes now, in answer to any command (RFC 5321 §3.8). The site is
 * blamed, and a message that has been heard is deferred. */
static void
hear_farewell(struct client *c, const char *what)
{
    char answered[80];
    snprintf(answered, sizeof(answered), "while %s", what);
    client_end(c, reply_outcome_handshake(c->settings.peer, &c->reply, answered));
}

static void
hear_reply(struct client *c)
{
    const struct reply *reply = &c->reply;
    struct awaited_reply w = c->waiting[c->first];
    const struct step *step = &client_steps[w.step];
    if (!is_expected(step, reply)) {
        char what[64];
        snprintf(what, sizeof(what), "unexpected reply %d", reply->code);
        client_protocol_error(c, step->doing, what);
        return;
    }
    client_take(c);
    if (reply->code == 421)
        hear_farewell(c, step->doing);
    else
        step->heard(c, &w, reply);
}

/* The reply came before its command, or to none. A refusal has the host's reason, and
 * ends the connection: it cannot be about a message that the host has not heard. All
 * else is an error: taken for the reply to the next command, it would make all later
 * replies belong to the wrong recipients. */
static void
hear_unasked(struct client *c, enum progress progress)
{
    const char *what = "not an SMTP reply";
    if (progress == PROGRESS_DONE)
        what = "it sent a reply to no command";
    else if (c->reply.is_too_long)
        what = "a reply of more than 128 lines, or with a line of more than 4096 bytes";
    if (progress == PROGRESS_DONE && c->reply.code >= 400)
        hear_farewell(c, doing(c));
    else
        client_protocol_error(c, doing(c), what);
}

/* False: the reply is not complete. */
static bool
hear(struct client *c, struct text *input)
{
    /* Not parsed: input in cleartext would count as received under TLS. */
    if (c->in_flight > 0 && c->waiting[c->first].step == STEP_HANDSHAKE) {
        client_injected(c, input->length);
        return true;
    }
    enum progress progress = reply_parse(input, &c->reply);
    if (progress == PROGRESS_DONE) {
        client_hide_secrets(c);
        note_heard(c);
    }
    /* Part of a reply that begins before its command ends so, too. */
    c->is_ahead = c->is_ahead || c->in_flight == 0;
    if (progress == PROGRESS_MORE)
        return false;
    if (c->is_ahead || progress == PROGRESS_BAD)
        hear_unasked(c, progress);
    else
        hear_reply(c);
    reply_start(&c->reply);
    return true;
}

/* BDAT waits until a recipient is accepted: the effect of chunks without one is not
 * certain enough. */
static bool
may_ask(const struct client *c)
{
    if (c->next == STEP_NONE)
        return false;
    if (c->in_flight == 0)
        return true;
    if (c->next == STEP_BDAT)
        return false;
    return c->extensions & EXTENSION_PIPELINING &&
           c->in_flight < CLIENT_IN_FLIGHT_MAX && !client_steps[last(c)->step].barrier;
}

static void
ask_all(struct client *c)
{
    while (may_ask(c)) {
        enum step_name step = c->next;
        size_t before = c->output.length;
        client_steps[step].ask(c);
        note_asked(c, step, before);
    }
}

static bool
event_if_due(struct client_event *event, enum client_event_kind kind, bool *due)
{
    if (!*due)
        return false;
    *due = false;
    *event = (struct client_event){.kind = kind};
    return true;
}

/* No reply and no content is awaited for the front message. */
static bool
is_at_rest(const struct client *c)
{
    const struct client_transaction *l = &c->slots[c->front];
    return !l->sending && !l->preparing && c->in_flight == 0 && c->next == STEP_NONE;
}

/* A fresh connection that ends before its first message is heard is a failure of its
 * host, and the next host gets the message. If the same host got it again, one that
 * greets and then hangs up at MAIL would be tried without end. */
static enum client_end
end_kind(const struct client *c)
{
    const struct client_transaction *l = &c->slots[c->front];
    if (!c->greeted || c->transactions == 0)
        return CLIENT_END_HOST;
    if (!l->active)
        return CLIENT_END_IDLE;
    if (!l->unheard)
        return CLIENT_END_MAIL;
    return c->transactions > 1 ? CLIENT_END_KEPT : CLIENT_END_HOST;
}

/* CLIENT_DONE is last: it lets the owner reuse the slot. */
static bool
next_event(struct client *c, struct client_event *event)
{
    struct client_transaction *l = client_front(c);
    if (!c->over && l->active && event_if_due(event, CLIENT_PREPARE, &l->prepare_due))
        return true;
    if (event_if_due(event, CLIENT_SECURE, &c->secure_due) ||
        event_if_due(event, CLIENT_CONTENT, &c->content_due) ||
        event_if_due(event, CLIENT_EARLY, &c->early_due))
        return true;
    if (!c->over && event_if_due(event, CLIENT_PROBED, &c->probe_due)) {
        event->which = c->probed_step;
        event->outcome = &c->probed;
        return true;
    }
    if (event_if_due(event, CLIENT_OVER, &c->over_due)) {
        event->outcome = &c->end_outcome;
        event->end = end_kind(c);
        l->active = false;
        return true;
    }
    bool finished = !c->over && l->active && is_at_rest(c);
    if (finished) {
        l->active = l->ended = false;
        c->early_due = false;
    }
    return event_if_due(event, CLIENT_DONE, &finished);
}

/* Bytes behind the last reply of the handshake wait until the owner has had the chance
 * to send a message, as if they came a moment later: then their end has a message, which
 * goes to the next host or is deferred, and the host cannot be tried without end. */
static bool
next_ready(struct client *c, const struct text *input, struct client_event *event)
{
    c->is_ahead = c->is_ahead || (c->ready_due && input->length > 0);
    return event_if_due(event, CLIENT_READY, &c->ready_due);
}

bool
client_next(struct client *c, struct text *input, struct client_event *event)
{
    for (;;) {
        if (next_verdict(c, event) || move_up(c, event) || next_ready(c, input, event))
            return true;
        /* Before CLIENT_DONE: surplus replies are an error. */
        if (!c->over && input->length > 0 && hear(c, input))
            continue;
        if (next_event(c, event))
            return true;
        if (!may_ask(c))
            return false;
        ask_all(c);
    }
}

/* --- Calls of the owner ----------------------------------------------------------- */

/* Another program may have written such an address into the spool. It gets its verdict
 * first, and the others are sent as usual. */
static void
check_recipients(const struct client *c, struct client_transaction *l)
{
    const struct client_mail *m = &l->mail;
    bool unfit_too = false;
    for (size_t i = 0; i < m->count; i++) {
        bool good = client_is_sendable(m->envelope->recipients[m->indexes[i]].address);
        l->states[i] = good ? RECIPIENT_OPEN : RECIPIENT_UNFIT;
        unfit_too = unfit_too || !good;
    }
    if (!unfit_too)
        return;
    client_hand_out(l, SPREAD_UNFIT, 0,
                    reply_outcome_unfit(c->settings.peer, "5.1.3",
                                        "the recipient's address cannot be sent"));
}

/* Whether a message may follow the front: only the reply to its dot is missing, and no
 * recipient of it is to follow first. */
static bool
is_early(const struct client *c)
{
    const struct client_transaction *l = &c->slots[c->front];
    return l->active && !l->ended && l->later == 0 && !c->slots[!c->front].active &&
           c->extensions & EXTENSION_PIPELINING && c->in_flight > 0 &&
           c->waiting[c->first].step == STEP_END;
}

bool
client_has_space(const struct client *c)
{
    return c->greeted && !c->over && (!c->slots[c->front].active || is_early(c));
}

/* MAIL is illegal within an open transaction (RFC 5321 §4.1.4), and one whose
 * recipients were all refused is still open. After a dot no RSET is needed, also before
 * its reply, while needs_reset is still that of the message in front. */
static void
begin_asking(struct client *c, const struct client_transaction *l, bool early)
{
    if (client_next_rcpt(l, 0) < l->mail.count)
        c->next = c->needs_reset && !early ? STEP_RSET : STEP_MAIL;
}

void
client_send(struct client *c, const struct client_mail *mail)
{
    assert(client_has_space(c) && mail->count > 0);
    bool early = is_early(c);
    struct client_transaction *l = early ? other(c) : client_front(c);
    l->mail = *mail;
    if (mail->count > l->states_capacity) {
        l->states_capacity = mail->count;
        l->states = memory_resize(l->states, mail->count);
    }
    l->active = true;
    l->mail_heard = l->ended = l->unheard = l->sending = false;
    l->accepted = l->later = 0;
    c->transactions++;
    check_recipients(c, l);
    const char *enhanced, *why = client_choose_form(c, l, &enhanced);
    /* Otherwise the owner would be asked to convert a message that is settled. */
    if (client_next_rcpt(l, 0) == mail->count) /* none can be asked for */
        l->preparing = l->prepare_due = false;
    if (why != NULL)
        client_hand_out(l, SPREAD_ALL, 0,
                        reply_outcome_unfit(c->settings.peer, enhanced, why));
    else if (!l->preparing)
        begin_asking(c, l, early);
    if (l->spread == SPREAD_NONE) /* else the verdicts come first */
        ask_all(c);
}

/* The content was scanned before MAIL, so that a message that cannot go in any form is
 * never begun at the host. */
void
client_prepared(struct client *c, enum downgrade_verdict verdict, const char *reason,
                uint64_t size_max, size_t added)
{
    struct client_transaction *l = client_front(c);
    char words[REASON_MAX];
    const char *enhanced, *why;
    assert(!c->over && l->active && l->preparing && l->spread == SPREAD_NONE);
    l->added = added;
    why = client_change_form(c, l, verdict, size_max, &enhanced);
    if (why == NULL) {
        begin_asking(c, l, false);
        ask_all(c);
        return;
    }
    bool forbidden = verdict == DOWNGRADE_FORBIDDEN || verdict == DOWNGRADE_FRAGMENT;
    snprintf(words, sizeof(words), "%s%s%s", why, forbidden ? ": " : "",
             forbidden ? reason : "");
    client_hand_out(l, SPREAD_ALL, 0,
                    reply_outcome_unfit(c->settings.peer, enhanced, words));
}

void
client_probe(struct client *c, struct text sender, struct text recipient)
{
    assert(client_has_space(c) && !c->slots[c->front].active);
    c->probe_sender = client_is_sendable(sender) ? sender : TEXT("");
    c->probe_recipient = client_is_sendable(recipient) ? recipient : TEXT("");
    c->next = STEP_PROBE;
    ask_all(c);
}

bool
client_converts(const struct client *c)
{
    return c->slots[c->front].converting;
}

bool
client_has_news(const struct client *c)
{
    const struct client_transaction *l = &c->slots[c->front];
    return l->spread != SPREAD_NONE || c->over_due || c->secure_due || c->ready_due ||
           c->content_due || l->prepare_due || (l->active && is_at_rest(c));
}

/* More bytes than BDAT announced would be read as commands; the reader reports the
 * wrong size at the end. */
static bool
add_to_chunk(struct client *c, struct client_transaction *l, struct text piece)
{
    size_t left = l->chunk_left < SIZE_MAX ? (size_t)l->chunk_left : SIZE_MAX;
    piece = text_before(piece, left);
    l->chunk_left -= piece.length;
    if (piece.length > 0 && l->chunk_left == 0)
        client_end_chunk(c);
    return buffer_add(&c->output, piece);
}

void
client_content(struct client *c, struct text piece)
{
    assert(client_front(c)->sending && !c->over && piece.length <= CLIENT_PIECE_MAX);
    struct client_transaction *l = client_front(c);
    bool added =
        l->chunked ? add_to_chunk(c, l, piece) : dot_encode(&c->dot, piece, &c->output);
    assert(added);
}

void
client_content_end(struct client *c)
{
    struct client_transaction *l = client_front(c);
    assert(l->sending && !c->over && (!l->chunked || l->chunk_left == 0));
    l->sending = false;
    transcript_add(c->settings.transcript, TRANSCRIPT_NOTE, TEXT("content sent"));
    /* A chunk has taken its step off the queue: client_end_chunk(). */
    if (!l->chunked)
        client_take(c);
    client_finish_content(c);
    c->early_due = is_early(c);
    ask_all(c);
}

int64_t
client_timeout_ms(const struct client *c)
{
    if (c->in_flight == 0)
        return 0;
    double ms = client_steps[c->waiting[c->first].step].timeout_s * 1000 *
                c->settings.timeout_scale;
    return ms < 1 ? 1 : (int64_t)ms;
}

unsigned
client_turn(const struct client *c)
{
    return c->turn;
}

enum activity_kind
client_activity(const struct client *c, const char **command)
{
    const struct client_transaction *l = &c->slots[c->front];
    *command = "";
    if (c->over)
        return ACTIVITY_NONE;
    if (client_is_working(c) || (l->active && l->preparing))
        return ACTIVITY_PREPARE;
    if (l->active && l->sending)
        return ACTIVITY_CONTENT;
    if (c->in_flight == 0)
        return ACTIVITY_NONE;
    enum step_name step = c->waiting[c->first].step;
    if (step == STEP_HANDSHAKE)
        return ACTIVITY_HANDSHAKE;
    if (step == STEP_GREETING)
        return ACTIVITY_GREETING;
    *command = client_steps[step].command;
    return ACTIVITY_REPLY;
}

void
client_wonder(const struct client *c, struct outcome *outcome)
{
    size_t used = strlen(outcome->text);
    if (c->settings.other_scheme != NULL && !c->greeted && c->in_flight > 0 &&
        (c->waiting[c->first].step == STEP_GREETING ||
         c->waiting[c->first].step == STEP_HANDSHAKE))
        snprintf(outcome->text + used, sizeof(outcome->text) - used,
                 " (does this port need %s://?)", c->settings.other_scheme);
}

/* Lost or silent while TLS is set up: this counts as a failure of TLS, so that with
 * tls=may the host is tried once more in cleartext. */
static void
client_break(struct client *c, struct outcome outcome)
{
    client_wonder(c, &outcome);
    c->broken = c->broken || client_is_securing(c);
    client_end(c, outcome);
}

void
client_lost(struct client *c)
{
    client_break(c, reply_outcome_lost(c->settings.peer, doing(c)));
}

void
client_timed_out(struct client *c)
{
    client_break(c, reply_outcome_timed_out(c->settings.peer, doing(c)));
}

void
client_abandon(struct client *c, const struct outcome *outcome)
{
    /* The reason is ours: another connection would not help. */
    c->slots[0].mail_heard = c->slots[1].mail_heard = true;
    client_end(c, *outcome);
}

void
client_quit(struct client *c)
{
    if (c->greeted && !client_front(c)->active && !c->over && c->in_flight == 0)
        client_command(c, "QUIT", TEXT(""));
}

struct client_limits
client_limits(const struct client *c)
{
    return c->limits;
}

struct buffer *
client_output(struct client *c)
{
    return &c->output;
}

struct client *
client_new(const struct client_settings *settings)
{
    struct client *c = memory_new(sizeof(*c));
    assert(settings->timeout_scale > 0);
    c->settings = *settings;
    buffer_init(&c->output, OUTPUT_MAX);
    reply_start(&c->reply);
    c->next = STEP_NONE;
    assert(!settings->tls_implicit || settings->tls >= TARGET_TLS_ENCRYPT);
    c->lacks_tls = settings->tls_failed;
    client_put(c, settings->tls_implicit ? STEP_HANDSHAKE : STEP_GREETING, 0);
    return c;
}

void
client_free(struct client **client)
{
    struct client *c = *client;
    if (c == NULL)
        return;
    client_auth_free(c);
    buffer_free(&c->output);
    free(c->slots[0].states);
    free(c->slots[1].states);
    free(c);
    *client = NULL;
}
