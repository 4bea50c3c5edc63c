/* Which characters may reach a terminal. */
#include "base/printable.h"

bool
printable_is_harmful(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
           code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

void
printable_make(char *string)
{
    for (char *at = string; *at != '\0'; at++)
        if (*at < ' ' || *at > '~')
            *at = '?';
}
