/* TLSA records: which can prove a certificate (RFC 6698, RFC 7671, for SMTP RFC 7672).
 */
#ifndef BASE_TLS_TLS_DANE_H
#define BASE_TLS_TLS_DANE_H

#include "base/tls/tls.h"

/* DANE-TA(2) and DANE-EE(3), with a selector and a matching type that are known and data
 * of their size. PKIX-TA(0) and PKIX-EE(1) are not for SMTP (RFC 7672 §3.1.3); "2 1 0"
 * is a key without a certificate, with which no chain can be verified. */
bool tls_dane_is_usable(const struct tls_dane_record *record);
size_t tls_dane_count_usable(const struct tls_dane_record *records, size_t count);

#endif
