/* Records of a domain beside SPF: DKIM keys, DMARC, and the hosts for answers. */
#include "admin/findings/doctor_internal.h"

#include "admin/settings/alias_files.h"
#include "mime/auth/dkim.h"

#include <stdio.h>
#include <string.h>

enum { BITS_ADVISED = 2048, KEY_COMMAND_MAX = 1200, RULES_TEXT_MAX = 100 };

/* --- dkim.key ----------------------------------------------------------------------- */

/* The keys of one domain, or those of the nearest domain above it. */
struct key_search {
    struct doctor *d;
    struct faults *out; /* NULL: only look */
    const char *domain; /* that mail is from */
    const char *row;    /* of the keys that count; "": none */
    bool waits;
    size_t good, unknown;
};

static bool
key_covers(const struct doctor_key *key, struct text domain)
{
    struct text own = text_from(key->domain);
    return text_equal_nocase(own, domain) ||
           (domain.length > own.length && text_ends_nocase(domain, own) &&
            domain.at[domain.length - own.length - 1] == '.');
}

static const char *
find_row(const struct doctor *d, const char *domain)
{
    const char *row = "";
    for (size_t i = 0; i < d->setup->key_count; i++) {
        const struct doctor_key *key = &d->setup->keys[i];
        if (key_covers(key, text_from(domain)) && strlen(key->domain) > strlen(row))
            row = key->domain;
    }
    return row;
}

/* Whether a tag of the record has that value: "t=y". */
static bool
is_testing(struct text record)
{
    struct text tag;
    while (text_cut(&record, ';', &tag)) {
        tag = text_trim(tag);
        size_t equals = text_find(tag, '=');
        if (equals == TEXT_NONE ||
            !text_equal(text_trim(text_before(tag, equals)), TEXT("t")))
            continue;
        struct text flags = text_after(tag, equals + 1), flag;
        while (text_word(&flags, ": \t", &flag))
            if (text_equal_nocase(flag, TEXT("y")))
                return true;
    }
    return false;
}

static void
advise_key(struct faults *out, const struct doctor_key *key, const char *name)
{
    struct buffer record;
    buffer_init(&record, FAULTS_TEXT_MAX);
    (void)!buffer_format(&record, "v=DKIM1; k=%s; p=%.*s", key->kind,
                         TEXT_ARGS(key->public));
    faults_remedy(out, "Publish this in place of all that is at that name:");
    faults_text_record(out, name, buffer_text(&record));
    buffer_free(&record);
}

/* Makes a key where dkim_keys finds it, or can name it: beside the settings. */
static const char *
key_command(const struct doctor *d, const char *domain, char out[KEY_COMMAND_MAX])
{
    static const char usual[] = "/etc/petrel/petrel.conf";
    const char *file = d->setup->file != NULL ? d->setup->file : usual;
    const char *slash = strrchr(file, '/');
    bool is_usual = strcmp(file, usual) == 0;
    struct text folder =
        slash != NULL ? text_of(file, (size_t)(slash - file)) : TEXT(".");
    int used = snprintf(out, KEY_COMMAND_MAX, "petrel %s%.400s%sdkim-key %s",
                        is_usual ? "" : "-c ", is_usual ? "" : file,
                        is_usual ? "" : " ", domain);
    if (options_key_directory(d->options) == NULL)
        snprintf(out + used, KEY_COMMAND_MAX - (size_t)used, " --directory %.*s/dkim",
                 TEXT_ARGS(text_before(folder, 400)));
    return out;
}

