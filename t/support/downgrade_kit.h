/* Conversion checked from outside: what was decoded before must be decoded after. */
#ifndef T_SUPPORT_DOWNGRADE_KIT_H
#define T_SUPPORT_DOWNGRADE_KIT_H

#include "mime/parts/downgrade.h"
#include "mime/parts/structure.h"

#include "base/crypto/base64.h"
#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIT_SIZE_MAX = 1 << 28 };

void kit_put(struct buffer *b, struct text bytes);

/* Strict: what is not as RFC 2045 §6.7 says ends the program. */
void kit_decode_quoted(struct text t, struct buffer *out);

void kit_decode_base64(struct text t, struct buffer *out);

/* The message as a reader gets it. */
struct reading {
    struct buffer out, body;
    struct buffer encodings;        /* of each body, a byte each */
    const struct reading *original; /* NULL: this is it */
    bool whole; /* inside a message/global: all bytes are its body */
    unsigned number;
    enum structure_encoding encoding;
};

/* Bodies as a reader gets them, with fields, types and nesting. */
void downgrade_kit_reading(struct reading *r, struct text content, const struct reading *original);

/* --- Promises */

bool kit_is_clean(struct text t, bool may_8bit);

void kit_write(void *context, struct text bytes);

struct conversion {
    enum downgrade_verdict verdict;
    enum downgrade_reason reason;
    bool dkim;
    uint64_t size_max;
    struct buffer out; /* when CONVERTIBLE */
};

/* Pieces of `piece` bytes, the first of `first`; 0: as the others. The caller frees out.
 */
struct conversion kit_convert(struct text content, const struct downgrade_way *way, size_t first, size_t piece);

/* Whether a reader gets all of `before` from `after`. */
bool kit_is_same_reading(struct text before, struct text after, bool from_binary);

#endif
