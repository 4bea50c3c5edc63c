/* Both decoders are machines over single bytes: what is undecided at the end of a piece is
 * in struct decode. */
#include "mime/parts/decode.h"

enum {
    ESCAPE_NONE,
    ESCAPE_EQUALS,  /* '=' */
    ESCAPE_DIGIT,   /* '=' and a digit */
    ESCAPE_LINE_END /* '=', white space or CR: the end of a line */
};

static void
decode_put(struct decode *d, unsigned byte)
{
    if (d->used == sizeof(d->chunk)) {
        d->write(d->context, text_of(d->chunk, d->used));
        d->used = 0;
    }
    d->chunk[d->used++] = (char)(unsigned char)byte;
}

/* --- base64 ------------------------------------------------------------------------ */

int
decode_base64_digit(char c)
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

/* The whole bytes of up to four digits. */
static void
decode_put_digits(struct decode *d)
{
    unsigned whole = d->digits * 6 / 8, lost = d->digits * 6 % 8;
    for (unsigned i = whole; i-- > 0;)
        decode_put(d, (d->bits >> lost) >> (8 * i) & 0xff);
    d->digits = 0;
    d->bits = 0;
}

/* RFC 2045 §6.8: bytes outside the alphabet are ignored. */
static void
decode_take_base64(struct decode *d, char c)
{
    int digit = decode_base64_digit(c);
    if (c == '=')
        d->ended = true;
    if (d->ended || digit < 0)
        return;
    d->bits = d->bits << 6 | (unsigned)digit;
    if (++d->digits == 4)
        decode_put_digits(d);
}

/* --- quoted-printable -------------------------------------------------------------- */

static void
decode_put_blanks(struct decode *d)
{
    for (size_t i = 0; i < d->blanks_length; i++)
        decode_put(d, (unsigned char)d->blanks[i]);
    d->blanks_length = 0;
}

static void
decode_take_plain(struct decode *d, char c)
{
    if (text_is_blank(c) && d->blanks_length < sizeof(d->blanks)) {
        d->blanks[d->blanks_length++] = c; /* dropped if it ends the line */
        return;
    }
    if (c == '\r' || c == '\n')
        d->blanks_length = 0;
    decode_put_blanks(d);
    if (c == '=')
        d->escape = ESCAPE_EQUALS;
    else
        decode_put(d, (unsigned char)c);
}

static void
decode_take_quoted(struct decode *d, char c)
{
    unsigned char before = d->escape;
    d->escape = ESCAPE_NONE;
    if (before == ESCAPE_NONE) {
        decode_take_plain(d, c);
    } else if (before == ESCAPE_DIGIT && text_hex_digit(c) >= 0) {
        decode_put(d, (unsigned)(text_hex_digit(d->first) * 16 + text_hex_digit(c)));
    } else if (before == ESCAPE_EQUALS && text_hex_digit(c) >= 0) {
        d->first = c;
        d->escape = ESCAPE_DIGIT;
    } else if (before != ESCAPE_DIGIT && c == '\n') {
        return;
    } else if (before != ESCAPE_DIGIT && (c == '\r' || text_is_blank(c))) {
        d->escape = ESCAPE_LINE_END;
    } else { /* no escape */
        decode_put(d, '=');
        if (before == ESCAPE_DIGIT)
            decode_put(d, (unsigned char)d->first);
        decode_take_plain(d, c);
    }
}

/* ----------------------------------------------------------------------------------- */

void
decode_start(struct decode *d, enum structure_encoding encoding,
             void (*write)(void *context, struct text bytes), void *context)
{
    *d = (struct decode){.write = write, .context = context, .encoding = encoding};
}

void
decode_add(struct decode *d, struct text bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        if (d->encoding == ENCODING_BASE64)
            decode_take_base64(d, bytes.at[i]);
        else if (d->encoding == ENCODING_QUOTED)
            decode_take_quoted(d, bytes.at[i]);
        else
            decode_put(d, (unsigned char)bytes.at[i]);
    }
}

void
decode_end(struct decode *d)
{
    if (d->digits > 0)
        decode_put_digits(d); /* a truncated body keeps what its digits make */
    decode_put_blanks(d);
    if (d->escape == ESCAPE_DIGIT || d->escape == ESCAPE_EQUALS)
        decode_put(d, '=');
    if (d->escape == ESCAPE_DIGIT)
        decode_put(d, (unsigned char)d->first);
    if (d->used > 0)
        d->write(d->context, text_of(d->chunk, d->used));
    d->used = 0;
}
