/* Events of a server session: its client, refusals, its end. */
#include "smtp/server/server_internal.h"

#include "base/memory.h"
#include "smtp/access/refusals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of Postfix's line about a disconnection. All other commands count as the
 * last. */
static const char *const verb_names[] = {
    "helo", "ehlo", "lhlo", "starttls", "auth", "mail", "rcpt", "data",
    "bdat", "rset", "noop", "vrfy",     "etrn", "help", "quit", "unknown"};
enum {
    VERBS = sizeof(verb_names) / sizeof(verb_names[0]),
    UNKNOWN = VERBS - 1,
    VERB_NAME_MAX = 12,
    MESSAGE_ID_MAX = 320
};

/* Made with the first command: a silent session has none. */
struct server_verbs {
    uint32_t good[VERBS], all[VERBS];
    unsigned last;
    bool refused; /* the last one */
};

static unsigned
verb_find(struct text verb)
{
    unsigned i = 0;
    while (i < UNKNOWN && !text_equal_nocase(verb, text_from(verb_names[i])))
        i++;
    return i;
}

/* All that the probe of a monitor, or of a load balancer, says. */
static bool
is_probe(const char *verb)
{
    static const char *const probes[] = {"helo", "ehlo", "lhlo", "noop", "quit"};
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++)
        if (strcmp(verb, probes[i]) == 0)
            return true;
    return false;
}

static struct event_client
client_of(const struct server *s)
{
    enum sasl_mechanism mechanism;
    const char *user = server_user(s, &mechanism);
    return (struct event_client){
        .name = s->client,
        .helo = s->helo,
        .user = user,
        .mechanism = mechanism != SASL_NONE ? sasl_name(mechanism) : NULL,
        .protocol = s->lmtp                       ? "LMTP"
                    : s->esmtp || s->helo == NULL ? "ESMTP"
                                                  : "SMTP",
        .tls = s->security,
        .uid = s->uid,
        .is_trusted = server_may_relay(s)};
}

static void
tell(struct server *s, const struct event *event)
{
    struct event_client client = client_of(s);
    struct event whole = *event;
    whole.client = &client;
    event_tell(s->events, &whole);
}

void
server_count_verb(struct server *s, struct text verb)
{
    unsigned i = verb_find(verb);
    if (s->verbs == NULL)
        s->verbs = memory_new(sizeof(*s->verbs));
    s->verbs->last = i;
    s->verbs->refused = false;
    s->verbs->all[i]++;
    s->verbs->good[i]++;
    if (!s->told && !is_probe(verb_names[i])) {
        s->told = true;
        tell(s, &(struct event){.kind = EVENT_CONNECTED, .text = TEXT("connect")});
    }
}

void
server_tell_start(struct server *s)
{
    if (!server_is_untrusted(s))
        return;
    s->told = true;
    tell(s, &(struct event){.kind = EVENT_CONNECTED, .text = TEXT("connect")});
}

/* "rcpt"; before the first command "connect". */
static const char *
last_verb(const struct server *s)
{
    return s->verbs != NULL ? verb_names[s->verbs->last] : "connect";
}

static bool
is_in_content(const struct server *s)
{
    return s->transaction != NULL &&
           (s->stage == SERVER_DATA || s->stage == SERVER_CHUNK);
}

void
server_tell_bad_end(struct server *s, enum event_kind kind)
{
    char verb[VERB_NAME_MAX];
    size_t length = 0;
    for (const char *c = last_verb(s); *c != '\0'; c++)
        verb[length++] = (char)(*c - 'a' + 'A');
    struct event event = {.kind = kind,
                          .command = text_of(verb, length),
                          .size = is_in_content(s) ? s->transaction->size : -1,
                          .is_quiet = !s->told};
    event.text = kind == EVENT_LOST        ? TEXT("lost connection")
                 : kind == EVENT_TIMED_OUT ? TEXT("timeout")
                                           : TEXT("too many errors");
    tell(s, &event);
}

