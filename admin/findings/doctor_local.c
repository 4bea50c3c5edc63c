/* Local facts: certificates, and the findings of the running daemon; and entries of
 * this host in lists of spammers. */
#include "admin/findings/doctor_internal.h"

#include "admin/view/control_client.h"
#include "base/format_time.h"
#include "base/json_field.h"
#include "base/dns/dns_reply.h"
#include "base/tls/tls_file.h"
#include "smtp/trust/client_certificates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 24 * 3600 * 1000, SOON_MS = 14 * DAY_MS };

/* --- tls.certificate ------------------------------------------------------------------- */

static bool
judge_dates(struct doctor *d, struct faults *out, const char *path,
            const struct tls_file *c)
{
    int64_t now_ms = loop_now_ms(d->setup->loop);
    char time[FORMAT_TIME_MAX];
    if (c->begins_ms > now_ms) {
        faults_add(out, FAULT_ERROR, path, "it is not valid before %s",
                   format_time_until(c->begins_ms, now_ms, time));
        faults_remedy(out, "See that the clock of this host is right.");
    } else if (c->expires_ms <= now_ms || c->expires_ms - now_ms < SOON_MS) {
        bool over = c->expires_ms <= now_ms;
        faults_add(out, over ? FAULT_ERROR : FAULT_WARNING, path,
                   over ? "it has expired: peers that verify refuse it"
                        : "it expires at %s",
                   format_time_until(c->expires_ms, now_ms, time));
        faults_remedy(out, "Renew it with the program that made it (certbot, acme.sh "
                           "and others), then reload.");
    } else {
        return false;
    }
    return true;
}

static void
judge_certificate(struct doctor *d, struct faults *out, const char *path,
                  const struct tls_file *c)
{
    const char *name = d->options->hostname;
    char time[FORMAT_TIME_MAX];
    if (judge_dates(d, out, path, c))
        return;
    if (!c->names_host) {
        faults_add(out, FAULT_WARNING, path, "it is for %s, not for hostname = %s",
                   c->name[0] != '\0' ? c->name : "no name", name);
        faults_remedy(out, "Have a certificate made for %s, too.", name);
    } else if (c->is_own_issuer) {
        faults_add(out, FAULT_HINT, path,
                   "no authority has signed it: servers accept that, mail programs "
                   "that verify do not");
        faults_remedy(out, "Have one made by an authority, such as Let's Encrypt.");
    } else if (!c->is_whole && d->setup->anchors != NULL &&
               tls_client_has_anchors(d->setup->anchors)) {
        faults_add(out, FAULT_WARNING, path,
                   "its chain does not lead to an authority of tls_ca: an "
                   "intermediate certificate is missing, or the authority is not "
                   "known");
        faults_remedy(out, "Put the intermediate certificates after the certificate "
                           "in the file (certbot's fullchain.pem has them).");
    } else {
        faults_add(out, FAULT_OK, path, "for %s until %s", c->name,
                   format_time_until(c->expires_ms, loop_now_ms(d->setup->loop), time));
    }
}

/* For next hops: dates alone count, since each of them has its own rule for names. */
static void
judge_client_certificates(struct doctor *d, struct faults *out,
                          const struct route_table *routes)
{
    struct tls_pair pairs[TLS_PAIRS_MAX];
    size_t count = routes != NULL ? client_certificates_list(routes, pairs) : 0;
    for (size_t i = 0; i < count; i++) {
        char error[TLS_ERROR_MAX], time[FORMAT_TIME_MAX];
        const char *path = pairs[i].certificate;
        struct tls_file c;
        if (!tls_file_read(path, TEXT(""), NULL, &c, error, sizeof(error))) {
            faults_add(out, FAULT_WARNING, path, "%s", error);
            faults_remedy(out, "Run it as a user who may read the file.");
        } else if (!judge_dates(d, out, path, &c)) {
            faults_add(
                out, FAULT_OK, path, "presented to next hops, until %s",
                format_time_until(c.expires_ms, loop_now_ms(d->setup->loop), time));
        }
    }
}

/* One of the files must be for hostname; the others may be for any name. */
bool
doctor_judge_certificates(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct text rest = d->options->server.tls_certificate, word;
    while (text_word(&rest, ", \t\r\n", &word)) {
        char error[TLS_ERROR_MAX], path[4096];
        struct tls_file c;
        (void)text_copy(path, sizeof(path), word);
        if (tls_file_read(path, text_from(d->options->hostname), d->setup->anchors, &c,
                          error, sizeof(error))) {
            judge_certificate(d, out, path, &c);
            continue;
        }
        faults_add(out, FAULT_WARNING, path, "%s", error);
        faults_remedy(out, "Run it as a user who may read the file.");
    }
    judge_client_certificates(d, out, d->setup->routes);
    return true;
}

