/* AUTH in a server session (RFC 4954): the command, its lines, its end. */
#include "smtp/server/server_internal.h"

#include "base/crypto/digest.h"
#include "base/memory.h"
#include "smtp/access/users.h"

#include <assert.h>
#include <stdlib.h>

struct server_login {
    struct sasl_server sasl;
    enum sasl_mechanism mechanism;
    bool begun;    /* sasl is started */
    bool has_line; /* false: AUTH without an initial response */
    struct buffer line;
    enum sasl_result result;
};

static const struct refusal unsupported = {502, "5.5.1", "command not supported"};
static const struct refusal ehlo_first = {503, "5.5.1", "send EHLO first"};
static const struct refusal twice = {503, "5.5.1", "already authenticated"};
static const struct refusal needs_tls = {538, "5.7.11", "AUTH needs TLS"};
static const struct refusal syntax = {501, "5.5.4",
                                      "syntax: AUTH mechanism [response]"};
static const struct refusal no_mechanism = {504, "5.5.4", "mechanism not offered"};
static const struct refusal malformed = {501, "5.5.2",
                                         "invalid response for this mechanism"};
static const struct refusal cancelled = {501, "5.7.0", "authentication cancelled"};
static const struct refusal failed = {535, "5.7.8", "authentication failed"};
/* For the log only. */
static const struct refusal failed_whole = {
    535, "5.7.8",
    "authentication failed: auth_users lists this user without the domain"};

bool
server_may_relay(const struct server *s)
{
    return s->offer.may_relay || s->user != NULL;
}

bool
server_forgives(const struct server *s)
{
    return server_may_relay(s) || s->offer.legacy;
}

static bool
is_possible(const struct server *s)
{
    bool has_remote = s->rules->remote != NULL && *s->rules->remote != 0;
    return (s->rules->users != NULL || has_remote) && s->offer.auth != SERVER_AUTH_NO;
}

bool
server_offers_auth(const struct server *s)
{
    return is_possible(s) && (s->secure || s->offer.auth == SERVER_AUTH_CLEAR);
}

static bool
server_remote_has(const struct server *s, enum sasl_mechanism mechanism)
{
    return s->rules->remote != NULL && (*s->rules->remote >> mechanism & 1) != 0;
}

const char *
server_mechanisms(const struct server *s)
{
    static const char *const remote[2][2][2] = {
        {{"", "OAUTHBEARER"},                        {"XOAUTH2", "XOAUTH2 OAUTHBEARER"}},
        {{"PLAIN LOGIN", "PLAIN LOGIN OAUTHBEARER"},
         {"PLAIN LOGIN XOAUTH2", "PLAIN LOGIN XOAUTH2 OAUTHBEARER"}                    }
    };
    if (s->rules->users == NULL)
        return remote[server_remote_has(s, SASL_PLAIN)][server_remote_has(
            s, SASL_XOAUTH2)][server_remote_has(s, SASL_OAUTHBEARER)];
    return users_have_scram(s->rules->users) ? "PLAIN LOGIN SCRAM-SHA-256"
                                             : "PLAIN LOGIN";
}

static bool
is_auth(struct text t)
{
    return text_starts_nocase(t, TEXT("AUTH "));
}

/* Such a line may be longer than a command, and must not be logged. */
bool
server_is_login(const struct server *s, struct text input)
{
    return s->stage == SERVER_SASL || (is_possible(s) && is_auth(input));
}

/* Some clients send the secret in place of the mechanism. */
struct text
server_shown(struct text line)
{
    struct text rest = text_trim(line), word;
    if (!text_starts_nocase(rest, TEXT("AUTH")))
        return line;
    line = rest;
    rest = text_trim(text_after(line, 5));
    if (!is_auth(line) || !text_cut(&rest, ' ', &word) || sasl_find(word) == SASL_NONE)
        return text_before(line, 4);
    return text_of(line.at, (size_t)(word.at - line.at) + word.length);
}

