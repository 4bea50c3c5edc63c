/* Keys as dkim_keys.h gives them, and a DKIM-Signature taken apart. */
#include "t/support/dkim_kit.h"

#include "base/crypto/base64.h"
#include "base/memory.h"
#include "t/support/dkim_twin.h"
#include "t/support/must.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <string.h>

struct dkim_keys *
dkim_kit_read(struct text setting, struct buffer *errors)
{
    struct dkim_keys_reading *r = dkim_keys_begin(setting, errors);
    while (!dkim_keys_go_on(r))
        ;
    return dkim_keys_end(&r);
}

/* As in base/crypto/sign.c. */
struct random_inside {
    mbedtls_entropy_context entropy;
    mbedtls_ctr_drbg_context numbers;
};

/* False: this kind is not built in. */
static bool
add_key(struct dkim_keys *keys, enum sign_kind kind, const char *domain,
        const char *selector)
{
    const char *why;
    struct buffer pem;
    buffer_init(&pem, SIGN_FILE_MAX);
    bool made = sign_key_make(keys->random, kind, 1024, &pem, &why);
    must(made || kind == SIGN_ED25519);
    if (made) {
        must(buffer_add_byte(&pem, '\0'));
        keys->list[keys->count++] = (struct dkim_key){
            .domain = memory_string(domain),
            .selector = memory_string(selector),
            .path = memory_string("-"),
            .key = sign_key_read(keys->random, text_of(pem.at, pem.length - 1), &why)};
    }
    buffer_free(&pem);
    return made;
}

static struct dkim_keys *
room_for(size_t count)
{
    struct dkim_keys *keys = memory_new(sizeof(*keys));
    keys->random = sign_random_new();
    keys->list = memory_array(count, sizeof(*keys->list));
    return keys;
}

struct dkim_keys *
dkim_kit_keys(const char *domain, const char *selector, size_t count)
{
    struct dkim_keys *keys = room_for(count);
    while (keys->count < count)
        (void)add_key(keys, SIGN_RSA, domain, selector);
    return keys;
}

struct dkim_keys *
dkim_kit_ed25519(const char *domain, const char *selector, bool rsa)
{
    struct dkim_keys *keys = room_for(2);
    if (rsa)
        (void)add_key(keys, SIGN_RSA, domain, selector);
    if (!add_key(keys, SIGN_ED25519, domain, selector))
        dkim_keys_free(&keys);
    return keys;
}

void
dkim_kit_break(struct dkim_keys *keys)
{
    struct random_inside *inside = (void *)keys->random;
    mbedtls_entropy_free(&inside->entropy);
    mbedtls_entropy_init(&inside->entropy);
    mbedtls_ctr_drbg_set_prediction_resistance(&inside->numbers,
                                               MBEDTLS_CTR_DRBG_PR_ON);
    mbedtls_ctr_drbg_set_entropy_len(&inside->numbers, MBEDTLS_CTR_DRBG_MAX_SEED_INPUT);
}

bool
dkim_kit_body_fits(struct text message)
{
    unsigned char digest[DIGEST_SIZE];
    struct buffer want;
    static const char end[] = "\r\n\r\n", tag[] = "bh=";
    const char *body = memmem(message.at, message.length, end, strlen(end));
    const char *at = memmem(message.at, message.length, tag, strlen(tag));
    if (body == NULL || at == NULL)
        return false;
    dkim_twin_body(text_after(message, (size_t)(body - message.at) + strlen(end)),
                   digest);
    buffer_init(&want, 100);
    must(base64_encode(text_of(digest, sizeof(digest)), &want));
    bool fits =
        text_starts(text_after(message, (size_t)(at - message.at) + strlen(tag)),
                    buffer_text(&want));
    buffer_free(&want);
    return fits;
}
