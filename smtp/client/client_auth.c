/* The client secures the connection and logs in: STARTTLS and AUTH, between EHLO and mail
 * (RFC 3207, 4954).
 *
 * A failed login is no verdict about a message: all mail waits. After a refusal of user
 * or password no other mechanism is tried with them, since each try may count towards a
 * lock-out; only a refusal of the mechanism itself leads to the next one. Replies go
 * into logs and reports, so that secrets which a host repeats are hidden before a reply
 * is used. */
#include "base/printable.h"
#include "sched/route/target.h"
#include "smtp/client/client_internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    SHOWN_USER_MAX = 64, /* bytes of a name in a text */
    SHOWN_REPLY_MAX = 160,
    SHOWN_OFFER_MAX = 80,
    ECHO_MIN = 12 /* bytes of our line that are recognized in a reply */
};

#define NO_AUTH_OFFERED                                                                \
    "it does not offer AUTH; log in at its submission port (submission:// 587, "       \
    "smtps:// 465), or leave the user out if it wants none"

/* --- How it ends ------------------------------------------------------------------ */

static void
auth_end(struct client_auth *a)
{
    if (a->begun)
        sasl_client_end(&a->sasl);
    a->begun = a->working = false;
}

void
client_auth_free(struct client *c)
{
    auth_end(&c->auth);
}

static void
client_auth_greet(struct client *c)
{
    auth_end(&c->auth);
    c->greeted = c->ready_due = true;
}

/* The mail waits: the operator can repair this, the sender cannot. */
static void
client_auth_give_up(struct client *c, int code, const char *enhanced, const char *why)
{
    struct outcome outcome =
        outcome_make(VERDICT_DEFERRED, BLAME_SITE, code, enhanced, "%s", why);
    text_copy(outcome.remote, sizeof(outcome.remote),
              text_from(c->settings.peer->remote));
    auth_end(&c->auth);
    client_end_politely(c, outcome);
}

/* With 4.7.8 the scheduler tries again only seldom. */
static void
give_up_refused(struct client *c, int code, const char *said)
{
    const struct client_login *login = c->settings.login;
    char why[OUTCOME_TEXT_MAX];
    snprintf(why, sizeof(why),
             "the smarthost %.100s refuses our user %.*s: %.*s; check %s",
             c->settings.peer->where,
             TEXT_ARGS(text_before(login->credentials.user, SHOWN_USER_MAX)),
             SHOWN_REPLY_MAX, said, login->remedy);
    client_auth_give_up(c, code, "4.7.8", why);
}

static void
give_up_unable(struct client *c, const char *enhanced, const char *what)
{
    char why[OUTCOME_TEXT_MAX];
    struct text user = text_before(c->settings.login->credentials.user, SHOWN_USER_MAX);
    snprintf(why, sizeof(why), "cannot log in to the smarthost %.100s as %.*s: %s",
             c->settings.peer->where, TEXT_ARGS(user), what);
    client_auth_give_up(c, 0, enhanced, why);
}

static void
give_up_command(struct client *c, const char *said)
{
    char what[SHOWN_REPLY_MAX + 100];
    snprintf(what, sizeof(what),
             "it refuses AUTH itself, whatever the password: %.*s; try its submission "
             "port (587, 465)",
             SHOWN_REPLY_MAX, said);
    give_up_unable(c, "4.7.4", what);
}

/* --- Replies --------------------------------------------------------------------- */

/* Overwrites each place that begins like the secret, up to the next space: a host may
 * repeat only a part. Secrets of less than 4 bytes occur in ordinary words. */
static void
hide(char *said, size_t length, struct text secret)
{
    size_t known = secret.length < ECHO_MIN ? secret.length : ECHO_MIN;
    for (size_t i = 0; known >= 4 && i + known <= length; i++) {
        if (memcmp(said + i, secret.at, known) != 0)
            continue;
        for (size_t at = 0; i < length; i++, at++) {
            if (said[i] == ' ' && (at >= secret.length || secret.at[at] != ' '))
                break;
            said[i] = '*';
        }
    }
}

static void
hide_all(const struct client *c, char *said, size_t length)
{
    const struct sasl_credentials *credentials = &c->settings.login->credentials;
    if (c->auth.begun)
        hide(said, length, sasl_client_line(&c->auth.sasl));
    hide(said, length, credentials->password);
    hide(said, length, credentials->token);
}