static void
judge_key(const struct doctor *d, struct faults *out, const struct doctor_key *key,
          const struct inquiry_answer *a, const char *name, enum dkim_record verdict)
{
    char command[KEY_COMMAND_MAX];
    bool rsa = strcmp(key->kind, "rsa") == 0;
    if (a->status == DNS_TRY_AGAIN) {
        doctor_say_unknown(out, name, "it", a->reason);
    } else if (verdict != DKIM_RECORD_FITS) {
        faults_add(out, FAULT_ERROR, name,
                   "the name %s: signatures of this key are not valid for receivers",
                   dkim_record_words(verdict));
        advise_key(out, key, name);
    } else if (is_testing(a->data.texts[0])) {
        faults_add(out, FAULT_WARNING, name,
                   "the record says t=y (testing): receivers may treat mail as "
                   "unsigned");
        advise_key(out, key, name);
    } else if (rsa && key->bits < BITS_ADVISED) {
        faults_add(out, FAULT_HINT, name,
                   "the record fits, but the key has %u bits; Gmail advises %d",
                   key->bits, BITS_ADVISED);
        faults_remedy(out,
                      "Make another key with %s, publish its record, and take this "
                      "one out a week later.",
                      key_command(d, key->domain, command));
    } else {
        faults_add(out, FAULT_OK, name, "the record fits the key");
    }
}

static void
examine_key(struct key_search *s, const struct doctor_key *key)
{
    char name[2 * DOCTOR_NAME_MAX];
    if (strcmp(key->domain, s->row) != 0)
        return;
    snprintf(name, sizeof(name), "%s._domainkey.%s", key->selector, key->domain);
    const struct inquiry_answer *a = inquiry_ask(s->d->inquiry, INQUIRY_TEXTS, name);
    if (a == NULL) {
        s->waits = true;
        return;
    }
    enum dkim_record verdict = dkim_record_judge(a->data.texts, a->data.count,
                                                 text_from(key->kind), key->public);
    bool good = a->status == DNS_FOUND && verdict == DKIM_RECORD_FITS;
    s->good += good;
    s->unknown += a->status == DNS_TRY_AGAIN;
    if (s->out != NULL)
        judge_key(s->d, s->out, key, a, name, verdict);
}

static void
search_keys(struct key_search *s)
{
    const struct doctor_setup *setup = s->d->setup;
    s->row = find_row(s->d, s->domain);
    for (size_t i = 0; i < setup->key_count; i++)
        examine_key(s, &setup->keys[i]);
}

/* Whether the smarthost signs: then our own keys are not needed. */
static const struct provider_facts *
find_signer(const struct doctor *d, const char *domain)
{
    const struct target *t = doctor_target(d, domain);
    return t->kind == TARGET_SMTP ? provider_facts_find(text_from(t->host)) : NULL;
}

static void
judge_unsigned(struct doctor *d, struct faults *out, const char *domain)
{
    const struct provider_facts *signer = find_signer(d, domain);
    if (signer != NULL && !signer->keeps_sender) {
        faults_add(out, FAULT_HINT, domain,
                   "no key signs here; %s signs, if it is set up for the domain",
                   signer->name);
        faults_remedy(out, "See there: %s.", signer->setup);
        return;
    }
    if (!d->setup->has_secrets)
        return;
    faults_add(out, FAULT_WARNING, domain,
               "mail from it is not signed: no row of dkim_keys covers the domain. "
               "Gmail, Outlook.com and Yahoo want DKIM of bulk senders, and it "
               "survives forwarding");
    faults_remedy(out,
                  "Run this; it makes a key and prints the record to publish and the "
                  "line for %s. Then reload.\n    %s",
                  doctor_settings(d),
                  key_command(d, domain, (char[KEY_COMMAND_MAX]){0}));
}

bool
doctor_judge_dkim(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct key_search s = {.d = d, .out = out, .domain = w->subject};
    search_keys(&s);
    if (s.waits)
        return false;
    if (s.row[0] == '\0')
        judge_unsigned(d, out, w->subject);
    return true;
}

static bool
doctor_dkim_signs(struct doctor *d, const char *domain, enum doctor_rule *out)
{
    struct key_search s = {.d = d, .domain = domain};
    search_keys(&s);
    const struct provider_facts *signer = find_signer(d, domain);
    bool foreign = s.row[0] == '\0' && signer != NULL && !signer->keeps_sender;
    *out = s.good > 0 || foreign ? DOCTOR_RULE_MET
           : s.unknown > 0       ? DOCTOR_RULE_UNKNOWN
                                 : DOCTOR_RULE_BROKEN;
    return !s.waits;
}

