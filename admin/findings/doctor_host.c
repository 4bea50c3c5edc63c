/* This host as others see it: its name servers, the way out of it, its addresses, and
 * their names. */
#include "admin/findings/doctor_internal.h"

#include "base/dns/dns_reply.h"
#include "base/net/net.h"

#include <stdio.h>
#include <string.h>

/* The large receivers whose mail hosts are asked. */
static const struct doctor_receiver {
    const char *domain, *name;
} doctor_receivers[] = {
    {"gmail.com",   "Gmail"      },
    {"outlook.com", "Outlook.com"},
    {"yahoo.com",   "Yahoo"      },
    {NULL,          NULL         },
};

/* --- Replies of receivers ------------------------------------------------------------- */

/* "[192.0.2.1]", as some hosts greet. */
static bool
find_address_in(struct text said, struct net_address *out)
{
    for (size_t i = 0; i < said.length; i++) {
        struct text rest = text_after(said, i + 1);
        if (text_starts_nocase(rest, TEXT("IPv6:")))
            rest = text_after(rest, 5);
        size_t end = text_find(rest, ']');
        if (said.at[i] == '[' && end != TEXT_NONE &&
            net_address_parse_ip(text_before(rest, end), out))
            return true;
    }
    return false;
}

static void
note_seen(struct doctor_seen *seen, const struct net_address *address)
{
    for (size_t i = 0; i < seen->count; i++)
        if (net_address_equal(&seen->list[i], address))
            return;
    if (seen->count < DOCTOR_SEEN_MAX)
        seen->list[seen->count++] = *address;
}

/* How many hosts of a receiver have answered; their first address of each family is
 * asked. */
struct talk {
    bool waits, greeted, unknown; /* unknown: where it is */
    char trouble[600];
};

static void
ask_receiver_address(struct doctor *d, const struct net_address *address,
                     struct talk *talk, struct doctor_seen *seen)
{
    char key[NET_ADDRESS_TEXT_MAX], ip[NET_ADDRESS_TEXT_MAX];
    struct net_address to = *address, own;
    to.port = (uint16_t)d->options->delivery.smtp_port;
    net_address_format(&to, key);
    net_address_ip(&to, ip);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_GREETING, key);
    if (a == NULL) {
        talk->waits = true;
    } else if (a->status != DNS_FOUND) {
        if (talk->trouble[0] == '\0' || to.family == NET_IPV4)
            snprintf(talk->trouble, sizeof(talk->trouble), "%.60s: %.400s", ip,
                     a->reason);
    } else {
        talk->greeted = true;
        if (find_address_in(a->data.texts[0], &own))
            note_seen(seen, &own);
    }
}

/* The host of the best preference. */
static struct text
find_best_host(const struct inquiry_answer *mx)
{
    size_t best = 0;
    for (size_t i = 1; i < mx->data.count; i++)
        if (mx->preferences[i] < mx->preferences[best])
            best = i;
    return mx->data.hosts[best];
}

static void
ask_receiver(struct doctor *d, const struct doctor_receiver *r, struct talk *talk,
             struct doctor_seen *seen)
{
    char host[DNS_NAME_MAX];
    bool done[2] = {false, false};
    const struct inquiry_answer *mx = inquiry_ask(d->inquiry, INQUIRY_MX, r->domain);
    *talk = (struct talk){.waits = mx == NULL};
    if (mx == NULL)
        return;
    if (mx->status != DNS_FOUND) {
        talk->unknown = true;
        snprintf(talk->trouble, sizeof(talk->trouble), "%.400s", mx->reason);
        return;
    }
    (void)text_copy(host, sizeof(host), find_best_host(mx));
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, host);
    talk->waits = a == NULL;
    if (a == NULL)
        return;
    talk->unknown = a->data.count == 0;
    if (talk->unknown)
        snprintf(talk->trouble, sizeof(talk->trouble), "%.400s", a->reason);
    for (size_t i = 0; i < a->data.count; i++) {
        bool is_six = a->data.addresses[i].family == NET_IPV6;
        if (!done[is_six])
            ask_receiver_address(d, &a->data.addresses[i], talk, seen);
        done[is_six] = true;
    }
}

/* Hosts that nobody sees have the addresses that they publish. */
static bool
take_published(struct doctor *d, struct doctor_seen *out)
{
    const struct inquiry_answer *a =
        inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, d->options->hostname);
    if (a == NULL)
        return false;
    out->is_published = true;
    out->is_unpublished = a->status == DNS_TRY_AGAIN;
    for (size_t i = 0; i < a->data.count; i++)
        note_seen(out, &a->data.addresses[i]);
    return true;
}

