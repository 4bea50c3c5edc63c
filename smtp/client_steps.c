/* The steps of an SMTP client session: what is asked and what the reply does. */
#include "smtp/client_inside.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

/* --- The queue of steps that wait ------------------------------------------------- */

void
client_put(struct client *c, enum step_name step, size_t which)
{
    assert(c->in_flight < CLIENT_IN_FLIGHT_MAX);
    c->waiting[(c->first + c->in_flight) % CLIENT_IN_FLIGHT_MAX] =
        (struct waiting){step, which};
    if (c->in_flight++ == 0)
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

void
client_command(struct client *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    bool added = buffer_format_list(&c->output, format, list) &&
                 buffer_add(&c->output, TEXT("\r\n"));
    va_end(list);
    assert(added);
}

/* --- Verdicts and ends ------------------------------------------------------------ */

void
client_hand_out(struct client *c, enum spread to, size_t at, struct outcome outcome)
{
    assert(c->active);
    c->spread = to;
    c->spread_at = at;
    c->spread_outcome = outcome;
}

void
client_end(struct client *c, struct outcome outcome)
{
    if (c->over)
        return;
    c->over = c->over_due = true;
    c->next = STEP_NONE;
    c->content_due = c->ready_due = false;
    if (!c->greeted) {
        c->has_trouble = true;
        c->trouble = outcome;
    }
    if (c->active && !c->mail_heard && c->transactions > 1) {
        c->active = false;
        c->again_due = true;
        c->spread = SPREAD_NONE;
    } else if (c->active && c->spread != SPREAD_ALL) {
        client_hand_out(c, SPREAD_ALL, 0, outcome);
    }
}

/* The same after a reply that leaves the peer able to listen. */
static void
end_politely(struct client *c, struct outcome outcome)
{
    if (c->in_flight == 0)
        client_command(c, "QUIT");
    client_end(c, outcome);
}

/* --- Steps: what is asked, what its reply does ------------------------------------ */

static int
class_of(const struct reply *reply)
{
    return reply->code / 100;
}

void
client_protocol_error(struct client *c, const char *doing, const char *what)
{
    client_end(c, judge_protocol(c->settings.peer, doing, what));
}

static void
ask_ehlo(struct client *c)
{
    client_command(c, "EHLO %s", c->settings.hostname);
    client_put(c, STEP_EHLO, 0);
    c->next = STEP_NONE;
}

static void
ask_lhlo(struct client *c)
{
    client_command(c, "LHLO %s", c->settings.hostname);
    client_put(c, STEP_LHLO, 0);
    c->next = STEP_NONE;
}

static void
ask_helo(struct client *c)
{
    client_command(c, "HELO %s", c->settings.hostname);
    client_put(c, STEP_HELO, 0);
    c->next = STEP_NONE;
}

static void
ask_rset(struct client *c)
{
    client_command(c, "RSET");
    client_put(c, STEP_RSET, 0);
    c->next = STEP_MAIL;
}

size_t
client_next_rcpt(const struct client *c, size_t at)
{
    while (at < c->mail.count && c->states[at] != RECIPIENT_OPEN)
        at++;
    return at;
}

static void
ask_mail(struct client *c)
{
    const struct envelope *e = c->mail.envelope;
    char size[40] = "";
    if (c->extensions & EXTENSION_SIZE)
        snprintf(size, sizeof(size), " SIZE=%zu",
                 (size_t)e->content_size + e->prefix.length);
    client_command(c, "MAIL FROM:<%.*s>%s%s%s", TEXT_ARGS(e->sender), size,
                   e->eight_bit && c->extensions & EXTENSION_8BITMIME ? " BODY=8BITMIME"
                                                                      : "",
                   e->utf8 && c->extensions & EXTENSION_SMTPUTF8 ? " SMTPUTF8" : "");
    client_put(c, STEP_MAIL, 0);
    c->next_rcpt = client_next_rcpt(c, 0);
    c->next = STEP_RCPT;
}

static void
ask_rcpt(struct client *c)
{
    size_t which = c->next_rcpt;
    assert(which < c->mail.count);
    client_command(
        c, "RCPT TO:<%.*s>",
        TEXT_ARGS(c->mail.envelope->recipients[c->mail.indexes[which]].address));
    client_put(c, STEP_RCPT, which);
    c->next_rcpt = client_next_rcpt(c, which + 1);
    if (c->next_rcpt == c->mail.count)
        c->next = STEP_DATA;
}

static void
ask_data(struct client *c)
{
    c->next = STEP_NONE;
    if (c->in_flight == 0 && c->accepted == 0)
        return; /* every RCPT was refused */
    client_command(c, "DATA");
    client_put(c, STEP_DATA, 0);
}

static void
refused_handshake(struct client *c, const struct reply *reply, const char *answered)
{
    end_politely(c, judge_handshake(c->settings.peer, reply, answered));
}

static void
greet(struct client *c)
{
    c->greeted = c->ready_due = true;
}

static void
take_extensions(struct client *c, const struct reply *reply)
{
    static const struct {
        struct text keyword;
        enum extension extension;
    } known[] = {
        {TEXT("PIPELINING"), EXTENSION_PIPELINING},
        {TEXT("8BITMIME"),   EXTENSION_8BITMIME  },
        {TEXT("SMTPUTF8"),   EXTENSION_SMTPUTF8  },
        {TEXT("SIZE"),       EXTENSION_SIZE      },
    };
    struct text parameter;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (reply_keyword(reply, known[i].keyword, NULL))
            c->extensions |= known[i].extension;
    /* RFC 1870 §4: no number, 0, or one beyond all measure is no limit. */
    if (!reply_keyword(reply, TEXT("SIZE"), &parameter) ||
        !text_number(parameter, INT64_MAX, &c->size_max))
        c->size_max = 0;
}

static void
heard_220(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    if (class_of(reply) == 2)
        c->next = c->settings.lmtp ? STEP_LHLO : STEP_EHLO;
    else
        refused_handshake(c, reply, "as its greeting");
}

static void
heard_ehlo(struct client *c, const struct waiting *w, const struct reply *reply)
{
    if (class_of(reply) == 2) {
        take_extensions(c, reply);
        greet(c);
    } else if (class_of(reply) == 5 && w->step == STEP_EHLO) {
        c->next = STEP_HELO; /* RFC 5321 §3.2: an old host */
    } else {
        refused_handshake(c, reply,
                          w->step == STEP_EHLO ? "in reply to EHLO command"
                                               : "in reply to LHLO command");
    }
}

static void
heard_helo(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    if (class_of(reply) == 2)
        greet(c);
    else
        refused_handshake(c, reply, "in reply to HELO command");
}

/* Its state is unknown: client_end() has the message sent over a new connection. */
static void
heard_rset(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    if (class_of(reply) == 2)
        c->needs_reset = false;
    else
        end_politely(
            c, judge_handshake(c->settings.peer, reply, "in reply to RSET command"));
}

static void
heard_mail(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    if (class_of(reply) == 2) {
        c->mail_heard = c->needs_reset = true;
        return;
    }
    struct outcome outcome =
        judge_reply(c->settings.peer, reply, "in reply to MAIL FROM command");
    if (outcome.verdict == VERDICT_DEFERRED && c->transactions > 1) {
        end_politely(c, outcome);
        return;
    }
    c->mail_heard = true;
    c->next = STEP_NONE;
    client_hand_out(c, SPREAD_ALL, 0, outcome);
}

static void
heard_rcpt(struct client *c, const struct waiting *w, const struct reply *reply)
{
    if (c->states[w->which] == RECIPIENT_SETTLED)
        return; /* MAIL was refused */
    if (class_of(reply) == 2) {
        c->states[w->which] = RECIPIENT_ACCEPTED;
        c->accepted++;
        return;
    }
    client_hand_out(c, SPREAD_ONE, w->which,
                    judge_rcpt(c->settings.peer, reply, "in reply to RCPT TO command"));
}

void
client_finish_content(struct client *c)
{
    bool added = dot_encode_end(&c->dot, &c->output);
    assert(added);
    client_put(c, STEP_END, 0);
}

static void
heard_data(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    dot_encode_start(&c->dot);
    if (class_of(reply) != 3) {
        client_hand_out(
            c, SPREAD_ALL, 0,
            judge_reply(c->settings.peer, reply, "in reply to DATA command"));
    } else if (c->accepted > 0) {
        client_put(c, STEP_CONTENT, 0);
        c->content_due = true;
    } else if (!c->settings.lmtp) {
        /* Asked together with RCPTs that were all refused. RFC 2920 §3.1 */
        client_finish_content(c);
    } else {
        /* No recipients are no replies after the dot, so when would it end? */
        client_protocol_error(c, "sending DATA command", "it takes content for nobody");
    }
}

/* The peer has no patience for the rest; it will not understand commands now. */
static void
heard_early(struct client *c, const struct waiting *w, const struct reply *reply)
{
    (void)w;
    client_hand_out(
        c, SPREAD_ALL, 0,
        judge_reply(c->settings.peer, reply, "while it received the message"));
    client_end(c, c->spread_outcome);
}

/* SMTP: for all recipients at once. LMTP: one reply each, in order (RFC 2033 §4.2). */
static void
heard_end(struct client *c, const struct waiting *w, const struct reply *reply)
{
    struct outcome outcome =
        judge_reply(c->settings.peer, reply, "in reply to end of DATA command");
    c->needs_reset = false;
    if (!c->settings.lmtp) {
        client_hand_out(c, SPREAD_ALL, 0, outcome);
        return;
    }
    assert(c->accepted > 0);
    size_t which = w->which;
    while (which < c->mail.count && c->states[which] != RECIPIENT_ACCEPTED)
        which++;
    assert(which < c->mail.count);
    client_hand_out(c, SPREAD_ONE, which, outcome);
    if (--c->accepted > 0)
        client_put(c, STEP_END, which + 1);
}

/* If the reply is lost, so is the knowledge whether it was taken. */
static const char end_of_data[] =
    "sending end of data -- message may be sent more than once";

const struct step client_steps[] = {
    [STEP_GREETING] = {"waiting for the greeting", 300, true,  false, NULL,     heard_220  },
    [STEP_EHLO] = {"saying EHLO",              300, true,  false, ask_ehlo, heard_ehlo },
    [STEP_LHLO] = {"saying LHLO",              300, true,  false, ask_lhlo, heard_ehlo },
    [STEP_HELO] = {"saying HELO",              300, true,  false, ask_helo, heard_helo },
    [STEP_RSET] = {"sending RSET",             300, false, false, ask_rset, heard_rset },
    [STEP_MAIL] = {"sending MAIL FROM",        300, false, false, ask_mail, heard_mail },
    [STEP_RCPT] = {"sending RCPT TO",          300, false, false, ask_rcpt, heard_rcpt },
    [STEP_DATA] = {"sending DATA command",     120, true,  true,  ask_data, heard_data },
    [STEP_CONTENT] = {"sending message content",  180, true,  false, NULL,     heard_early},
    [STEP_END] = {end_of_data,                600, false, false, NULL,     heard_end  },
};
