/* Writes display names so that no header parser stumbles over them. */
#include "admin/sendmail/display_name.h"

#include <string.h>

enum { ENCODED_MAX = 75 /* RFC 2047 §2 */ };

#define ENCODED_START TEXT("=?UTF-8?Q?")
#define ENCODED_END   TEXT("?=")

/* Drops controls and bytes that are not UTF-8; at most sizeof(clean) bytes, no half
 * character. */
static struct text
clean_up(struct text name, char clean[DISPLAY_NAME_SOURCE_MAX])
{
    size_t length = 0;
    while (name.length > 0) {
        uint32_t code = 0;
        size_t size = text_character(name, &code);
        bool control = size > 0 && (code < 0x20 || (code >= 0x7f && code < 0xa0));
        const char *from = size > 0 ? name.at : "?";
        size_t count = size > 0 ? size : 1;
        if (!control && length + count > DISPLAY_NAME_SOURCE_MAX)
            break;
        if (!control) {
            memcpy(clean + length, from, count);
            length += count;
        }
        name = text_after(name, count);
    }
    return text_trim(text_of(clean, length));
}

static bool
display_name_is_plain(char c)
{
    return c != '\0' &&
           strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "
                  "!#$%&'*+-/=?^_`{|}~",
                  c) != NULL;
}

static bool
write_ascii(struct text name, struct buffer *out)
{
    bool plain = true, good = true;
    for (size_t i = 0; i < name.length; i++)
        plain = plain && display_name_is_plain(name.at[i]);
    /* Text that looks like an encoded word would be decoded. */
    plain = plain && !text_starts(name, TEXT("=?"));
    if (plain)
        return buffer_add(out, name);
    good = buffer_add_byte(out, '"');
    for (size_t i = 0; i < name.length && good; i++) {
        if (name.at[i] == '"' || name.at[i] == '\\')
            good = buffer_add_byte(out, '\\');
        good = good && buffer_add_byte(out, name.at[i]);
    }
    return good && buffer_add_byte(out, '"');
}

/* One character in the Q encoding; its length. */
static size_t
display_name_encode(struct text character, char coded[16])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t length = 0;
    for (size_t i = 0; i < character.length; i++) {
        unsigned char c = (unsigned char)character.at[i];
        bool safe = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (safe || c == ' ') {
            coded[length++] = c == ' ' ? '_' : (char)c;
        } else {
            coded[length++] = '=';
            coded[length++] = digits[c >> 4];
            coded[length++] = digits[c & 15];
        }
    }
    return length;
}

static bool
write_encoded(struct text name, struct buffer *out)
{
    char coded[16];
    size_t column = ENCODED_START.length + ENCODED_END.length;
    bool good = buffer_add(out, ENCODED_START);
    while (good && name.length > 0) {
        uint32_t code;
        size_t size = text_character(name, &code);
        size_t length = display_name_encode(text_before(name, size), coded);
        if (column + length > ENCODED_MAX) {
            good = buffer_add(out, ENCODED_END) && buffer_add(out, TEXT("\r\n ")) &&
                   buffer_add(out, ENCODED_START);
            column = ENCODED_START.length + ENCODED_END.length;
        }
        good = good && buffer_add(out, text_of(coded, length));
        column += length;
        name = text_after(name, size);
    }
    return good && buffer_add(out, ENCODED_END);
}

bool
display_name_write(struct text name, struct buffer *out)
{
    char clean[DISPLAY_NAME_SOURCE_MAX];
    size_t start = out->length;
    struct text good = clean_up(name, clean);
    bool written = text_is_ascii(good) ? good.length == 0 || write_ascii(good, out)
                                       : write_encoded(good, out);
    if (!written)
        out->length = start;
    return written;
}

bool
display_name_from_gecos(struct text gecos, struct text login, struct buffer *out)
{
    struct text full = text_before(gecos, text_find(gecos, ','));
    for (size_t i = 0; i < full.length; i++) {
        bool good = full.at[i] == '&' ? buffer_add(out, login)
                                      : buffer_add_byte(out, full.at[i]);
        if (!good)
            return false;
        if (full.at[i] == '&' && login.length > 0) {
            char *first = out->at + out->length - login.length;
            if (*first >= 'a' && *first <= 'z')
                *first = (char)(*first - 'a' + 'A');
        }
    }
    return true;
}
