/* Elliptic curves without their work: in the place of mbedTLS's own functions.
 *
 * A run has thousands of handshakes, and the maths of curves was most of its time. Here a
 * point is the number that the generator is multiplied by, modulo the order. This is a
 * group, too: both sides of a key exchange come to the same secret, a signature is right
 * for its key alone, and all the rest of mbedTLS does its real work on it. It keeps no
 * secret, and nobody listens. */
#define MBEDTLS_ALLOW_PRIVATE_ACCESS
#include <mbedtls/ecp.h>
#include <stdbool.h>

/* A curve for ECDH alone needs no order. */
static const mbedtls_mpi *
modulus_of(const mbedtls_ecp_group *group)
{
    return mbedtls_ecp_get_type((mbedtls_ecp_group *)group) ==
                   MBEDTLS_ECP_TYPE_SHORT_WEIERSTRASS
               ? &group->N
               : &group->P;
}

static bool
is_generator(const mbedtls_ecp_group *group, const mbedtls_ecp_point *p)
{
    return p == &group->G || mbedtls_ecp_point_cmp(p, &group->G) == 0;
}

/* sum += factor * p, which is a generator or a product of before. */
static int
add_product(const mbedtls_ecp_group *group, mbedtls_mpi *sum, const mbedtls_mpi *factor,
            const mbedtls_ecp_point *p)
{
    mbedtls_mpi product;
    mbedtls_mpi_init(&product);
    int result = is_generator(group, p) ? mbedtls_mpi_copy(&product, factor)
                                        : mbedtls_mpi_mul_mpi(&product, factor, &p->X);
    if (result == 0)
        result = mbedtls_mpi_add_mpi(sum, sum, &product);
    if (result == 0)
        result = mbedtls_mpi_mod_mpi(sum, sum, modulus_of(group));
    mbedtls_mpi_free(&product);
    return result;
}

static int
set_point(mbedtls_ecp_point *p, const mbedtls_mpi *number)
{
    bool is_none = mbedtls_mpi_cmp_int(number, 0) == 0;
    int result = mbedtls_mpi_copy(&p->X, number);
    if (result == 0)
        result = mbedtls_mpi_lset(&p->Y, 1);
    return result == 0 ? mbedtls_mpi_lset(&p->Z, is_none ? 0 : 1) : result;
}

int
mbedtls_ecp_mul(mbedtls_ecp_group *group, mbedtls_ecp_point *out,
                const mbedtls_mpi *factor, const mbedtls_ecp_point *p,
                int (*chance)(void *, unsigned char *, size_t), void *context)
{
    mbedtls_mpi sum;
    (void)chance;
    (void)context;
    mbedtls_mpi_init(&sum);
    int result = add_product(group, &sum, factor, p);
    if (result == 0)
        result = set_point(out, &sum);
    mbedtls_mpi_free(&sum);
    return result;
}

int
mbedtls_ecp_mul_restartable(mbedtls_ecp_group *group, mbedtls_ecp_point *out,
                            const mbedtls_mpi *factor, const mbedtls_ecp_point *p,
                            int (*chance)(void *, unsigned char *, size_t),
                            void *context, mbedtls_ecp_restart_ctx *restart)
{
    (void)restart;
    return mbedtls_ecp_mul(group, out, factor, p, chance, context);
}

int
mbedtls_ecp_muladd(mbedtls_ecp_group *group, mbedtls_ecp_point *out,
                   const mbedtls_mpi *m, const mbedtls_ecp_point *p,
                   const mbedtls_mpi *n, const mbedtls_ecp_point *q)
{
    mbedtls_mpi sum;
    mbedtls_mpi_init(&sum);
    int result = add_product(group, &sum, m, p);
    if (result == 0)
        result = add_product(group, &sum, n, q);
    if (result == 0)
        result = set_point(out, &sum);
    mbedtls_mpi_free(&sum);
    return result;
}

int
mbedtls_ecp_muladd_restartable(mbedtls_ecp_group *group, mbedtls_ecp_point *out,
                               const mbedtls_mpi *m, const mbedtls_ecp_point *p,
                               const mbedtls_mpi *n, const mbedtls_ecp_point *q,
                               mbedtls_ecp_restart_ctx *restart)
{
    (void)restart;
    return mbedtls_ecp_muladd(group, out, m, p, n, q);
}

int
mbedtls_ecp_check_pubkey(const mbedtls_ecp_group *group, const mbedtls_ecp_point *p)
{
    bool good = mbedtls_mpi_cmp_int(&p->X, 0) > 0 &&
                mbedtls_mpi_cmp_mpi(&p->X, modulus_of(group)) < 0;
    return good ? 0 : MBEDTLS_ERR_ECP_INVALID_KEY;
}
