/* Private keys of both kinds: reads them, signs with them, makes them.
 *
 * mbedTLS reads every form of RSA key. It knows no Ed25519, whose two forms are read
 * here: PKCS #8 is a constant and the seed, since RFC 8410 leaves nothing to choose.
 * Memory that held a private key is overwritten. */
#include "base/crypto/sign.h"

#include "base/crypto/base64.h"
#include "base/memory.h"

#include <assert.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/pk.h>
#include <mbedtls/rsa.h>
#include <mbedtls/version.h>
#ifdef HAVE_LIBSODIUM
#include <sodium.h>
#endif
#include <stdlib.h>
#include <string.h>

enum { RSA_EXPONENT = 65537, ED25519_SEED = 32, ED25519_SIZE = 64 };

static const char pem_begins[] = "-----BEGIN PRIVATE KEY-----";
static const char pem_ends[] = "-----END PRIVATE KEY-----";

/* RFC 8410 §7: version 0, the algorithm, an octet string within an octet string. */
static const unsigned char ed25519_der[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30,
                                            0x05, 0x06, 0x03, 0x2b, 0x65, 0x70,
                                            0x04, 0x22, 0x04, 0x20};
enum { ED25519_DER = (int)sizeof(ed25519_der) + ED25519_SEED };

struct sign_ed25519 {
    unsigned char secret[ED25519_SIZE], public[ED25519_SEED];
};

struct sign_random {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context numbers;
};

struct sign_key {
    enum sign_kind kind;
    struct sign_random *random;
    mbedtls_pk_context rsa;
    struct sign_ed25519 ed25519;
};

/* --- Random numbers --------------------------------------------------------------- */

struct sign_random *
sign_random_new(void)
{
    struct sign_random *r = memory_new(sizeof(*r));
    mbedtls_entropy_init(&r->entropy);
    mbedtls_ctr_drbg_init(&r->numbers);
    if (mbedtls_ctr_drbg_seed(&r->numbers, mbedtls_entropy_func, &r->entropy, NULL,
                              0) != 0)
        sign_random_free(&r);
    return r;
}

void
sign_random_free(struct sign_random **r)
{
    if (*r == NULL)
        return;
    mbedtls_ctr_drbg_free(&(*r)->numbers);
    mbedtls_entropy_free(&(*r)->entropy);
    free(*r);
    *r = NULL;
}

/* --- Ed25519 ---------------------------------------------------------------------- */

#ifdef HAVE_LIBSODIUM
static_assert(crypto_sign_SEEDBYTES == ED25519_SEED, "a seed");
static_assert(crypto_sign_BYTES == ED25519_SIZE, "a signature");
static_assert(crypto_sign_SECRETKEYBYTES == ED25519_SIZE, "a private key");
static const char ed25519_version[] = "libsodium " SODIUM_VERSION_STRING;
#else
/* No key of the kind is made: sign_ed25519_start(). */
static const char ed25519_version[] = "";
#define sodium_init()                     (-1)
#define crypto_sign_seed_keypair(a, b, c) ((void)(a), (void)(b), (void)(c), -1)
#define crypto_sign_detached(out, length, digest, size, key)                           \
    ((void)(out), (void)(digest), (void)(key), -1)
#define crypto_sign_verify_detached(signature, digest, size, key)                      \
    ((void)(signature), (void)(digest), (void)(key), -1)
#endif

const char *
sign_ed25519_version(void)
{
    return ed25519_version;
}

/* NULL, or why there is none: a constant. */
static const char *
sign_ed25519_start(struct sign_ed25519 *key, const unsigned char seed[ED25519_SEED])
{
    if (ed25519_version[0] == '\0')
        return "has an Ed25519 key, and this petrel was built without libsodium";
    if (sodium_init() < 0 ||
        crypto_sign_seed_keypair(key->public, key->secret, seed) != 0)
        return "cannot be used: libsodium does not start";
    return NULL;
}

static bool
sign_ed25519_digest(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    unsigned char out[ED25519_SIZE])
{
    return crypto_sign_detached(out, NULL, digest, DIGEST_SIZE, key->secret) == 0;
}

static bool
sign_ed25519_verify(const struct sign_ed25519 *key,
                    const unsigned char digest[DIGEST_SIZE],
                    const unsigned char signature[ED25519_SIZE])
{
    return crypto_sign_verify_detached(signature, digest, DIGEST_SIZE, key->public) ==
           0;
}

