/* Base64: the examples of RFC 4648 §10, every length, and what is not the one encoding. */
#include "base/crypto/base64.h"
#include "t/support/tap.h"

static void
is_pair(struct text plain, const char *coded)
{
    char back[64];
    size_t length;
    FIXTURE(buffer, out, buffer_init, buffer_free, 200);
    ok(base64_encode(plain, &out));
    is_text(buffer_text(&out), text_from(coded), "encoded");
    is_number(out.length, BASE64_LENGTH(plain.length), "as long as said");
    ok(base64_decode(text_from(coded), back, sizeof(back), &length));
    is_text(text_of(back, length), plain, "and decoded");
    if (plain.length > 0)
        ok_named(!base64_decode(text_from(coded), back, plain.length - 1, &length),
                 "not into less room");
}

TEST(bad)
{
    static const char *const bad[] = {"=",    "Zg",   "Zg=",   "Zh==",     "Zm9=",
                                      "Z===", "Zg==Zg==", "Zm 9", "Zm9v\r\n", "Zm9v\n",
                                      "Zm9-", "Zm9_", "\xc3\xa4==", "====", "Zg=a", " Zm9v"};
    char to[32];
    size_t length;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        ok_named(!base64_decode(text_from(bad[i]), to, sizeof(to), &length), bad[i]);
    ok_named(!base64_decode(TEXT("Zm\0v"), to, sizeof(to), &length), "a NUL");
}

TEST(limit)
{
    FIXTURE(buffer, out, buffer_init, buffer_free, 8);
    ok(base64_encode(TEXT("foo"), &out));
    ok(!base64_encode(TEXT("fooo"), &out));
    is_text(buffer_text(&out), TEXT("Zm9v"), "unchanged at the limit");
}

int
main(void)
{
    is_pair(TEXT(""), "");
    is_pair(text_of(NULL, 0), "");
    is_pair(TEXT("f"), "Zg==");
    is_pair(TEXT("fo"), "Zm8=");
    is_pair(TEXT("foo"), "Zm9v");
    is_pair(TEXT("foob"), "Zm9vYg==");
    is_pair(TEXT("fooba"), "Zm9vYmE=");
    is_pair(TEXT("foobar"), "Zm9vYmFy");
    is_pair(TEXT("\0\xff\xfe\x3e\x3f"), "AP/+Pj8=");
    tap_tests("");
    return done();
}
