/* The steps of an SMTP client session: their commands, and the effects of the replies.
 *
 * The queue `waiting` has the steps whose replies are to come, in the order of their
 * commands: a reply always belongs to the first one. ask() appends to it and sets the
 * step after it; heard() gets the step that was taken off. With PIPELINING the next
 * step is asked while others wait; without, only when the queue is empty. */
#include "sched/limits/reply_class.h"
#include "smtp/client/client_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

/* --- The messages ----------------------------------------------------------------- */

struct client_transaction *
client_front(struct client *c)
{
    return &c->slots[c->front];
}

/* The transaction whose commands are sent: mostly that in front. */
static struct client_transaction *
client_back(struct client *c)
{
    struct client_transaction *behind = &c->slots[!c->front];
    return behind->active ? behind : client_front(c);
}

/* --- The queue of steps that wait ------------------------------------------------- */

/* The turn changes only if the step is the first that waits: the time-out is that of
 * the first reply, and a command sent behind it must not extend it. */
void
client_put(struct client *c, enum step_name step, size_t which)
{
    assert(c->in_flight < CLIENT_IN_FLIGHT_MAX);
    c->waiting[(c->first + c->in_flight) % CLIENT_IN_FLIGHT_MAX] =
        (struct awaited_reply){step, which};
    if (c->in_flight++ == 0)
        c->turn++;
}

/* The next reply belongs to this step. */
static void
client_put_first(struct client *c, enum step_name step, size_t which)
{
    assert(c->in_flight < CLIENT_IN_FLIGHT_MAX);
    c->first = (c->first + CLIENT_IN_FLIGHT_MAX - 1) % CLIENT_IN_FLIGHT_MAX;
    c->waiting[c->first] = (struct awaited_reply){step, which};
    c->in_flight++;
    c->turn++;
}

void
client_take(struct client *c)
{
    assert(c->in_flight > 0);
    c->first = (c->first + 1) % CLIENT_IN_FLIGHT_MAX;
    c->in_flight--;
    c->turn++;
}

static void
client_steps_say(struct client *c, struct text part)
{
    bool added = buffer_add(&c->output, part);
    assert(added);
}

void
client_command(struct client *c, const char *verb, struct text argument)
{
    client_steps_say(c, text_from(verb));
    client_steps_say(c, argument);
    client_steps_say(c, TEXT("\r\n"));
}

/* --- Verdicts and ends ------------------------------------------------------------ */

void
client_hand_out(struct client_transaction *l, enum spread to, size_t at,
                struct outcome outcome)
{
    assert(l->active);
    l->spread = to;
    l->spread_at = at;
    l->spread_outcome = outcome;
}

/* A message that the host has not heard gets no verdict: another connection, or another
 * host, may take it. A reply that is being handed out stays the verdict of those that it is
 * for. */
static void
end_transaction(struct client_transaction *l, const struct outcome *outcome)
{
    if (!l->active)
        return;
    if (!l->mail_heard) {
        l->unheard = true;
        l->spread = SPREAD_NONE;
    } else if (l->spread != SPREAD_ALL && l->spread != SPREAD_ACCEPTED) {
        client_hand_out(l, SPREAD_ALL, 0, *outcome);
    }
    l->ended = true;
}

/* Whether the peer has all content of a message, perhaps, and its reply is awaited. */
static bool
is_content_answer_due(const struct client *c)
{
    for (size_t i = 0; i < c->in_flight; i++) {
        enum step_name step = c->waiting[(c->first + i) % CLIENT_IN_FLIGHT_MAX].step;
        if (step == STEP_END || step == STEP_LAST)
            return true;
    }
    return false;
}

void
client_end(struct client *c, struct outcome outcome)
{
    struct transcript *t = c->settings.transcript;
    if (c->over)
        return;
    outcome.may_be_sent = is_content_answer_due(c);
    if (t != NULL && outcome.verdict != VERDICT_DELIVERED) {
        transcript_add(t, TRANSCRIPT_NOTE, text_from(outcome.text));
        t->failed = true;
    }
    c->over = c->over_due = true;
    c->next = STEP_NONE;
    c->secure_due = c->content_due = c->ready_due = c->early_due = false;
    c->end_outcome = outcome;
    end_transaction(&c->slots[0], &outcome);
    end_transaction(&c->slots[1], &outcome);
}