static bool
server_auth_is_offered(const struct server *s, enum sasl_mechanism mechanism)
{
    bool local = s->rules->users != NULL;
    switch (mechanism) {
    case SASL_PLAIN:
    case SASL_LOGIN:
        return local || server_remote_has(s, SASL_PLAIN);
    case SASL_SCRAM_SHA_256:
        return local && users_have_scram(s->rules->users);
    case SASL_XOAUTH2:
    case SASL_OAUTHBEARER:
        return !local && server_remote_has(s, mechanism);
    case SASL_NONE:
    case SASL_EXTERNAL:
        break;
    }
    return false;
}

/* NULL: AUTH is permitted now. Without EHLO the client cannot know the mechanisms, so a
 * password that is sent nevertheless comes from a guess. */
static const struct refusal *
trouble(const struct server *s)
{
    if (!is_possible(s))
        return &unsupported;
    if (!s->esmtp && !s->offer.legacy)
        return &ehlo_first;
    if (s->user != NULL && !s->certified)
        return &twice;
    return server_offers_auth(s) ? NULL : &needs_tls;
}

/* line.at == NULL: AUTH without an initial response. The line is kept, because its
 * check takes more than one turn. */
enum server_action
server_login_line(struct server *s, struct text line)
{
    struct server_login *login = s->login;
    login->has_line = line.at != NULL;
    bool kept = buffer_add(&login->line, line);
    assert(kept);
    s->question = SERVER_ASKS_LOGIN;
    return SERVER_LOGIN;
}

enum server_action
server_auth(struct server *s, struct text args)
{
    const struct refusal *refusal = trouble(s);
    struct text word, rest = args;
    if (refusal != NULL)
        return server_refuse(s, refusal);
    if (args.length == 0 || !text_cut(&rest, ' ', &word))
        return server_refuse(s, &syntax);
    if (rest.at != NULL)
        rest = text_trim(rest);
    if (text_find(rest, ' ') != TEXT_NONE)
        return server_refuse(s, &syntax);
    enum sasl_mechanism mechanism = sasl_find(word);
    if (!server_auth_is_offered(s, mechanism))
        return server_refuse(s, &no_mechanism);
    assert(s->login == NULL);
    s->login = memory_new(sizeof(*s->login));
    s->login->mechanism = mechanism;
    buffer_init(&s->login->line, SASL_LINE_MAX);
    return server_login_line(s, rest);
}

/* The line may have a password. */
void
server_end_login(struct server *s)
{
    struct server_login *login = s->login;
    if (login == NULL)
        return;
    if (login->begun)
        sasl_server_end(&login->sasl);
    if (login->line.length > 0)
        digest_forget(login->line.at, login->line.length);
    buffer_free(&login->line);
    free(login);
    s->login = NULL;
    s->question = SERVER_ASKS_NOTHING;
    if (s->stage == SERVER_SASL)
        server_enter(s, SERVER_READY);
}

void
server_forget_user(struct server *s)
{
    free(s->user);
    s->user = NULL;
    s->mechanism = SASL_NONE;
    s->certified = false;
}

void
server_certified(struct server *s, const char *name)
{
    server_forget_user(s);
    s->user = memory_string(name);
    s->mechanism = SASL_EXTERNAL;
    s->certified = true;
}

const char *
server_user(const struct server *s, enum sasl_mechanism *mechanism)
{
    const struct server_login *login = s->login;
    *mechanism = login != NULL ? login->mechanism : s->mechanism;
    if (login != NULL)
        return login->begun ? sasl_server_user(&login->sasl) : "";
    return s->user != NULL ? s->user : "";
}

/* Mail programs propose the whole address as the user name. */
static bool
is_user_with_domain(const struct server *s)
{
    struct text name = text_from(sasl_server_user(&s->login->sasl));
    size_t at = text_find(name, '@');
    return s->rules->users != NULL && at != TEXT_NONE &&
           !users_have(s->rules->users, name) &&
           users_have(s->rules->users, text_before(name, at));
}

