/* Tags texts by NH under Poly1305. */
#include "base/tag.h"

#include "base/memory.h"

#include <assert.h>
#include <mbedtls/poly1305.h>
#include <stdlib.h>
#include <string.h>

struct tag {
    const struct tag_key *key;
    uint64_t length;
    size_t held; /* bytes of the last block */
    unsigned char block[TAG_BLOCK];
    mbedtls_poly1305_context outer;
};

static void
add_outer(struct tag *t, const uint64_t *at, size_t size)
{
    int error = mbedtls_poly1305_update(&t->outer, (const unsigned char *)at, size);
    assert(error == 0);
}

/* The second pass has the same words of the key, two further: RFC 4418 §5.2. */
static void
add_block(struct tag *t, const void *at)
{
    const uint32_t *key = t->key->words;
    const char *block = at;
    uint64_t sums[2] = {0, 0};
    for (size_t i = 0; i < TAG_WORDS; i += 2) {
        uint32_t pair[2]; /* in this machine's order: nobody else sees it */
        memcpy(pair, block + i * sizeof(pair[0]), sizeof(pair));
        sums[0] += (uint64_t)(pair[0] + key[i]) * (pair[1] + key[i + 1]);
        sums[1] += (uint64_t)(pair[0] + key[i + 2]) * (pair[1] + key[i + 3]);
    }
    add_outer(t, sums, sizeof(sums));
}

struct tag *
tag_new(const struct tag_key *key)
{
    struct tag *t = memory_new(sizeof(*t));
    t->key = key;
    mbedtls_poly1305_init(&t->outer);
    int error = mbedtls_poly1305_starts(&t->outer, key->outer);
    assert(error == 0);
    return t;
}

static struct text
fill_block(struct tag *t, struct text piece)
{
    struct text some = text_before(piece, TAG_BLOCK - t->held);
    memcpy(t->block + t->held, some.at, some.length);
    t->held += some.length;
    if (t->held == TAG_BLOCK) {
        add_block(t, t->block);
        t->held = 0;
    }
    return text_after(piece, some.length);
}

void
tag_add(struct tag *t, struct text piece)
{
    t->length += piece.length;
    if (t->held > 0)
        piece = fill_block(t, piece);
    for (; piece.length >= TAG_BLOCK; piece = text_after(piece, TAG_BLOCK))
        add_block(t, piece.at);
    if (piece.length > 0)
        (void)fill_block(t, piece);
}

/* The length tells the zeros behind the text from zeros of the text. */
void
tag_end(struct tag **tag, unsigned char out[TAG_SIZE])
{
    unsigned char unwanted[TAG_SIZE];
    struct tag *t = *tag;
    if (t == NULL)
        return;
    *tag = NULL;
    if (t->held > 0) {
        memset(t->block + t->held, 0, TAG_BLOCK - t->held);
        add_block(t, t->block);
    }
    add_outer(t, &t->length, sizeof(t->length));
    int error = mbedtls_poly1305_finish(&t->outer, out != NULL ? out : unwanted);
    assert(error == 0);
    mbedtls_poly1305_free(&t->outer); /* wipes */
    free(t);
}