void
client_end_politely(struct client *c, struct outcome outcome)
{
    if (c->in_flight == 0)
        client_command(c, "QUIT", TEXT(""));
    client_end(c, outcome);
}

/* --- Steps: commands and replies -------------------------------------------------- */

static int
client_steps_class_of(const struct reply *reply)
{
    return reply->code / 100;
}

void
client_protocol_error(struct client *c, const char *doing, const char *what)
{
    client_end(c, reply_outcome_protocol(c->settings.peer, doing, what));
}

static void
ask_hello(struct client *c)
{
    bool added = buffer_format(&c->output, "%s %s\r\n", client_steps[c->next].command,
                               c->settings.hostname);
    assert(added);
    client_put(c, c->next, 0);
    c->next = STEP_NONE;
}

static void
ask_rset(struct client *c)
{
    client_command(c, "RSET", TEXT(""));
    client_put(c, STEP_RSET, 0);
    c->next = STEP_MAIL;
}

size_t
client_next_rcpt(const struct client_transaction *l, size_t at)
{
    while (at < l->mail.count && l->states[at] != RECIPIENT_OPEN)
        at++;
    return at;
}

static void
ask_mail(struct client *c)
{
    const struct client_transaction *l = client_back(c);
    client_say_mail(c, l);
    client_put(c, STEP_MAIL, 0);
    c->next_rcpt = client_next_rcpt(l, 0);
    c->next = STEP_RCPT;
}

static void
ask_rcpt(struct client *c)
{
    const struct client_transaction *l = client_back(c);
    size_t which = c->next_rcpt;
    assert(which < l->mail.count);
    client_say_rcpt(c, l, &l->mail.envelope->recipients[l->mail.indexes[which]]);
    client_put(c, STEP_RCPT, which);
    c->next_rcpt = client_next_rcpt(l, which + 1);
    if (c->next_rcpt == l->mail.count)
        c->next = l->chunked ? STEP_BDAT : STEP_DATA;
}

/* Without PIPELINING all replies to RCPT are known here. With it DATA leaves in one
 * group with them, and heard_data() sees whether a recipient was accepted. */
static void
ask_data(struct client *c)
{
    c->next = STEP_NONE;
    if (c->in_flight == 0 && client_back(c)->accepted == 0)
        return; /* every RCPT was refused */
    client_command(c, "DATA", TEXT(""));
    client_put(c, STEP_DATA, 0);
}

/* STEP_CONTENT is in the queue although no reply is due: a refusal that comes within
 * the content belongs to it, and its time-out limits how long the peer may read
 * nothing. */
static void
start_content(struct client *c)
{
    client_put(c, STEP_CONTENT, 0);
    c->content_due = client_front(c)->sending = true;
}

void
client_end_chunk(struct client *c)
{
    client_take(c);
    client_put(c, STEP_CHUNK, 0);
}

/* RFC 3030 §2. One chunk holds all content, whose size is known. The end is a chunk of
 * its own, so that content found to be damaged while it is sent is never completed. */
static void
ask_bdat(struct client *c)
{
    struct client_transaction *l = client_front(c);
    const struct envelope *e = l->mail.envelope;
    assert(c->in_flight == 0);
    c->next = STEP_NONE;
    if (l->accepted == 0)
        return; /* every RCPT was refused */
    l->chunk_left = (uint64_t)outgoing_size(l->mail.outgoing, e) + l->added;
    bool added = buffer_format(&c->output, "BDAT %" PRIu64 "\r\n", l->chunk_left);
    assert(added);
    start_content(c);
    if (l->chunk_left == 0)
        client_end_chunk(c);
}

static void
ask_last(struct client *c)
{
    c->next = STEP_NONE;
    client_command(c, "BDAT 0 LAST", TEXT(""));
    client_put(c, STEP_END, 0);
}

/* A refusal before MAIL says nothing about a message, not even with 5yz: mail waits,
 * and the next host is tried. */
