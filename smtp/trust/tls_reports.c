/* Counters by domain, in the order of their last use. */
#include "smtp/trust/tls_reports.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { NAME_SIZE = 256 };

struct tls_reports_count {
    enum tls_reports_policy policy;
    enum tls_reports_result result;
    char *host;
    uint64_t count;
};

struct tls_reports_domain {
    UT_hash_handle hh; /* keeps the order of adding */
    char *name;
    size_t count;
    struct tls_reports_count rows[TLS_REPORTS_ROWS_MAX];
};

struct tls_reports {
    struct tls_reports_domain *domains;
    struct tls_reports_totals totals;
};

const char *
tls_reports_policy_word(enum tls_reports_policy policy)
{
    return policy == TLS_REPORTS_DANE ? "tlsa" : "sts";
}

const char *
tls_reports_word(enum tls_reports_result result)
{
    static const char *const words[] = {"success",
                                        "starttls-not-supported",
                                        "certificate-host-mismatch",
                                        "certificate-expired",
                                        "certificate-not-trusted",
                                        "tlsa-invalid",
                                        "dnssec-invalid",
                                        "sts-policy-fetch-error",
                                        "sts-policy-invalid",
                                        "sts-webpki-invalid",
                                        "validation-failure"};
    return words[result];
}

/* The sentences are those of base/tls/ and exchange.c. */
enum tls_reports_result
tls_reports_judge(const struct outcome *outcome)
{
    static const struct {
        const char *part;
        enum tls_reports_result result;
    } parts[] = {
        {"no TLSA record matches",     TLS_REPORTS_TLSA       },
        {"TLSA records of",            TLS_REPORTS_DNSSEC     },
        {"certificate does not name",  TLS_REPORTS_MISMATCH   },
        {"has expired on",             TLS_REPORTS_EXPIRED    },
        {"is not valid before",        TLS_REPORTS_EXPIRED    },
        {"certificate is self-signed", TLS_REPORTS_NOT_TRUSTED},
        {"unknown issuer",             TLS_REPORTS_NOT_TRUSTED},
    };
    if (strcmp(outcome->enhanced, "4.7.4") == 0)
        return TLS_REPORTS_NO_STARTTLS;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(outcome->text, parts[i].part) != NULL)
            return parts[i].result;
    return TLS_REPORTS_VALIDATION;
}

/* "HOST: WHY"; the host is the domain's to choose, and says nothing. */
enum tls_reports_result
tls_reports_judge_fetch(const char *error)
{
    const char *why = strstr(error, ": ");
    if (why == NULL)
        why = error;
    return strstr(why, "certificate ") != NULL || strstr(why, "unknown issuer") != NULL
               ? TLS_REPORTS_WEBPKI
               : TLS_REPORTS_FETCH;
}

static bool
tls_reports_is_of_fetch(enum tls_reports_result result)
{
    return result == TLS_REPORTS_FETCH || result == TLS_REPORTS_INVALID ||
           result == TLS_REPORTS_WEBPKI;
}

struct tls_reports *
tls_reports_new(void)
{
    return memory_new(sizeof(struct tls_reports));
}

static void
tls_reports_forget(struct tls_reports *r, struct tls_reports_domain *d)
{
    HASH_DEL(r->domains, d);
    for (size_t i = 0; i < d->count; i++)
        free(d->rows[i].host);
    free(d->name);
    free(d);
}

void
tls_reports_free(struct tls_reports **reports)
{
    if (*reports == NULL)
        return;
    while ((*reports)->domains != NULL)
        tls_reports_forget(*reports, (*reports)->domains);
    free(*reports);
    *reports = NULL;
}

static struct tls_reports_domain *
tls_reports_domain(struct tls_reports *r, struct text name)
{
    char key[NAME_SIZE];
    struct tls_reports_domain *d;
    text_copy(key, sizeof(key), name);
    text_lower(key, strlen(key));
    HASH_FIND_STR(r->domains, key, d);
    if (d != NULL) {
        HASH_DEL(r->domains, d);
    } else {
        if (HASH_COUNT(r->domains) == TLS_REPORTS_DOMAINS_MAX)
            tls_reports_forget(r, r->domains);
        d = memory_new(sizeof(*d));
        d->name = memory_string(key);
    }
    HASH_ADD_KEYPTR(hh, r->domains, d->name, strlen(d->name), d);
    return d;
}

void
tls_reports_count(struct tls_reports *r, enum tls_reports_policy policy,
                  struct text domain, struct text host, enum tls_reports_result result)
{
    struct tls_reports_domain *d = tls_reports_domain(r, domain);
    if (result == TLS_REPORTS_SUCCESS)
        r->totals.good[policy]++;
    else if (!tls_reports_is_of_fetch(result))
        r->totals.failed[policy]++;
    for (size_t i = 0; i < d->count; i++) {
        struct tls_reports_count *row = &d->rows[i];
        if (row->policy == policy && row->result == result &&
            text_equal_nocase(text_from(row->host), host)) {
            row->count++;
            return;
        }
    }
    if (d->count < TLS_REPORTS_ROWS_MAX)
        d->rows[d->count++] =
            (struct tls_reports_count){policy, result, text_string(host), 1};
}

void
tls_reports_each(const struct tls_reports *r,
                 void (*each)(void *context, const struct tls_reports_row *row),
                 void *context)
{
    for (const struct tls_reports_domain *d = r->domains; d != NULL; d = d->hh.next)
        for (size_t i = 0; i < d->count; i++)
            each(context,
                 &(struct tls_reports_row){d->rows[i].policy, d->rows[i].result,
                                           d->name, d->rows[i].host, d->rows[i].count});
}

struct tls_reports_totals
tls_reports_totals(const struct tls_reports *r)
{
    return r->totals;
}