bool
doctor_find_seen(struct doctor *d, struct doctor_seen *out)
{
    bool waits = false;
    *out = (struct doctor_seen){.count = 0};
    if (!d->is_direct)
        return true;
    for (const struct doctor_receiver *r = doctor_receivers; r->domain != NULL; r++) {
        struct talk talk;
        ask_receiver(d, r, &talk, out);
        waits |= talk.waits;
        out->reached += talk.greeted;
        out->silent += !talk.greeted && !talk.waits && !talk.unknown;
        out->unknown += talk.unknown;
        if (!talk.greeted && talk.trouble[0] != '\0')
            snprintf(out->trouble, sizeof(out->trouble), "%s: %.500s", r->name,
                     talk.trouble);
    }
    return !waits && (out->count > 0 || take_published(d, out));
}

/* --- dns.resolver ------------------------------------------------------------------- */

bool
doctor_judge_resolver(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_ROOT, ".");
    bool trusted = dns_is_trusted(d->setup->dns);
    if (a == NULL)
        return false;
    if (a->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_ERROR, subject, "the name servers do not answer: %s",
                   a->reason);
        faults_remedy(out,
                      "Correct /etc/resolv.conf, or set dns_servers in %s: the "
                      "address of a name server that works, best one on this host "
                      "(unbound).",
                      doctor_settings(d));
    } else if (a->secure && trusted) {
        faults_add(out, FAULT_OK, subject,
                   "they answer and validate (DNSSEC), and are trusted: DANE is "
                   "used");
    } else if (a->secure) {
        faults_add(out, FAULT_HINT, subject,
                   "they validate (DNSSEC), but are not on this host, so that their "
                   "answers are not trusted: DANE is not used");
        faults_remedy(out,
                      "Set dns_trust = yes in %s if nobody can change answers on the "
                      "way from them, or run a validating name server, such as "
                      "unbound, on this host.",
                      doctor_settings(d));
    } else {
        bool wrong = d->options->dns_trust == DNS_TRUST_YES;
        faults_add(out, wrong ? FAULT_WARNING : FAULT_HINT, subject,
                   "they answer, but do not validate (DNSSEC)%s: DANE is not used",
                   wrong ? ", though dns_trust = yes" : "");
        faults_remedy(out,
                      "Run a validating name server, such as unbound, on this host, "
                      "and name it in /etc/resolv.conf or dns_servers%s.",
                      wrong ? "; until then set dns_trust = auto" : "");
    }
    return true;
}

/* --- net.port25, host.address --------------------------------------------------------- */

bool
doctor_judge_port(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct doctor_seen seen;
    if (!doctor_find_seen(d, &seen))
        return false;
    long port = (long)d->options->delivery.smtp_port;
    if (seen.reached + seen.silent == 0) {
        faults_add(out, FAULT_WARNING, subject,
                   "no large receiver can be looked up: %s", seen.trouble);
        faults_remedy(out, "See dns.resolver.");
    } else if (seen.silent + seen.unknown == 0) {
        faults_add(out, FAULT_OK, subject,
                   "mail hosts of Gmail, Outlook.com and Yahoo answer at port %ld",
                   port);
    } else if (seen.reached > 0) {
        faults_add(out, FAULT_WARNING, subject,
                   "not all large receivers answer at port %ld: %s", port,
                   seen.trouble);
        faults_remedy(out, "If it lasts, ask your hoster whether port 25 is filtered; "
                           "if the host refuses this address, its words say why.");
    } else {
        faults_add(out, FAULT_ERROR, subject,
                   "no large receiver answers at port %ld: your hoster blocks port "
                   "25, or a firewall does. %s",
                   port, seen.trouble);
        faults_remedy(out,
                      "Ask your hoster to open port 25 for this host. Where it does "
                      "not, use a smarthost: set relay in %s, for example relay = "
                      "submission://USER@smtp.example.com, and relay_password.",
                      doctor_settings(d));
    }
    return true;
}

static void
say_bind(struct doctor *d, struct faults *out)
{
    if (d->options->delivery.smtp_bind.length > 0)
        faults_detail(out, "Mail leaves from smtp_bind = %.200s.",
                      d->options->delivery.smtp_bind.at);
}

