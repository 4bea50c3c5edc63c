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

static char copy[LONGEST + 2];

/* The copy is t, and nothing is written beside it. */
static bool
is_copied(struct text t)
{
    return memcmp(copy + 1, t.at, t.length) == 0 && copy[0] == '?' && copy[1 + t.length] == '?';
}

static bool
is_plain(struct text t)
{
    memset(copy, '?', sizeof(copy));
    bool plain = log_value_copy_plain(t, copy + 1);
    return plain && is_copied(t);
}

static bool
is_simple(struct text t)
{
    memset(copy, '?', sizeof(copy));
    bool simple = log_value_copy_simple(t, copy + 1);
    return simple && is_copied(t);
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
                plain = plain && is_plain(t) == byte_is_plain(c);
                simple = simple && is_simple(t) == byte_is_simple(c);
            }
    ok_named(plain, "plain is printable ASCII");
    ok_named(simple, "simple is plain without blank, comma and brackets");
    /* A byte that carries into the next, and ones that borrow. */
    ok_named(!is_plain(TEXT("\xff~~~~~~~")), "0xff before tildes");
    ok_named(!is_simple(TEXT("\x01!!!!!!!")),
             "0x01 before exclamation marks");
    ok_named(is_simple(TEXT("")) && is_plain(TEXT("")), "nothing");
    ok_named(is_plain(TEXT("~~~~~~~~ !\"(), <>")), "all that is printable");
    return done();
}
