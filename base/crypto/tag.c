/* Tags texts by mbedTLS's Poly1305. */
#include "base/crypto/tag.h"

#include "base/memory.h"

#include <assert.h>
#include <mbedtls/poly1305.h>
#include <stdlib.h>

struct tag {
    mbedtls_poly1305_context context;
};

struct tag *
tag_new(const struct tag_key *key)
{
    struct tag *t = memory_new(sizeof(*t));
    mbedtls_poly1305_init(&t->context);
    int error = mbedtls_poly1305_starts(&t->context, key->bytes);
    assert(error == 0);
    return t;
}

void
tag_add(struct tag *t, struct text piece)
{
    if (piece.length == 0)
        return;
    int error = mbedtls_poly1305_update(&t->context, (const unsigned char *)piece.at,
                                        piece.length);
    assert(error == 0);
}

void
tag_end(struct tag **t, unsigned char out[TAG_SIZE])
{
    unsigned char unwanted[TAG_SIZE];
    if (*t == NULL)
        return;
    int error = mbedtls_poly1305_finish(&(*t)->context, out != NULL ? out : unwanted);
    assert(error == 0);
    mbedtls_poly1305_free(&(*t)->context); /* wipes */
    free(*t);
    *t = NULL;
}