static void
refused_handshake(struct client *c, const struct reply *reply, const char *answered)
{
    client_end_politely(c, reply_outcome_handshake(c->settings.peer, reply, answered));
}

/* The words of a reply before TLS are forgotten in client_secured(), and taken anew
 * from the one under TLS. */
static void
take_extensions(struct client *c, const struct reply *reply)
{
    static const struct {
        struct text keyword;
        enum extension extension;
    } known[] = {
        {TEXT("DSN"),         EXTENSION_DSN        },
        {TEXT("CHUNKING"),    EXTENSION_CHUNKING   },
        {TEXT("BINARYMIME"),  EXTENSION_BINARYMIME },
        {TEXT("PIPELINING"),  EXTENSION_PIPELINING },
        {TEXT("8BITMIME"),    EXTENSION_8BITMIME   },
        {TEXT("SMTPUTF8"),    EXTENSION_SMTPUTF8   },
        {TEXT("SIZE"),        EXTENSION_SIZE       },
        {TEXT("MT-PRIORITY"), EXTENSION_MT_PRIORITY},
        {TEXT("STARTTLS"),    EXTENSION_STARTTLS   },
        {TEXT("XDEFRAG"),     EXTENSION_XDEFRAG    },
        {TEXT("REQUIRETLS"),  EXTENSION_REQUIRETLS },
    };
    struct text parameter;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (reply_keyword(reply, known[i].keyword, NULL))
            c->extensions |= known[i].extension;
    /* RFC 1870 §4: no number, 0, or one out of range is no limit. */
    if (!reply_keyword(reply, TEXT("SIZE"), &parameter) ||
        !text_number(parameter, INT64_MAX, &c->size_max))
        c->size_max = 0;
    client_note_mechanisms(c, reply);
    if (reply_keyword(reply, TEXT("LIMITS"), &parameter))
        c->limits = client_read_limits(parameter);
}

static void
heard_220(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    if (client_steps_class_of(reply) == 2)
        c->next = c->settings.lmtp ? STEP_LHLO : STEP_EHLO;
    else
        refused_handshake(c, reply, "as its greeting");
}

/* Only 5yz leads to HELO: a 4yz is a temporary error, not an unknown command. LMTP has
 * no HELO (RFC 2033 §4.1). */
static void
heard_ehlo(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    if (client_steps_class_of(reply) == 2) {
        take_extensions(c, reply);
        client_introduced(c);
    } else if (client_steps_class_of(reply) == 5 && w->step == STEP_EHLO) {
        c->next = STEP_HELO; /* RFC 5321 §3.2: an old host */
    } else {
        refused_handshake(c, reply,
                          w->step == STEP_EHLO ? "in reply to EHLO command"
                                               : "in reply to LHLO command");
    }
}

static void
heard_helo(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    if (client_steps_class_of(reply) == 2)
        client_introduced(c);
    else
        refused_handshake(c, reply, "in reply to HELO command");
}

/* After a refusal the peer's state is unknown: client_end() has the message sent over
 * a new connection. */
static void
heard_rset(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    if (client_steps_class_of(reply) == 2)
        c->needs_reset = false;
    else
        client_end_politely(c, reply_outcome_handshake(c->settings.peer, reply,
                                                       "in reply to RSET command"));
}

static struct outcome
of_account(const struct client *c, struct outcome outcome)
{
    return c->settings.login != NULL ? reply_outcome_by_account(outcome) : outcome;
}

static struct outcome
client_judge(const struct client *c, const struct reply *reply, const char *answered)
{
    return of_account(c, reply_outcome_reply(c->settings.peer, reply, answered));
}

static void
heard_mail(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    if (client_steps_class_of(reply) == 2) {
        client_front(c)->mail_heard = c->needs_reset = true;
        return;
    }
    /* RFC 5321 §4.2.4: we are out of step with it, which says nothing about the mail. */
    if (reply->code == 503) {
        refused_handshake(c, reply, "in reply to MAIL FROM command");
        return;
    }
    struct outcome outcome = client_judge(c, reply, "in reply to MAIL FROM command");
    /* RFC 3207 §4: it demands TLS, which failed only now: no reason to bounce. */
    if (reply->code == 530 && c->lacks_tls)
        outcome = reply_outcome_handshake(
            c->settings.peer, reply, "in reply to MAIL FROM command, in cleartext");
    /* mail_heard stays false: the message goes over a new connection. */
    if (outcome.verdict == VERDICT_DEFERRED && c->transactions > 1) {
        client_end_politely(c, outcome);
        return;
    }
    client_front(c)->mail_heard = true;
    c->next = STEP_NONE;
    client_hand_out(client_front(c), SPREAD_ALL, 0, outcome);
}