/* --- Signatures ------------------------------------------------------------------- */

static bool
sign_by_rsa(struct sign_key *key, const unsigned char digest[DIGEST_SIZE],
            unsigned char out[SIGN_SIZE_MAX], size_t *length)
{
    return mbedtls_pk_sign(&key->rsa, MBEDTLS_MD_SHA256, digest, DIGEST_SIZE, out,
#if MBEDTLS_VERSION_MAJOR >= 3
                           SIGN_SIZE_MAX,
#endif
                           length, mbedtls_ctr_drbg_random, &key->random->numbers) == 0;
}

bool
sign_digest(struct sign_key *key, const unsigned char digest[DIGEST_SIZE],
            unsigned char out[SIGN_SIZE_MAX], size_t *length)
{
    if (key->kind == SIGN_RSA)
        return sign_by_rsa(key, digest, out, length);
    *length = ED25519_SIZE;
    return sign_ed25519_digest(&key->ed25519, digest, out);
}

/* A key whose parts do not belong together would make signatures that all receivers
 * refuse. The parts of an RSA key are compared, which takes no time: a signature would
 * take 2 ms, and a reload may read thousands of keys. The library verifies each
 * signature. */
static bool
sign_is_sound(struct sign_key *key)
{
    unsigned char digest[DIGEST_SIZE], signature[SIGN_SIZE_MAX];
    size_t length;
    if (key->kind == SIGN_RSA)
        return mbedtls_rsa_check_privkey(mbedtls_pk_rsa(key->rsa)) == 0;
    digest_plain(TEXT("Petrel tries a key."), digest);
    return sign_digest(key, digest, signature, &length) &&
           sign_ed25519_verify(&key->ed25519, digest, signature);
}

/* --- Reading ---------------------------------------------------------------------- */

/* Both forms of Ed25519. False: it is not one of them. */
static bool
sign_read_seed(struct text content, unsigned char seed[ED25519_SEED])
{
    char packed[BASE64_LENGTH(ED25519_DER) + 1];
    unsigned char der[ED25519_DER];
    size_t used = 0, length;
    struct text body = text_trim(content);
    bool is_pem = text_starts(body, text_from(pem_begins)) &&
                  text_ends_nocase(body, text_from(pem_ends));
    if (is_pem)
        body = text_before(text_after(body, strlen(pem_begins)),
                           body.length - strlen(pem_begins) - strlen(pem_ends));
    for (size_t i = 0; i < body.length && used < sizeof(packed); i++)
        if (!text_is_space(body.at[i]))
            packed[used++] = body.at[i];
    bool good = base64_decode(text_of(packed, used), der, sizeof(der), &length);
    if (good && is_pem)
        good =
            length == sizeof(der) && memcmp(der, ed25519_der, sizeof(ed25519_der)) == 0;
    else
        good = good && length == ED25519_SEED;
    if (good)
        memcpy(seed, der + (is_pem ? sizeof(ed25519_der) : 0), ED25519_SEED);
    digest_forget(packed, sizeof(packed));
    digest_forget(der, sizeof(der));
    return good;
}

static int
sign_parse_pem(struct sign_key *key, struct text content)
{
    const unsigned char *at = (const unsigned char *)content.at;
#if MBEDTLS_VERSION_MAJOR >= 3
    return mbedtls_pk_parse_key(&key->rsa, at, content.length + 1, NULL, 0,
                                mbedtls_ctr_drbg_random, &key->random->numbers);
#else
    return mbedtls_pk_parse_key(&key->rsa, at, content.length + 1, NULL, 0);
#endif
}

/* NULL, or the error. */
static const char *
read_rsa(struct sign_key *key, struct text content)
{
    key->kind = SIGN_RSA;
    if (strstr(content.at, "PRIVATE KEY-----") == NULL)
        return "has no private key in PEM";
    int code = sign_parse_pem(key, content);
    if (code == MBEDTLS_ERR_PK_PASSWORD_REQUIRED ||
        strstr(content.at, "ENCRYPTED") != NULL)
        return "has a key with a passphrase; remove it: openssl pkey -in KEY -out NEW";
    if (code != 0)
        return "has a private key that is damaged, or neither RSA nor Ed25519";
    if (mbedtls_pk_get_type(&key->rsa) != MBEDTLS_PK_RSA)
        return "has a key that is neither RSA nor Ed25519";
    if (sign_key_bits(key) < SIGN_BITS_MIN)
        return "has an RSA key of less than 1024 bits, which receivers ignore";
    if (sign_key_bits(key) > SIGN_BITS_MAX)
        return "has an RSA key of more than 4096 bits";
    return NULL;
}

