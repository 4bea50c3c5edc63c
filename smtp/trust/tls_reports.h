/* How connections went that DANE or MTA-STS had a demand of, and why policies of MTA-STS
 * could not be fetched: the counters of TLSRPT (RFC 8460 §4.3). Pure.
 *
 * Counted by policy, domain, host and result, in memory. At most TLS_REPORTS_DOMAINS_MAX
 * domains, of TLS_REPORTS_ROWS_MAX rows each, then the domain counted least recently is
 * dropped; the totals keep its numbers. */
#ifndef SMTP_TRUST_TLS_REPORTS_H
#define SMTP_TRUST_TLS_REPORTS_H

#include "base/outcome.h"
#include "base/text.h"

enum { TLS_REPORTS_DOMAINS_MAX = 1000, TLS_REPORTS_ROWS_MAX = 16 };

enum tls_reports_policy { TLS_REPORTS_DANE, TLS_REPORTS_STS, TLS_REPORTS_POLICIES };
/* The words of RFC 8460 §4.3 are tls_reports_word()'s. */
enum tls_reports_result {
    TLS_REPORTS_SUCCESS,
    TLS_REPORTS_NO_STARTTLS,
    TLS_REPORTS_MISMATCH, /* the certificate is of another name */
    TLS_REPORTS_EXPIRED,
    TLS_REPORTS_NOT_TRUSTED, /* of an unknown authority */
    TLS_REPORTS_TLSA,        /* no TLSA record matches */
    TLS_REPORTS_DNSSEC,      /* TLSA records cannot be looked up */
    /* For a fetch, without a host; not in the totals, which are of sessions. */
    TLS_REPORTS_FETCH,
    TLS_REPORTS_INVALID,    /* it was had, and is no policy */
    TLS_REPORTS_WEBPKI,     /* the certificate of its host */
    TLS_REPORTS_VALIDATION, /* anything else */
    TLS_REPORTS_RESULTS
};

struct tls_reports;
struct tls_reports *tls_reports_new(void);
void tls_reports_free(struct tls_reports **reports);
void tls_reports_count(struct tls_reports *reports, enum tls_reports_policy policy,
                       struct text domain, struct text host,
                       enum tls_reports_result result);
/* The kind of a failure of TLS, by its outcome. */
enum tls_reports_result tls_reports_judge(const struct outcome *outcome);

/* The kind of a failure to fetch a policy, by the error of http_call.h. */
enum tls_reports_result tls_reports_judge_fetch(const char *error);

struct tls_reports_row {
    enum tls_reports_policy policy;
    enum tls_reports_result result;
    const char *domain, *host; /* borrowed */
    uint64_t count;
};
/* The domain counted least recently comes first. */
void tls_reports_each(const struct tls_reports *reports,
                      void (*each)(void *context, const struct tls_reports_row *row),
                      void *context);
struct tls_reports_totals {
    uint64_t good[TLS_REPORTS_POLICIES], failed[TLS_REPORTS_POLICIES];
};
struct tls_reports_totals tls_reports_totals(const struct tls_reports *reports);
/* "tlsa", "sts"; "success", "starttls-not-supported" ... */
const char *tls_reports_policy_word(enum tls_reports_policy policy);
const char *tls_reports_word(enum tls_reports_result result);

#endif