static enum sasl_result
note_result(struct server *s, enum sasl_result result)
{
    s->login->result = result;
    if (result == SASL_FAILED)
        server_tell_denied(s, is_user_with_domain(s) ? &failed_whole : &failed);
    return result;
}

enum sasl_result
server_login_step(struct server *s, const char *nonce)
{
    struct server_login *login = s->login;
    assert(s->question == SERVER_ASKS_LOGIN);
    struct text line = buffer_text(&login->line);
    enum sasl_result result;
    if (login->begun) {
        result = sasl_server_feed(&login->sasl, line);
    } else {
        /* An empty buffer has at == NULL, but an empty response must not. */
        struct text initial = login->has_line ? line : text_of(NULL, 0);
        login->begun = true;
        result = sasl_server_start(&login->sasl, login->mechanism, s->rules->users,
                                   nonce, initial);
    }
    if (line.length > 0)
        digest_forget(login->line.at, line.length);
    buffer_clear(&login->line);
    return note_result(s, result);
}

enum sasl_result
server_login_work(struct server *s)
{
    assert(s->question == SERVER_ASKS_LOGIN && s->login->result == SASL_UNFINISHED);
    return note_result(s, sasl_server_work(&s->login->sasl));
}

bool
server_login_is_remote(const struct server *s)
{
    return s->rules->users == NULL;
}

struct text
server_login_response(const struct server *s, enum sasl_mechanism *mechanism)
{
    const struct server_login *login = s->login;
    bool plain = login->mechanism == SASL_LOGIN;
    *mechanism = plain ? SASL_PLAIN : login->mechanism;
    return sasl_server_response(&login->sasl);
}

enum sasl_result
server_login_decide(struct server *s, enum sasl_result result, struct text text)
{
    assert(s->question == SERVER_ASKS_LOGIN && s->login->result == SASL_UNFINISHED);
    return note_result(s, sasl_server_decide(&s->login->sasl, result, text));
}

/* A challenge may be longer than other replies. */
static void
server_auth_challenge(struct server *s)
{
    struct text coded = sasl_server_challenge(&s->login->sasl);
    bool added = buffer_add(s->out, TEXT("334 ")) && buffer_add(s->out, coded) &&
                 buffer_add(s->out, TEXT("\r\n"));
    assert(added);
    s->question = SERVER_ASKS_NOTHING;
    if (s->stage != SERVER_SASL)
        server_enter(s, SERVER_SASL);
}

/* The rights of the login begin with the next command; those of the connection stay. */
static void
accept_user(struct server *s)
{
    struct server_login *login = s->login;
    assert(s->user == NULL || s->certified);
    server_forget_user(s);
    s->user = text_string(text_from(sasl_server_user(&login->sasl)));
    s->mechanism = login->mechanism;
    server_end_login(s);
    reply_write(s->out, 235, "2.7.0", "authentication succeeded");
}

static void
server_auth_refuse(struct server *s, const struct refusal *refusal)
{
    server_refuse(s, refusal);
    server_end_login(s);
}

void
server_login_answer(struct server *s)
{
    assert(s->question == SERVER_ASKS_LOGIN && s->login->begun &&
           s->login->result != SASL_UNFINISHED);
    switch (s->login->result) {
    case SASL_UNFINISHED: /* no reply yet */
        break;
    case SASL_CHALLENGE:
        server_auth_challenge(s);
        break;
    case SASL_DONE:
        accept_user(s);
        break;
    case SASL_FAILED:
        if (server_login_is_error(s))
            reply_write(s->out, failed.code, failed.enhanced, "%s", failed.text);
        server_end_login(s);
        break;
    case SASL_MALFORMED:
        server_auth_refuse(s, &malformed);
        break;
    case SASL_CANCELLED:
        server_auth_refuse(s, &cancelled);
        break;
    }
}

void
server_login_refused(struct server *s, const struct refusal *refusal)
{
    assert(s->question == SERVER_ASKS_LOGIN);
    if (refusal->code == 421)
        server_close_with(s, refusal);
    else
        server_auth_refuse(s, refusal);
}
