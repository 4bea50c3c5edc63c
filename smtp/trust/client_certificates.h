/* The certificates that next hops get from us: cert= and key= of the targets of routes.
 *
 * Read at startup and reload, and kept in the client of TLS that all connections share
 * (tls_client_take_own()). */
#ifndef SMTP_TRUST_CLIENT_CERTIFICATES_H
#define SMTP_TRUST_CLIENT_CERTIFICATES_H

#include "base/tls/tls.h"
#include "sched/route/route.h"

/* Fills pairs with the different ones of all targets, which are borrowed from the table;
 * returns their number. Those beyond TLS_PAIRS_MAX are omitted. */
size_t client_certificates_list(const struct route_table *routes,
                                struct tls_pair pairs[TLS_PAIRS_MAX]);
/* Reads them all. False: one line in error. */
bool client_certificates_read(const struct route_table *routes,
                              struct tls_client *client, char *error, size_t error_size)
    __attribute__((warn_unused_result));

#endif
