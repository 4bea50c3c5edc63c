/* Server side of AUTH: checks PLAIN, LOGIN and SCRAM-SHA-256 against the users. */
#include "smtp/server/sasl_server.h"

#include "base/crypto/base64.h"
#include "smtp/sasl.h"

#include <assert.h>
#include <string.h>

enum { SASL_TOKEN_HEAD = 384 }; /* of a token, where its user stands */

static enum sasl_result
sasl_server_finish(struct sasl_server *s, enum sasl_result result)
{
    s->stage = SASL_SERVER_OVER;
    buffer_clear(&s->out);
    return result;
}

static enum sasl_result
sasl_server_send_challenge(struct sasl_server *s, struct text t,
                           enum sasl_server_stage stage)
{
    buffer_clear(&s->out);
    bool fits = base64_encode(t, &s->out);
    assert(fits);
    s->stage = stage;
    return SASL_CHALLENGE;
}

static bool
take_user(struct sasl_server *s, struct text name)
{
    return sasl_is_name(name) && text_copy(s->user, sizeof(s->user), name);
}

/* Whether the user may act for another one is asked last: the reply to a wrong password
 * must not tell it, and takes the same time. */
static enum sasl_result
checked(struct sasl_server *s, enum verifier_finding finding)
{
    buffer_clear(&s->out);
    if (finding == VERIFIER_UNFINISHED) {
        s->stage = SASL_SERVER_CHECK;
        return SASL_UNFINISHED;
    }
    digest_forget(&s->check, sizeof(s->check));
    return sasl_server_finish(s, finding == VERIFIER_RIGHT && s->allowed ? SASL_DONE
                                                                         : SASL_FAILED);
}

/* PLAIN, whichever of the two the client uses. */
static enum sasl_result
sasl_server_ask_plain(struct sasl_server *s, struct text password)
{
    struct buffer message;
    buffer_init(&message, 2 * SASL_MESSAGE_MAX);
    bool fits = buffer_reserve(&message, 2 * SASL_MESSAGE_MAX) != NULL &&
                buffer_add_byte(&message, '\0') &&
                buffer_add(&message, text_from(s->user)) &&
                buffer_add_byte(&message, '\0') && buffer_add(&message, password) &&
                buffer_reserve(&s->response, SASL_LINE_MAX) != NULL &&
                base64_encode(buffer_text(&message), &s->response);
    buffer_forget(&message);
    assert(fits);
    s->stage = SASL_SERVER_CHECK;
    return SASL_UNFINISHED;
}

static enum sasl_result
sasl_server_check(struct sasl_server *s, struct text password, bool allowed)
{
    if (s->users == NULL)
        return allowed ? sasl_server_ask_plain(s, password)
                       : sasl_server_finish(s, SASL_FAILED);
    s->allowed = allowed;
    return checked(
        s, users_check_start(s->users, text_from(s->user), password, &s->check));
}

enum sasl_result
sasl_server_work(struct sasl_server *s)
{
    assert(s->stage == SASL_SERVER_CHECK);
    return checked(s, users_check_go(&s->check));
}

/* RFC 4616 §2: [authzid] NUL authcid NUL passwd RFC 4616 permits an identity to act
 * for. Nobody may act for another user here, so it must be the same name. */
static enum sasl_result
on_plain(struct sasl_server *s, struct text t)
{
    struct text authzid, user, password = t;
    if (!text_cut(&password, '\0', &authzid) || !text_cut(&password, '\0', &user) ||
        password.at == NULL || text_find(password, '\0') != TEXT_NONE ||
        !take_user(s, user))
        return sasl_server_finish(s, SASL_MALFORMED);
    return sasl_server_check(s, password,
                             authzid.length == 0 || text_equal(authzid, user));
}

static enum sasl_result
sasl_server_on_login(struct sasl_server *s, struct text t)
{
    if (s->stage == SASL_SERVER_NEXT)
        return sasl_server_check(s, t, true);
    if (!take_user(s, t))
        return sasl_server_finish(s, SASL_MALFORMED);
    return sasl_server_send_challenge(s, TEXT("Password:"), SASL_SERVER_NEXT);
}

/* Keeps the AuthMessage of the proof, and the header that the client must repeat. The
 * proof covers the whole exchange (RFC 5802 §3), so each message is kept as it was
 * sent, not as it was understood. */
static bool
sasl_server_remember(struct sasl_server *s, const struct scram_first *first,
                     struct buffer *reply)
{
    return base64_encode(first->header, &s->header) &&
           buffer_format(reply, "r=%.*s%s,s=", TEXT_ARGS(first->nonce), s->nonce) &&
           base64_encode(text_of(s->keys.salt, s->keys.salt_length), reply) &&
           buffer_format(reply, ",i=%u", s->keys.iterations) &&
           buffer_add(&s->auth, first->bare) && buffer_add_byte(&s->auth, ',') &&
           buffer_add(&s->auth, buffer_text(reply));
}

