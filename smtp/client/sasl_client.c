/* AUTH as a client: SCRAM-SHA-256, PLAIN, LOGIN, XOAUTH2.
 *
 * COMPLETE is the stage in which 235 may come. SCRAM reaches it only after the server
 * has proven that it knows the password, the other mechanisms when theirs is sent.
 * Memory that has held a secret is overwritten before it is freed, and has its full
 * size from the beginning: a buffer that grows would leave copies behind. */
#include "smtp/client/sasl_client.h"

#include "base/crypto/base64.h"
#include "base/crypto/verifier.h"
#include "smtp/sasl.h"

#include <assert.h>
#include <string.h>

/* The best first: SCRAM shows the password to nobody. A token is never sent as a
 * password, nor a password as a token. */
static const struct {
    enum sasl_mechanism mechanism;
    bool token;
} preferences[] = {
    {SASL_XOAUTH2,       true },
    {SASL_SCRAM_SHA_256, false},
    {SASL_PLAIN,         false},
    {SASL_LOGIN,         false},
};

static bool
sasl_client_is_offered(struct text offered, enum sasl_mechanism mechanism)
{
    struct text word;
    /* "AUTH=LOGIN" of old servers leaves a "=" before the first one. */
    while (text_word(&offered, " \t=", &word))
        if (sasl_find(word) == mechanism)
            return true;
    return false;
}

enum sasl_mechanism
sasl_client_choose(struct text offered, bool token, unsigned tried)
{
    for (size_t i = 0; i < sizeof(preferences) / sizeof(*preferences); i++) {
        enum sasl_mechanism m = preferences[i].mechanism;
        if (preferences[i].token == token && (tried & 1u << m) == 0 &&
            sasl_client_is_offered(offered, m))
            return m;
    }
    return SASL_NONE;
}

static bool
is_secret(struct text t, size_t max)
{
    return t.length > 0 && t.length <= max && !text_has_control(t) && text_is_utf8(t);
}

const char *
sasl_client_check(const struct sasl_credentials *credentials)
{
    if (!sasl_is_name(credentials->user))
        return "the user name is empty, too long, not UTF-8 or has control characters";
    if (credentials->token.length > 0) {
        struct text token = credentials->token;
        if (!is_secret(token, SASL_TOKEN_MAX) || !text_is_ascii(token) ||
            text_find(token, ' ') != TEXT_NONE)
            return "the token is too long or has spaces or other foreign characters";
    } else if (!is_secret(credentials->password, SASL_PASSWORD_MAX)) {
        return "the password is empty, too long, not UTF-8 or has control characters";
    }
    return NULL;
}

/* buffer_clear() would free memory that still holds a secret. */
static void
sasl_client_empty(struct buffer *out)
{
    digest_forget(out->at, out->length);
    out->length = 0;
}

static enum sasl_client_result
sasl_client_stop(struct sasl_client *c, const char *problem)
{
    c->stage = SASL_CLIENT_STOPPED;
    c->problem = problem;
    sasl_client_empty(&c->out);
    return SASL_STOP;
}

static enum sasl_client_result
sasl_client_send(struct sasl_client *c, struct text message,
                 enum sasl_client_stage stage)
{
    sasl_client_empty(&c->out);
    bool fits = base64_encode(message, &c->out);
    assert(fits);
    c->stage = stage;
    return SASL_SEND;
}

/* Overwrites the secret message before its memory is freed. */
static void
send_secret(struct sasl_client *c, struct buffer *message, enum sasl_client_stage stage)
{
    (void)sasl_client_send(c, buffer_text(message), stage);
    digest_forget(message->at, message->length);
    buffer_free(message);
}

/* With all its memory: growing would leave copies. */
static struct buffer
secret_message(void)
{
    struct buffer message;
    buffer_init(&message, SASL_LINE_MAX);
    bool fits = buffer_reserve(&message, SASL_TOKEN_MAX + SASL_MESSAGE_MAX) != NULL;
    assert(fits);
    return message;
}

static void
start_plain(struct sasl_client *c)
{
    struct buffer message = secret_message();
    bool fits = buffer_add_byte(&message, '\0') &&
                buffer_add(&message, c->credentials.user) &&
                buffer_add_byte(&message, '\0') &&
                buffer_add(&message, c->credentials.password);
    assert(fits);
    send_secret(c, &message, SASL_CLIENT_COMPLETE);
}

