/* Proves a certificate by TLSA records: RFC 7671 §5, RFC 7672 §3.
 *
 * Usage 3 is about the peer's own certificate or key; its names, dates and issuers do
 * not count. Usage 2 names a trust anchor: a certificate that the peer has sent above
 * its own, or the one in the record. With that anchor alone the chain is verified, dates
 * and name included. */
#include "base/tls/tls_dane.h"

#include "base/memory.h"
#include "base/tls/tls_internal.h"

#include <assert.h>
#include <mbedtls/md.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    USAGE_TA = 2,
    USAGE_EE = 3,
    SELECTOR_CERTIFICATE = 0,
    SELECTOR_KEY = 1,
    MATCHING_FULL = 0,
    MATCHING_SHA256 = 1,
    MATCHING_SHA512 = 2,
    SHA512_SIZE = 64,
    NAMES_MAX = 4,
    /* Chains verified for a peer, each below another anchor: a peer and its zone choose
     * how long that takes. */
    TRIALS_MAX = 4
};

struct tls_dane {
    size_t count, name_count;
    struct tls_dane_record records[TLS_DANE_RECORDS_MAX]; /* sorted */
    struct text names[NAMES_MAX];
    char *bytes; /* of all of them */
};

bool
tls_dane_is_usable(const struct tls_dane_record *r)
{
    if ((r->usage != USAGE_TA && r->usage != USAGE_EE) || r->selector > SELECTOR_KEY)
        return false;
    switch (r->matching) {
    case MATCHING_FULL:
        return r->data.length > 0 &&
               (r->usage == USAGE_EE || r->selector == SELECTOR_CERTIFICATE);
    case MATCHING_SHA256:
        return r->data.length == DIGEST_SIZE;
    case MATCHING_SHA512:
        return r->data.length == SHA512_SIZE;
    default:
        return false;
    }
}

size_t
tls_dane_count_usable(const struct tls_dane_record *records, size_t count)
{
    size_t usable = 0;
    for (size_t i = 0; i < count; i++)
        usable += tls_dane_is_usable(&records[i]);
    return usable;
}

/* Whether the record is about this certificate. */
static bool
tls_dane_is_of(const struct tls_dane_record *r, const mbedtls_x509_crt *certificate)
{
    const mbedtls_x509_buf *b =
        r->selector == SELECTOR_KEY ? &certificate->pk_raw : &certificate->raw;
    unsigned char hash[SHA512_SIZE];
    struct text whole = text_of(b->p, b->len);
    switch (r->matching) {
    case MATCHING_FULL:
        return text_equal(whole, r->data);
    case MATCHING_SHA256:
        digest_plain(whole, hash);
        return text_equal(text_of(hash, DIGEST_SIZE), r->data);
    case MATCHING_SHA512:
        return mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA512), b->p, b->len,
                          hash) == 0 &&
               text_equal(text_of(hash, SHA512_SIZE), r->data);
    default:
        return false;
    }
}

/* One verification of a chain below one anchor. */
struct tls_dane_trial {
    const struct tls_dane *dane;
    mbedtls_x509_crt *chain;
    char *why;
    size_t size;
    unsigned left; /* of TRIALS_MAX */
};

/* mbedTLS compares with one name only: see tls_session_check(). */
static int
tls_dane_check_name(void *context, mbedtls_x509_crt *certificate, int depth,
                    uint32_t *flags)
{
    const struct tls_dane *dane = context;
    struct text matched;
    if (depth != 0)
        return 0;
    *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
    for (size_t i = 0; i < dane->name_count; i++)
        if (tls_certificate_names(certificate, dane->names[i], &matched))
            *flags &= ~(uint32_t)MBEDTLS_X509_BADCERT_CN_MISMATCH;
    return 0;
}

static bool
tls_dane_verify(struct tls_dane_trial *t, struct text anchor)
{
    mbedtls_x509_crt only;
    uint32_t flags = 0;
    if (t->left == 0)
        return false;
    t->left--;
    void *dane = (void *)(uintptr_t)t->dane;
    mbedtls_x509_crt_init(&only);
    bool good = mbedtls_x509_crt_parse_der(&only, (const unsigned char *)anchor.at,
                                           anchor.length) == 0;
    if (good)
        good = mbedtls_x509_crt_verify(t->chain, &only, NULL, NULL, &flags,
                                       tls_dane_check_name, dane) == 0 &&
               flags == 0;
    if (flags != 0)
        tls_explain(t->chain, 0, flags,
                    t->dane->name_count > 0 ? t->dane->names[0] : TEXT("the host"),
                    t->why, t->size);
    mbedtls_x509_crt_free(&only);
    return good;
}

