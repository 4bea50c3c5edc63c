/* Senders of forwarded mail (SRS, the Sender Rewriting Scheme): a sender that leads back
 * through this host, so that SPF permits it. Pure.
 *
 *   SRS0=HHHHHH=TT=DOMAIN=LOCAL@OURS    for LOCAL@DOMAIN
 *   SRS1=HHHHHH=HOST==REST@OURS         for SRS0=REST@HOST, and SRS1=...=HOST==REST@...
 *
 * HHHHHH: the first 30 bits of HMAC-SHA-256(secret, lower case of all that follows the
 * hash), base32. TT: days since 1970 modulo 1024, two such digits. Any case is taken back,
 * and =, - and + as the first separator. SRS1 whose HOST is OURS leads back to the address
 * of the SRS0 behind it. */
#ifndef MIME_SRS_H
#define MIME_SRS_H

#include "base/text.h"

enum {
    SRS_ADDRESS_MAX = 512, /* of the array of an address */
    SRS_DAYS_MAX = 21,
    SRS_DAY_DIGITS = 2,
    SRS_SECRETS_MAX = 16,
    SRS_SECRET_MIN = 16 /* bytes */
};

struct srs;

/* secrets: count of them; the first signs, all verify. Copied. Without any it is blind:
 * it rewrites nothing, and cannot tell whether an address was made here. */
struct srs *srs_new(struct text domain, const struct text *secrets, size_t count);
bool srs_is_blind(const struct srs *srs);
void srs_free(struct srs **srs);
/* The domain of the addresses. */
struct text srs_domain(const struct srs *srs);

/* The sender, in normal form and with a domain, for mail that is forwarded. False: the
 * result would be longer than an address may be, or it is blind; out is undefined. */
bool srs_forward(const struct srs *srs, struct text sender, int64_t now_ms,
                 char out[SRS_ADDRESS_MAX]) __attribute__((warn_unused_result));

/* --- For other tags by the same secrets (mime/verp.h) ------------------------------ */

/* The first `count` digits, of 5 bits each and at most 50, of a keyed hash of t in lower
 * case. False: t is too long, or there is no secret of that number. */
bool srs_digits(const struct srs *srs, size_t which, struct text t, unsigned count,
                char *out);
/* TT. */
void srs_day(int64_t now_ms, char out[SRS_DAY_DIGITS]);
/* SRS_DAYS_MAX old at most. */
bool srs_is_young(struct text day, int64_t now_ms);

/* --- Back --------------------------------------------------------------------------- */

enum srs_answer {
    SRS_NO,   /* it is no address of this scheme and domain */
    SRS_GOOD, /* out is the address it stands for */
    SRS_BAD,  /* not made here, or too long ago */
    SRS_BLIND /* it is one, and the secrets are unknown now */
};
enum srs_answer srs_back(const struct srs *srs, struct text address, int64_t now_ms,
                         char out[SRS_ADDRESS_MAX]);

#endif
