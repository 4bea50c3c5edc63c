/* Which values need no escape and no guard: each byte at each place of a word, and at the
 * end. */
#include "base/log/log_value.h"
#include "t/support/tap.h"

enum { LONGEST = 19 };

static bool
byte_is_plain(int c)
{
    return c >= 0x20 && c < 0x7f;
}

static bool
byte_is_simple(int c)
{
    return byte_is_plain(c) && strchr(" ,<>", c) == NULL;
}

int
main(void)
{
    char value[LONGEST];
    bool plain = true, simple = true;
    for (size_t length = 1; length <= LONGEST; length++)
        for (size_t at = 0; at < length; at++)
            for (int c = 0; c < 256; c++) {
                memset(value, 'x', sizeof(value));
                value[at] = (char)c;
                struct text t = text_of(value, length);
                plain = plain && log_value_is_plain(t) == byte_is_plain(c);
                simple = simple && log_value_is_simple(t) == byte_is_simple(c);
            }
    ok_named(plain, "plain is printable ASCII");
    ok_named(simple, "simple is plain without blank, comma and brackets");
    /* A byte that carries into the next, and ones that borrow. */
    ok_named(!log_value_is_plain(TEXT("\xff~~~~~~~")), "0xff before tildes");
    ok_named(!log_value_is_simple(TEXT("\x01!!!!!!!")),
             "0x01 before exclamation marks");
    ok_named(log_value_is_simple(TEXT("")) && log_value_is_plain(TEXT("")), "nothing");
    ok_named(log_value_is_plain(TEXT("~~~~~~~~ !\"(), <>")), "all that is printable");
    return done();
}
