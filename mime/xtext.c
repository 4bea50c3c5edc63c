/* Reads and writes xtext (RFC 3461 §4): any byte, in printable ASCII. */
#include "mime/address.h"

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

/* xchar: what stands for itself. */
static bool
is_plain(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != '+' && c != '=';
}

static bool
read_all(struct text t, struct buffer *out)
{
    for (size_t at = 0; at < t.length; at++) {
        unsigned char c = (unsigned char)t.at[at];
        if (c == '+') {
            if (t.length - at < 3)
                return false;
            int high = hex_value(t.at[at + 1]), low = hex_value(t.at[at + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (unsigned char)(high * 16 + low);
            /* Checked after decoding: a line end in here would become one on disk, in a
             * command or in a report. */
            if (c < ' ' || c == 0x7f)
                return false;
            at += 2;
        } else if (!is_plain(c)) {
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
        if (!(is_plain(c) ? buffer_add_byte(out, (char)c)
                          : buffer_format(out, "+%02X", c)))
            return false;
    }
    return true;
}

bool
address_read_xtext(struct text t, struct buffer *out)
{
    size_t length = out->length;
    bool good = read_all(t, out);
    if (!good)
        out->length = length;
    return good;
}

bool
address_write_xtext(struct text t, struct buffer *out)
{
    size_t length = out->length;
    bool good = write_all(t, out);
    if (!good)
        out->length = length;
    return good;
}
