/* The counters of TLSRPT: rows, limits, totals, and what outcomes are called. */
#include "smtp/trust/tls_reports.h"

#include "t/support/tap.h"

struct seen {
    char text[600];
    size_t rows;
};

static void
see(void *context, const struct tls_reports_row *row)
{
    struct seen *s = context;
    size_t length = strlen(s->text);
    s->rows++;
    if (length < sizeof(s->text) - 100)
        snprintf(s->text + length, sizeof(s->text) - length, "%s %s %s %s %" PRIu64 "\n",
                 tls_reports_policy_word(row->policy), row->domain, row->host, tls_reports_word(row->result),
                 row->count);
}

TEST(rows)
{
    struct tls_reports *r = tls_reports_new();
    struct seen seen = {.rows = 0};
    for (int i = 0; i < 3; i++)
        tls_reports_count(r, TLS_REPORTS_STS, TEXT("A.test"), TEXT("mx.test"), TLS_REPORTS_SUCCESS);
    tls_reports_count(r, TLS_REPORTS_DANE, TEXT("b.test"), TEXT("mx.test"), TLS_REPORTS_TLSA);
    tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), TEXT("MX.test"), TLS_REPORTS_EXPIRED);
    tls_reports_each(r, see, &seen);
    is_string(seen.text,
              "tlsa b.test mx.test tlsa-invalid 1\nsts a.test mx.test success 3\nsts a.test MX.test certificate-expired 1\n",
              "by policy, domain, host and result; the last one used comes last");
    struct tls_reports_totals t = tls_reports_totals(r);
    ok(t.good[TLS_REPORTS_STS] == 3 && t.failed[TLS_REPORTS_STS] == 1);
    ok(t.good[TLS_REPORTS_DANE] == 0 && t.failed[TLS_REPORTS_DANE] == 1);
    tls_reports_free(&r);
    ok(r == NULL);
}

TEST(limits)
{
    struct tls_reports *r = tls_reports_new();
    struct seen seen = {.rows = 0};
    char name[40];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "mx%d.test", i);
        tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), text_from(name), TLS_REPORTS_SUCCESS);
    }
    tls_reports_each(r, see, &seen);
    is_number((long)seen.rows, TLS_REPORTS_ROWS_MAX, "rows of a domain");
    for (int i = 0; i < TLS_REPORTS_DOMAINS_MAX; i++) {
        snprintf(name, sizeof(name), "d%d.test", i);
        tls_reports_count(r, TLS_REPORTS_STS, text_from(name), TEXT("mx.test"), TLS_REPORTS_SUCCESS);
    }
    memset(&seen, 0, sizeof(seen));
    tls_reports_each(r, see, &seen);
    is_number((long)seen.rows, TLS_REPORTS_DOMAINS_MAX, "domains: the first is dropped");
    ok(strstr(seen.text, "a.test mx") == NULL);
    is_number((long)tls_reports_totals(r).good[TLS_REPORTS_STS], 50 + TLS_REPORTS_DOMAINS_MAX, "the totals keep all");
    tls_reports_free(&r);
}

TEST(judge)
{
    static const struct {
        const char *enhanced, *text, *word;
    } rows[] = {
        {"4.7.4", "TLS is demanded by DANE but host a does not offer STARTTLS", "starttls-not-supported"},
        {"4.7.5", "failed in the TLS handshake: no TLSA record matches the certificate", "tlsa-invalid"},
        {"4.7.5", "TLSA records of mx.test cannot be looked up: SERVFAIL", "dnssec-invalid"},
        {"4.7.5", "handshake: certificate does not name mx.test (it names a)", "certificate-host-mismatch"},
        {"4.7.5", "certificate has expired on 2021-02-03", "certificate-expired"},
        {"4.7.5", "certificate is not valid before 2048-01-01", "certificate-expired"},
        {"4.7.5", "certificate is self-signed", "certificate-not-trusted"},
        {"4.7.5", "unknown issuer O=x", "certificate-not-trusted"},
        {"4.7.5", "the peer does not speak TLS", "validation-failure"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct outcome o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, rows[i].enhanced, "%s", rows[i].text);
        is_string(tls_reports_word(tls_reports_judge(&o)), rows[i].word, rows[i].text);
    }
}

/* The kinds of errors of base/http/, and of TLS there. */
TEST(fetches)
{
    static const struct {
        const char *error, *word;
    } rows[] = {
        {"mta-sts.y.test: no complete response in 10 s", "sts-policy-fetch-error"},
        {"mta-sts.y.test: Connection refused", "sts-policy-fetch-error"},
        {"mta-sts.certificate .test: Connection refused", "sts-policy-fetch-error"},
        {"no such host", "sts-policy-fetch-error"},
        {"", "sts-policy-fetch-error"},
        {"mta-sts.y.test: TLS: certificate does not name mta-sts.y.test", "sts-webpki-invalid"},
        {"mta-sts.y.test: certificate has expired on 2021-02-03", "sts-webpki-invalid"},
        {"mta-sts.y.test: certificate is self-signed", "sts-webpki-invalid"},
        {"mta-sts.y.test: unknown issuer O=x", "sts-webpki-invalid"},
    };
    struct tls_reports *r = tls_reports_new();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is_string(tls_reports_word(tls_reports_judge_fetch(rows[i].error)), rows[i].word, rows[i].error);
    tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), TEXT(""), TLS_REPORTS_FETCH);
    tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), TEXT(""), TLS_REPORTS_INVALID);
    tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), TEXT(""), TLS_REPORTS_WEBPKI);
    tls_reports_count(r, TLS_REPORTS_STS, TEXT("a.test"), TEXT("mx"), TLS_REPORTS_VALIDATION);
    is_number((long)tls_reports_totals(r).failed[TLS_REPORTS_STS], 1, "the totals are of sessions");
    tls_reports_free(&r);
}
