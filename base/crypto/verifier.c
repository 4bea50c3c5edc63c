/* Checks passwords against verifiers: SCRAM-SHA-256 keys, SHA-512 crypt. */
#include "base/crypto/verifier.h"

#include "base/crypto/base64.h"
#include "base/memory.h"

#include <assert.h>
#include <crypt.h>
#include <stdlib.h>
#include <string.h>

enum { CRYPT_ROUNDS_MIN = 1000, CRYPT_SALT_MAX = 16, CRYPT_HASH = 86 };

const char *
verifier_password_error(struct text password)
{
    if (password.length == 0)
        return "the password is empty";
    if (password.length > VERIFIER_PASSWORD_MAX)
        return "the password has more than 128 bytes";
    if (text_has_control(password))
        return "the password has control characters";
    if (!text_is_utf8(password))
        return "the password is not UTF-8";
    return NULL;
}

/* RFC 5802 §3. The stored keys can check a password, but do not suffice to log in. */
void
verifier_keys(const unsigned char salted[DIGEST_SIZE],
              unsigned char client_key[DIGEST_SIZE],
              unsigned char stored_key[DIGEST_SIZE],
              unsigned char server_key[DIGEST_SIZE])
{
    struct text key = text_of(salted, DIGEST_SIZE);
    digest_keyed(key, TEXT("Client Key"), client_key);
    digest_plain(text_of(client_key, DIGEST_SIZE), stored_key);
    digest_keyed(key, TEXT("Server Key"), server_key);
}

void
verifier_make(struct verifier *v, struct text password, struct text salt,
              unsigned iterations)
{
    assert(salt.length >= VERIFIER_SALT_MIN && salt.length <= VERIFIER_SALT_MAX);
    assert(iterations <= VERIFIER_ITERATIONS_MAX);
    struct digest_stretch s;
    unsigned char client_key[DIGEST_SIZE];
    *v = (struct verifier){.kind = VERIFIER_SCRAM, .iterations = iterations};
    memcpy(v->salt, salt.at, salt.length);
    v->salt_length = salt.length;
    digest_stretch_start(&s, password, salt, iterations);
    (void)digest_stretch_go(&s, iterations);
    verifier_keys(s.out, client_key, v->stored_key, v->server_key);
    digest_forget(&s, sizeof(s));
    digest_forget(client_key, sizeof(client_key));
}

static bool
verifier_parse_key(struct text t, unsigned char key[DIGEST_SIZE])
{
    size_t length;
    return base64_decode(t, key, DIGEST_SIZE, &length) && length == DIGEST_SIZE;
}

/* The separators are those of RFC 5803, or three commas. */
static const char *
parse_scram(struct verifier *v, struct text t, const char separators[3])
{
    struct text iterations, salt, stored, server = t;
    uint64_t number;
    if (!text_cut(&server, separators[0], &iterations) ||
        !text_cut(&server, separators[1], &salt) ||
        !text_cut(&server, separators[2], &stored) || server.at == NULL)
        return "SCRAM-SHA-256 needs iterations, salt, stored key and server key";
    if (!text_number(iterations, UINT32_MAX, &number))
        return "the number of iterations is no number";
    if (number < VERIFIER_ITERATIONS_MIN)
        return "fewer than 4096 iterations";
    if (number > VERIFIER_ITERATIONS_MAX)
        return "more than 1000000 iterations: a check would take too long";
    v->iterations = (unsigned)number;
    if (!base64_decode(salt, v->salt, sizeof(v->salt), &v->salt_length) ||
        v->salt_length < VERIFIER_SALT_MIN)
        return "the salt is not Base64 of 8 to 32 bytes";
    if (!verifier_parse_key(stored, v->stored_key) ||
        !verifier_parse_key(server, v->server_key))
        return "a key is not Base64 of 32 bytes";
    v->kind = VERIFIER_SCRAM;
    return NULL;
}

