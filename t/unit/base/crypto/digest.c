/* The digests against RFC 4231, RFC 7914 and RFC 7677's examples; comparing. */
#include "base/crypto/digest.h"
#include "t/support/tap.h"

static void
is_hex(const unsigned char digest[DIGEST_SIZE], const char *want, const char *name)
{
    char hex[2 * DIGEST_SIZE + 1];
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    is_string(hex, want, name);
}

TEST(keyed)
{
    unsigned char out[DIGEST_SIZE], key[131];
    digest_plain(TEXT("abc"), out);
    is_hex(out, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
           "FIPS 180-4");
    memset(key, 0x0b, 20);
    digest_keyed(text_of(key, 20), TEXT("Hi There"), out);
    is_hex(out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
           "RFC 4231 case 1");
    digest_keyed(TEXT("Jefe"), TEXT("what do ya want for nothing?"), out);
    is_hex(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
           "RFC 4231 case 2");
    memset(key, 0xaa, sizeof(key));
    digest_keyed(text_of(key, sizeof(key)),
                 TEXT("Test Using Larger Than Block-Size Key - Hash Key First"), out);
    is_hex(out, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
           "RFC 4231 case 6: a key longer than a block");
}

/* The same in pieces of any size, and from a copy of a state. */
TEST(pieces)
{
    char content[1000];
    unsigned char want[DIGEST_SIZE], got[DIGEST_SIZE];
    struct digest d, copy;
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (char)(i * 7);
    digest_plain(text_of(content, sizeof(content)), want);
    int wrong = 0;
    for (size_t size = 1; size <= 200; size++) {
        struct text rest = text_of(content, sizeof(content));
        digest_begin(&d);
        for (; rest.length > 0; rest = text_after(rest, size))
            digest_add(&d, text_before(rest, size));
        digest_end(&d, got);
        wrong += !digest_same(want, got, DIGEST_SIZE);
    }
    is_number(wrong, 0, "pieces of any size make the same digest");
    digest_begin(&d);
    digest_add(&d, text_of(content, 333));
    copy = d;
    digest_add(&d, TEXT("something else"));
    digest_end(&d, got);
    ok_named(!digest_same(want, got, DIGEST_SIZE), "other text, other digest");
    digest_add(&copy, text_of(content + 333, sizeof(content) - 333));
    digest_end(&copy, got);
    ok_named(digest_same(want, got, DIGEST_SIZE), "a copy continues by itself");
    digest_begin(&d);
    digest_add(&d, (struct text){0});
    digest_end(&d, got);
    is_hex(got, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
           "nothing");
}

TEST(stretch)
{
    struct digest_stretch s, pieces;
    digest_stretch_start(&s, TEXT("passwd"), TEXT("salt"), 1);
    ok_named(digest_stretch_go(&s, 0), "one iteration is made at the start");
    is_hex(s.out, "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc",
           "RFC 7914 §11, the first 32 bytes");
    digest_stretch_start(&s, TEXT("Password"), TEXT("NaCl"), 80000);
    ok(!digest_stretch_go(&s, 79998));
    ok(digest_stretch_go(&s, 1));
    is_hex(s.out, "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56",
           "RFC 7914 §11, 80000 iterations");
    digest_stretch_start(&pieces, TEXT("Password"), TEXT("NaCl"), 80000);
    int turns = 1;
    while (!digest_stretch_go(&pieces, 777))
        turns++;
    is_number(turns, (79999 + 776) / 777, "in pieces");
    ok(digest_same(s.out, pieces.out, DIGEST_SIZE));
}

TEST(same)
{
    char a[] = "0123456789", b[] = "0123456789";
    ok(digest_same(a, b, 10));
    ok(digest_same(a, b, 0));
    for (size_t i = 0; i < 10; i++) {
        b[i] ^= (char)0x80;
        ok(!digest_same(a, b, 10));
        b[i] ^= (char)0x80;
    }
    digest_forget(a, sizeof(a));
    ok(a[0] == 0 && a[9] == 0);
}