struct sign_key *
sign_key_read(struct sign_random *r, struct text content, const char **why)
{
    unsigned char seed[ED25519_SEED];
    struct sign_key *key = memory_new(sizeof(*key));
    assert(content.at[content.length] == '\0');
    key->random = r;
    mbedtls_pk_init(&key->rsa);
    if (sign_read_seed(content, seed)) {
        key->kind = SIGN_ED25519;
        *why = sign_ed25519_start(&key->ed25519, seed);
    } else {
        *why = read_rsa(key, content);
    }
    digest_forget(seed, sizeof(seed));
    if (*why == NULL && !sign_is_sound(key))
        *why = "has a key that makes no valid signatures";
    if (*why != NULL)
        sign_key_free(&key);
    return key;
}

void
sign_key_free(struct sign_key **key)
{
    if (*key == NULL)
        return;
    mbedtls_pk_free(&(*key)->rsa);
    digest_forget(*key, sizeof(**key));
    free(*key);
    *key = NULL;
}

enum sign_kind
sign_key_kind(const struct sign_key *key)
{
    return key->kind;
}

unsigned
sign_key_bits(const struct sign_key *key)
{
    return key->kind == SIGN_RSA ? (unsigned)mbedtls_pk_get_bitlen(&key->rsa) : 256;
}

bool
sign_key_public(const struct sign_key *key, struct buffer *out)
{
    unsigned char der[SIGN_PUBLIC_MAX];
    if (key->kind == SIGN_ED25519)
        return base64_encode(text_of(key->ed25519.public, sizeof(key->ed25519.public)),
                             out);
    /* It writes at the end of the space. The 2.28 takes no pointer to const. */
    mbedtls_pk_context rsa = key->rsa;
    int length = mbedtls_pk_write_pubkey_der(&rsa, der, sizeof(der));
    return length > 0 &&
           base64_encode(text_of(der + sizeof(der) - length, (size_t)length), out);
}

/* --- Making ----------------------------------------------------------------------- */

static bool
make_ed25519(struct sign_random *r, struct buffer *out)
{
    unsigned char der[ED25519_DER];
    memcpy(der, ed25519_der, sizeof(ed25519_der));
    bool good = mbedtls_ctr_drbg_random(&r->numbers, der + sizeof(ed25519_der),
                                        ED25519_SEED) == 0 &&
                buffer_format(out, "%s\n", pem_begins) &&
                base64_encode(text_of(der, sizeof(der)), out) &&
                buffer_format(out, "\n%s\n", pem_ends);
    digest_forget(der, sizeof(der));
    return good;
}

static bool
make_rsa(struct sign_random *r, unsigned bits, struct buffer *out)
{
    mbedtls_pk_context pk;
    mbedtls_pk_init(&pk);
    char *pem = buffer_reserve(out, SIGN_FILE_MAX);
    bool good = pem != NULL &&
                mbedtls_pk_setup(&pk, mbedtls_pk_info_from_type(MBEDTLS_PK_RSA)) == 0 &&
                mbedtls_rsa_gen_key(mbedtls_pk_rsa(pk), mbedtls_ctr_drbg_random,
                                    &r->numbers, bits, RSA_EXPONENT) == 0 &&
                mbedtls_pk_write_key_pem(&pk, (unsigned char *)pem, SIGN_FILE_MAX) == 0;
    if (good)
        out->length += strlen(pem);
    mbedtls_pk_free(&pk);
    return good;
}

bool
sign_key_make(struct sign_random *r, enum sign_kind kind, unsigned bits,
              struct buffer *out, const char **why)
{
    assert(kind == SIGN_ED25519 || (bits >= SIGN_BITS_MIN && bits <= SIGN_BITS_MAX));
    *why = "cannot make a key";
    if (kind == SIGN_RSA)
        return make_rsa(r, bits, out);
    if (sign_ed25519_version()[0] == '\0') {
        *why = "this petrel was built without libsodium, which Ed25519 needs";
        return false;
    }
    return make_ed25519(r, out);
}
