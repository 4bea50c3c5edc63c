/* Fuzz target: encoded-words, parameters and encoded bodies. The output is UTF-8 where
 * the input was; our encoded text is read back, for any cut into words; a limit changes
 * nothing but whether there is a result. */
#include "mime/word.h"

#include "base/crypto/base64.h"
#include "mime/decode.h"
#include "mime/header.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 22 };

/* --- Any bytes as the value of a field */

static bool
has_mark(struct text t)
{
    for (size_t at = 0; at + 1 < t.length; at++)
        if (t.at[at] == '=' && t.at[at + 1] == '?')
            return true;
    return false;
}

static void
check_limit(struct text value, struct text whole, unsigned problems, size_t limit)
{
    struct buffer out;
    unsigned got = 0;
    buffer_init(&out, limit);
    bool good = word_decode(value, &out, &got);
    must(good || out.length == 0);
    must(!good || (text_equal(buffer_text(&out), whole) && got == problems));
    must(good || limit < whole.length + 8);
    buffer_free(&out);
}

static void
check_field(struct text value, size_t limit)
{
    struct buffer out, unfolded;
    unsigned problems = 0;
    buffer_init(&out, OUT_MAX);
    buffer_init(&unfolded, value.length);
    must(header_unfold(value, &unfolded));
    struct text plain = buffer_text(&unfolded);
    must(word_decode(value, &out, &problems));
    must(problems < 1u << WORD_PROBLEMS);
    must(((problems & 1u << WORD_RAW) == 0) == text_is_utf8(plain));
    must(!text_is_utf8(plain) || text_is_utf8(buffer_text(&out)));
    must(has_mark(plain) || text_equal(buffer_text(&out), plain));
    check_limit(value, buffer_text(&out), problems, limit);
    check_limit(value, buffer_text(&out), problems, out.length + 8);
    buffer_free(&unfolded);
    buffer_free(&out);
}

/* --- Any bytes as parameters */

static void
check_parameters(struct text value)
{
    struct parameters p = {.broken = false};
    parameters_read(&p, value);
    for (size_t i = 0; i < p.count; i++) {
        struct buffer out;
        unsigned problems = 0;
        buffer_init(&out, OUT_MAX);
        must(word_decode_parameter(&p.list[i], &out, &problems));
        must((problems & 1u << WORD_RAW) != 0 || text_is_utf8(buffer_text(&out)));
        buffer_free(&out);
    }
    parameters_free(&p);
}

/* --- Text that is encoded here, cut where the bytes say */

static void
put_word(struct buffer *to, struct text piece, bool base64, const char *charset)
{
    must(buffer_format(to, "%s=?%s?%c?", to->length > 0 ? "\r\n " : "", charset,
                       base64 ? 'b' : 'Q'));
    if (base64) {
        must(base64_encode(piece, to));
    } else {
        for (size_t i = 0; i < piece.length; i++)
            must(buffer_format(to, "=%02X", (unsigned char)piece.at[i]));
    }
    must(buffer_add(to, TEXT("?=")));
}

static void
check_back(struct text content, unsigned cut)
{
    struct buffer words, out;
    unsigned problems = 0;
    bool is_utf8 = text_is_utf8(content);
    const char *charset = is_utf8 ? "UTF-8*en" : "iso-8859-1";
    buffer_init(&words, OUT_MAX);
    buffer_init(&out, OUT_MAX);
    for (struct text t = content; t.length > 0;) {
        size_t length = (unsigned char)t.at[0] % (cut + 1) + 1;
        struct text piece = text_before(t, length);
        put_word(&words, piece, (unsigned char)t.at[0] % 3 == 0, charset);
        t = text_after(t, length);
    }
    must(word_decode(buffer_text(&words), &out, &problems));
    must((problems & ~(1u << WORD_CARELESS | 1u << WORD_LONG | 1u << WORD_CONTROL)) == 0);
    if (is_utf8) {
        must(text_equal(buffer_text(&out), content));
    } else { /* each byte is a code point */
        size_t characters = 0;
        for (size_t i = 0; i < out.length; i++)
            characters += ((unsigned char)out.at[i] & 0xc0) != 0x80;
        must(characters == content.length && text_is_utf8(buffer_text(&out)));
    }
    buffer_free(&words);
    buffer_free(&out);
}

/* --- Bodies */

static void
keep(void *context, struct text bytes)
{
    must(bytes.length > 0 && buffer_add(context, bytes));
}

static struct buffer
decoded(struct text coded, enum structure_encoding encoding, size_t piece,
        struct decode *d)
{
    struct buffer out;
    buffer_init(&out, OUT_MAX);
    decode_start(d, encoding, keep, &out);
    for (; coded.length > 0; coded = text_after(coded, piece))
        decode_add(d, text_before(coded, piece));
    decode_end(d);
    must(d->size == out.length && d->problems < 1u << DECODE_PROBLEMS);
    return out;
}

static void
check_body(struct text coded, enum structure_encoding encoding, size_t piece)
{
    struct decode one, other;
    struct buffer whole = decoded(coded, encoding, coded.length + 1, &one);
    struct buffer cut = decoded(coded, encoding, piece, &other);
    must(text_equal(buffer_text(&whole), buffer_text(&cut)));
    must(one.problems == other.problems && whole.length <= coded.length);
    buffer_free(&cut);
    if (encoding == ENCODING_BASE64) { /* where the strict reader reads, so do we */
        char *strict = malloc(coded.length + 1);
        size_t length;
        if (base64_decode(coded, strict, coded.length + 1, &length))
            must((one.problems & ~(1u << DECODE_LONG_LINE)) == 0 &&
                 text_equal(buffer_text(&whole), text_of(strict, length)));
        free(strict);
    }
    buffer_free(&whole);
}

/* The first byte chooses, the second cuts. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    /* Exactly so many bytes: a read behind them is found. */
    struct text content = {malloc(size - 2), size - 2};
    must(content.at != NULL);
    for (size_t i = 0; i < content.length; i++)
        ((char *)content.at)[i] = (char)data[2 + i];
    switch (data[0] % 5) {
    case 0:
        check_field(content, data[1]);
        break;
    case 1:
        check_parameters(content);
        break;
    case 2:
        check_back(content, data[1]);
        break;
    case 3:
        check_body(content, ENCODING_BASE64, data[1] % 32u + 1);
        break;
    default:
        check_body(content, ENCODING_QUOTED, data[1] % 32u + 1);
        break;
    }
    free((char *)content.at);
    return 0;
}