/* An anchor of the chain, or that of "2 0 0", which the peer need not send. */
static bool
tls_dane_has_anchor(struct tls_dane_trial *t, const struct tls_dane_record *r)
{
    for (const mbedtls_x509_crt *c = t->chain->next; c != NULL && c->raw.p != NULL;
         c = c->next)
        if (tls_dane_is_of(r, c))
            return tls_dane_verify(t, text_of(c->raw.p, c->raw.len));
    return r->matching == MATCHING_FULL && tls_dane_verify(t, r->data);
}

/* Usage 3 first: it costs no verification. */
bool
tls_dane_proves(const struct tls_dane *dane, mbedtls_x509_crt *chain, char *why,
                size_t size)
{
    struct tls_dane_trial trial = {dane, chain, why, size, TRIALS_MAX};
    snprintf(why, size, "no TLSA record matches the certificate");
    for (size_t i = 0; i < dane->count; i++)
        if (dane->records[i].usage == USAGE_EE &&
            tls_dane_is_of(&dane->records[i], chain))
            return true;
    for (size_t i = 0; i < dane->count; i++)
        if (dane->records[i].usage == USAGE_TA &&
            tls_dane_has_anchor(&trial, &dane->records[i]))
            return true;
    return false;
}

/* --- Demands ---------------------------------------------------------------------- */

static int
tls_dane_compare(const void *a, const void *b)
{
    const struct tls_dane_record *x = a, *y = b;
    if (x->usage != y->usage)
        return x->usage - y->usage;
    if (x->selector != y->selector)
        return x->selector - y->selector;
    if (x->matching != y->matching)
        return x->matching - y->matching;
    if (x->data.length != y->data.length)
        return x->data.length < y->data.length ? -1 : 1;
    return memcmp(x->data.at, y->data.at, x->data.length);
}

static struct text
tls_dane_copy(char **to, struct text t)
{
    struct text copy = text_of(*to, t.length);
    if (t.length > 0)
        memcpy(*to, t.at, t.length);
    *to += t.length;
    return copy;
}

struct tls_dane *
tls_dane_new(const struct tls_client_options *options)
{
    struct tls_dane *dane;
    size_t size = 0;
    if (tls_dane_count_usable(options->dane, options->dane_count) == 0)
        return NULL;
    assert(options->dane_count <= TLS_DANE_RECORDS_MAX);
    assert(options->dane_name_count <= NAMES_MAX);
    dane = memory_new(sizeof(*dane));
    for (size_t i = 0; i < options->dane_count; i++)
        size += options->dane[i].data.length;
    for (size_t i = 0; i < options->dane_name_count; i++)
        size += options->dane_names[i].length;
    char *to = dane->bytes = memory_new(size);
    for (size_t i = 0; i < options->dane_count; i++)
        if (tls_dane_is_usable(&options->dane[i])) {
            struct tls_dane_record *r = &dane->records[dane->count++];
            *r = options->dane[i];
            r->data = tls_dane_copy(&to, r->data);
        }
    for (size_t i = 0; i < options->dane_name_count; i++)
        dane->names[dane->name_count++] = tls_dane_copy(&to, options->dane_names[i]);
    qsort(dane->records, dane->count, sizeof(dane->records[0]), tls_dane_compare);
    return dane;
}

void
tls_dane_free(struct tls_dane **dane)
{
    if (*dane != NULL)
        free((*dane)->bytes);
    free(*dane);
    *dane = NULL;
}

/* Each piece behind its size, so that no two sets give the same octets. */
static void
tls_dane_digest_add(struct digest *d, struct text piece)
{
    uint64_t size = piece.length;
    digest_add(d, text_of(&size, sizeof(size)));
    digest_add(d, piece);
}

void
tls_dane_digest(const struct tls_dane *dane, unsigned char out[DIGEST_SIZE])
{
    struct digest d;
    digest_begin(&d);
    for (size_t i = 0; i < dane->count; i++) {
        const struct tls_dane_record *r = &dane->records[i];
        const unsigned char kind[3] = {r->usage, r->selector, r->matching};
        tls_dane_digest_add(&d, text_of(kind, sizeof(kind)));
        tls_dane_digest_add(&d, r->data);
    }
    for (size_t i = 0; i < dane->name_count; i++)
        tls_dane_digest_add(&d, dane->names[i]);
    digest_end(&d, out);
}