/* An unknown name goes on with a decoy: the failure comes at the proof, as for a wrong
 * password. */
static enum sasl_result
on_scram_first(struct sasl_server *s, struct text t)
{
    struct scram_first first;
    struct buffer reply;
    if (!sasl_scram_read_first(t, &first) || !take_user(s, text_from(first.name)))
        return sasl_server_finish(s, SASL_MALFORMED);
    s->known = users_scram(s->users, text_from(s->user), &s->keys);
    if (first.authzid[0] != '\0' && strcmp(first.authzid, first.name) != 0)
        s->known = false;
    buffer_init(&reply, SASL_MESSAGE_MAX + 256);
    bool fits = sasl_server_remember(s, &first, &reply);
    assert(fits);
    enum sasl_result result =
        sasl_server_send_challenge(s, buffer_text(&reply), SASL_SERVER_NEXT);
    buffer_free(&reply);
    return result;
}

/* The combined nonce is at "r=" in the challenge, after the client's first message. */
static bool
is_our_nonce(const struct sasl_server *s, struct text nonce)
{
    struct text ours = text_from(s->nonce), auth = buffer_text(&s->auth);
    if (nonce.length <= ours.length)
        return false;
    size_t theirs = nonce.length - ours.length;
    struct text end = text_after(nonce, theirs);
    struct text rest = auth, field, first = TEXT("");
    while (text_cut(&rest, ',', &field))
        if (text_starts(field, TEXT("r="))) {
            first = text_after(field, 2);
            break;
        }
    return text_equal(end, ours) && text_equal(text_before(nonce, theirs), first);
}

/* The proof is computed for unknown names, too. */
static enum sasl_result
on_scram_final(struct sasl_server *s, struct text t)
{
    struct scram_final final;
    unsigned char signature[DIGEST_SIZE];
    struct buffer reply;
    if (!sasl_scram_read_final(t, &final) ||
        !text_equal(final.header, buffer_text(&s->header)) ||
        !is_our_nonce(s, final.nonce))
        return sasl_server_finish(s, SASL_MALFORMED);
    bool fits = buffer_add_byte(&s->auth, ',') && buffer_add(&s->auth, final.unproven);
    assert(fits);
    struct text auth = buffer_text(&s->auth);
    bool proven = sasl_scram_is_proven(final.proof, s->keys.stored_key, auth);
    if (!proven || !s->known)
        return sasl_server_finish(s, SASL_FAILED);
    digest_keyed(text_of(s->keys.server_key, DIGEST_SIZE), auth, signature);
    buffer_init(&reply, 64);
    fits = buffer_add(&reply, TEXT("v=")) &&
           base64_encode(text_of(signature, sizeof(signature)), &reply);
    assert(fits);
    enum sasl_result result =
        sasl_server_send_challenge(s, buffer_text(&reply), SASL_SERVER_LAST);
    buffer_free(&reply);
    return result;
}

static enum sasl_result
sasl_server_on_scram(struct sasl_server *s, struct text t)
{
    switch (s->stage) {
    case SASL_SERVER_FIRST:
        return on_scram_first(s, t);
    case SASL_SERVER_NEXT:
        return on_scram_final(s, t);
    case SASL_SERVER_LAST:
        return sasl_server_finish(s, t.length == 0 ? SASL_DONE : SASL_MALFORMED);
    case SASL_SERVER_CHECK:
    case SASL_SERVER_OVER:
        break;
    }
    return sasl_server_finish(s, SASL_MALFORMED);
}

static enum sasl_result
sasl_server_step(struct sasl_server *s, struct text message)
{
    switch (s->mechanism) {
    case SASL_PLAIN:
        return on_plain(s, message);
    case SASL_LOGIN:
        return sasl_server_on_login(s, message);
    case SASL_SCRAM_SHA_256:
        return sasl_server_on_scram(s, message);
    case SASL_NONE:
    case SASL_XOAUTH2:
    case SASL_OAUTHBEARER:
    case SASL_EXTERNAL:
        break;
    }
    return sasl_server_finish(s, SASL_MALFORMED);
}

/* --- Another server checks -------------------------------------------------------- */