static void
start_xoauth2(struct sasl_client *c)
{
    struct buffer message = secret_message();
    bool fits = buffer_add(&message, TEXT("user=")) &&
                buffer_add(&message, c->credentials.user) &&
                buffer_add(&message, TEXT("\001auth=Bearer ")) &&
                buffer_add(&message, c->credentials.token) &&
                buffer_add(&message, TEXT("\001\001"));
    assert(fits);
    send_secret(c, &message, SASL_CLIENT_COMPLETE);
}

static void
start_scram(struct sasl_client *c)
{
    struct buffer message;
    buffer_init(&message, SASL_MESSAGE_MAX);
    bool fits = buffer_add(&c->auth, TEXT("n=")) &&
                sasl_scram_write_name(c->credentials.user, &c->auth) &&
                buffer_format(&c->auth, ",r=%s", c->nonce) &&
                buffer_add(&message, TEXT("n,,")) &&
                buffer_add(&message, buffer_text(&c->auth));
    assert(fits);
    (void)sasl_client_send(c, buffer_text(&message), SASL_CLIENT_BEGUN);
    buffer_free(&message);
}

/* The texts of the two questions differ, their order does not: user name, password. */
static enum sasl_client_result
sasl_client_on_login(struct sasl_client *c)
{
    if (c->stage == SASL_CLIENT_BEGUN)
        return sasl_client_send(c, c->credentials.user, SASL_CLIENT_ANSWERED);
    if (c->stage == SASL_CLIENT_ANSWERED)
        return sasl_client_send(c, c->credentials.password, SASL_CLIENT_COMPLETE);
    return sasl_client_stop(c, "the server sends too many challenges");
}

static enum sasl_client_result
on_scram_challenge(struct sasl_client *c, struct text t)
{
    struct scram_challenge challenge;
    struct text nonce = text_from(c->nonce);
    if (!sasl_scram_read_challenge(t, &challenge))
        return sasl_client_stop(c, "the server's SCRAM message is malformed");
    /* RFC 5802 §5.1: it must extend ours, or messages of an earlier login would do. */
    if (!text_starts(challenge.nonce, nonce) || challenge.nonce.length == nonce.length)
        return sasl_client_stop(c, "the server's nonce is not made from ours");
    if (challenge.iterations < SASL_STRETCH_MIN)
        return sasl_client_stop(c, "the server asks for too few iterations");
    if (challenge.iterations > SASL_STRETCH_MAX)
        return sasl_client_stop(c, "the server asks for too many iterations");
    /* "biws" is "n,," in Base64: no channel binding. */
    bool fits = buffer_add_byte(&c->auth, ',') && buffer_add(&c->auth, t) &&
                buffer_add(&c->auth, TEXT(",c=biws,r=")) &&
                buffer_add(&c->auth, challenge.nonce);
    assert(fits);
    digest_stretch_start(&c->stretch, c->credentials.password,
                         text_of(challenge.salt, challenge.salt_length),
                         challenge.iterations);
    c->stage = SASL_CLIENT_WORKING;
    return SASL_WORK;
}

/* c->auth is the AuthMessage of RFC 5802 §3. It ends with our final message,
 * "c=biws,r=" and the nonce, which has no comma: so this message begins six bytes
 * before the last comma. */
static enum sasl_client_result
send_proof(struct sasl_client *c)
{
    unsigned char key[DIGEST_SIZE], stored_key[DIGEST_SIZE], server_key[DIGEST_SIZE];
    struct buffer message;
    struct text auth = buffer_text(&c->auth),
                unproven = text_after(auth, text_find_last(auth, ',') - 6);
    verifier_keys(c->stretch.out, key, stored_key, server_key);
    digest_forget(&c->stretch, sizeof(c->stretch));
    sasl_scram_mix(key, stored_key, auth);
    digest_keyed(text_of(server_key, DIGEST_SIZE), auth, c->signature);
    assert(text_starts(unproven, TEXT("c=biws,r=")));
    buffer_init(&message, 2 * SASL_MESSAGE_MAX);
    bool fits = buffer_add(&message, unproven) && buffer_add(&message, TEXT(",p=")) &&
                base64_encode(text_of(key, sizeof(key)), &message);
    assert(fits);
    digest_forget(server_key, sizeof(server_key));
    digest_forget(stored_key, sizeof(stored_key));
    (void)sasl_client_send(c, buffer_text(&message), SASL_CLIENT_ANSWERED);
    buffer_free(&message);
    return SASL_SEND;
}

