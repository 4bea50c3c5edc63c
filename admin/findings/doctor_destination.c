/* tls.destination: whether mail for an address could go there, and the demands for its
 * TLS; and the records that this host may publish, so that others can verify its TLS. */
#include "admin/findings/doctor_internal.h"

#include "base/net/net.h"
#include "base/tls/tls_file.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WAY_HOSTS_MAX = 5, FILES_MAX = 8, PATH_ROOM = 4096 };

/* --- The way there --------------------------------------------------------------------- */

struct way_host {
    char name[DNS_NAME_MAX];
    const struct inquiry_answer *answer;
};
struct way_case {
    struct doctor *d;
    const char *subject;
    bool is_address; /* else a domain: nobody in particular is asked for */
    struct way_host hosts[WAY_HOSTS_MAX];
    size_t count, good;
};

static const char *
way_domain(const char *subject)
{
    const char *at = strrchr(subject, '@');
    return at != NULL ? at + 1 : subject;
}

/* False: wait. */
static bool
ask_way(struct way_case *c)
{
    bool known = true;
    for (size_t i = 0; i < c->count; i++) {
        char key[INQUIRY_KEY_MAX];
        snprintf(key, sizeof(key), "%s %s", c->hosts[i].name, c->subject);
        c->hosts[i].answer = inquiry_ask(c->d->inquiry, INQUIRY_WAY, key);
        known &= c->hosts[i].answer != NULL;
        c->good += known && c->hosts[i].answer->status == DNS_FOUND &&
                   c->hosts[i].answer->verdict == DOCTOR_LOGIN_GOOD;
    }
    return known;
}

static void
judge_good(struct faults *out, const char *subject, const struct text *said)
{
    struct text tls = said[DOCTOR_WAY_TLS], demand = said[DOCTOR_WAY_DEMAND];
    char where[DNS_NAME_MAX + 80];
    (void)text_copy(where, sizeof(where), said[DOCTOR_WAY_WHERE]);
    if (tls.length == 0) {
        faults_add(out, FAULT_HINT, subject, "%s takes mail, but in cleartext: %s",
                   where,
                   said[DOCTOR_WAY_INSECURE].length > 0
                       ? said[DOCTOR_WAY_INSECURE].at
                       : "STARTTLS is not offered, or refused");
        faults_remedy(out, "Tell its operator. To send no mail there without TLS, "
                           "set tls=encrypt in a route for the domain.");
        return;
    }
    faults_add(out, FAULT_OK, subject, "%s takes mail (%.*s); %s%.*s; it %s", where,
               TEXT_ARGS(tls),
               demand.length > 0 ? "its domain demands " : "nobody demands more",
               TEXT_ARGS(demand),
               said[DOCTOR_WAY_REQUIRETLS].length > 0
                   ? "offers REQUIRETLS"
                   : "does not offer REQUIRETLS: mail that asks for it comes back");
}

static void
judge_refusal(struct faults *out, const char *subject, bool is_error,
              const struct inquiry_answer *a)
{
    enum fault_severity severity = is_error ? FAULT_ERROR : FAULT_WARNING;
    switch (a->status == DNS_FOUND ? (enum doctor_login)a->verdict
                                   : DOCTOR_LOGIN_DOWN) {
    case DOCTOR_LOGIN_RECIPIENT:
        faults_add(out, severity, subject, "it refuses the recipient: %s", a->reason);
        faults_remedy(out, "See that the address is written correctly; the words of "
                           "the host say why.");
        return;
    case DOCTOR_LOGIN_SENDER:
        faults_add(out, severity, subject, "it refuses our sender: %s", a->reason);
        faults_remedy(out, "See spf.record, host.ptr and mx.record of the sender's "
                           "domain: `petrel doctor`, without arguments.");
        return;
    case DOCTOR_LOGIN_GOOD:
    case DOCTOR_LOGIN_DOWN:
    case DOCTOR_LOGIN_REFUSED:
    case DOCTOR_LOGIN_TOKEN:
        break;
    }
    faults_add(out, severity, subject, "mail cannot be handed to it: %s", a->reason);
    if (a->status == DNS_FOUND && a->data.count > DOCTOR_WAY_DEMAND &&
        a->data.texts[DOCTOR_WAY_DEMAND].length > 0)
        faults_detail(out, "Its domain demands %.*s.",
                      TEXT_ARGS(a->data.texts[DOCTOR_WAY_DEMAND]));
    faults_remedy(out, "Mail waits, and is tried again automatically. If no other host "
                       "answers either, see net.port25; else tell its operator.");
}

