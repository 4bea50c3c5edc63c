/* TLSA records against chains that openssl has just made: every usage, selector and matching type, and
 * what must not count. */
#include "base/tls/tls_dane.h"

#include "base/memory.h"
#include "base/tls/tls_internal.h"
#include "t/support/tls_world.h"


static mbedtls_x509_crt *
chain_of(const struct secrets *k, const char *name)
{
    mbedtls_x509_crt *chain = memory_new(sizeof(*chain));
    mbedtls_x509_crt_init(chain);
    if (mbedtls_x509_crt_parse_file(chain, tls_path_of(k, name, ".pem")) != 0)
        abort();
    return chain;
}

static void
chain_free(mbedtls_x509_crt *chain)
{
    mbedtls_x509_crt_free(chain);
    free(chain);
}

/* A record of the certificate at that place of the chain; one of a few static ones. */
static struct tls_dane_record
record_of(const mbedtls_x509_crt *chain, int place, unsigned usage, unsigned selector, unsigned matching)
{
    static unsigned char data[8][4096];
    static unsigned next;
    unsigned char *to = data[next++ % 8];
    struct text whole;
    while (place-- > 0)
        chain = chain->next;
    whole = selector == 1 ? text_of(chain->pk_raw.p, chain->pk_raw.len) : text_of(chain->raw.p, chain->raw.len);
    size_t size = whole.length;
    if (matching == 1) {
        digest_plain(whole, to);
        size = 32;
    } else if (matching == 2) {
        mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA512), (const unsigned char *)whole.at, whole.length, to);
        size = 64;
    } else {
        memcpy(to, whole.at, whole.length);
    }
    return (struct tls_dane_record){(unsigned char)usage, (unsigned char)selector, (unsigned char)matching,
                                    text_of(to, size)};
}

/* "proven", "nothing demanded" or the reason. */
static const char *
prove(mbedtls_x509_crt *chain, const struct tls_dane_record *records, size_t count, const char *name)
{
    static char why[TLS_ERROR_MAX];
    struct text names[1] = {text_from(name)};
    struct tls_client_options options = {
        .dane = records, .dane_count = count, .dane_names = names, .dane_name_count = 1};
    struct tls_dane *dane = tls_dane_new(&options);
    if (dane == NULL)
        return "nothing demanded";
    bool good = tls_dane_proves(dane, chain, why, sizeof(why));
    tls_dane_free(&dane);
    return good ? "proven" : why;
}

static const char none[] = "no TLSA record matches the certificate";

static void
test_usable(void)
{
    static const struct {
        unsigned char usage, selector, matching;
        size_t size;
        bool want;
    } rows[] = {
        {3, 1, 1, 32, true},  {3, 0, 1, 32, true},  {3, 1, 2, 64, true},  {3, 0, 2, 64, true},
        {3, 0, 0, 900, true}, {3, 1, 0, 91, true},  {2, 0, 1, 32, true},  {2, 1, 1, 32, true},
        {2, 0, 2, 64, true},  {2, 1, 2, 64, true},  {2, 0, 0, 900, true}, {2, 1, 0, 91, false},
        {0, 0, 1, 32, false}, {1, 1, 1, 32, false}, {4, 1, 1, 32, false}, {255, 1, 1, 32, false},
        {3, 2, 1, 32, false}, {3, 1, 3, 48, false}, {3, 1, 1, 31, false}, {3, 1, 1, 33, false},
        {3, 1, 2, 32, false}, {3, 1, 1, 64, false}, {3, 1, 0, 0, false},  {3, 1, 1, 0, false},
    };
    static char data[1000];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tls_dane_record r = {rows[i].usage, rows[i].selector, rows[i].matching,
                                    text_of(data, rows[i].size)};
        char name[64];
        snprintf(name, sizeof(name), "%u %u %u with %zu octets", r.usage, r.selector, r.matching, r.data.length);
        is_number(tls_dane_is_usable(&r), rows[i].want, name);
        is_string(tls_dane_count_usable(&r, 1) ? "usable" : "not", rows[i].want ? "usable" : "not", name);
    }
}

static void
test_end_entity(const struct secrets *k)
{
    static const char *const names[] = {"good", "expired", "future", "self", "common", "rsa", "stranger"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        mbedtls_x509_crt *chain = chain_of(k, names[i]);
        for (unsigned selector = 0; selector < 2; selector++)
            for (unsigned matching = 0; matching < 3; matching++) {
                char name[80];
                struct tls_dane_record r = record_of(chain, 0, 3, selector, matching);
                snprintf(name, sizeof(name), "%s: 3 %u %u, whatever its name and dates are", names[i], selector,
                         matching);
                is_string(prove(chain, &r, 1, "other.example"), "proven", name);
                *(char *)(uintptr_t)(r.data.at + r.data.length - 1) ^= 1;
                is_string(prove(chain, &r, 1, "other.example"), none, "and not with a bit changed");
            }
        chain_free(chain);
    }
    mbedtls_x509_crt *chain = chain_of(k, "chained"), *good = chain_of(k, "good");
    for (int place = 1; place < 3; place++) {
        struct tls_dane_record r = record_of(chain, place, 3, 1, 1);
        is_string(prove(chain, &r, 1, "mail.example.net"), none, "usage 3 is not about an authority");
    }
    struct tls_dane_record key = record_of(good, 0, 3, 1, 1), whole = record_of(good, 0, 3, 0, 1);
    key.selector = 0;
    whole.selector = 1;
    is_string(prove(good, &key, 1, ""), none, "a key's digest is not a certificate's");
    is_string(prove(good, &whole, 1, ""), none, "nor the other way round");
    struct tls_dane_record many[] = {record_of(chain, 0, 3, 1, 1), {0, 0, 1, TEXT("x")},
                                     record_of(good, 0, 3, 1, 2), {3, 1, 9, TEXT("y")}};
    is_string(prove(good, many, 4, ""), "proven", "one of several is enough");
    is_string(prove(good, many + 3, 1, ""), "nothing demanded", "an unusable one proves nothing");
    is_string(prove(good, many, 2, ""), none, "one usable, which does not match");
    is_string(prove(good, many, 0, ""), "nothing demanded", "no record");
    chain_free(chain);
    chain_free(good);
}

