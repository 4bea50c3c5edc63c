/* Finds mechanisms of AUTH by name; checks user names, makes nonces. */
#include "smtp/sasl.h"

#include "base/crypto/base64.h"

#include <assert.h>
#include <string.h>

const char *
sasl_name(enum sasl_mechanism mechanism)
{
    switch (mechanism) {
    case SASL_NONE:
        return "";
    case SASL_PLAIN:
        return "PLAIN";
    case SASL_LOGIN:
        return "LOGIN";
    case SASL_SCRAM_SHA_256:
        return "SCRAM-SHA-256";
    case SASL_XOAUTH2:
        return "XOAUTH2";
    case SASL_OAUTHBEARER:
        return "OAUTHBEARER";
    case SASL_EXTERNAL:
        return "EXTERNAL";
    }
    return "";
}

enum sasl_mechanism
sasl_find(struct text name)
{
    for (enum sasl_mechanism m = SASL_PLAIN; m <= SASL_OAUTHBEARER; m++)
        if (text_equal_nocase(name, text_from(sasl_name(m))))
            return m;
    return SASL_NONE;
}

void
sasl_nonce(const uint64_t random[3], char nonce[SASL_NONCE_SIZE])
{
    struct buffer coded;
    buffer_init(&coded, SASL_NONCE_SIZE);
    bool fits = base64_encode(text_of(random, 3 * sizeof(*random)), &coded) &&
                text_copy(nonce, SASL_NONCE_SIZE, buffer_text(&coded));
    assert(fits);
    buffer_free(&coded);
}

bool
sasl_is_name(struct text name)
{
    return name.length > 0 && name.length <= SASL_NAME_MAX && !text_has_control(name) &&
           text_is_utf8(name);
}

/* --- SCRAM ------------------------------------------------------------------------ */

/* Cuts "x=value" off *rest; false when the next attribute is not x. */
static bool
cut_attribute(struct text *rest, char x, struct text *value)
{
    struct text field;
    if (!text_cut(rest, ',', &field) || field.length < 2 || field.at[0] != x ||
        field.at[1] != '=')
        return false;
    *value = text_after(field, 2);
    return true;
}

/* attr-val of RFC 5802 §7: ALPHA "=" 1*value-char. An unknown attribute is ignored, but
 * "m" demands an extension that we do not have (RFC 5802 §5.1). */
static bool
are_extensions(struct text rest)
{
    struct text field;
    while (text_cut(&rest, ',', &field)) {
        bool letter = field.length > 2 && ((field.at[0] | 0x20) >= 'a') &&
                      ((field.at[0] | 0x20) <= 'z');
        if (!letter || field.at[1] != '=' || field.at[0] == 'm')
            return false;
    }
    return true;
}

/* printable of RFC 5802 §7; the caller has cut at the comma. */
static bool
is_nonce(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] < 0x21 || t.at[i] > 0x7e)
            return false;
    return t.length > 0;
}

/* saslname: "=2C" and "=3D" are the only uses of "=". */
static bool
sasl_scram_read_name(struct text t, char to[SASL_NAME_MAX + 1])
{
    size_t used = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.at[i];
        if (c == '=') {
            struct text code = text_before(text_after(t, i), 3);
            if (text_equal(code, TEXT("=2C")))
                c = ',';
            else if (!text_equal(code, TEXT("=3D")))
                return false;
            i += 2;
        }
        if (used == SASL_NAME_MAX)
            return false;
        to[used++] = c;
    }
    to[used] = '\0';
    return sasl_is_name(text_of(to, used));
}

/* Channel binding ("p") is not offered, so a client that asks for it is refused; "y"
 * says that it could have bound. */