static void
judge_way(const struct way_case *c, struct faults *out)
{
    char subject[2 * DOCTOR_NAME_MAX + 300];
    for (size_t i = 0; i < c->count; i++) {
        const struct inquiry_answer *a = c->hosts[i].answer;
        const char *name = c->hosts[i].name;
        snprintf(subject, sizeof(subject), "%s%s%s", c->subject,
                 strcmp(name, "-") != 0 ? " by " : "",
                 strcmp(name, "-") != 0 ? name : "");
        if (a->status == DNS_FOUND && a->verdict == DOCTOR_LOGIN_GOOD)
            judge_good(out, subject, a->data.texts);
        else
            judge_refusal(out, subject, c->good == 0 && c->is_address, a);
    }
}

static void
say_unasked(const struct doctor *d, struct faults *out)
{
    if (out->count > 0 && !dns_is_trusted(d->setup->dns))
        faults_detail(out, "TLSA records (DANE) are not asked for, since the name "
                           "servers are not trusted: see dns.resolver.");
    if (out->count > 0 && !d->options->delivery.mta_sts)
        faults_detail(out, "Policies of MTA-STS are not asked for: mta_sts = no.");
}

/* Those of the best preferences. */
static void
take_hosts(struct way_case *c, const struct inquiry_answer *mx)
{
    bool taken[DNS_MX_MAX] = {false};
    size_t all = mx->data.count < DNS_MX_MAX ? mx->data.count : DNS_MX_MAX;
    while (c->count < WAY_HOSTS_MAX && c->count < all) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < all; i++)
            if (!taken[i] &&
                (best == SIZE_MAX || mx->preferences[i] < mx->preferences[best]))
                best = i;
        taken[best] = true;
        (void)text_copy(c->hosts[c->count++].name, DNS_NAME_MAX, mx->data.hosts[best]);
    }
}

/* False: wait. */
static bool
examine_domain(struct way_case *c, struct faults *out)
{
    const char *domain = way_domain(c->subject);
    enum fault_severity severity = c->is_address ? FAULT_ERROR : FAULT_WARNING;
    bool is_literal = domain[0] == '[';
    const struct inquiry_answer *mx =
        is_literal ? NULL : inquiry_ask(c->d->inquiry, INQUIRY_MX, domain);
    if (mx == NULL && !is_literal)
        return false;
    if (mx != NULL && mx->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, c->subject,
                   "its MX records cannot be looked up: %s", mx->reason);
        faults_remedy(out, "See dns.resolver; if that is all right, the name servers "
                           "of the domain are at fault. Mail waits.");
        return true;
    }
    if (mx != NULL && mx->data.count > 0 && mx->data.hosts[0].length == 0) {
        faults_add(out, severity, c->subject,
                   "its null MX says that it takes no mail (RFC 7505)");
        faults_remedy(out, "See that the address is written correctly.");
        return true;
    }
    if (mx != NULL && mx->data.count > 0)
        take_hosts(c, mx);
    else
        snprintf(c->hosts[c->count++].name, DNS_NAME_MAX, "%s", domain);
    if (!ask_way(c))
        return false;
    judge_way(c, out);
    say_unasked(c->d, out);
    return true;
}

static void
judge_route(const struct doctor *d, struct faults *out, const char *subject,
            const struct target *target)
{
    switch (target->kind) {
    case TARGET_HOLD:
        faults_add(out, FAULT_WARNING, subject,
                   "a route holds its mail, until `petrel queue release --queue hold`");
        break;
    case TARGET_DISCARD:
        faults_add(out, FAULT_WARNING, subject,
                   "a route discards its mail without a word");
        break;
    case TARGET_ERROR:
        faults_add(out, FAULT_ERROR, subject, "a route refuses its mail: %s",
                   target->path);
        break;
    case TARGET_UNKNOWN:
        faults_add(out, FAULT_ERROR, subject,
                   "its domain is one of local_domains, and nobody here has that "
                   "name: mail for it is refused");
        break;
    case TARGET_MX:
    case TARGET_SMTP:
    case TARGET_LMTP:
    case TARGET_MAILDIR:
        faults_add(out, FAULT_OK, subject, "mail for it does not leave this host");
        return;
    case TARGET_HTTP:
        faults_add(out, FAULT_OK, subject, "mail for it is posted to %s", target->host);
        return;
    }
    faults_remedy(out,
                  "If it should go elsewhere, set routes, aliases or "
                  "local_domains in %s.",
                  doctor_settings(d));
}

