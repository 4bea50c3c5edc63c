/* Fuzz target: TLSA records of a hostile zone beside the certificates of a hostile host. Usable records are counted,
 * the order of records does not matter, and a record of the host's own certificate proves it. */
#include "base/tls/tls_dane.h"

#include "base/tls/tls_internal.h"
#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A record: usage, selector, matching type, length in two octets, data. */
enum { RECORDS_MAX = 33, HEAD = 5, TEXT_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A certificate of mail.example.net, and the authority above it. */
static const char certificates[] =
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBxzCCAW2gAwIBAgIUUpPY7U8KekKJ3pQVVsUfajQD1AswCgYIKoZIzj0EAwIw\n"
    "KzEVMBMGA1UECgwMUGV0cmVsIHRlc3RzMRIwEAYDVQQDDAlNaWRkbGUgQ0EwHhcN\n"
    "MjAwMTAxMDAwMDAwWhcNNDkwMTAxMDAwMDAwWjAbMRkwFwYDVQQDDBBtYWlsLmV4\n"
    "YW1wbGUubmV0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4TfLkpNpms91tQDm\n"
    "ukJc97sD87VFMIFIizAcVxsPYECmTMV9Tuxzmnvngi7mPvJRV1Fyy3DCa118HlM3\n"
    "4rXpM6N/MH0wCQYDVR0TBAIwADATBgNVHSUEDDAKBggrBgEFBQcDATAbBgNVHREE\n"
    "FDASghBtYWlsLmV4YW1wbGUubmV0MB0GA1UdDgQWBBSPtKRfoMZibu7W8VFTEKnY\n"
    "BXYxYjAfBgNVHSMEGDAWgBScDas5Mmtm3Yq8/ff/lOZHLlOwJTAKBggqhkjOPQQD\n"
    "AgNIADBFAiEA1ct6LA5zjEBb+yIWKMtN7g483GMeYuLIOEFkBHx3G7ICIAngQn1o\n"
    "YJOrsTIB8vFy89fCaguBBzqhOQcPgP4wIc7K\n"
    "-----END CERTIFICATE-----\n"
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBtTCCAVygAwIBAgIUAp4AwnyGXxgnp06IxS27MTo1MqkwCgYIKoZIzj0EAwIw\n"
    "KTEVMBMGA1UECgwMUGV0cmVsIHRlc3RzMRAwDgYDVQQDDAdHb29kIENBMB4XDTI2\n"
    "MTEyNDEzMzYxOFoXDTM2MTEyMTEzMzYxOFowKzEVMBMGA1UECgwMUGV0cmVsIHRl\n"
    "c3RzMRIwEAYDVQQDDAlNaWRkbGUgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
    "AAR+tonjDWhXYzPBIxxjmucJZEkwsvbnbAP3Fj0UaOO6g6LPmbSxMYlTVKZjE3BF\n"
    "9TTz9uYjvgMYWRlM+3PjS3TNo2AwXjAPBgNVHRMBAf8EBTADAQH/MAsGA1UdDwQE\n"
    "AwIBBjAdBgNVHQ4EFgQUnA2rOTJrZt2KvP33/5TmRy5TsCUwHwYDVR0jBBgwFoAU\n"
    "wOcq98RbfI8xkwqFZ4LX2gBuj/8wCgYIKoZIzj0EAwIDRwAwRAIgbQl/nc9R2qaQ\n"
    "M2VJ4YwKpQDDRhZGQygd0bL0vLF/63oCIFDgNVcRoV86BimME8Ou3PoHuYY5UYO7\n"
    "pnXgReD/qc3V\n"
    "-----END CERTIFICATE-----\n";

static struct text
take(const uint8_t **data, size_t *size, size_t head)
{
    size_t length =
        *size >= head ? (size_t)(*data)[head - 2] << 8 | (*data)[head - 1] : 0;
    if (*size < head || length > *size - head)
        length = *size < head ? 0 : *size - head;
    struct text piece =
        *size < head ? TEXT("") : text_of((const char *)*data + head, length);
    size_t used = *size < head ? *size : head + length;
    *data += used;
    *size -= used;
    return piece;
}

static void
check_proof(mbedtls_x509_crt *chain, const struct tls_client_options *options)
{
    char why[TEXT_MAX] = "";
    unsigned char one[DIGEST_SIZE], other[DIGEST_SIZE];
    struct tls_dane_record reversed[TLS_DANE_RECORDS_MAX];
    struct tls_client_options again = *options;
    size_t usable = tls_dane_count_usable(options->dane, options->dane_count);
    struct tls_dane *dane = tls_dane_new(options);
    must(usable <= options->dane_count && (dane != NULL) == (usable > 0));
    if (dane == NULL)
        return;
    for (size_t i = 0; i < options->dane_count; i++)
        reversed[i] = options->dane[options->dane_count - 1 - i];
    again.dane = reversed;
    struct tls_dane *twin = tls_dane_new(&again);
    tls_dane_digest(dane, one);
    tls_dane_digest(twin, other);
    must(memcmp(one, other, sizeof(one)) == 0);
    bool good = tls_dane_proves(dane, chain, why, sizeof(why));
    must(memchr(why, '\0', sizeof(why)) != NULL);
    must(good == tls_dane_proves(twin, chain, why, sizeof(why)));
    tls_dane_free(&twin);
    tls_dane_free(&dane);
}

static void
check_own(mbedtls_x509_crt *chain, struct tls_client_options *options,
          struct tls_dane_record *records)
{
    char why[TEXT_MAX];
    size_t last =
        options->dane_count < TLS_DANE_RECORDS_MAX ? options->dane_count++ : 0;
    records[last] = (struct tls_dane_record){
        3, 0, 0, text_of((const char *)chain->raw.p, chain->raw.len)};
    struct tls_dane *dane = tls_dane_new(options);
    must(dane != NULL && tls_dane_proves(dane, chain, why, sizeof(why)));
    tls_dane_free(&dane);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text names[] = {TEXT("mail.example.net"), TEXT("example.net")};
    struct tls_dane_record records[TLS_DANE_RECORDS_MAX];
    mbedtls_x509_crt chain;
    size_t count = 0, most;
    if (size == 0)
        return 0;
    most = data[0] % RECORDS_MAX;
    mbedtls_x509_crt_init(&chain);
    for (data++, size--; count < most && count < TLS_DANE_RECORDS_MAX && size >= HEAD;
         count++) {
        const uint8_t *head = data;
        records[count] = (struct tls_dane_record){head[0], head[1], head[2],
                                                  take(&data, &size, HEAD)};
    }
    while (size > 2) {
        struct text der = take(&data, &size, 2);
        (void)mbedtls_x509_crt_parse_der(&chain, (const unsigned char *)der.at,
                                         der.length);
    }
    if (chain.raw.p == NULL)
        must(mbedtls_x509_crt_parse(&chain, (const unsigned char *)certificates,
                                    sizeof(certificates)) == 0);
    struct tls_client_options options = {.dane = records,
                                         .dane_count = count,
                                         .dane_names = names,
                                         .dane_name_count = 2};
    check_proof(&chain, &options);
    check_own(&chain, &options, records);
    mbedtls_x509_crt_free(&chain);
    return 0;
}