/* --- dmarc.record --------------------------------------------------------------------- */

struct dmarc_case {
    char at[DOCTOR_NAME_MAX]; /* the domain whose record counts, else the last asked */
    enum dmarc_found found;
    struct dmarc_record record;
    const struct inquiry_answer *answer; /* of at; NULL: wait */
};

/* From the domain up. False: wait. */
static bool
find_dmarc(struct doctor *d, const char *domain, struct dmarc_case *c)
{
    struct text next = text_from(domain);
    *c = (struct dmarc_case){.found = DMARC_NONE};
    while (next.length > 0) {
        char name[DOCTOR_NAME_MAX + 8];
        (void)text_copy(c->at, sizeof(c->at), next);
        snprintf(name, sizeof(name), "_dmarc.%s", c->at);
        c->answer = inquiry_ask(d->inquiry, INQUIRY_TEXTS, name);
        if (c->answer == NULL)
            return false;
        c->found = dmarc_read(c->answer->data.texts, c->answer->data.count, &c->record);
        if (c->found != DMARC_NONE || c->answer->status == DNS_TRY_AGAIN)
            return true;
        next = dmarc_parent(next);
    }
    return true;
}

static void
advise_dmarc(struct faults *out, const char *domain)
{
    char name[DOCTOR_NAME_MAX + 8], value[DOCTOR_NAME_MAX + 64];
    snprintf(name, sizeof(name), "_dmarc.%.250s", domain);
    snprintf(value, sizeof(value), "v=DMARC1; p=none; rua=mailto:postmaster@%.250s",
             domain);
    faults_remedy(out, "Publish this as the only DMARC record of that name; reports "
                       "go to the address of rua=, which may be any of yours:");
    faults_text_record(out, name, text_from(value));
}

/* The domain itself, or the last one above it that is asked. */
static const char *
organisation_of(const struct dmarc_case *c, const char *domain)
{
    return c->found == DMARC_NONE ? domain : c->at;
}

static bool
is_report_address(struct text reports)
{
    struct text one;
    while (text_cut(&reports, ',', &one)) {
        one = text_trim(one);
        if (!text_starts_nocase(one, TEXT("mailto:")) ||
            text_find(one, '@') == TEXT_NONE)
            return false;
    }
    return true;
}

/* Whether our DKIM signature is of another domain than From, where it must not be. */
static bool
is_unaligned(struct doctor *d, const char *domain, const struct dmarc_case *c)
{
    const char *row = find_row(d, domain);
    return c->record.strict_dkim && row[0] != '\0' && strcmp(row, domain) != 0;
}

static void
judge_dmarc(struct doctor *d, struct faults *out, const char *domain,
            const struct dmarc_case *c)
{
    const char *at = organisation_of(c, domain);
    enum dmarc_policy policy =
        strcmp(c->at, domain) == 0 ? c->record.policy : c->record.subdomains;
    if (c->answer->status == DNS_TRY_AGAIN) {
        doctor_say_unknown(out, domain, "its DMARC record", c->answer->reason);
    } else if (c->found == DMARC_NONE) {
        faults_add(out, FAULT_WARNING, domain,
                   "it has no DMARC record: Gmail, Outlook.com and Yahoo demand one "
                   "of senders of 5,000 messages a day");
        advise_dmarc(out, at);
    } else if (c->found == DMARC_SEVERAL) {
        faults_add(out, FAULT_ERROR, domain,
                   "_dmarc.%s has several DMARC records, which counts as none", at);
        advise_dmarc(out, at);
    } else if (c->found == DMARC_MALFORMED) {
        faults_add(out, FAULT_ERROR, domain,
                   "the DMARC record at _dmarc.%s has no valid p= (none, quarantine "
                   "or reject)",
                   at);
        advise_dmarc(out, at);
    } else if (is_unaligned(d, domain, c)) {
        faults_add(out, FAULT_WARNING, domain,
                   "adkim=s at _dmarc.%s demands a signature of %s itself, but the "
                   "key that signs is of a domain above it",
                   at, domain);
        faults_remedy(out,
                      "Make a key for it: %s; or publish adkim=r in place of "
                      "adkim=s.",
                      key_command(d, domain, (char[KEY_COMMAND_MAX]){0}));
    } else if (!is_report_address(c->record.reports) && c->record.reports.length > 0) {
        faults_add(out, FAULT_WARNING, domain,
                   "rua= at _dmarc.%s is not a list of mailto: addresses, so that no "
                   "report comes",
                   at);
        advise_dmarc(out, at);
    } else {
        faults_add(out, FAULT_OK, domain, "p=%s (at _dmarc.%s)",
                   dmarc_policy_word(policy), at);
    }
}