void
server_tell_end(struct server *s)
{
    struct event_verb list[VERBS + 1];
    size_t count = 0;
    if (s->stage != SERVER_CLOSED)
        server_tell_bad_end(s, EVENT_LOST);
    for (size_t i = 0; s->verbs != NULL && i < VERBS; i++)
        if (s->verbs->all[i] > 0)
            list[count++] =
                (struct event_verb){verb_names[i], s->verbs->good[i], s->verbs->all[i]};
    list[count] = (struct event_verb){NULL, 0, 0};
    tell(s, &(struct event){.kind = EVENT_DISCONNECTED,
                            .text = TEXT("disconnect"),
                            .verbs = list,
                            .is_quiet = !s->told});
}

void
server_tell_secured(struct server *s)
{
    tell(s, &(struct event){.kind = EVENT_SECURED,
                            .tls = text_from(s->security),
                            .text = TEXT("Anonymous")});
}

/* --- Refusals --------------------------------------------------------------------- */

static void
count_refusal(struct server *s)
{
    if (s->verbs == NULL || s->verbs->refused)
        return;
    s->verbs->refused = true;
    s->verbs->good[s->verbs->last]--;
}

static void
tell_refusal(struct server *s, enum event_kind kind, int code, const char *enhanced,
             const char *text)
{
    const struct server_transaction *t = s->transaction;
    struct outcome outcome = {.verdict = VERDICT_FAILED, .code = code};
    text_copy(outcome.enhanced, sizeof(outcome.enhanced), text_from(enhanced));
    text_copy(outcome.text, sizeof(outcome.text), text_from(text));
    struct event event = {.kind = kind,
                          .outcome = &outcome,
                          .command = s->command,
                          .size = t != NULL && is_in_content(s) ? t->size : -1,
                          .verb = last_verb(s),
                          .reason = refusals_reason(last_verb(s), code, enhanced, text),
                          .is_quiet = !refusals_admit(s->refusals, s->client)};
    if (t != NULL)
        event.sender = t->sender.at != NULL ? t->sender : TEXT("");
    if (t != NULL && t->normal.length > 0 && s->question == SERVER_ASKS_RECIPIENT)
        event.recipient = buffer_text(&t->normal);
    tell(s, &event);
}

/* A client's share of the log is limited, so that an attacker cannot fill it. */
void
server_tell_refused(struct server *s, int code, const char *enhanced, const char *text)
{
    count_refusal(s);
    if (event_is_read(s->events, EVENT_REFUSED))
        tell_refusal(s, EVENT_REFUSED, code, enhanced, text);
}

void
server_tell_denied(struct server *s, const struct refusal *r)
{
    count_refusal(s);
    if (event_is_read(s->events, EVENT_DENIED))
        tell_refusal(s, EVENT_DENIED, r->code, r->enhanced, r->text);
}

/* --- Messages --------------------------------------------------------------------- */

/* The one of its header, or the one that transaction_seal() has added. */
static struct text
message_id_of(const struct server *s, char made[MESSAGE_ID_MAX])
{
    const struct server_transaction *t = s->transaction;
    if (t->header.has_message_id || !server_may_relay(s) || t->by_peer)
        return header_scan_message_id(&t->header);
    snprintf(made, MESSAGE_ID_MAX, "<%s@%s>", t->id, s->rules->hostname);
    return text_from(made);
}

void
server_note_names(const struct server *s, struct envelope *e)
{
    char made[MESSAGE_ID_MAX];
    if (!event_are_kept(s->events))
        return;
    e->message_id =
        envelope_text(e, text_before(message_id_of(s, made), ENVELOPE_MESSAGE_ID_MAX));
    if (e->ours) /* nobody else gives our programs names */
        e->tag = envelope_text(e, header_scan_tag(&s->transaction->header));
}

void
server_tell_accepted(struct server *s, struct id id)
{
    const struct server_transaction *t = s->transaction;
    struct event_client client = client_of(s);
    char made[MESSAGE_ID_MAX];
    struct event event = {.kind = EVENT_ACCEPTED,
                          .id = id,
                          .client = &client,
                          .sender = t->sender,
                          .size = t->size,
                          .recipients = t->recipients,
                          .message_id = message_id_of(s, made),
                          .text = t->by_peer ? TEXT("queued, fragment from a peer host")
                                             : TEXT("queued")};
    struct event_origin origin = {0};
    if (event_are_kept(s->events) && server_may_relay(s) && !t->by_peer)
        origin.tag = header_scan_tag(&t->header);
    event.origin = &origin;
    client.protocol = t->protocol;
    event_tell(s->events, &event);
}
