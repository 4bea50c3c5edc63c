/* Policies, and what the host has of them by its log. */
#include "t/roof/policy.h"

#include "smtp/trust/sts.h"
#include "t/roof/editor.h"
#include "t/roof/host.h"
#include "t/roof/web.h"
#include "t/sim/sim_dns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PORT = 8443,
    COUNT = 2,
    TEXT_SIZE = 300,
    LARGE = 70 * 1000,         /* octets: more than a policy may have */
    SAVED_MS = 5 * MINUTE_MS,  /* a policy is in the file by then */
    LANDED_MS = 2 * SECOND_MS, /* connections of deliveries that began without it */
    RENEWED_MS =
        30 * SECOND_MS, /* from the end of a kept connection to that in its place */
    FOUND_MS =
        HOUR_MS, /* so long a session goes by what it has found (smtp/connect/exchange.h) */
    WRONG_MS = 10 * MINUTE_MS, /* one that forbids all hosts lasts no longer */
    REST_MS = 75 * MINUTE_MS,  /* no policy is fetched for so long, at most */
};

enum policy_kind {
    POLICY_RIGHT,   /* enforce, for all hosts */
    POLICY_ONE,     /* enforce, for the first host alone */
    POLICY_WRONG,   /* enforce, for no host */
    POLICY_TESTING, /* the same, in mode testing */
    POLICY_NONE,    /* mode none */
    POLICY_MALFORMED,
    POLICY_LARGE,
    POLICY_NO_TEXT, /* of another type */
    POLICY_GONE,    /* no record */
    POLICY_KINDS
};

struct sts_domain {
    unsigned domain;
    const char *name, *record_name, *host, *ip, *first; /* host of MX */
    struct web *web;
    enum policy_kind kind;
    unsigned serial; /* its id; 0: there was none */
    int64_t age_s;
    char record[2][TEXT_SIZE]; /* by turns: the stand-in borrows them */
    /* By the log. */
    bool is_certain;
    enum sts_mode mode;
    char patterns[TEXT_SIZE];
    int64_t since_ms, max_age_ms;
};

static struct {
    int64_t renewed_ms; /* when a kept connection has ended, the last one */
    uint64_t chance;
    bool has_begun, is_blurred;
    struct sts_domain rows[COUNT];
} policy = {
    .rows = {{.domain = 3,
              .name = "d3.test",
              .record_name = "_mta-sts.d3.test",
              .host = POLICY_HOST_3,
              .ip = "10.0.4.3",
              .first = "mx3a.test"},
             {.domain = 4,
              .name = "d4.test",
              .record_name = "_mta-sts.d4.test",
              .host = POLICY_HOST_4,
              .ip = "10.0.4.4",
              .first = "mx4.test"}},
};

/* --- Files ------------------------------------------------------------------------- */

static void
policy_asked(void *context, struct text request, struct text body, struct buffer *out)
{
    const struct sts_domain *p = context;
    struct buffer file;
    (void)body;
    if (!text_starts(request, TEXT("GET /.well-known/mta-sts.txt ")) ||
        p->kind == POLICY_GONE) {
        web_answer(out, 404, "text/plain", TEXT("nobody"));
        return;
    }
    const char *mode = p->kind == POLICY_NONE      ? "none"
                       : p->kind == POLICY_TESTING ? "testing"
                                                   : "enforce",
               *mx = p->kind == POLICY_RIGHT || p->kind >= POLICY_MALFORMED ? "*.test"
                     : p->kind == POLICY_ONE                                ? p->first
                                             : "other.example";
    buffer_init(&file, 2 * LARGE);
    bool fits =
        buffer_format(&file, "version: STSv1\nmode: %s\nmx: %s\nmax_age: %" PRId64 "\n",
                      mode, mx, p->age_s);
    while (fits && p->kind == POLICY_LARGE && file.length < LARGE)
        fits = buffer_add(&file, TEXT("mx: of.a.long.list.example\n"));
    if (p->kind == POLICY_MALFORMED)
        file.at[0] = 'V';
    if (p->kind == POLICY_MALFORMED)
        file.length /= 2;
    if (!fits)
        abort();
    web_answer(out, 200, p->kind == POLICY_NO_TEXT ? "text/html" : "text/plain",
               buffer_text(&file));
    buffer_free(&file);
}

/* --- Records ----------------------------------------------------------------------- */

static const char *
record_of(const struct sts_domain *p)
{
    return p->record[p->serial % 2];
}

static void
publish_at(const struct sts_domain *p, struct dns *dns)
{
    if (p->serial == 0 || p->kind == POLICY_GONE)
        sim_dns_forget(dns, p->record_name);
    else
        sim_dns_text_change(dns, p->record_name, record_of(p));
}

void
policy_fill_dns(struct dns *dns)
{
    for (unsigned i = 0; i < COUNT && policy.has_begun; i++) {
        sim_dns_address(dns, policy.rows[i].host, policy.rows[i].ip);
        publish_at(&policy.rows[i], dns);
    }
}

static void
publish(struct sts_domain *p, enum policy_kind kind, int64_t age_s)
{
    p->serial++;
    p->kind = kind;
    /* the host of MX may be another by the time that the policy's host has gone */
    bool may_forbid = kind == POLICY_ONE || kind == POLICY_WRONG;
    p->age_s =
        may_forbid && age_s > WRONG_MS / SECOND_MS ? WRONG_MS / SECOND_MS : age_s;
    snprintf(p->record[p->serial % 2], TEXT_SIZE, "v=STSv1; id=n%u;", p->serial);
    roof_note("policy of %s: kind %u, %" PRId64 " s", p->name, kind, p->age_s);
    for (struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running)
            publish_at(p, h->daemon.dns);
}

