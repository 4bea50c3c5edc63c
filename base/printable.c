/* Which characters may reach a terminal. */
#include "base/printable.h"

#include <string.h>

bool
printable_is_harmful(uint32_t code)
{
    /* Format characters; joiners (U+200C, U+200D) and variation selectors are parts of
     * words and signs that people write. */
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0,       0x1f   },
        {0x7f,    0x9f   },
        {0xad,    0xad   }, /* soft hyphen */
        {0x61c,   0x61c  },
        {0x180e,  0x180e },
        {0x200b,  0x200b },
        {0x200e,  0x200f },
        {0x2028,  0x202e },
        {0x2060,  0x206f },
        {0xfeff,  0xfeff },
        {0xfff9,  0xfffb },
        {0x1d173, 0x1d17a},
        {0xe0000, 0xe0fff}, /* tags: a hidden text */
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            return true;
    return false;
}

/* The length of the first character of t. */
static size_t
printable_next(struct text t, bool *is_good)
{
    uint32_t code = 0;
    size_t length = text_character(t, &code);
    *is_good = length > 0 && !printable_is_harmful(code);
    return length > 0 ? length : 1;
}

bool
printable_is(struct text t)
{
    bool is_good = true;
    for (size_t at = 0; is_good && at < t.length;)
        at += printable_next(text_after(t, at), &is_good);
    return is_good;
}

void
printable_clean(char *string)
{
    bool is_good;
    for (size_t length; *string != '\0'; string += length) {
        length = printable_next(text_from(string), &is_good);
        if (!is_good)
            memset(string, ' ', length);
    }
}

void
printable_make(char *string)
{
    for (char *at = string; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}