bool
doctor_judge_address(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct doctor_seen seen;
    size_t of[2] = {0, 0};
    char all[DOCTOR_SEEN_MAX * 48] = "";
    if (!doctor_find_seen(d, &seen))
        return false;
    for (size_t i = 0; i < seen.count; i++) {
        char ip[NET_ADDRESS_TEXT_MAX];
        net_address_ip(&seen.list[i], ip);
        of[seen.list[i].family == NET_IPV6]++;
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.45s",
                 i > 0 ? ", " : "", ip);
    }
    if (seen.is_published) {
        faults_add(out, FAULT_HINT, subject,
                   "no receiver has said which address it sees; %s %s",
                   d->options->hostname,
                   seen.is_unpublished ? "cannot be looked up"
                   : seen.count > 0    ? "resolves to these:"
                                       : "does not resolve");
        if (seen.count > 0)
            faults_detail(out, "Published: %s.", all);
        faults_remedy(out, "See net.port25.");
    } else if (of[0] > 1 || of[1] > 1) {
        faults_add(out, FAULT_WARNING, subject, "receivers see several addresses: %s",
                   all);
        faults_remedy(out,
                      "Set smtp_bind in %s to the address that mail is to leave "
                      "from, or see that each of them has a PTR record and is in "
                      "SPF.",
                      doctor_settings(d));
    } else {
        faults_add(out, FAULT_OK, subject, "receivers see %s", all);
    }
    say_bind(d, out);
    return true;
}

/* --- host.name ------------------------------------------------------------------------ */

static bool
is_full_host(const char *name)
{
    struct net_address literal;
    struct text t = text_from(name);
    return text_find(t, '.') != TEXT_NONE && t.at[0] != '[' &&
           !net_address_parse_ip(t, &literal) &&
           !text_ends_nocase(t, TEXT(".localdomain")) &&
           !text_ends_nocase(t, TEXT(".local")) && !text_ends_nocase(t, TEXT(".lan")) &&
           !text_ends_nocase(t, TEXT(".internal"));
}

/* A and AAAA records of hostname. */
static void
add_address_records(struct doctor *d, struct faults *out,
                    const struct doctor_seen *seen)
{
    for (size_t i = 0; i < seen->count; i++) {
        char ip[NET_ADDRESS_TEXT_MAX];
        net_address_ip(&seen->list[i], ip);
        faults_record(out, d->options->hostname,
                      seen->list[i].family == NET_IPV6 ? "AAAA" : "A", ip);
    }
}

/* Whether one of the addresses is of this host. */
static bool
is_ours(const struct inquiry_answer *a, const struct doctor_seen *seen)
{
    for (size_t i = 0; i < a->data.count; i++) {
        const struct net_address *address = &a->data.addresses[i];
        if (!net_address_is_loopback(address) && net_can_bind(address))
            return true;
        for (size_t n = 0; n < seen->count; n++)
            if (net_address_equal(address, &seen->list[n]))
                return true;
    }
    return false;
}

/* Receivers see all addresses, so the name must have each of their families. */
static void
judge_name(struct doctor *d, struct faults *out, const struct inquiry_answer *a,
           const struct doctor_seen *seen)
{
    const char *name = d->options->hostname;
    if (a->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, name, "its addresses cannot be looked up: %s",
                   a->reason);
        faults_remedy(out, "See dns.resolver; if that is all right, correct the name "
                           "servers of the domain.");
        return;
    }
    if (a->data.count > 0 && (seen->is_published || is_ours(a, seen))) {
        faults_add(out, FAULT_OK, name, "it resolves to this host");
        return;
    }
    if (a->data.count > 0)
        faults_add(out, FAULT_ERROR, name,
                   "hostname = %s resolves to other addresses than this host's", name);
    else
        faults_add(out, FAULT_ERROR, name,
                   "hostname = %s does not resolve: %s; many receivers refuse such a "
                   "client",
                   name, a->reason);
    faults_remedy(out,
                  "Publish %s in the zone of its domain, or set hostname in %s to the "
                  "name that this host has in DNS.",
                  seen->count > 0 ? "this record" : "the address of this host",
                  doctor_settings(d));
    if (a->data.count > 0)
        faults_remedy(out, " It replaces the other A and AAAA records of that name.");
    add_address_records(d, out, seen);
}

bool
doctor_judge_name(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct doctor_seen seen;
    if (!is_full_host(subject)) {
        faults_add(out, FAULT_ERROR, subject,
                   "hostname = %s is not the full name of a host on the Internet; "
                   "receivers refuse EHLO with it",
                   subject);
        faults_remedy(out,
                      "Set hostname in %s to a name in your domain, such as "
                      "mail.example.org, that resolves to this host.",
                      doctor_settings(d));
        return true;
    }
    const struct inquiry_answer *a =
        inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, subject);
    if (!doctor_find_seen(d, &seen) || a == NULL)
        return false;
    judge_name(d, out, a, &seen);
    return true;
}

/* --- host.ptr ------------------------------------------------------------------------- */