static void
publish_any(struct sts_domain *p)
{
    static const int64_t ages_s[] = {60, 600, 3600, 86400, 31557600};
    unsigned kinds =
        roof_below_of(&policy.chance, 2) == 0 ? POLICY_TESTING : POLICY_KINDS;
    int64_t age_s = ages_s[roof_below_of(&policy.chance, 5)];
    publish(p, (enum policy_kind)roof_below_of(&policy.chance, kinds), age_s);
}

/* --- The host's ---------------------------------------------------------------------- */

static struct sts_domain *
policy_of(struct text domain)
{
    for (unsigned i = 0; i < COUNT; i++)
        if (text_equal(domain, text_from(policy.rows[i].name)))
            return &policy.rows[i];
    return NULL;
}

/* "sts: MTA-STS policy of d3.test: mode enforce for 600 s, mx *.test" */
void
policy_line(struct text line)
{
    struct text rest = line, domain, mode, age;
    uint64_t age_s;
    if (text_starts(line, TEXT("smtp: a kept connection has ended")))
        policy.renewed_ms = roof_now_ms();
    if (!text_starts(line, TEXT("sts: MTA-STS policy of ")))
        return;
    rest = text_after(rest, sizeof("sts: MTA-STS policy of ") - 1);
    text_cut(&rest, ':', &domain);
    struct sts_domain *p = policy_of(domain);
    if (p == NULL || !text_starts(rest, TEXT(" mode ")))
        return;
    rest = text_after(rest, sizeof(" mode ") - 1);
    text_cut(&rest, ' ', &mode);
    rest = text_after(rest, sizeof("for ") - 1);
    text_cut(&rest, ' ', &age);
    rest = text_after(rest, sizeof("s, mx ") - 1);
    if (!sts_mode_read(mode, &p->mode) || !text_number(age, UINT32_MAX, &age_s))
        roof_break("truth", NULL, "the log of a policy: %.*s", TEXT_ARGS(line));
    text_copy(p->patterns, sizeof(p->patterns), rest);
    p->is_certain = true;
    p->since_ms = roof_now_ms();
    p->max_age_ms = (int64_t)age_s * SECOND_MS;
}

void
policy_start(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        if (policy.is_blurred || policy.rows[i].since_ms > roof_now_ms() - SAVED_MS)
            policy.rows[i].is_certain = false;
}

static const char *
mx_of(const char *hop)
{
    static const struct {
        const char *hop, *mx;
    } rows[] = {
        {"hop3", "mx3a.test"},
        {"hop4", "mx3b.test"},
        {"hop5", "mx4.test" },
        {"hop6", "mx4.test" }
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(rows[i].hop, hop) == 0)
            return rows[i].mx;
    return "";
}

/* A session whose kept connection has ended may go on over another one, to a host that it
 * found when the policy was another. */
static bool
may_be_renewed(const struct sts_domain *p, int64_t began_ms)
{
    return policy.renewed_ms > 0 && began_ms - RENEWED_MS < policy.renewed_ms &&
           began_ms + RENEWED_MS > policy.renewed_ms &&
           began_ms < p->since_ms + FOUND_MS;
}

void
policy_judge(unsigned domain, const char *hop, int64_t began_ms, bool is_proven)
{
    for (unsigned i = 0; i < COUNT && policy.has_begun && !host.is_shared; i++) {
        const struct sts_domain *p = &policy.rows[i];
        int64_t now_ms = roof_now_ms();
        /* tls=none is before all policies */
        if (p->domain != domain || !p->is_certain || p->mode != STS_MODE_ENFORCE ||
            began_ms < p->since_ms + LANDED_MS ||
            now_ms >= p->since_ms + p->max_age_ms ||
            editor_tls_of(domain) < EDITOR_TLS_MAY || may_be_renewed(p, began_ms))
            continue;
        if (!is_proven || roof_breaks("policy"))
            roof_break("bounds", hop,
                       "mail for %s comes to %s, which is not proven, "
                       "under a policy that demands it",
                       p->name, hop);
        if (!sts_matches(p->patterns, text_from(mx_of(hop))))
            roof_break("bounds", hop,
                       "mail for %s comes to %s, which its policy does "
                       "not name: %s",
                       p->name, mx_of(hop), p->patterns);
    }
}

/* --- The course --------------------------------------------------------------------- */

void
policy_begin(bool is_blurred)
{
    policy.has_begun = true;
    policy.is_blurred = is_blurred;
    policy.chance = roof_fork("policies");
    for (unsigned i = 0; i < COUNT; i++) {
        struct sts_domain *p = &policy.rows[i];
        p->web = web_new(p->host, p->ip, PORT, policy_asked, p);
        if (roof_breaks("policy"))
            publish(p, POLICY_RIGHT, 86400);
        else if (roof_below_of(&policy.chance, 4) > 0)
            publish_any(p);
    }
}

void
policy_act(void)
{
    struct sts_domain *p = &policy.rows[roof_below_of(&policy.chance, COUNT)];
    if (roof_breaks("policy"))
        return;
    if (roof_below_of(&policy.chance, 2) == 0)
        publish_any(p);
    else
        web_act(p->web);
}

void
policy_become_good(void)
{
    for (unsigned i = 0; i < COUNT && policy.has_begun; i++) {
        struct sts_domain *p = &policy.rows[i];
        if (roof_below_of(&policy.chance, 2) == 0) {
            web_become_good(p->web);
            publish(p, POLICY_RIGHT, 86400);
        } else {
            web_leave(p->web);
        }
    }
}

void
policy_leave(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        web_leave(policy.rows[i].web);
}

int64_t
policy_wait_ms(void)
{
    return policy.has_begun ? WRONG_MS + REST_MS : 0;
}
