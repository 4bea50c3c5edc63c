/* xtext (RFC 3461 §4): any byte in printable ASCII; and the same for UTF-8 (RFC 6533
 * §3). */
#include "mime/address.h"

/* xchar: bytes that are not encoded. */
static bool
xtext_is_plain(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '+' && c != '=';
}

/* A failure leaves out unchanged: callers append to a buffer that they keep. */
static bool
xtext_read_all(struct text t, struct buffer *out)
{
    for (size_t at = 0; at < t.length; at++) {
        unsigned char c = (unsigned char)t.at[at];
        if (c == '+') {
            if (t.length - at < 3)
                return false;
            /* RFC 3461 §4 has upper case only; lower case is read, too. */
            int high = text_hex_digit(t.at[at + 1]), low = text_hex_digit(t.at[at + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (unsigned char)(high * 16 + low);
            /* Checked after decoding: a decoded line end would become a real one on
             * disk, in a command or in a report. */
            if (c < ' ' || c == 0x7f)
                return false;
            at += 2;
        } else if (!xtext_is_plain(c)) {
            return false;
        }
        if (!buffer_add_byte(out, (char)c))
            return false;
    }
    return true;
}

static bool
write_all(struct text t, struct buffer *out)
{
    for (size_t at = 0; at < t.length; at++) {
        unsigned char c = (unsigned char)t.at[at];
        if (!(xtext_is_plain(c) ? buffer_add_byte(out, (char)c)
                                : buffer_format(out, "+%02X", c)))
            return false;
    }
    return true;
}

/* The first character of well-formed UTF-8, and its length. */
static uint32_t
character_at(struct text t, size_t at, size_t *length)
{
    unsigned char first = (unsigned char)t.at[at];
    *length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (*length == 1)
        return first;
    uint32_t character = first & (0x7fU >> *length);
    for (size_t i = 1; i < *length; i++)
        character = character << 6 | ((unsigned char)t.at[at + i] & 0x3fU);
    return character;
}

/* plain(): ASCII bytes that are not encoded. raw: non-ASCII characters stay, as in
 * unitext. UTF-8 is checked first, so that character_at() stays within t. */
static bool
write_characters(struct text t, bool (*plain)(unsigned char c), bool raw,
                 struct buffer *out)
{
    size_t before = out->length, length;
    if (!text_is_utf8(t))
        return false;
    for (size_t at = 0; at < t.length; at += length) {
        uint32_t character = character_at(t, at, &length);
        bool stays = length > 1 ? raw : plain((unsigned char)character);
        if (!(stays ? buffer_add(out, text_of(t.at + at, length))
                    : buffer_format(out, "\\x{%X}", (unsigned)character))) {
            out->length = before;
            return false;
        }
    }
    return true;
}

/* QUCHAR of RFC 6533 §3. */
static bool
is_plain_unitext(unsigned char c)
{
    return xtext_is_plain(c) && c != '\\';
}

static bool
is_ascii(unsigned char c)
{
    return c < 0x80;
}

bool
xtext_write_unitext(struct text t, struct buffer *out)
{
    return write_characters(t, is_plain_unitext, true, out);
}

bool
xtext_write_utf8(struct text unitext, struct buffer *out)
{
    return write_characters(unitext, is_ascii, false, out);
}

bool
xtext_read(struct text t, struct buffer *out)
{
    size_t length = out->length;
    bool good = xtext_read_all(t, out);
    if (!good)
        out->length = length;
    return good;
}

bool
xtext_write(struct text t, struct buffer *out)
{
    size_t length = out->length;
    bool good = write_all(t, out);
    if (!good)
        out->length = length;
    return good;
}
