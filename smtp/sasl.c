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
    }
    return "";
}

enum sasl_mechanism
sasl_find(struct text name)
{
    for (enum sasl_mechanism m = SASL_PLAIN; m <= SASL_XOAUTH2; m++)
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