const struct target *
doctor_route(const struct doctor_setup *setup, const char *subject)
{
    struct address address = {.local = TEXT("postmaster"),
                              .domain = text_from(way_domain(subject))};
    if (strchr(subject, '@') != NULL)
        (void)!address_parse(text_from(subject), &address);
    const char *sender = setup->sender != NULL ? setup->sender : "";
    return route_find_from(setup->routes, text_from(sender), &address, false);
}

bool
doctor_judge_destination(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct way_case c = {
        .d = d, .subject = subject, .is_address = strchr(subject, '@') != NULL};
    const struct target *target = doctor_route(d->setup, subject);
    if (target->kind == TARGET_MX)
        return examine_domain(&c, out);
    if (target->kind != TARGET_SMTP) {
        judge_route(d, out, subject, target);
        return true;
    }
    c.count = 1;
    snprintf(c.hosts[0].name, sizeof(c.hosts[0].name), "-");
    if (!ask_way(&c))
        return false;
    judge_way(&c, out);
    return true;
}

/* --- Records that this host may publish --------------------------------------------------- */

struct proof_case {
    char records[FILES_MAX][TLS_FILE_DIGEST_MAX + 8]; /* "3 1 1 HEX" */
    size_t count;
};

/* The certificates that a client gets for hostname. */
static void
read_certificates(const struct doctor *d, struct proof_case *c)
{
    struct text rest = d->options->server.tls_certificate, word;
    while (c->count < FILES_MAX && text_word(&rest, ", \t\r\n", &word)) {
        char error[TLS_ERROR_MAX], path[PATH_ROOM];
        struct tls_file f;
        (void)text_copy(path, sizeof(path), word);
        if (!tls_file_read(path, text_from(d->options->hostname), d->setup->anchors, &f,
                           error, sizeof(error)) ||
            !f.names_host)
            continue;
        snprintf(c->records[c->count++], sizeof(c->records[0]), "3 1 1 %s",
                 f.key_digest);
    }
}

static bool
has_record(const struct proof_case *c, struct text record)
{
    for (size_t i = 0; i < c->count; i++)
        if (text_equal(text_from(c->records[i]), record))
            return true;
    return false;
}

static void
advise_tlsa(const struct proof_case *c, struct faults *out, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        faults_record(out, name, "TLSA", c->records[i]);
}

/* A certificate that is renewed with its key keeps the record. */
static void
judge_tlsa(const struct proof_case *c, struct faults *out, const char *name,
           const struct inquiry_answer *a)
{
    size_t fits = 0, others = 0;
    for (size_t i = 0; i < a->data.count; i++)
        if (text_starts(a->data.texts[i], TEXT("3 1 1 ")))
            fits += has_record(c, a->data.texts[i]);
        else
            others++;
    if (a->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, name,
                   "its TLSA records cannot be looked up: %s; senders that use DANE "
                   "do not deliver then",
                   a->reason);
        faults_remedy(out, "See dns.resolver; if that is all right, correct the name "
                           "servers of the domain.");
    } else if (fits > 0) {
        faults_add(out, FAULT_OK, name, "its TLSA record fits the certificate%s",
                   a->secure ? "" : ", but counts only in a zone that is signed");
    } else if (a->data.count > others) {
        faults_add(out, FAULT_ERROR, name,
                   "its TLSA records do not fit the key of tls_certificate: senders "
                   "that use DANE do not deliver to this host");
        faults_remedy(out, "Publish this in place of all TLSA records of that name:");
        advise_tlsa(c, out, name);
    } else if (others > 0) {
        faults_add(out, FAULT_HINT, name,
                   "its TLSA records are of a kind that is not compared here: only "
                   "3 1 1 is");
        faults_remedy(out, "In that form it is:");
        advise_tlsa(c, out, name);
    } else {
        faults_add(out, FAULT_HINT, name,
                   "there is no TLSA record: senders cannot prove by DANE that they "
                   "talk to this host");
        faults_remedy(out, "If the zone is signed (DNSSEC), publish this, and keep "
                           "the key when the certificate is renewed:");
        advise_tlsa(c, out, name);
    }
}

/* False: wait. */
bool
doctor_judge_tlsa(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct proof_case c = {.count = 0};
    char name[DOCTOR_NAME_MAX + 16];
    read_certificates(d, &c);
    if (c.count == 0)
        return true;
    snprintf(name, sizeof(name), "_25._tcp.%.250s", w->subject);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_TLSA, name);
    if (a == NULL)
        return false;
    judge_tlsa(&c, out, name, a);
    return true;
}