void
client_hide_secrets(struct client *c)
{
    if (c->settings.login != NULL && c->reply.code >= 400)
        hide_all(c, c->reply.text, c->reply.length);
}

/* The command, and neither user nor password: a host that has nothing to log in with, or
 * not this mechanism (RFC 4954 §4: 503, 504). */
static bool
is_about_command(const struct reply *reply)
{
    return reply->code == 500 || reply->code == 502 || reply->code == 503 ||
           reply->code == 504 || strcmp(reply->enhanced, "5.5.4") == 0;
}

/* Not about user or password: another mechanism may succeed. Some hosts reply 535 in
 * this case, too, and only the words tell the difference. */
static bool
is_about_mechanism(const struct reply *reply)
{
    static const char *const words[] = {"mechanism", "not supported", "unsupported",
                                        "not implemented", "unrecognized"};
    if (is_about_command(reply) || reply->code == 534)
        return true;
    if (reply->code == 535)
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
            if (strcasestr(reply->text, words[i]) != NULL)
                return true;
    return false;
}

/* With XOAUTH2 the host gives details in JSON. */
static void
write_said(struct client *c, const struct reply *reply, char said[SHOWN_REPLY_MAX])
{
    char *detail = c->auth.sasl.detail;
    hide_all(c, detail, strlen(detail));
    int length =
        snprintf(said, SHOWN_REPLY_MAX, "%d%s%s%s%.*s", reply->code,
                 reply->enhanced[0] != '\0' ? " " : "", reply->enhanced,
                 reply->length > 0 ? " " : "", SHOWN_REPLY_MAX - 20, reply->text);
    if (detail[0] != '\0' && length < SHOWN_REPLY_MAX)
        snprintf(said + length, (size_t)(SHOWN_REPLY_MAX - length), " (%s)", detail);
    for (char *at = said; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            *at = '?';
}

/* --- The exchange ----------------------------------------------------------------- */

/* Each mechanism is tried once. client_log_in() has refused cleartext where it is not
 * permitted. */
static bool
client_auth_choose(struct client *c)
{
    const struct client_login *login = c->settings.login;
    struct client_auth *a = &c->auth;
    enum sasl_mechanism mechanism =
        sasl_client_choose(text_from(a->offered), login->credentials.token.length > 0,
                           a->tried | ~login->allowed);
    if (mechanism == SASL_NONE)
        return false;
    a->tried |= 1u << mechanism;
    a->begun = true;
    sasl_client_start(&a->sasl, mechanism, &login->credentials, login->nonce);
    c->next = STEP_AUTH;
    return true;
}

void
client_note_mechanisms(struct client *c, const struct reply *reply)
{
    struct text line, offered = TEXT("");
    unsigned at = 1;
    /* Old hosts say "AUTH=LOGIN", in addition or alone. */
    while (!reply_keyword(reply, TEXT("AUTH"), &offered) &&
           reply_next_line(reply, &at, &line))
        if (text_starts_nocase(line, TEXT("AUTH="))) {
            offered = text_after(line, 5);
            break;
        }
    /* The first part of a list that is too long counts. */
    (void)text_copy(c->auth.offered, sizeof(c->auth.offered), offered);
}

/* After EHLO and TLS: AUTH if there is a login, then CLIENT_READY. */
static void
client_log_in(struct client *c)
{
    const struct client_login *login = c->settings.login;
    char what[SHOWN_OFFER_MAX + 150];
    if (login == NULL) {
        client_auth_greet(c);
    } else if (!c->secured && !login->may_be_clear) {
        give_up_unable(c, "4.7.11",
                       "without TLS the password is not sent; use submission:// or "
                       "smtps://, or set auth_clear=yes");
    } else if (c->auth.offered[0] == '\0') {
        give_up_unable(c, "4.7.4", NO_AUTH_OFFERED);
    } else if (!client_auth_choose(c)) {
        snprintf(what, sizeof(what),
                 "it offers AUTH %.*s, none of which we can use: PLAIN, LOGIN, SCRAM, "
                 "or with "
                 "a token XOAUTH2",
                 SHOWN_OFFER_MAX, c->auth.offered);
        /* An untrusted host has written it, and it goes into the log. */
        printable_make(what);
        give_up_unable(c, "4.7.4", what);
    }
}

void
client_present(struct client *c)
{
    const struct client_auth *a = &c->auth;
    struct text line = sasl_client_line(&a->sasl);
    char verb[64];
    snprintf(verb, sizeof(verb), "AUTH %s%s", sasl_name(a->sasl.mechanism),
             line.at != NULL ? " " : "");
    client_command(c, verb, line);
    client_put(c, STEP_AUTH, 0);
    c->next = STEP_NONE;
}

void
client_respond(struct client *c)
{
    client_command(c, "", sasl_client_line(&c->auth.sasl));
    client_put(c, STEP_RESPONSE, 0);
    c->next = STEP_NONE;
}

static void
client_auth_go_on(struct client *c, enum sasl_client_result result)
{
    c->auth.working = result == SASL_WORK;
    switch (result) {
    case SASL_SEND:
        c->next = STEP_RESPONSE;
        return;
    case SASL_WORK:
        return;
    case SASL_STOP:
        /* RFC 4954 §4: cancels the exchange. */
        client_command(c, "*", TEXT(""));
        give_up_refused(c, 0, c->auth.sasl.problem);
        return;
    }
}

/* A 4yz is a temporary error of the host: it does not count as a refused login, which
 * would be tried again only seldom. */
static void
client_auth_refused(struct client *c, const struct reply *reply)
{
    char said[SHOWN_REPLY_MAX];
    if (reply->code / 100 == 4) {
        struct outcome outcome = reply_outcome_handshake(c->settings.peer, reply,
                                                         "in reply to AUTH command");
        auth_end(&c->auth);
        client_end_politely(c, outcome);
        return;
    }
    /* Before auth_end(), which overwrites the detail that it reads. */
    write_said(c, reply, said);
    if (is_about_mechanism(reply)) {
        auth_end(&c->auth);
        if (client_auth_choose(c))
            return;
    }
    if (is_about_command(reply))
        give_up_command(c, said);
    else
        give_up_refused(c, reply->code, said);
}

/* 235 alone proves nothing: a host that does not know the password may accept any, in
 * order to get the mail. SCRAM notices this. */
void
client_heard_auth_reply(struct client *c, const struct awaited_reply *w,
                        const struct reply *reply)
{
    (void)w;
    assert(c->auth.begun && !c->auth.working);
    if (reply->code / 100 == 3) {
        client_auth_go_on(c, sasl_client_feed(&c->auth.sasl, reply_text(reply)));
    } else if (reply->code / 100 != 2) {
        client_auth_refused(c, reply);
    } else if (sasl_client_accepted(&c->auth.sasl)) {
        client_auth_greet(c);
    } else {
        give_up_refused(c, 0, "it has not proven that it knows the password");
    }
}

bool
client_is_working(const struct client *c)
{
    return c->auth.working && !c->over;
}

void
client_work(struct client *c)
{
    if (client_is_working(c))
        client_auth_go_on(c, sasl_client_work(&c->auth.sasl));
}

/* --- TLS -------------------------------------------------------------------------- */

static void
end_insecure(struct client *c, const char *enhanced, const char *what, bool polite)
{
    const struct client_settings *s = &c->settings;
    char why[OUTCOME_TEXT_MAX], demand[64] = "";
    if (s->demander != NULL)
        snprintf(demand, sizeof(demand), "TLS is demanded by %s but ", s->demander);
    else if (s->tls >= TARGET_TLS_ENCRYPT)
        snprintf(demand, sizeof(demand), "TLS is demanded by the route (tls=%s) but ",
                 target_tls_word(s->tls));
    snprintf(why, sizeof(why), "%shost %s %s", demand, s->peer->where, what);
    struct outcome outcome = reply_outcome_insecure(s->peer, enhanced, why);
    if (s->demander != NULL)
        outcome.blame = BLAME_DEMAND;
    if (s->tls_implicit)
        client_wonder(c, &outcome);
    if (polite)
        client_end_politely(c, outcome);
    else
        client_end(c, outcome);
}

static void
end_unrequired(struct client *c)
{
    char why[OUTCOME_TEXT_MAX];
    snprintf(why, sizeof(why),
             "host %s does not offer REQUIRETLS, which the sender requires",
             c->settings.peer->where);
    client_end_politely(
        c, reply_outcome_insecure(c->settings.peer, CLIENT_NO_REQUIRETLS, why));
}

/* Called after the cleartext EHLO and again after the one under TLS. With tls=may a
 * host without STARTTLS gets mail in cleartext; stricter levels defer it. */
void
client_introduced(struct client *c)
{
    if (c->secured && c->settings.is_required && !c->settings.lmtp &&
        !client_keeps_required(c))
        end_unrequired(c);
    else if (c->secured || c->settings.tls == TARGET_TLS_NONE)
        client_log_in(c);
    else if (c->extensions & EXTENSION_STARTTLS)
        c->next = STEP_STARTTLS;
    else if (c->settings.tls == TARGET_TLS_MAY)
        client_log_in(c);
    else
        end_insecure(c, "4.7.4", "does not offer STARTTLS", true);
}

void
client_ask_tls(struct client *c)
{
    client_command(c, "STARTTLS", TEXT(""));
    client_put(c, STEP_STARTTLS, 0);
    c->next = STEP_NONE;
}

/* After another 2yz it is open whether the host now reads TLS or commands. A host that
 * refuses STARTTLS gets mail in cleartext if the route permits it; if it
 * then demands TLS with 530, lacks_tls makes that a deferral. */
void
client_heard_tls(struct client *c, const struct awaited_reply *w,
                 const struct reply *reply)
{
    char what[REPLY_TEXT_MAX + 64];
    (void)w;
    if (reply->code == 220) {
        client_put(c, STEP_HANDSHAKE, 0);
        c->secure_due = true;
    } else if (reply->code / 100 == 2) {
        client_protocol_error(c, client_steps[STEP_STARTTLS].doing,
                              "only 220 means that TLS begins");
    } else if (c->settings.tls == TARGET_TLS_MAY) {
        c->lacks_tls = true;
        client_log_in(c);
    } else {
        struct text said = reply_text(reply);
        snprintf(what, sizeof(what), "refused STARTTLS: %d %s%s%.*s", reply->code,
                 reply->enhanced, reply->enhanced[0] ? " " : "", TEXT_ARGS(said));
        bool is_later = c->settings.is_required && reply->code / 100 == 4;
        end_insecure(c, is_later ? "4.7.0" : "4.7.4", what, true);
    }
}

void
client_injected(struct client *c, size_t count)
{
    char what[160];
    snprintf(what, sizeof(what),
             "sent %zu bytes in cleartext where TLS should begin, as an attacker on "
             "the path would",
             count);
    end_insecure(c, "4.7.5", what, false);
}

/* A host that closes between STARTTLS and its first reply under TLS has no usable TLS.
 * In TLS 1.3 our handshake ends before the host has checked it, so that its error comes
 * only in place of that reply. */
bool
client_is_securing(const struct client *c)
{
    enum step_name step = c->in_flight > 0 ? c->waiting[c->first].step : STEP_NONE;
    return !c->over && !c->greeted && !c->auth.begun &&
           (c->secured || step == STEP_HANDSHAKE || step == STEP_STARTTLS);
}

void
client_secured(struct client *c)
{
    assert(!c->over && !c->secured && !c->secure_due);
    assert(c->in_flight == 1 && c->waiting[c->first].step == STEP_HANDSHAKE);
    client_take(c);
    c->secured = true;
    /* RFC 3207 §4.2: an attacker on the path may have changed the first EHLO reply. */
    c->extensions = 0;
    c->size_max = 0;
    c->limits = (struct client_limits){0};
    c->auth.offered[0] = '\0';
    if (c->settings.tls_implicit)
        client_put(c, STEP_GREETING, 0);
    else
        c->next = c->settings.lmtp ? STEP_LHLO : STEP_EHLO;
}

void
client_insecure(struct client *c, const char *why)
{
    char what[OUTCOME_TEXT_MAX];
    struct text reason = text_from(why);
    if (c->over)
        return;
    /* The sentence around it names TLS already. */
    if (text_starts(reason, TEXT("TLS: ")))
        reason = text_after(reason, 5);
    assert(c->in_flight == 1 && c->waiting[c->first].step == STEP_HANDSHAKE);
    c->broken = true;
    snprintf(what, sizeof(what), "failed in the TLS handshake: %.*s",
             TEXT_ARGS(reason));
    end_insecure(c, "4.7.5", what, false);
}

bool
client_tls_failed(const struct client *c)
{
    return c->over && c->broken;
}