static void
test_trust_anchors(const struct secrets *k)
{
    mbedtls_x509_crt *chain = chain_of(k, "chained"), *late = chain_of(k, "late-chained");
    mbedtls_x509_crt *leaf = chain_of(k, "below"), *good = chain_of(k, "good"), *ca = chain_of(k, "ca");
    mbedtls_x509_crt *mid = chain_of(k, "mid"), *other = chain_of(k, "other-ca");
    for (int place = 1; place < 3; place++)
        for (unsigned selector = 0; selector < 2; selector++)
            for (unsigned matching = 0; matching < 3; matching++) {
                char name[80];
                struct tls_dane_record r = record_of(chain, place, 2, selector, matching);
                bool usable = selector == 0 || matching > 0;
                snprintf(name, sizeof(name), "2 %u %u of the certificate at %d", selector, matching, place);
                is_string(prove(chain, &r, 1, "mail.example.net"), usable ? "proven" : "nothing demanded", name);
                if (!usable)
                    continue;
                is_string(prove(chain, &r, 1, "other.example"),
                          "certificate does not name other.example (it names mail.example.net)", "the name counts");
                ok_named(strstr(prove(late, &r, 1, "mail.example.net"), "has expired on") != NULL, "and the dates");
            }
    struct tls_dane_record r = record_of(chain, 0, 2, 0, 1);
    is_string(prove(chain, &r, 1, "mail.example.net"), none, "usage 2 is not about the peer's own");
    r = record_of(ca, 0, 2, 0, 0);
    is_string(prove(good, &r, 1, "mail.example.net"), "proven", "2 0 0 brings an anchor that was not sent");
    r = record_of(ca, 0, 2, 0, 1);
    is_string(prove(good, &r, 1, "mail.example.net"), none, "a digest does not");
    r = record_of(mid, 0, 2, 0, 0);
    is_string(prove(leaf, &r, 1, "mail.example.net"), "proven", "an intermediate one as well");
    r = record_of(other, 0, 2, 0, 0);
    ok_named(strstr(prove(good, &r, 1, "mail.example.net"), "unknown issuer") != NULL, "another authority");
    r.data = TEXT("no certificate");
    is_string(prove(good, &r, 1, "mail.example.net"), none, "no certificate in the record");
    /* Each costs a verification of a chain. */
    struct tls_dane_record many[5];
    for (int i = 0; i < 4; i++)
        many[i] = record_of(other, 0, 2, 0, 0);
    many[4] = record_of(chain, 1, 2, 0, 1);
    is_string(prove(chain, many + 1, 4, "mail.example.net"), "proven", "the fourth anchor");
    ok_named(strcmp(prove(chain, many, 5, "mail.example.net"), "proven") != 0, "no more are tried");
    /* Sent, but not above the peer's own. */
    mbedtls_x509_crt *mixed = chain_of(k, "stranger");
    if (mbedtls_x509_crt_parse_file(mixed, tls_path_of(k, "ca", ".pem")) != 0)
        abort();
    r = record_of(ca, 0, 2, 0, 1);
    ok_named(strstr(prove(mixed, &r, 1, "mail.example.net"), "unknown issuer") != NULL,
             "an anchor in the chain that has not signed it");
    chain_free(mixed);
    chain_free(chain);
    chain_free(late);
    chain_free(leaf);
    chain_free(good);
    chain_free(ca);
    chain_free(mid);
    chain_free(other);
}

static struct tls_dane *
dane_of(const struct tls_dane_record *records, size_t count, const char *name)
{
    struct text names[1] = {text_from(name)};
    struct tls_client_options options = {
        .dane = records, .dane_count = count, .dane_names = names, .dane_name_count = 1};
    return tls_dane_new(&options);
}

static bool
same(const struct tls_dane_record *a, const struct tls_dane_record *b, const char *x, const char *y)
{
    unsigned char one[DIGEST_SIZE], two[DIGEST_SIZE];
    struct tls_dane *first = dane_of(a, 2, x), *second = dane_of(b, 2, y);
    tls_dane_digest(first, one);
    tls_dane_digest(second, two);
    tls_dane_free(&first);
    tls_dane_free(&second);
    return memcmp(one, two, DIGEST_SIZE) == 0;
}

static void
test_digests(void)
{
    struct tls_dane_record a[2] = {{3, 1, 0, TEXT("ab")}, {3, 0, 0, TEXT("c")}};
    struct tls_dane_record b[2] = {a[1], a[0]}, c[2] = {{3, 1, 0, TEXT("a")}, {3, 0, 0, TEXT("bc")}};
    struct tls_dane_record d[2] = {{3, 0, 0, TEXT("ab")}, {3, 1, 0, TEXT("c")}};
    ok_named(same(a, b, "x", "x"), "the order does not count");
    ok_named(!same(a, b, "x", "y"), "the name does");
    ok_named(!same(a, c, "x", "x"), "and where data ends");
    ok_named(!same(a, d, "x", "x"), "and the selectors");
}

int
main(void)
{
    struct secrets k = {0};
    make_secrets(&k);
    test_usable();
    test_end_entity(&k);
    test_trust_anchors(&k);
    test_digests();
    drop_secrets(&k);
    return done();
}