static bool
is_crypt_text(struct text t, size_t shortest, size_t longest)
{
    for (size_t i = 0; i < t.length; i++)
        if (!strchr("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                    t.at[i]) ||
            t.at[i] == '\0')
            return false;
    return t.length >= shortest && t.length <= longest;
}

/* crypt(3) gets this text as its setting, so that every part is checked here. */
static const char *
parse_crypt(struct verifier *v, struct text t)
{
    struct text rest = text_after(t, 3), salt, number;
    uint64_t rounds = VERIFIER_ROUNDS_MAX;
    if (text_starts(rest, TEXT("rounds="))) {
        rest = text_after(rest, 7);
        text_cut(&rest, '$', &number);
        if (!text_number(number, UINT32_MAX, &rounds) || rounds < CRYPT_ROUNDS_MIN)
            return "rounds= needs a number of at least 1000";
    }
    if (rounds > VERIFIER_ROUNDS_MAX)
        return "more than 5000 rounds: a check would take too long";
    if (!text_cut(&rest, '$', &salt) || rest.at == NULL ||
        !is_crypt_text(salt, 1, CRYPT_SALT_MAX) ||
        !is_crypt_text(rest, CRYPT_HASH, CRYPT_HASH))
        return "not $6$salt$ and 86 characters of SHA-512 crypt";
    bool whole = text_copy(v->crypt, sizeof(v->crypt), t);
    assert(whole);
    v->kind = VERIFIER_CRYPT;
    return NULL;
}

static bool
is_too_costly(struct text t)
{
    static const char *const starts[] = {"$2",           "$y$",     "$7$",    "$gy$",
                                         "$argon2",      "{ARGON2", "{BLF-",  "{BCRYPT",
                                         "{SCRAM-SHA-5", "{PBKDF2", "$scrypt"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
        if (text_starts_nocase(t, text_from(starts[i])))
            return true;
    return false;
}

const char *
verifier_parse(struct verifier *v, struct text t)
{
    static const struct text scram = TEXT("SCRAM-SHA-256$"),
                             scram_braces = TEXT("{SCRAM-SHA-256}"),
                             crypts[] = {TEXT("{SHA512-CRYPT}"), TEXT("{CRYPT}")};
    *v = (struct verifier){0};
    if (text_starts_nocase(t, scram))
        return parse_scram(v, text_after(t, scram.length), ":$:");
    if (text_starts_nocase(t, scram_braces))
        return parse_scram(v, text_after(t, scram_braces.length), ",,,");
    for (size_t i = 0; i < 2; i++)
        if (text_starts_nocase(t, crypts[i])) {
            t = text_after(t, crypts[i].length);
            break;
        }
    if (text_starts(t, TEXT("$6$")))
        return parse_crypt(v, t);
    if (is_too_costly(t))
        return "bcrypt, yescrypt, scrypt, Argon2 and their like take too long for each "
               "check: make a line with `petrel passwd USER`";
    return "neither SCRAM-SHA-256 nor SHA512-CRYPT: make a line with `petrel passwd "
           "USER`";
}

bool
verifier_write(const struct verifier *v, struct buffer *out)
{
    assert(v->kind == VERIFIER_SCRAM);
    return buffer_format(out, "SCRAM-SHA-256$%u:", v->iterations) &&
           base64_encode(text_of(v->salt, v->salt_length), out) &&
           buffer_add_byte(out, '$') &&
           base64_encode(text_of(v->stored_key, DIGEST_SIZE), out) &&
           buffer_add_byte(out, ':') &&
           base64_encode(text_of(v->server_key, DIGEST_SIZE), out);
}

/* crypt(3) computes without a pause: hence VERIFIER_ROUNDS_MAX. */
static bool
check_crypt(const struct verifier *v, struct text password)
{
    char phrase[VERIFIER_PASSWORD_MAX + 1];
    struct crypt_data *data = memory_new(sizeof(*data)); /* 32 KB */
    bool whole = text_copy(phrase, sizeof(phrase), password);
    assert(whole); /* verifier_password_error() */
    const char *made = crypt_r(phrase, v->crypt, data);
    size_t length = strlen(v->crypt);
    bool good = made && strlen(made) == length && digest_same(made, v->crypt, length);
    digest_forget(phrase, sizeof(phrase));
    digest_forget(data, sizeof(*data));
    free(data);
    return good;
}

/* At most VERIFIER_SLICE iterations: other sessions run between two slices. */
enum verifier_finding
verifier_check_go(struct verifier_check *c)
{
    unsigned char client_key[DIGEST_SIZE], stored[DIGEST_SIZE], server[DIGEST_SIZE];
    if (!digest_stretch_go(&c->stretch, VERIFIER_SLICE))
        return VERIFIER_UNFINISHED;
    verifier_keys(c->stretch.out, client_key, stored, server);
    bool good = digest_same(stored, c->verifier.stored_key, DIGEST_SIZE);
    digest_forget(client_key, sizeof(client_key));
    digest_forget(server, sizeof(server));
    return good ? VERIFIER_RIGHT : VERIFIER_WRONG;
}

enum verifier_finding
verifier_check_start(struct verifier_check *c, const struct verifier *v,
                     struct text password)
{
    *c = (struct verifier_check){.verifier = *v};
    if (verifier_password_error(password) != NULL)
        return VERIFIER_WRONG;
    switch (v->kind) {
    case VERIFIER_SCRAM:
        digest_stretch_start(&c->stretch, password, text_of(v->salt, v->salt_length),
                             v->iterations);
        return verifier_check_go(c);
    case VERIFIER_CRYPT:
        return check_crypt(v, password) ? VERIFIER_RIGHT : VERIFIER_WRONG;
    }
    return VERIFIER_WRONG;
}
