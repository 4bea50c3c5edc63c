/* Decodes the bodies of parts, valid or not.
 *
 * Both decoders are state machines over single bytes. All that is undecided at the end
 * of a piece (base64 digits, an escape, white space that may end the line) is in struct
 * decode, so the result does not depend on how the input is split. */
#include "mime/decode.h"

#include <assert.h>
#include <string.h>

enum escape {
    ESCAPE_NONE,
    ESCAPE_CR,       /* a CR that may end the line */
    ESCAPE_EQUALS,   /* '=' */
    ESCAPE_DIGIT,    /* '=' and a digit */
    ESCAPE_BLANK,    /* '=' and white space: the end of a line, or an error */
    ESCAPE_EQUALS_CR /* '=', perhaps white space, CR */
};

static void
decode_note(struct decode *d, enum decode_problem problem)
{
    d->problems |= 1u << problem;
}

static void
decode_flush(struct decode *d)
{
    if (d->used > 0 && d->write != NULL)
        d->write(d->context, text_of(d->chunk, d->used));
    d->used = 0;
}

static void
decode_put(struct decode *d, unsigned byte)
{
    if (d->used == sizeof(d->chunk))
        decode_flush(d);
    d->chunk[d->used++] = (char)(unsigned char)byte;
    d->size++;
}

/* The CR of a line end counts towards the limit, which allows for it. */
static void
decode_measure(struct decode *d, char c)
{
    d->column = c == '\n' ? 0 : d->column + 1;
    if (d->column > DECODE_LINE_MAX + 1 || (d->column > DECODE_LINE_MAX && c != '\r'))
        decode_note(d, DECODE_LONG_LINE);
}

/* --- base64 */

/* 0 to 63, or -1. */
static int
digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (text_is_digit(c))
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

/* The bytes of up to four digits; unused bits must be zero. */
static void
put_digits(struct decode *d)
{
    unsigned whole = d->digits * 6 / 8, lost = d->digits * 6 % 8;
    if (d->digits == 1 || (d->bits & ((1u << lost) - 1)) != 0)
        decode_note(d, DECODE_PADDING);
    for (unsigned i = whole; i-- > 0;)
        decode_put(d, (d->bits >> lost) >> (8 * i) & 0xff);
    d->digits = 0;
    d->bits = 0;
}

/* The first '=' ends the data. In the last group of four places, `digits` and this '='
 * are taken; the others are still to come. */
static void
take_padding(struct decode *d)
{
    if (d->padding > 0) {
        d->padding--;
    } else if (!d->ended && d->digits >= 2) {
        d->padding = 3 - d->digits;
        d->ended = true;
        put_digits(d);
    } else {
        decode_note(d, DECODE_PADDING);
    }
}

/* RFC 2045 §6.8: a decoder must ignore all bytes that are not in the alphabet. Line
 * ends and white space are usual; the others are reported, too. */
static void
take_base64(struct decode *d, char c)
{
    int digit = digit_of(c);
    decode_measure(d, c);
    if (text_is_blank(c) || c == '\r' || c == '\n')
        return;
    if (c == '=') {
        take_padding(d);
    } else if (d->ended) {
        decode_note(d, DECODE_BEHIND);
    } else if (digit < 0) {
        decode_note(d, DECODE_FOREIGN);
    } else {
        d->bits = d->bits << 6 | (unsigned)digit;
        if (++d->digits == 4)
            put_digits(d);
    }
}

/* A truncated body keeps its last bytes, as far as the digits make some. */
static void
end_base64(struct decode *d)
{
    if (d->digits > 0 || d->padding > 0)
        decode_note(d, DECODE_PADDING);
    if (d->digits > 0)
        put_digits(d);
}

/* --- quoted-printable */

static void
put_blanks(struct decode *d)
{
    for (size_t i = 0; i < d->blanks_length; i++)
        decode_put(d, (unsigned char)d->blanks[i]);
    d->blanks_length = 0;
}

/* White space waits for the byte that follows: before a line end it is dropped. False:
 * no space is left, so the bytes are text now. Without a bound, a body of white space
 * would be held in memory. */
static bool
keep_blank(struct decode *d, char c)
{
    if (d->blanks_length == sizeof(d->blanks))
        return false;
    d->blanks[d->blanks_length++] = c;
    return true;
}

/* Not an escape: its bytes are text. RFC 2045 §6.7 recommends this for a robust
 * decoder. */
static void
put_escape(struct decode *d)
{
    decode_note(d, DECODE_ESCAPE);
    decode_put(d, '=');
    if (d->escape == ESCAPE_DIGIT)
        decode_put(d, (unsigned char)d->first);
    put_blanks(d);
    if (d->escape == ESCAPE_EQUALS_CR)
        decode_put(d, '\r');
    d->escape = ESCAPE_NONE;
}