/* The signature comes as one more challenge; an empty line answers it, and 235 follows.
 */
static enum sasl_client_result
on_scram_verdict(struct sasl_client *c, struct text t)
{
    unsigned char signature[DIGEST_SIZE];
    if (!sasl_scram_read_verdict(t, signature))
        return sasl_client_stop(c, "the server's last SCRAM message is malformed");
    if (!digest_same(signature, c->signature, DIGEST_SIZE))
        return sasl_client_stop(
            c, "the server does not know the password; it may be an impostor");
    return sasl_client_send(c, TEXT(""), SASL_CLIENT_COMPLETE);
}

static enum sasl_client_result
sasl_client_on_scram(struct sasl_client *c, struct text t)
{
    if (c->stage == SASL_CLIENT_BEGUN)
        return on_scram_challenge(c, t);
    if (c->stage == SASL_CLIENT_ANSWERED)
        return on_scram_verdict(c, t);
    return sasl_client_stop(c, "the server sends too many challenges");
}

/* The challenge says why the token was refused; the refusal itself follows our empty
 * line. */
static enum sasl_client_result
on_xoauth2(struct sasl_client *c, struct text t)
{
    if (c->stage != SASL_CLIENT_COMPLETE)
        return sasl_client_stop(c, "the server sends too many challenges");
    (void)text_copy(c->detail, sizeof(c->detail), t);
    return sasl_client_send(c, TEXT(""), SASL_CLIENT_ANSWERED);
}

enum sasl_client_result
sasl_client_feed(struct sasl_client *c, struct text challenge)
{
    char message[SASL_MESSAGE_MAX];
    size_t length;
    assert(c->stage != SASL_CLIENT_WORKING && c->stage != SASL_CLIENT_STOPPED);
    challenge = text_trim(challenge);
    /* Some servers send the challenges of LOGIN without Base64; they are not read. */
    if (c->mechanism == SASL_LOGIN)
        return sasl_client_on_login(c);
    if (!base64_decode(challenge, message, sizeof(message), &length))
        return sasl_client_stop(c, "the server's challenge is not Base64, or too long");
    if (c->mechanism == SASL_SCRAM_SHA_256)
        return sasl_client_on_scram(c, text_of(message, length));
    if (c->mechanism == SASL_XOAUTH2)
        return on_xoauth2(c, text_of(message, length));
    return sasl_client_stop(c, "the server sends too many challenges");
}

enum sasl_client_result
sasl_client_work(struct sasl_client *c)
{
    assert(c->stage == SASL_CLIENT_WORKING);
    if (!digest_stretch_go(&c->stretch, SASL_STRETCH_PIECE))
        return SASL_WORK;
    return send_proof(c);
}

void
sasl_client_start(struct sasl_client *c, enum sasl_mechanism mechanism,
                  const struct sasl_credentials *credentials, const char *nonce)
{
    assert(sasl_client_check(credentials) == NULL);
    *c = (struct sasl_client){.mechanism = mechanism, .credentials = *credentials};
    buffer_init(&c->auth, 4 * SASL_MESSAGE_MAX);
    buffer_init(&c->out, SASL_LINE_MAX + 1);
    bool whole = text_copy(c->nonce, sizeof(c->nonce), text_from(nonce));
    bool roomy = buffer_reserve(&c->out, SASL_LINE_MAX) != NULL;
    assert(whole && roomy);
    switch (mechanism) {
    case SASL_PLAIN:
        start_plain(c);
        return;
    case SASL_LOGIN:
        return;
    case SASL_SCRAM_SHA_256:
        start_scram(c);
        return;
    case SASL_XOAUTH2:
        start_xoauth2(c);
        return;
    case SASL_NONE:
    case SASL_OAUTHBEARER:
    case SASL_EXTERNAL:
        break;
    }
    assert(false); /* sasl_client_choose() */
}

struct text
sasl_client_line(const struct sasl_client *c)
{
    if (c->mechanism == SASL_LOGIN && c->stage == SASL_CLIENT_BEGUN)
        return (struct text){NULL, 0};
    return buffer_text(&c->out);
}

bool
sasl_client_accepted(const struct sasl_client *c)
{
    return c->stage == SASL_CLIENT_COMPLETE;
}

void
sasl_client_end(struct sasl_client *c)
{
    buffer_forget(&c->out);
    buffer_free(&c->auth);
    digest_forget(c, sizeof(*c));
}
