/* Names beyond ASCII as the DNS has them; without libidn2 only ASCII ones pass. */
#include "base/dns/idna.h"

#include "t/support/tap.h"

#include <string.h>

/* clang-format off */
static const struct {
    const char *name, *ascii; /* NULL: none */
} names[] = {
    {"b\xc3\xbc" "cher.example", "xn--bcher-kva.example"},
    {"B\xc3\x9c" "CHER.Example", "xn--bcher-kva.example"},
    {"bu\xcc\x88" "cher.example", "xn--bcher-kva.example"}, /* decomposed */
    {"fa\xc3\x9f.example", "xn--fa-hia.example"}, /* not "fass": no transition */
    {"\xe4\xbe\x8b\xe3\x81\x88.\xe3\x83\x86\xe3\x82\xb9\xe3\x83\x88", "xn--r8jz45g.xn--zckzah"},
    {"\xd0\xbf\xd0\xbe\xd1\x87\xd1\x82\xd0\xb0.\xd1\x80\xd1\x84", "xn--80a1acny.xn--p1ai"},
    {"xn--bcher-kva.b\xc3\xbc" "cher", "xn--bcher-kva.xn--bcher-kva"},
    {"\xff\xfe.example", NULL},
    {"b\xc3\xbc\ncher.example", NULL},
    {"\xcc\x88.example", NULL}, /* a combining mark first */
};
/* clang-format on */

int
main(void)
{
    char out[IDNA_NAME_MAX], long_name[400];
    bool built_in = idna_version() != NULL;
    printf("# %s\n", built_in ? idna_version() : "not built in");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool want = built_in && names[i].ascii != NULL;
        ok_named(idna_to_ascii(text_from(names[i].name), out) == want, "to A-labels");
        if (want)
            is_string(out, names[i].ascii, "as they are");
    }
    ok(idna_to_ascii(TEXT("MX.Example"), out));
    is_string(out, "mx.example", "ASCII in lower case");
    ok(idna_to_ascii(TEXT(""), out));
    is_string(out, "", "nothing is nothing");
    memset(long_name, 'a', sizeof(long_name));
    ok_named(!idna_to_ascii(text_of(long_name, 256), out), "too long");
    ok_named(idna_to_ascii(text_of(long_name, 255), out), "just not");
    memcpy(long_name, "\xc3\xbc", 2);
    ok_named(!idna_to_ascii(text_of(long_name, 100), out), "a label too long");
    return done();
}
