/* Private keys: what is read, what is refused, and that signatures verify. */
#include "base/crypto/sign.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <time.h>

/* RFC 8463 appendix A. */
#define SEED   "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
#define PUBLIC "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
#define PEM                                                                            \
    "-----BEGIN PRIVATE KEY-----\n"                                                   \
    "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMRESc"                                   \
    "VpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n"

static struct sign_random *randomness;

/* A copy on the heap, so that sanitizers see each byte read beyond it. */
static struct sign_key *
read_copy(struct text content, const char **why)
{
    char *copy = text_string(content);
    struct sign_key *key = sign_key_read(randomness, text_of(copy, content.length), why);
    free(copy);
    return key;
}

static bool
has_ed25519(void)
{
    return sign_ed25519_version()[0] != '\0';
}

static void
test_ed25519_forms(void)
{
    static const char *const forms[] = {SEED, SEED "\n", "\r\n " SEED, PEM, "\n" PEM};
    const char *why;
    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        struct buffer out;
        struct sign_key *key = read_copy(text_from(forms[i]), &why);
        if (!has_ed25519()) {
            ok(key == NULL && strstr(why, "without libsodium") != NULL);
            continue;
        }
        buffer_init(&out, SIGN_PUBLIC_MAX);
        ok(key != NULL && sign_key_kind(key) == SIGN_ED25519);
        ok(key != NULL && sign_key_public(key, &out));
        is_text(buffer_text(&out), TEXT(PUBLIC), "the public key of RFC 8463");
        buffer_free(&out);
        sign_key_free(&key);
    }
}

/* The signature of a digest is the same each time (RFC 8032 §5.1.6). */
static void
test_ed25519_signature(void)
{
    unsigned char digest[DIGEST_SIZE] = {1, 2, 3}, a[SIGN_SIZE_MAX], b[SIGN_SIZE_MAX];
    size_t length, again;
    const char *why;
    struct sign_key *key = read_copy(TEXT(SEED), &why);
    if (key == NULL)
        return;
    ok(sign_digest(key, digest, a, &length) && length == 64);
    ok(sign_digest(key, digest, b, &again) && memcmp(a, b, 64) == 0);
    digest[0] = 9;
    ok(sign_digest(key, digest, b, &again) && memcmp(a, b, 64) != 0);
    sign_key_free(&key);
}

static void
test_made(enum sign_kind kind, unsigned bits, size_t signature)
{
    unsigned char digest[DIGEST_SIZE] = {1}, out[SIGN_SIZE_MAX];
    size_t length = 0;
    const char *why;
    struct buffer pem, other;
    buffer_init(&pem, SIGN_FILE_MAX);
    buffer_init(&other, SIGN_FILE_MAX);
    ok(sign_key_make(randomness, kind, bits, &pem, &why));
    ok(sign_key_make(randomness, kind, bits, &other, &why));
    ok_named(!text_equal(buffer_text(&pem), buffer_text(&other)), "each key is new");
    struct sign_key *key = read_copy(buffer_text(&pem), &why);
    ok_named(key != NULL, "what was made can be read");
    if (key != NULL) {
        is_number(sign_key_bits(key), bits, "bits");
        ok(sign_digest(key, digest, out, &length) && length == signature);
    }
    sign_key_free(&key);
    int read_so = 0;
    for (size_t cut = 0; cut + 40 < pem.length; cut += 7) {
        key = read_copy(text_before(buffer_text(&pem), cut), &why);
        read_so += key != NULL;
        sign_key_free(&key);
    }
    is_number(read_so, 0, "no part of it is a key");
    buffer_free(&pem);
    buffer_free(&other);
}

/* Damage is refused, or the key still signs: the library verifies what it signs. */
TEST(damaged)
{
    unsigned char digest[DIGEST_SIZE] = {1}, out[SIGN_SIZE_MAX];
    size_t length;
    const char *why;
    int refused = 0, broken = 0;
    FIXTURE(buffer, pem, buffer_init, buffer_free, SIGN_FILE_MAX);
    ok(sign_key_make(randomness, SIGN_RSA, 1024, &pem, &why));
    for (size_t i = 40; i + 40 < pem.length; i++) {
        char old = pem.at[i];
        pem.at[i] = old == 'A' ? 'B' : 'A';
        struct sign_key *key = read_copy(buffer_text(&pem), &why);
        refused += key == NULL;
        broken += key != NULL && !sign_digest(key, digest, out, &length);
        sign_key_free(&key);
        pem.at[i] = old;
    }
    ok_named(refused > 500, "a damaged key is refused");
    is_number(broken, 0, "what is taken makes signatures");
}

static double
used_ms(clock_t since)
{
    return (double)(clock() - since) * 1000 / CLOCKS_PER_SEC;
}

/* A reload reads up to 10,000 keys in one turn. */
TEST(quick)
{
    enum { READ = 200, SIGNED = 40 };
    unsigned char digest[DIGEST_SIZE] = {1}, out[SIGN_SIZE_MAX];
    size_t length;
    const char *why;
    FIXTURE(buffer, pem, buffer_init, buffer_free, SIGN_FILE_MAX);
    ok(sign_key_make(randomness, SIGN_RSA, 2048, &pem, &why));
    clock_t began = clock();
    for (int i = 0; i < READ; i++) {
        struct sign_key *key = read_copy(buffer_text(&pem), &why);
        ok(key != NULL);
        sign_key_free(&key);
    }
    double read_ms = used_ms(began) / READ;
    struct sign_key *key = read_copy(buffer_text(&pem), &why);
    began = clock();
    for (int i = 0; i < SIGNED; i++)
        ok(sign_digest(key, digest, out, &length));
    ok_named(read_ms < used_ms(began) / SIGNED / 4, "to read a key takes no signature");
    sign_key_free(&key);
}

TEST(refused)
{
    static const struct {
        const char *content, *words;
    } rows[] = {
        {"", "no private key"},
        {"hello", "no private key"},
        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "no private key"}, /* 31 octets */
        {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "no private key"}, /* 33 */
        {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
         "no private key"},
        {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"
         "DEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n",
         "passphrase"},
        {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n"
         "-----END ENCRYPTED PRIVATE KEY-----\n",
         "passphrase"},
        {"-----BEGIN PRIVATE KEY-----\nMAAA\n-----END PRIVATE KEY-----\n", "damaged"},
        {"-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----", "damaged"},
        {"-----BEGIN PRIVATE KEY-----", "damaged"},
        /* A key of P-256. */
        {"-----BEGIN PRIVATE KEY-----\n"
         "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgevZzL1gdAFr88hb2\n"
         "OF/2NxApJCzGCEDdfSp6VQO30hyhRANCAAQRWz+jn65BtOMvdyHKcvjBeBSDZH2r\n"
         "1RTwjmYSi9R/zpBnuQ4EiMnCqfMPWiZqB4QdbAd0E7oH50VpuZ1P087G\n"
         "-----END PRIVATE KEY-----\n",
         "neither RSA nor Ed25519"},
    };
    const char *why;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct sign_key *key = read_copy(text_from(rows[i].content), &why);
        ok_named(key == NULL && strstr(why, rows[i].words) != NULL, why);
        sign_key_free(&key);
    }
}

int
main(void)
{
    randomness = sign_random_new();
    ok(randomness != NULL);
    test_ed25519_forms();
    test_ed25519_signature();
    test_made(SIGN_RSA, 1024, 128);
    test_made(SIGN_RSA, 2048, 256);
    if (has_ed25519())
        test_made(SIGN_ED25519, 256, 64);
    tap_tests("");
    sign_random_free(&randomness);
    return done();
}
