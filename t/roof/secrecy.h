/* TLS under the roof: the real mbedTLS with the chance and the clock of the run, and the
 * certificates of hosts, hops and clients. */
#ifndef T_ROOF_SECRECY_H
#define T_ROOF_SECRECY_H

#include "base/tls/tls.h"

#include <stdbool.h>
#include <stddef.h>

#define SECRECY_HOST   "/etc/petrel/host.pem" /* of mx.roof.test, with its key */
#define SECRECY_ANCHOR "/etc/petrel/anchor.pem"

/* From now on mbedTLS has the chance and the clock of the run. */
void secrecy_seed(void);
/* Draws keys and writes files, in the disk of the run. Hops may be at these addresses or
 * have these names. */
void secrecy_begin(const struct text *hops, size_t count);
bool secrecy_has_begun(void);
/* Another certificate of the host, in the same file. */
void secrecy_renew(void);

/* A hop's: with the certificate that SECRECY_ANCHOR proves, or with that of a stranger. */
struct tls_server *secrecy_hop(bool is_good);
/* A client's, which believes any certificate. */
struct tls_client *secrecy_client(void);

#endif
