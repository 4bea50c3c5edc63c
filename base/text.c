/* Borrowed slices of bytes: compare, find, cut, copy and validate. */
#include "base/text.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

/* For each lead byte: the number of continuation bytes, and the range of the first of
 * them. RFC 3629 §4; the range excludes overlongs, surrogates and code points above
 * U+10FFFF. */
struct utf8_lead {
    unsigned char first, last, length, low, high;
};

static const struct utf8_lead utf8_leads[] = {
    {0x00, 0x7f, 1, 0,    0   },
    {0xc2, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f},
    {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f},
};

static unsigned char
fold(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

struct text
text_from(const char *string)
{
    return string == NULL ? TEXT("") : text_of(string, strlen(string));
}

bool
text_equal(struct text a, struct text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

int
text_compare(struct text a, struct text b)
{
    size_t common = a.length < b.length ? a.length : b.length;
    int order = common == 0 ? 0 : memcmp(a.at, b.at, common);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

bool
text_equal_nocase(struct text a, struct text b)
{
    if (a.length != b.length)
        return false;
    for (size_t i = 0; i < a.length; i++)
        if (fold(a.at[i]) != fold(b.at[i]))
            return false;
    return true;
}

bool
text_starts(struct text t, struct text prefix)
{
    return t.length >= prefix.length &&
           text_equal(text_before(t, prefix.length), prefix);
}

bool
text_starts_nocase(struct text t, struct text prefix)
{
    return t.length >= prefix.length &&
           text_equal_nocase(text_before(t, prefix.length), prefix);
}

bool
text_ends_nocase(struct text t, struct text suffix)
{
    return t.length >= suffix.length &&
           text_equal_nocase(text_after(t, t.length - suffix.length), suffix);
}

size_t
text_find(struct text t, char c)
{
    const char *found = t.length == 0 ? NULL : memchr(t.at, c, t.length);
    return found == NULL ? TEXT_NONE : (size_t)(found - t.at);
}

size_t
text_find_last(struct text t, char c)
{
    const char *found = t.length == 0 ? NULL : memrchr(t.at, c, t.length);
    return found == NULL ? TEXT_NONE : (size_t)(found - t.at);
}

struct text
text_after(struct text t, size_t count)
{
    if (count > t.length)
        count = t.length;
    /* NULL + 0 is undefined. */
    return count == 0 ? t : text_of(t.at + count, t.length - count);
}

struct text
text_before(struct text t, size_t count)
{
    return text_of(t.at, count < t.length ? count : t.length);
}

struct text
text_trim(struct text t)
{
    while (t.length > 0 && text_is_space(t.at[0]))
        t = text_after(t, 1);
    while (t.length > 0 && text_is_space(t.at[t.length - 1]))
        t.length--;
    return t;
}

struct text
text_within(struct text t, char first, char last)
{
    bool has = t.length >= 2 && t.at[0] == first && t.at[t.length - 1] == last;
    return has ? text_of(t.at + 1, t.length - 2) : t;
}

struct text
text_without_line_end(struct text line)
{
    if (line.length > 0 && line.at[line.length - 1] == '\n')
        line.length--;
    if (line.length > 0 && line.at[line.length - 1] == '\r')
        line.length--;
    return line;
}

bool
text_cut(struct text *rest, char separator, struct text *field)
{
    if (rest->at == NULL)
        return false;
    size_t end = text_find(*rest, separator);
    if (end == TEXT_NONE) {
        *field = *rest;
        *rest = text_of(NULL, 0);
    } else {
        *field = text_before(*rest, end);
        *rest = text_after(*rest, end + 1);
    }
    return true;
}

bool
text_word(struct text *rest, const char *separators, struct text *word)
{
    size_t kinds = strlen(separators), start = 0;
    while (start < rest->length && memchr(separators, rest->at[start], kinds) != NULL)
        start++;
    *rest = text_after(*rest, start);
    size_t end = 0;
    while (end < rest->length && memchr(separators, rest->at[end], kinds) == NULL)
        end++;
    *word = text_before(*rest, end);
    *rest = text_after(*rest, end);
    return end > 0;
}

bool
text_number(struct text t, uint64_t max, uint64_t *value)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t.length; i++) {
        if (t.at[i] < '0' || t.at[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(t.at[i] - '0');
        if (sum > max / 10 || digit > max - sum * 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return t.length > 0;
}

bool
text_copy(char *to, size_t size, struct text t)
{
    assert(size > 0);
    size_t length = t.length < size ? t.length : size - 1;
    if (length > 0)
        memcpy(to, t.at, length);
    to[length] = '\0';
    return length == t.length;
}

void
text_lower(char *at, size_t length)
{
    for (size_t i = 0; i < length; i++)
        at[i] = (char)fold(at[i]);
}

size_t
text_digits(struct text t)
{
    size_t count = 0;
    while (count < t.length && text_is_digit(t.at[count]))
        count++;
    return count;
}

void
text_hex(const void *bytes, size_t size, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++) {
        out[2 * i] = digits[at[i] >> 4];
        out[2 * i + 1] = digits[at[i] & 15];
    }
    out[2 * size] = '\0';
}

bool
text_unhex(struct text hex, void *out, size_t size)
{
    unsigned char *to = out;
    for (size_t i = 0; i < size && hex.length == 2 * size; i++) {
        int high = text_hex_digit(hex.at[2 * i]),
            low = text_hex_digit(hex.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (unsigned char)(high * 16 + low);
    }
    return hex.length == 2 * size;
}

char *
text_string(struct text t)
{
    char *made = memory_new(t.length + 1);
    bool whole = text_copy(made, t.length + 1, t);
    assert(whole);
    return made;
}

uint64_t
text_hash_nocase(uint64_t hash, struct text t)
{
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.at[i];
        hash ^= c >= 'A' && c <= 'Z' ? c + 32u : c;
        hash *= UINT64_C(0x100000001b3);
    }
    return hash;
}

bool
text_has_control(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if ((unsigned char)t.at[i] < 0x20 || t.at[i] == 0x7f)
            return true;
    return false;
}

bool
text_is_ascii(struct text t)
{
    size_t at = 0;
    uint64_t eight;
    for (; t.length - at >= sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, t.at + at, sizeof(eight));
        if (eight & UINT64_C(0x8080808080808080))
            return false;
    }
    for (; at < t.length; at++)
        if ((unsigned char)t.at[at] >= 0x80)
            return false;
    return true;
}

/* A byte that cannot continue the character is not counted: it may begin the next one.
 */
size_t
text_character_start(struct text t, size_t *whole)
{
    const unsigned char *at = (const unsigned char *)t.at;
    const struct utf8_lead *lead = utf8_leads;
    const struct utf8_lead *end = lead + sizeof(utf8_leads) / sizeof(utf8_leads[0]);
    size_t length = 1;
    assert(t.length > 0);
    while (lead < end && (at[0] < lead->first || at[0] > lead->last))
        lead++;
    *whole = lead < end ? lead->length : 0;
    if (*whole > 1 && t.length > 1 && (at[1] < lead->low || at[1] > lead->high))
        return 1;
    while (length < *whole && length < t.length && (at[length] & 0xc0) == 0x80)
        length++;
    return length;
}

size_t
text_character(struct text t, uint32_t *code)
{
    size_t whole;
    if (t.length == 0 || text_character_start(t, &whole) != whole)
        return 0;
    const unsigned char *at = (const unsigned char *)t.at;
    uint32_t sum = whole == 1 ? at[0] : at[0] & (0x7fU >> whole);
    for (size_t i = 1; i < whole; i++)
        sum = sum << 6 | (at[i] & 0x3fU);
    *code = sum;
    return whole;
}

size_t
text_write_character(uint32_t code, char out[4])
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(leads[length] | code);
    return length;
}

bool
text_is_utf8(struct text t)
{
    uint32_t code;
    while (t.length > 0) {
        size_t length = text_character(t, &code);
        if (length == 0)
            return false;
        t = text_after(t, length);
    }
    return true;
}
