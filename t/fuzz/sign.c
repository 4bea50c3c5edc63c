/* Fuzz target: files of private keys. A file that is read as a key signs, and has a
 * public half; any other has a reason. */
#include "base/crypto/sign.h"

#include "base/memory.h"
#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct sign_random *randomness;
    const char *why = NULL;
    unsigned char digest[DIGEST_SIZE] = {1}, signature[SIGN_SIZE_MAX];
    size_t length = 0;
    struct buffer public;
    if (randomness == NULL)
        randomness = sign_random_new();
    if (size > SIGN_FILE_MAX)
        return 0;
    /* On the heap: a read behind it is found. */
    char *content = text_string(text_of(data, size));
    struct sign_key *key = sign_key_read(randomness, text_of(content, size), &why);
    must((key == NULL) == (why != NULL));
    free(content);
    if (key == NULL)
        return 0;
    buffer_init(&public, SIGN_PUBLIC_MAX);
    must(sign_digest(key, digest, signature, &length) && length <= SIGN_SIZE_MAX);
    must(sign_key_bits(key) <= SIGN_BITS_MAX);
    must(sign_key_public(key, &public) && public.length > 0);
    buffer_free(&public);
    sign_key_free(&key);
    return 0;
}