static void
client_say_probe(struct client *c, struct text verb, struct text address,
                 enum step_name step)
{
    client_steps_say(c, verb);
    client_steps_say(c, address);
    client_steps_say(c, TEXT(">\r\n"));
    client_put(c, step, 0);
    c->next = STEP_NONE;
}

static void
ask_probe(struct client *c)
{
    client_say_probe(c, TEXT("MAIL FROM:<"), c->probe_sender, STEP_PROBE);
}

/* Nobody waits for the reply to RSET: QUIT follows. */
static void
heard_probe(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    bool good = client_steps_class_of(reply) == 2;
    bool is_mail = w->step == STEP_PROBE;
    if (is_mail && good && c->probe_recipient.length > 0) {
        c->next = STEP_PROBE_RCPT;
        return;
    }
    c->probed_step = !is_mail;
    c->probed = is_mail ? client_judge(c, reply, "in reply to MAIL FROM command")
                        : reply_outcome_rcpt(c->settings.peer, reply,
                                             "in reply to RCPT TO command");
    c->probe_due = true;
    if (good || !is_mail)
        client_command(c, "RSET", TEXT(""));
}

static void
ask_probe_rcpt(struct client *c)
{
    client_say_probe(c, TEXT("RCPT TO:<"), c->probe_recipient, STEP_PROBE_RCPT);
}

static void
heard_rcpt(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    struct client_transaction *l = client_front(c);
    if (l->states[w->which] == RECIPIENT_SETTLED)
        return; /* MAIL was refused */
    if (client_steps_class_of(reply) == 2) {
        l->states[w->which] = RECIPIENT_ACCEPTED;
        l->accepted++;
        return;
    }
    struct outcome outcome =
        reply_outcome_rcpt(c->settings.peer, reply, "in reply to RCPT TO command");
    if (l->accepted > 0 && reply_class_is_of_recipients(&outcome)) {
        l->states[w->which] = RECIPIENT_LATER;
        if (l->later++ == 0)
            l->later_outcome = reply_outcome_waits(outcome);
        return;
    }
    client_hand_out(l, SPREAD_ONE, w->which, of_account(c, outcome));
}

/* A refusal ends the connection: how the peer reads the bytes sent after the chunk is
 * not defined. */
static void
heard_chunk(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    if (client_steps_class_of(reply) != 2)
        client_end_politely(c, client_judge(c, reply, "in reply to BDAT command"));
}

void
client_finish_content(struct client *c)
{
    if (client_front(c)->chunked) {
        c->next = STEP_LAST;
        return;
    }
    bool added = dot_encode_end(&c->dot, &c->output);
    assert(added);
    client_put(c, STEP_END, 0);
}

/* After a refused MAIL, or if every RCPT was refused, DATA may have been sent already.
 * No recipient is open then, so that the outcome handed out here is for none. */
static void
heard_data(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    dot_encode_start(&c->dot);
    if (client_steps_class_of(reply) != 3) {
        client_hand_out(client_front(c), SPREAD_ALL, 0,
                        client_judge(c, reply, "in reply to DATA command"));
    } else if (client_front(c)->accepted > 0) {
        start_content(c);
    } else if (!c->settings.lmtp) {
        /* DATA was sent with RCPTs that were all refused. RFC 2920 §3.1 */
        client_finish_content(c);
    } else {
        /* Without recipients no reply follows the dot: the end would not be known. */
        client_protocol_error(c, "sending DATA command",
                              "it asks for content after it refused every recipient");
    }
}

/* The peer refuses within the content, and would read commands as content. */
static void
heard_early(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    (void)w;
    client_end(c, client_judge(c, reply, "while it received the message"));
}