/* Names that hosters give to addresses: with the address in it, or a word for many. */
static bool
is_generic(struct text name, const struct net_address *address)
{
    static const char *const words[] = {"dynamic", "dyn.",     "dhcp",
                                        "pool",    "dsl",      "cable",
                                        "dialup",  "customer", "broadband"};
    char dashed[20], dotted[20], reverse[20];
    const unsigned char *ip = address->ip;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(name.at, words[i]) != NULL)
            return true;
    if (address->family != NET_IPV4)
        return false;
    snprintf(dashed, sizeof(dashed), "%u-%u-%u-%u", ip[0], ip[1], ip[2], ip[3]);
    snprintf(dotted, sizeof(dotted), "%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
    snprintf(reverse, sizeof(reverse), "%u-%u-%u-%u", ip[3], ip[2], ip[1], ip[0]);
    return strstr(name.at, dashed) != NULL || strstr(name.at, dotted) != NULL ||
           strstr(name.at, reverse) != NULL;
}

struct ptr_names {
    bool waits, confirmed, equal, generic;
    char first[DNS_NAME_MAX]; /* one that leads back, else any */
};

static void
read_ptr_names(struct doctor *d, const struct inquiry_answer *ptr,
               const struct net_address *address, struct ptr_names *out)
{
    for (size_t i = 0; i < ptr->data.count; i++) {
        struct text name = ptr->data.hosts[i];
        char host[DNS_NAME_MAX];
        bool leads = false;
        (void)text_copy(host, sizeof(host), name);
        const struct inquiry_answer *back =
            inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, host);
        out->waits |= back == NULL;
        for (size_t n = 0; back != NULL && n < back->data.count; n++)
            leads |= net_address_equal(&back->data.addresses[n], address);
        bool equal = text_equal_nocase(name, text_from(d->options->hostname));
        if (out->first[0] == '\0' || (leads && !out->confirmed) || (leads && equal))
            memcpy(out->first, host, sizeof(host));
        out->confirmed |= leads;
        out->equal |= leads && equal;
    }
    out->generic = out->first[0] != '\0' && is_generic(text_from(out->first), address);
}

static void
advise_ptr(struct doctor *d, struct faults *out, const char *ip, const char *reverse)
{
    char value[DNS_NAME_MAX + 2];
    snprintf(value, sizeof(value), "%.250s.", d->options->hostname);
    faults_remedy(out,
                  "The provider of the address, most often your hoster, sets its "
                  "name (\"reverse DNS\"): enter %s for %s there. The operator "
                  "of the reverse zone publishes:",
                  d->options->hostname, ip);
    faults_record(out, reverse, "PTR", value);
}

static void
judge_ptr(struct doctor *d, struct faults *out, const struct net_address *address,
          const struct inquiry_answer *ptr, const struct ptr_names *names)
{
    char ip[NET_ADDRESS_TEXT_MAX], reverse[DNS_NAME_MAX];
    net_address_ip(address, ip);
    dns_reverse_name(address, reverse);
    if (ptr->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, ip, "its name cannot be looked up: %s",
                   ptr->reason);
        faults_remedy(out, "Try again; if it lasts, tell your hoster.");
        return;
    }
    if (ptr->data.count == 0) {
        faults_add(out, FAULT_ERROR, ip,
                   "the address has no name (no PTR record): Gmail and others refuse "
                   "mail from it");
    } else if (!names->confirmed) {
        faults_add(out, FAULT_ERROR, ip,
                   "its name %s (PTR record) does not resolve back to the address: "
                   "Gmail and others refuse mail from it",
                   names->first);
    } else if (names->generic && !names->equal) {
        faults_add(out, FAULT_WARNING, ip,
                   "its name %s (PTR record) looks like that of any customer: many "
                   "receivers take such hosts for infected ones",
                   names->first);
    } else if (!names->equal) {
        faults_add(out, FAULT_WARNING, ip,
                   "its name %s (PTR record) is not hostname = %s, which EHLO says",
                   names->first, d->options->hostname);
    } else {
        faults_add(out, FAULT_OK, ip, "its name is %s, and leads back", names->first);
        return;
    }
    advise_ptr(d, out, ip, reverse);
}

bool
doctor_judge_ptr(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct doctor_seen seen;
    bool waits = false;
    if (!doctor_find_seen(d, &seen))
        return false;
    for (size_t i = 0; i < seen.count; i++) {
        char ip[NET_ADDRESS_TEXT_MAX];
        struct ptr_names names = {.waits = false};
        net_address_ip(&seen.list[i], ip);
        const struct inquiry_answer *ptr = inquiry_ask(d->inquiry, INQUIRY_HOSTS, ip);
        if (ptr != NULL)
            read_ptr_names(d, ptr, &seen.list[i], &names);
        waits |= ptr == NULL || names.waits;
        if (!waits)
            judge_ptr(d, out, &seen.list[i], ptr, &names);
    }
    return !waits;
}

/* --- All of them ---------------------------------------------------------------------- */

bool
doctor_judge_indirect(const struct fault_world *w, struct faults *out)
{
    faults_add(out, FAULT_OK, w->subject,
               "no mail leaves directly, so that receivers do not see this host");
    return true;
}