static void
take_plain(struct decode *d, char c)
{
    if (c == '\r') {
        d->escape = ESCAPE_CR;
    } else if (c == '\n') {
        /* White space before a line end was added in transport: §6.7 (3). */
        d->blanks_length = 0;
        decode_put(d, '\n');
    } else if (!text_is_blank(c) || !keep_blank(d, c)) {
        put_blanks(d);
        if (c == '=') {
            d->escape = ESCAPE_EQUALS;
            return;
        }
        if (!text_is_blank(c) && ((unsigned char)c <= ' ' || (unsigned char)c >= 0x7f))
            decode_note(d, DECODE_RAW);
        decode_put(d, (unsigned char)c);
    }
}

/* Handles c if an escape or a CR is open. False: c is not part of it and must be
 * handled as plain. Between '=' and its line end white space is allowed, because
 * transports add it (RFC 2045 §6.7 (3)). */
static bool
take_escape(struct decode *d, char c)
{
    switch ((enum escape)d->escape) {
    case ESCAPE_NONE:
        return false;
    case ESCAPE_CR:
        d->escape = ESCAPE_NONE;
        if (c != '\n') {
            decode_note(d, DECODE_RAW);
            put_blanks(d);
        }
        d->blanks_length = 0;
        decode_put(d, '\r');
        if (c == '\n')
            decode_put(d, '\n');
        return c == '\n';
    case ESCAPE_DIGIT:
        if (text_hex_digit(c) < 0)
            break;
        decode_put(d, (unsigned)(text_hex_digit(d->first) * 16 + text_hex_digit(c)));
        d->escape = ESCAPE_NONE;
        return true;
    case ESCAPE_EQUALS:
        d->first = c;
        if (text_hex_digit(c) >= 0) {
            d->escape = ESCAPE_DIGIT;
            return true;
        }
        /* fall through */
    case ESCAPE_BLANK:
        if (text_is_blank(c) && keep_blank(d, c)) {
            d->escape = ESCAPE_BLANK;
            return true;
        }
        if (c == '\r') {
            d->escape = ESCAPE_EQUALS_CR;
            return true;
        }
        /* fall through */
    case ESCAPE_EQUALS_CR:
        if (c != '\n')
            break;
        d->escape = ESCAPE_NONE; /* the line goes on */
        d->blanks_length = 0;
        return true;
    }
    put_escape(d);
    return false;
}

static void
take_quoted(struct decode *d, char c)
{
    decode_measure(d, c);
    if (!take_escape(d, c))
        take_plain(d, c);
}

/* The last line end may belong to the delimiter: a final '=' counts as a soft line
 * break. */
static void
end_quoted(struct decode *d)
{
    if (d->escape == ESCAPE_DIGIT)
        put_escape(d);
    if (d->escape == ESCAPE_CR) {
        decode_note(d, DECODE_RAW);
        put_blanks(d);
        decode_put(d, '\r');
    }
}

/* --- Public functions */

/* Only base64 and quoted-printable are decoded. An unknown encoding is passed through,
 * as there is no better reading of it. */
void
decode_start(struct decode *d, enum structure_encoding encoding,
             void (*write)(void *context, struct text bytes), void *context)
{
    memset(d, 0, sizeof(*d));
    d->encoding = encoding;
    d->write = write;
    d->context = context;
}

void
decode_add(struct decode *d, struct text bytes)
{
    if (d->encoding == ENCODING_BASE64) {
        for (size_t i = 0; i < bytes.length; i++)
            take_base64(d, bytes.at[i]);
    } else if (d->encoding == ENCODING_QUOTED) {
        for (size_t i = 0; i < bytes.length; i++)
            take_quoted(d, bytes.at[i]);
    } else {
        d->size += bytes.length;
        if (bytes.length > 0 && d->write != NULL)
            d->write(d->context, bytes);
    }
}

void
decode_end(struct decode *d)
{
    if (d->encoding == ENCODING_BASE64)
        end_base64(d);
    else if (d->encoding == ENCODING_QUOTED)
        end_quoted(d);
    decode_flush(d);
    assert(d->digits == 0);
}

const char *
decode_problem_text(enum decode_problem problem)
{
    static const char *const texts[] = {
        [DECODE_FOREIGN] = "base64 with bytes that mean nothing in it",
        [DECODE_PADDING] = "base64 is not padded as it should be",
        [DECODE_BEHIND] = "base64 goes on behind its end",
        [DECODE_ESCAPE] = "quoted-printable with '=' that is no escape",
        [DECODE_RAW] = "quoted-printable with bytes that need encoding",
        [DECODE_LONG_LINE] = "encoded lines are too long"};
    assert(problem < DECODE_PROBLEMS);
    return texts[problem];
}