/* The id is the time, so that a later one differs. */
static void
advise_policy(const struct doctor *d, struct faults *out, const char *domain)
{
    char id[32] = "1", name[DOCTOR_NAME_MAX + 16], value[64];
    time_t now = (time_t)(loop_now_ms(d->setup->loop) / 1000);
    struct tm parts;
    if (gmtime_r(&now, &parts) != NULL)
        (void)!strftime(id, sizeof(id), "%Y%m%d%H%M%S", &parts);
    snprintf(name, sizeof(name), "_mta-sts.%.250s", domain);
    snprintf(value, sizeof(value), "v=STSv1; id=%s", id);
    faults_remedy(out,
                  "Serve this file, as text/plain, at "
                  "https://mta-sts.%s/.well-known/mta-sts.txt, with one line mx: for "
                  "each MX host; later with mode: enforce. Its server needs a "
                  "certificate of an authority.\n    version: STSv1\n    mode: "
                  "testing\n    mx: %s\n    max_age: 604800\nThen publish this, with "
                  "a new id after each change of the file:",
                  domain, d->options->hostname);
    faults_text_record(out, name, text_from(value));
}

static void
judge_policy(const struct doctor *d, struct faults *out, const char *domain,
             const struct inquiry_answer *a)
{
    enum doctor_policy verdict = (enum doctor_policy)a->verdict;
    if (a->status != DNS_FOUND) {
        faults_add(out, FAULT_WARNING, domain,
                   "it has a record of MTA-STS, but no policy that is valid and can "
                   "be fetched");
    } else if (verdict == DOCTOR_POLICY_FORBIDS) {
        faults_add(out, FAULT_ERROR, domain,
                   "its MTA-STS policy (enforce) does not name its MX host %s: "
                   "senders do not deliver to it",
                   d->options->hostname);
    } else if (verdict == DOCTOR_POLICY_TESTING) {
        faults_add(out, FAULT_WARNING, domain,
                   "its MTA-STS policy (testing) does not name its MX host %s",
                   d->options->hostname);
    } else {
        faults_add(out, FAULT_OK, domain, "its MTA-STS policy %s",
                   verdict == DOCTOR_POLICY_EMPTY ? "has mode none"
                                                  : "names this host");
        return;
    }
    advise_policy(d, out, domain);
}

/* Whether this host is one of those that take the domain's mail. False: wait. */
static bool
find_own_host(struct doctor *d, const char *domain, bool *is_ours)
{
    const struct inquiry_answer *mx = inquiry_ask(d->inquiry, INQUIRY_MX, domain);
    *is_ours = false;
    for (size_t i = 0; mx != NULL && i < mx->data.count; i++)
        *is_ours |=
            text_equal_nocase(mx->data.hosts[i], text_from(d->options->hostname));
    return mx != NULL;
}

bool
doctor_judge_policy(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    char name[DOCTOR_NAME_MAX + 16], key[2 * DOCTOR_NAME_MAX + 2];
    size_t records = 0;
    bool is_ours;
    if (!find_own_host(d, subject, &is_ours))
        return false;
    if (!is_ours)
        return true;
    snprintf(name, sizeof(name), "_mta-sts.%.250s", subject);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_TEXTS, name);
    if (a == NULL)
        return false;
    for (size_t i = 0; i < a->data.count; i++)
        records += text_starts(a->data.texts[i], TEXT("v=STSv1"));
    if (a->status == DNS_TRY_AGAIN) {
        doctor_say_unknown(out, subject, "its MTA-STS record", a->reason);
        return true;
    }
    if (records != 1) {
        faults_add(out, records > 1 ? FAULT_WARNING : FAULT_HINT, subject,
                   records > 1
                       ? "it has several MTA-STS records, which counts as none"
                       : "it has no MTA-STS policy: senders may be led to send its "
                         "mail in cleartext");
        advise_policy(d, out, subject);
        return true;
    }
    snprintf(key, sizeof(key), "%s %.250s", subject, d->options->hostname);
    a = inquiry_ask(d->inquiry, INQUIRY_POLICY, key);
    if (a != NULL)
        judge_policy(d, out, subject, a);
    return a != NULL;
}

bool
doctor_judge_proof(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    bool is_ours;
    if (!find_own_host(d, w->subject, &is_ours))
        return false;
    if (is_ours && !d->is_proven) {
        d->is_proven = true;
        doctor_add_task(d, doctor_judge_tlsa, d->options->hostname);
    }
    (void)out;
    return true;
}
