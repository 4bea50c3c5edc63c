/* The only room that knows mbedTLS: the digest that names messages. */
#include "base/tls.h"

#include <assert.h>
#include <mbedtls/md.h>
#include <mbedtls/version.h>

void
tls_digest(struct text t, unsigned char out[TLS_DIGEST_SIZE])
{
    const mbedtls_md_info_t *kind = mbedtls_md_info_from_type(MBEDTLS_MD_SHA256);
    assert(kind != NULL && mbedtls_md_get_size(kind) == TLS_DIGEST_SIZE);
    int error = mbedtls_md(kind, (const unsigned char *)t.at, t.length, out);
    assert(error == 0);
}

const char *
tls_version(void)
{
    /* Always the same content: the one that runs cannot change under us. */
    static char name[32] = "mbedTLS ";
    mbedtls_version_get_string(name + sizeof("mbedTLS ") - 1);
    return name;
}