/* SMTP: one reply for all recipients. LMTP: one each, in order (RFC 2033 §4.2); the
 * step goes back to the head of the queue, before commands that left with the dot. */
static void
heard_end(struct client *c, const struct awaited_reply *w, const struct reply *reply)
{
    struct outcome outcome = client_judge(c, reply, "in reply to end of DATA command");
    outcome.notifies = (c->extensions & EXTENSION_DSN) != 0;
    c->needs_reset = false;
    struct client_transaction *l = client_front(c);
    if (!c->settings.lmtp) {
        /* A refusal of the content is one for all recipients. */
        bool good = outcome.verdict == VERDICT_DELIVERED;
        client_hand_out(l, good ? SPREAD_ACCEPTED : SPREAD_ALL, 0, outcome);
        l->ended = true;
        /* CLIENT_DONE comes now, and permits the same. */
        c->early_due = false;
        return;
    }
    assert(l->accepted > 0);
    size_t which = w->which;
    while (which < l->mail.count && l->states[which] != RECIPIENT_ACCEPTED)
        which++;
    assert(which < l->mail.count);
    client_hand_out(l, SPREAD_ONE, which, outcome);
    l->ended = --l->accepted == 0;
    c->early_due = c->early_due && !l->ended;
    if (!l->ended)
        client_put_first(c, STEP_END, which + 1);
}

static const char end_of_data[] = "the end of the content";
/* If the reply is lost, nobody knows whether the peer took the message. */
static const char sending_end_of_data[] =
    "sending end of data -- message may be sent more than once";

/* The time-outs are those of RFC 5321 §4.5.3.2. Barriers are the commands that may only
 * be the last of a group (RFC 2920 §3.1), and those whose reply decides the next step.
 * The end of the content is none: the next MAIL leaves with the dot. */
/* clang-format off */
const struct step client_steps[] = {
    [STEP_HANDSHAKE] = {"",          "starting TLS",             60,  true,  NULL, NULL},
    [STEP_GREETING]  = {"",          "waiting for the greeting", 300, true,  NULL, heard_220},
    [STEP_EHLO]      = {"EHLO",      "sending EHLO",             300, true,  ask_hello, heard_ehlo},
    [STEP_LHLO]      = {"LHLO",      "sending LHLO",             300, true,  ask_hello, heard_ehlo},
    [STEP_HELO]      = {"HELO",      "sending HELO",             300, true,  ask_hello, heard_helo},
    [STEP_STARTTLS]  = {"STARTTLS",  "sending STARTTLS",         60,  true,
                        client_ask_tls, client_heard_tls},
    [STEP_AUTH]      = {"AUTH",      "logging in",               300, true,
                        client_present, client_heard_auth_reply},
    [STEP_RESPONSE]  = {"AUTH",      "logging in",               300, true,
                        client_respond, client_heard_auth_reply},
    [STEP_RSET]      = {"RSET",      "sending RSET",             300, false, ask_rset, heard_rset},
    [STEP_MAIL]      = {"MAIL FROM", "sending MAIL FROM",        300, false, ask_mail, heard_mail},
    [STEP_RCPT]      = {"RCPT TO",   "sending RCPT TO",          300, false, ask_rcpt, heard_rcpt},
    [STEP_DATA]      = {"DATA",      "sending DATA command",     120, true,  ask_data, heard_data},
    [STEP_BDAT]      = {"BDAT",      "sending BDAT command",     180, true,  ask_bdat, NULL},
    [STEP_CHUNK]     = {"BDAT",      "sending a chunk",          600, false, NULL, heard_chunk},
    [STEP_LAST]      = {"BDAT",      "sending the last chunk",   600, false, ask_last, NULL},
    [STEP_CONTENT]   = {"",          "sending message content",  180, true,  NULL, heard_early},
    [STEP_END]       = {end_of_data, sending_end_of_data,        600, false, NULL, heard_end},
    [STEP_PROBE]     = {"MAIL FROM", "sending MAIL FROM",        300, true,
                        ask_probe, heard_probe},
    [STEP_PROBE_RCPT] = {"RCPT TO",  "sending RCPT TO",          300, true,
                        ask_probe_rcpt, heard_probe},
};
/* clang-format on */