static void
add_rules(struct buffer *out, const char *before, const enum doctor_rule rules[3],
          enum doctor_rule which)
{
    static const char *const names[] = {"SPF", "DKIM", "DMARC"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (rules[i] == which) {
            (void)!buffer_format(out, "%s %s", before, names[i]);
            before = "";
        }
}

/* Both must pass for senders of 5,000 messages a day. */
static void
judge_bulk(struct faults *out, const char *domain, const struct dmarc_case *c,
           enum doctor_rule spf, enum doctor_rule dkim)
{
    enum doctor_rule record = c->found == DMARC_FOUND              ? DOCTOR_RULE_MET
                              : c->answer->status == DNS_TRY_AGAIN ? DOCTOR_RULE_UNKNOWN
                                                                   : DOCTOR_RULE_BROKEN;
    const enum doctor_rule rules[] = {spf, dkim, record};
    struct buffer failed;
    buffer_init(&failed, RULES_TEXT_MAX);
    add_rules(&failed, "not met, because of", rules, DOCTOR_RULE_BROKEN);
    add_rules(&failed, failed.length > 0 ? "; not known:" : "not known:", rules,
              DOCTOR_RULE_UNKNOWN);
    bool met = failed.length == 0;
    faults_add(out, met ? FAULT_OK : FAULT_HINT, domain,
               "Gmail's, Outlook.com's and Yahoo's rules for bulk senders: %.*s",
               TEXT_ARGS(met ? TEXT("met") : buffer_text(&failed)));
    if (!met)
        faults_remedy(out, "See spf.record, dkim.key and dmarc.record of this domain.");
    buffer_free(&failed);
}

bool
doctor_judge_dmarc(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    struct dmarc_case c;
    enum doctor_rule spf, dkim;
    bool known = find_dmarc(d, subject, &c);
    known &= doctor_spf_passes(d, subject, &spf);
    known &= doctor_dkim_signs(d, subject, &dkim);
    if (!known)
        return false;
    judge_dmarc(d, out, subject, &c);
    judge_bulk(out, subject, &c, spf, dkim);
    return true;
}

/* --- mx.record -------------------------------------------------------------------------- */

static void
advise_mx(struct doctor *d, struct faults *out, const char *domain)
{
    char value[DOCTOR_NAME_MAX + 8];
    snprintf(value, sizeof(value), "10 %.240s.", d->options->hostname);
    faults_remedy(out,
                  "Publish the host that takes mail of %s in place of its MX records; "
                  "if that is this one:",
                  domain);
    faults_record(out, domain, "MX", value);
    if (strcmp(domain, d->options->hostname) != 0)
        return;
    faults_remedy(out,
                  "\nIf no mail is to come to this host, set rewrite in %s to a "
                  "sender whose mail is read, such as * you@example.org, and root to "
                  "that address: mail of root and cron, and bounces of it, have "
                  "nowhere else to go.",
                  doctor_settings(d));
}

/* False: wait. *bad: it is wrong, and has been said. */
static bool
examine_exchanger(struct doctor *d, struct faults *out, const char *domain,
                  struct text name, bool *bad)
{
    char host[DNS_NAME_MAX];
    (void)text_copy(host, sizeof(host), name);
    const struct inquiry_answer *alias = inquiry_ask(d->inquiry, INQUIRY_ALIAS, host);
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, host);
    if (alias == NULL || a == NULL)
        return false;
    if (*bad)
        return true;
    *bad = true;
    if (alias->status == DNS_FOUND && a->data.count > 0) {
        char value[DOCTOR_NAME_MAX + 8];
        faults_add(out, FAULT_WARNING, domain,
                   "its MX host %s is an alias (CNAME), which RFC 2181, 10.3 forbids: "
                   "some servers do not send to it",
                   host);
        faults_remedy(out, "Publish the name that it leads to instead:");
        snprintf(value, sizeof(value), "10 %.*s.",
                 TEXT_ARGS(text_before(alias->data.hosts[0], 240)));
        faults_record(out, domain, "MX", value);
    } else if (a->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, domain, "its MX host %s cannot be looked up: %s",
                   host, a->reason);
        faults_remedy(out, "Correct the name servers of that name.");
    } else if (a->data.count == 0) {
        faults_add(out, FAULT_ERROR, domain,
                   "its MX host %s has no address: answers and bounces cannot come "
                   "back",
                   host);
        advise_mx(d, out, domain);
    } else {
        *bad = false;
    }
    return true;
}