bool
sasl_scram_read_first(struct text t, struct scram_first *first)
{
    struct text rest = t, flag, authzid, name;
    *first = (struct scram_first){0};
    if (t.length > SASL_MESSAGE_MAX || !text_cut(&rest, ',', &flag) ||
        !(text_equal(flag, TEXT("n")) || text_equal(flag, TEXT("y"))))
        return false;
    if (!text_cut(&rest, ',', &authzid) || rest.at == NULL)
        return false;
    if (authzid.length > 0 &&
        (!text_starts(authzid, TEXT("a=")) ||
         !sasl_scram_read_name(text_after(authzid, 2), first->authzid)))
        return false;
    first->bare = rest;
    first->header = text_before(t, (size_t)(rest.at - t.at));
    return cut_attribute(&rest, 'n', &name) &&
           sasl_scram_read_name(name, first->name) &&
           cut_attribute(&rest, 'r', &first->nonce) && is_nonce(first->nonce) &&
           are_extensions(rest);
}

bool
sasl_scram_read_challenge(struct text t, struct scram_challenge *challenge)
{
    struct text rest = t, salt, iterations;
    uint64_t number;
    *challenge = (struct scram_challenge){0};
    if (t.length > SASL_MESSAGE_MAX || !cut_attribute(&rest, 'r', &challenge->nonce) ||
        !is_nonce(challenge->nonce) || !cut_attribute(&rest, 's', &salt) ||
        !cut_attribute(&rest, 'i', &iterations) || !are_extensions(rest))
        return false;
    if (!base64_decode(salt, challenge->salt, sizeof(challenge->salt),
                       &challenge->salt_length) ||
        challenge->salt_length == 0)
        return false;
    if (!text_number(iterations, UINT32_MAX, &number) || number == 0)
        return false;
    challenge->iterations = (unsigned)number;
    return true;
}

bool
sasl_scram_read_final(struct text t, struct scram_final *final)
{
    struct text rest, proof;
    size_t length, comma = text_find_last(t, ',');
    *final = (struct scram_final){0};
    if (t.length > SASL_MESSAGE_MAX || comma == TEXT_NONE)
        return false;
    final->unproven = text_before(t, comma);
    proof = text_after(t, comma + 1);
    rest = final->unproven;
    return cut_attribute(&rest, 'c', &final->header) &&
           cut_attribute(&rest, 'r', &final->nonce) && is_nonce(final->nonce) &&
           are_extensions(rest) && text_starts(proof, TEXT("p=")) &&
           base64_decode(text_after(proof, 2), final->proof, DIGEST_SIZE, &length) &&
           length == DIGEST_SIZE;
}

bool
sasl_scram_read_verdict(struct text t, unsigned char signature[DIGEST_SIZE])
{
    struct text rest = t, value;
    size_t length;
    return t.length <= SASL_MESSAGE_MAX && cut_attribute(&rest, 'v', &value) &&
           are_extensions(rest) &&
           base64_decode(value, signature, DIGEST_SIZE, &length) &&
           length == DIGEST_SIZE;
}

bool
sasl_scram_write_name(struct text name, struct buffer *out)
{
    size_t before = out->length;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.at[i];
        bool added = c == ','   ? buffer_add(out, TEXT("=2C"))
                     : c == '=' ? buffer_add(out, TEXT("=3D"))
                                : buffer_add_byte(out, c);
        if (!added) {
            out->length = before;
            return false;
        }
    }
    return true;
}

void
sasl_scram_mix(unsigned char proof[DIGEST_SIZE],
               const unsigned char stored_key[DIGEST_SIZE], struct text auth)
{
    unsigned char signature[DIGEST_SIZE];
    digest_keyed(text_of(stored_key, DIGEST_SIZE), auth, signature);
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        proof[i] ^= signature[i];
}

bool
sasl_scram_is_proven(const unsigned char proof[DIGEST_SIZE],
                     const unsigned char stored_key[DIGEST_SIZE], struct text auth)
{
    unsigned char key[DIGEST_SIZE], digest[DIGEST_SIZE];
    memcpy(key, proof, DIGEST_SIZE);
    sasl_scram_mix(key, stored_key, auth);
    digest_plain(text_of(key, DIGEST_SIZE), digest);
    bool same = digest_same(digest, stored_key, DIGEST_SIZE);
    digest_forget(key, sizeof(key));
    return same;
}
