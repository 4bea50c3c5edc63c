/* Keys, and what mbedTLS asks the system. */
#include "t/roof/secrecy.h"

#include "base/tls/tls_self_signed.h"
#include "t/roof/host.h"
#include "t/roof/roof.h"
#include "t/sim/sim.h"

#include <mbedtls/entropy.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if MBEDTLS_VERSION_NUMBER >= 0x03050000
#include <mbedtls/platform_time.h>
#endif

enum { YEARS = 2 };
#define YEAR_MS       (INT64_C(365) * 24 * HOUR_MS)
#define HOST_NAME     "host.pem"
#define ANCHOR_NAME   "anchor.pem"
#define HOP_NAME      "hop.pem"
#define STRANGER_NAME "stranger.pem"

static struct {
    bool is_on; /* a run has begun */
    uint64_t entropy;
    struct tls *tls; /* of the actors */
    struct tls_server *good, *stranger;
    struct tls_client *client;
} secrecy;

/* --- The system, as mbedTLS asks it: in the place of its own functions, and of the C
 * library's --- */

int
mbedtls_entropy_func(void *context, unsigned char *out, size_t size)
{
    (void)context;
    for (size_t i = 0; i < size; i++)
        out[i] = (unsigned char)roof_random_of(&secrecy.entropy);
    return 0;
}

/* No sources: gathering from them is much work at each start of a daemon. */
void
mbedtls_entropy_init(mbedtls_entropy_context *context)
{
    memset(context, 0, sizeof(*context));
}

void
mbedtls_entropy_free(mbedtls_entropy_context *context)
{
    (void)context;
}

static int64_t
wall_ms(void)
{
    struct timespec now = {0};
    if (secrecy.is_on)
        return SIM_WALL_START_MS + roof_now_ms();
    (void)!clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * SECOND_MS + now.tv_nsec / 1000000;
}

/* For the dates of certificates, tickets and randoms. */
time_t
time(time_t *out)
{
    time_t now = (time_t)(wall_ms() / SECOND_MS);
    if (out != NULL)
        *out = now;
    return now;
}

#if MBEDTLS_VERSION_NUMBER >= 0x03050000
mbedtls_ms_time_t
mbedtls_ms_time(void)
{
    return (mbedtls_ms_time_t)wall_ms();
}
#endif

/* --- Keys --- */

static void
make_pair(const struct text *names, size_t count, const char *file, const char *anchor)
{
    struct buffer certificate, key;
    buffer_init(&certificate, 2 * TLS_SELF_SIGNED_MAX);
    buffer_init(&key, TLS_SELF_SIGNED_MAX);
    if (!tls_self_signed_make(secrecy.tls, TLS_KEY_ECDSA, names, count,
                              SIM_WALL_START_MS, SIM_WALL_START_MS + YEARS * YEAR_MS,
                              &certificate, &key))
        abort();
    if (anchor != NULL)
        host_write_file(&host, HOST_FOLDER, anchor, buffer_text(&certificate));
    if (!buffer_add(&certificate, buffer_text(&key)))
        abort();
    host_write_file(&host, HOST_FOLDER, file, buffer_text(&certificate));
    buffer_free(&certificate);
    buffer_free(&key);
}

static struct tls_server *
server_of(const char *file)
{
    char path[64], error[TLS_ERROR_MAX];
    snprintf(path, sizeof(path), HOST_FOLDER "/%s", file);
    struct tls_pair pair = {.certificate = path, .key = path};
    struct tls_server *server =
        tls_server_new(secrecy.tls, &pair, 1, error, sizeof(error));
    if (server == NULL)
        roof_break("start", NULL, "%s", error);
    return server;
}

void
secrecy_seed(void)
{
    secrecy.is_on = true;
    secrecy.entropy = roof_fork("entropy");
}

void
secrecy_begin(const struct text *hops, size_t count)
{
    char error[TLS_ERROR_MAX];
    secrecy.tls = tls_new(error, sizeof(error));
    if (secrecy.tls == NULL)
        roof_break("start", NULL, "%s", error);
    make_pair(&TEXT("mx.roof.test"), 1, HOST_NAME, NULL);
    make_pair(hops, count, HOP_NAME, ANCHOR_NAME);
    make_pair(&TEXT("stranger.test"), 1, STRANGER_NAME, NULL);
    secrecy.good = server_of(HOP_NAME);
    secrecy.stranger = server_of(STRANGER_NAME);
    secrecy.client = tls_client_new(secrecy.tls, NULL, error, sizeof(error));
    if (secrecy.client == NULL)
        roof_break("start", NULL, "%s", error);
}

void
secrecy_renew(void)
{
    roof_note("certificate: renewed");
    make_pair(&TEXT("mx.roof.test"), 1, HOST_NAME, NULL);
}

bool
secrecy_has_begun(void)
{
    return secrecy.tls != NULL;
}

struct tls_server *
secrecy_hop(bool is_good)
{
    return is_good ? secrecy.good : secrecy.stranger;
}

struct tls_client *
secrecy_client(void)
{
    return secrecy.client;
}
