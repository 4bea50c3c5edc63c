/* The digest against the examples of FIPS 180-4, and the library's name. */
#include "base/tls.h"
#include "t/tap.h"

static void
is_digest(struct text t, const char *want)
{
    unsigned char digest[TLS_DIGEST_SIZE];
    char hex[2 * TLS_DIGEST_SIZE + 1];
    tls_digest(t, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    is_string(hex, want, "SHA-256");
}

int
main(void)
{
    is_digest(TEXT(""),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    is_digest(text_of(NULL, 0),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    is_digest(TEXT("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    is_digest(TEXT("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    size_t size = 1000000;
    char *million = malloc(size);
    memset(million, 'a', size);
    is_digest(text_of(million, size),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);

    struct text version = text_from(tls_version());
    ok(text_starts(version, TEXT("mbedTLS ")));
    ok_named(version.length > 10 && text_find(version, '.') != TEXT_NONE, version.at);
    is_string(tls_version(), version.at, "the same when asked again");
    return done();
}
