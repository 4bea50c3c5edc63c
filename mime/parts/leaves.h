/* The leaves of a message: where each is, and what it is, for a reader that takes them out.
 *
 * Pure. One pass over the content in pieces; then the owner reads bytes [from, to) of a
 * leaf as often as it likes. A message within the message is one leaf. What cannot be
 * parsed (structure.h) is a leaf with its bytes as they are, so that nothing is lost. */
#ifndef MIME_PARTS_LEAVES_H
#define MIME_PARTS_LEAVES_H

#include "base/buffer.h"
#include "mime/parts/structure.h"

enum {
    LEAVES_MAX = 100,     /* further ones are counted alone */
    LEAVES_TEXT_MAX = 255 /* bytes of a type, a name ...; more are cut off */
};

/* LEAF_TEXT, LEAF_PAGE: the first text/plain and the first text/html that is no file and
 * whose charset is known here. */
enum leaf_role { LEAF_FILE, LEAF_TEXT, LEAF_PAGE };
enum leaf_charset {
    LEAF_UTF8 /* and ASCII */,
    LEAF_LATIN /* windows-1252 */,
    LEAF_OTHER
};

struct leaf {
    enum leaf_role role;
    enum leaf_charset charset;
    enum structure_encoding encoding;
    bool is_inline;
    uint64_t from, to;
    size_t type, name, id, charset_name; /* in texts: strings, perhaps empty */
};
struct leaves {
    struct leaf list[LEAVES_MAX];
    size_t count, omitted;
    struct buffer texts;
    /* Private to leaves.c: */
    struct structure *structure;
    unsigned message;      /* 1 + the number of the message that is one leaf; 0: none */
    struct leaf under_way; /* its header is being read */
    bool has_text, has_page;
};
void leaves_begin(struct leaves *l);
void leaves_add(struct leaves *l, struct text piece);
void leaves_end(struct leaves *l);
void leaves_free(struct leaves *l);
/* One of a leaf's texts. */
struct text leaves_text(const struct leaves *l, size_t at);

enum leaf_charset leaves_charset(struct text name);
/* One byte of LEAF_LATIN as UTF-8; the number of bytes, 1 to 3. */
size_t leaves_from_latin(unsigned char byte, char out[4]);
/* Decodes encoded words (RFC 2047) of these charsets; others stay as they are. Cut at out's
 * limit. */
void leaves_decode_words(struct text value, struct buffer *out);

#endif