/* Mail for it goes to its own addresses then (RFC 5321 §5.1). */
static bool
examine_implicit(struct doctor *d, struct faults *out, const char *domain,
                 const struct inquiry_answer *mx)
{
    const struct inquiry_answer *a = inquiry_ask(d->inquiry, INQUIRY_ADDRESSES, domain);
    if (a == NULL)
        return false;
    if (a->data.count > 0) {
        faults_add(out, FAULT_OK, domain,
                   "no MX record: answers go to its own addresses");
        return true;
    }
    faults_add(out, FAULT_ERROR, domain,
               "answers and bounces cannot come back, and receivers refuse senders of "
               "such a domain: %s",
               mx->reason);
    advise_mx(d, out, domain);
    return true;
}

bool
doctor_judge_mx(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    const char *subject = w->subject;
    const struct inquiry_answer *mx = inquiry_ask(d->inquiry, INQUIRY_MX, subject);
    bool bad = false, known = true;
    if (mx == NULL)
        return false;
    if (mx->status == DNS_TRY_AGAIN) {
        doctor_say_unknown(out, subject, "its MX records", mx->reason);
        return true;
    }
    if (mx->data.count == 0)
        return examine_implicit(d, out, subject, mx);
    for (size_t i = 0; i < mx->data.count && !bad; i++) {
        if (mx->data.hosts[i].length == 0) {
            faults_add(out, FAULT_ERROR, subject,
                       "its null MX says that it takes no mail: receivers refuse "
                       "senders of such a domain (RFC 7505)");
            advise_mx(d, out, subject);
            bad = true;
        } else {
            known &= examine_exchanger(d, out, subject, mx->data.hosts[i], &bad);
        }
    }
    if (known && !bad)
        faults_add(out, FAULT_OK, subject, "%zu host%s, which resolve%s",
                   mx->data.count, mx->data.count == 1 ? "" : "s",
                   mx->data.count == 1 ? "s" : "");
    return known;
}

struct nobody {
    struct doctor *doctor;
    struct faults *out;
    const char *domain;
};

static void
say_nobody(void *context, const char *line)
{
    const struct nobody *n = context;
    faults_add(n->out, FAULT_WARNING, n->domain, "%s", line);
    faults_remedy(n->out,
                  "Mail for them is refused (550 5.1.1). RFC 5321, 4.5.1 requires "
                  "a mailbox for postmaster. In %s set root to an address that "
                  "somebody reads:\n    root = you@example.org",
                  doctor_settings(n->doctor));
}

/* subject: the first local domain. */
bool
doctor_judge_root(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    alias_files_each_nobody(
        d->setup->routes, d->setup->aliases, say_nobody,
        &(struct nobody){.doctor = d, .out = out, .domain = w->subject});
    return true;
}
