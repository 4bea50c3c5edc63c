/* Text of others, for logs and terminals. */
#include "base/printable.h"

#include "t/support/tap.h"

int
main(void)
{
    static const uint32_t harmful[] = {0, 0x1b, 0x7f, 0x80, 0x9f, 0x61c, 0x200e, 0x2028, 0x202e, 0x2066, 0x2069, 0xad, 0x180e, 0x200b, 0x2060, 0x206f, 0xfeff, 0xfff9, 0x1d173, 0xe0000, 0xe0041, 0xe007f},
                          harmless[] = {' ', '~', 0xa0, 0x61b, 0x200d, 0x2010, 0x2027, 0x202f, 0x200c, 0xae, 0x2070, 0xfe0f, 0xfefe, 0xfffd, 0x1f600, 0xdffff, 0xe1000};
    char text[] = "a b~\x1b[2J\x7f\xc3\xa4\xe2\x80", none[] = "";
    for (size_t i = 0; i < sizeof(harmful) / sizeof(harmful[0]); i++)
        ok(printable_is_harmful(harmful[i]));
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
        ok(!printable_is_harmful(harmless[i]));
    printable_make(text);
    is_string(text, "a b~?[2J?????", "only printable ASCII stays");
    char mixed[] = "a\x1b[31m\xc2\x9b j\xc3\xbc\xe2\x80\xae\xef\xbb\xbf\xf3\xa0\x81\x81.\x9b\xc3";
    ok(!printable_is(text_from(mixed)) && printable_is(TEXT("j\xc3\xbc\xe2\x80\x8d")) &&
       !printable_is(TEXT("a\x9b")) && !printable_is(TEXT("\xef\xbb\xbf")) && printable_is(TEXT("")));
    printable_clean(mixed);
    is_string(mixed, "a [31m   j\xc3\xbc          .  ", "what may do harm becomes blanks");
    printable_make(none);
    is_string(none, "", "nothing");
    return done();
}