/* --- queue.health ---------------------------------------------------------------------- */

static void
take_finding(struct faults *out, const json_t *finding)
{
    enum fault_severity severity = FAULT_ERROR;
    const char *word = json_field_string(finding, "severity");
    const char *code = json_field_string(finding, "code");
    const char *subject = json_field_string(finding, "subject");
    while (severity > FAULT_HINT && strcmp(word, fault_severity_word(severity)) != 0)
        severity--;
    faults_add(out, severity, subject[0] != '\0' ? subject : code, "%s: %s", code,
               json_field_string(finding, "text"));
    faults_remedy(out, "%s", json_field_string(finding, "remedy"));
}

bool
doctor_judge_copies(const struct fault_world *w, struct faults *out)
{
    const struct doctor *d = w->doctor;
    char why[512];
    if (d->setup->copies(d->setup->copies_context, why, sizeof(why)) == 0)
        faults_add(out, FAULT_OK, w->subject, "it can keep copies of mail");
    else {
        faults_add(out, FAULT_ERROR, w->subject, "no copies of mail can be kept: %s",
                   why);
        faults_remedy(out, "Correct the server that `copies` names, or the setting.");
    }
    return true;
}

bool
doctor_judge_queue(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    char error[512] = "";
    struct loop *loop = loop_new();
    struct control_client *daemon =
        control_client_new(loop, d->options->control, error, sizeof(error));
    json_t *answer = NULL;
    if (daemon != NULL) {
        control_client_be_brief(daemon);
        answer =
            control_client_question(daemon, json_pack("{s:s}", "command", "findings"));
    }
    const json_t *list = json_object_get(answer, "findings"), *finding;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, finding)
        take_finding(out, finding);
    if (daemon == NULL) {
        faults_add(out, FAULT_HINT, subject, "no daemon runs: %s", error);
        faults_remedy(out, "Start it: `systemctl start petrel`, or `petrel run`.");
    } else if (list == NULL)
        faults_add(out, FAULT_HINT, subject, "the daemon does not say");
    else if (json_array_size(list) == 0)
        faults_add(out, FAULT_OK, subject,
                   "the running daemon has found nothing wrong");
    json_decref(answer);
    control_client_free(&daemon);
    loop_free(&loop);
    return true;
}

/* --- list.blocked ---------------------------------------------------------------------- */

static const struct {
    const char *zone, *page;
} blocklists[] = {
    {"zen.spamhaus.org", "https://check.spamhaus.org/"     },
    {"bl.spamcop.net",   "https://www.spamcop.net/bl.shtml"},
    {"psbl.surriel.com", "https://psbl.org/"               },
};

enum { BLOCKLIST_COUNT = sizeof(blocklists) / sizeof(blocklists[0]) };

static void
judge_listing(struct faults *out, const char *ip, size_t list,
              const struct inquiry_answer *a)
{
    const char *zone = blocklists[list].zone;
    bool refused = false;
    for (size_t i = 0; i < a->data.count; i++) {
        const unsigned char *got = a->data.addresses[i].ip;
        refused |= got[0] == 127 && got[1] == 255 && got[2] == 255;
    }
    if (a->status == DNS_TRY_AGAIN || refused) {
        faults_add(out, FAULT_HINT, ip, "%s does not answer%s: %s", zone,
                   refused ? " this name server" : "",
                   refused ? "it refuses public and busy name servers" : a->reason);
        faults_remedy(out, "Run a name server of your own on this host, such as "
                           "unbound.");
    } else if (a->data.count > 0) {
        faults_add(out, FAULT_ERROR, ip, "it is on the list %s", zone);
        faults_remedy(out,
                      "See why at %s, end the cause, and have it taken off there; a "
                      "smarthost has another address.",
                      blocklists[list].page);
    } else {
        faults_add(out, FAULT_OK, ip, "not on the list %s", zone);
    }
}

bool
doctor_judge_blocklists(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct doctor_seen seen;
    bool waits = false;
    if (!doctor_find_seen(d, &seen))
        return false;
    for (size_t i = 0; i < seen.count; i++)
        for (size_t list = 0; list < BLOCKLIST_COUNT; list++) {
            bool is_six = seen.list[i].family == NET_IPV6;
            char name[2 * DNS_NAME_MAX], reverse[DNS_NAME_MAX],
                ip[NET_ADDRESS_TEXT_MAX];
            dns_reverse_name(&seen.list[i], reverse);
            *strstr(reverse, is_six ? "ip6.arpa" : "in-addr.arpa") = '\0';
            net_address_ip(&seen.list[i], ip);
            snprintf(name, sizeof(name), "%s%s", reverse, blocklists[list].zone);
            const struct inquiry_answer *a =
                inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, name);
            waits |= a == NULL;
            if (!waits)
                judge_listing(out, ip, list, a);
        }
    return !waits;
}