/* The name in "user=NAME^A..." or "n,a=NAME,^A...", for the log; nothing is proven. */
static void
sasl_server_note_user(struct sasl_server *s, struct text line)
{
    char message[SASL_TOKEN_HEAD];
    size_t length;
    struct text head = text_before(line, sizeof(message) / 3 * 4), name;
    if (!base64_decode(text_before(head, head.length / 4 * 4), message, sizeof(message),
                       &length))
        return;
    struct text rest = text_of(message, length);
    bool bearer = s->mechanism == SASL_OAUTHBEARER;
    size_t at = bearer ? 4 : 5;
    if (text_starts(rest, bearer ? TEXT("n,a=") : TEXT("user="))) {
        name = text_after(rest, at);
        name = text_before(name, text_find(name, bearer ? ',' : '\001'));
        (void)!take_user(s, name);
    }
    digest_forget(message, sizeof(message));
}

/* Nothing but Base64 goes on: no byte may end a field there. */
static enum sasl_result
sasl_server_pass_on(struct sasl_server *s, struct text line)
{
    for (size_t i = 0; i < line.length; i++) {
        unsigned char c = (unsigned char)line.at[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '+' && c != '/' && c != '=')
            return sasl_server_finish(s, SASL_MALFORMED);
    }
    if (s->user[0] == '\0')
        sasl_server_note_user(s, line);
    buffer_forget(&s->response);
    bool fits = buffer_reserve(&s->response, SASL_LINE_MAX) != NULL &&
                buffer_add(&s->response, line);
    assert(fits); /* server_step(): no longer line */
    buffer_clear(&s->out);
    s->stage = SASL_SERVER_CHECK;
    return SASL_UNFINISHED;
}

struct text
sasl_server_response(const struct sasl_server *s)
{
    return buffer_text(&s->response);
}

enum sasl_result
sasl_server_decide(struct sasl_server *s, enum sasl_result result, struct text text)
{
    assert(s->stage == SASL_SERVER_CHECK && s->users == NULL);
    buffer_forget(&s->response);
    if (result == SASL_CHALLENGE) {
        buffer_clear(&s->out);
        if (s->mechanism == SASL_PLAIN || s->mechanism == SASL_LOGIN ||
            !buffer_add(&s->out, text))
            return sasl_server_finish(s, SASL_FAILED);
        s->stage = SASL_SERVER_NEXT;
        return SASL_CHALLENGE;
    }
    if (result == SASL_DONE && !take_user(s, text))
        result = SASL_FAILED;
    return sasl_server_finish(s, result);
}

/* --- Lines ------------------------------------------------------------------------ */

/* The message has a password: it is overwritten on every way out. */
enum sasl_result
sasl_server_feed(struct sasl_server *s, struct text line)
{
    char message[SASL_MESSAGE_MAX];
    size_t length;
    assert(s->stage != SASL_SERVER_OVER && s->stage != SASL_SERVER_CHECK);
    if (text_equal(line, TEXT("*")))
        return sasl_server_finish(s, SASL_CANCELLED);
    if (s->mechanism == SASL_XOAUTH2 || s->mechanism == SASL_OAUTHBEARER)
        return sasl_server_pass_on(s, line);
    if (!base64_decode(line, message, sizeof(message), &length)) {
        digest_forget(message, sizeof(message));
        return sasl_server_finish(s, SASL_MALFORMED);
    }
    enum sasl_result result = sasl_server_step(s, text_of(message, length));
    digest_forget(message, sizeof(message));
    return result;
}

/* An initial response "=" is an empty one (RFC 4954 §4); without one the client waits
 * for a challenge, even if that is empty. */
enum sasl_result
sasl_server_start(struct sasl_server *s, enum sasl_mechanism mechanism,
                  const struct users *users, const char *nonce, struct text initial)
{
    /* server_auth_is_offered() */
    assert(mechanism >= SASL_PLAIN && mechanism <= SASL_OAUTHBEARER);
    *s = (struct sasl_server){.mechanism = mechanism, .users = users};
    buffer_init(&s->out, SASL_SERVER_OUT_MAX);
    buffer_init(&s->auth, 4 * SASL_MESSAGE_MAX);
    buffer_init(&s->header, SASL_MESSAGE_MAX);
    buffer_init(&s->response, SASL_LINE_MAX);
    bool whole = text_copy(s->nonce, sizeof(s->nonce), text_from(nonce));
    assert(whole);
    if (initial.at == NULL)
        return sasl_server_send_challenge(
            s, mechanism == SASL_LOGIN ? TEXT("Username:") : TEXT(""),
            SASL_SERVER_FIRST);
    return sasl_server_feed(s, text_equal(initial, TEXT("=")) ? TEXT("") : initial);
}

struct text
sasl_server_challenge(const struct sasl_server *s)
{
    return buffer_text(&s->out);
}

const char *
sasl_server_user(const struct sasl_server *s)
{
    return s->user;
}

void
sasl_server_end(struct sasl_server *s)
{
    buffer_free(&s->out);
    buffer_free(&s->auth);
    buffer_free(&s->header);
    buffer_forget(&s->response);
    digest_forget(s, sizeof(*s));
}
