/* The SPF record of a domain: evaluated for our addresses, as receivers do. */
#include "admin/findings/doctor_internal.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_MAX = 2048, END_ROOM = 16 /* "~all" */, INCLUDES_MAX = TARGET_HOSTS_MAX };

/* One domain under examination. */
struct spf_case {
    struct doctor *d;
    const char *domain;
    const struct target *target;
    bool is_direct;
    struct doctor_seen seen;
    /* for smarthosts that keep our sender: the names that the record must include */
    const char *includes[INCLUDES_MAX];
    bool included[INCLUDES_MAX];
    size_t include_count;
    const struct provider_facts *untold; /* one whose include is not known; or NULL */
    const struct inquiry_answer *texts;
    struct text record; /* empty: none, or several */
    size_t records;
    struct net_address missing[DOCTOR_SEEN_MAX]; /* addresses that do not pass */
    size_t missing_count;
    enum spf_result result; /* the first that is not pass */
    struct spf_report survey, report;
};

/* --- Evaluation ----------------------------------------------------------------------- */

/* A spf_look_up(). Notes names that a smarthost must have. */
static const struct spf_answer *
look_up_for_spf(void *context, enum spf_type type, const char *name)
{
    static const enum inquiry_kind kinds[] = {[SPF_TEXTS] = INQUIRY_TEXTS,
                                              [SPF_ADDRESSES] = INQUIRY_ADDRESSES,
                                              [SPF_EXCHANGERS] = INQUIRY_MX};
    struct spf_case *c = context;
    for (size_t i = 0; type == SPF_TEXTS && i < c->include_count; i++)
        c->included[i] |= text_equal_nocase(text_from(name), text_from(c->includes[i]));
    const struct inquiry_answer *a = inquiry_ask(c->d->inquiry, kinds[type], name);
    return a != NULL ? &a->data : NULL;
}

static struct spf_query
query_for(struct spf_case *c, const struct net_address *client, bool is_survey)
{
    return (struct spf_query){.client = *client,
                              .helo = text_from(c->d->options->hostname),
                              .local = TEXT("postmaster"),
                              .domain = text_from(c->domain),
                              .is_survey = is_survey,
                              .look_up = look_up_for_spf,
                              .context = c};
}

static void
find_includes(struct spf_case *c)
{
    if (c->target->kind != TARGET_SMTP)
        return;
    for (size_t i = 0; i < target_host_count(c->target); i++) {
        const struct provider_facts *f =
            provider_facts_find(target_host(c->target, i).host);
        if (f != NULL && f->keeps_sender && f->include[0] != '\0')
            c->includes[c->include_count++] = f->include;
        else if (f != NULL && f->keeps_sender)
            c->untold = f;
    }
}

static void
find_records(struct spf_case *c)
{
    for (size_t i = 0; i < c->texts->data.count; i++)
        if (spf_is_record(c->texts->data.texts[i])) {
            c->record = c->texts->data.texts[i];
            c->records++;
        }
    if (c->records > 1)
        c->record = TEXT("");
}

/* False: wait. */
static bool
evaluate(struct spf_case *c)
{
    bool waits = false;
    struct net_address nobody = {.family = NET_IPV4};
    const struct net_address *any = c->seen.count > 0 ? &c->seen.list[0] : &nobody;
    struct spf_query q = query_for(c, any, true);
    waits |= spf_check(&q, &c->survey) == SPF_ASKS;
    c->result = SPF_PASS;
    for (size_t i = 0; i < c->seen.count; i++) {
        struct spf_report report;
        q = query_for(c, &c->seen.list[i], false);
        enum spf_result result = spf_check(&q, &report);
        waits |= result == SPF_ASKS;
        if (result == SPF_PASS)
            continue;
        if (c->result == SPF_PASS) {
            c->result = result;
            c->report = report;
        }
        c->missing[c->missing_count++] = c->seen.list[i];
    }
    return !waits;
}

/* False: wait. */
static bool
open_case(struct spf_case *c, struct doctor *d, const char *domain)
{
    *c = (struct spf_case){.d = d, .domain = domain};
    c->target = doctor_target(d, domain);
    c->is_direct = c->target->kind == TARGET_MX;
    find_includes(c);
    c->texts = inquiry_ask(d->inquiry, INQUIRY_TEXTS, domain);
    bool seen = !c->is_direct || doctor_find_seen(d, &c->seen);
    if (c->texts == NULL || !seen)
        return false;
    find_records(c);
    return evaluate(c);
}

/* --- The record to publish -------------------------------------------------------------- */

static bool add_term(char record[RECORD_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool
add_term(char record[RECORD_MAX], const char *format, ...)
{
    va_list list;
    size_t at = strlen(record);
    va_start(list, format);
    int size = vsnprintf(record + at, RECORD_MAX - at, format, list);
    va_end(list);
    if (size >= 0 && (size_t)size < RECORD_MAX - at)
        return true;
    record[at] = '\0';
    return false;
}

static void
add_addresses(const struct spf_case *c, char record[RECORD_MAX], bool all)
{
    const struct net_address *list = all ? c->seen.list : c->missing;
    size_t count = all ? c->seen.count : c->missing_count;
    for (size_t i = 0; i < count; i++) {
        char ip[NET_ADDRESS_TEXT_MAX];
        net_address_ip(&list[i], ip);
        add_term(record, " %s:%s", list[i].family == NET_IPV6 ? "ip6" : "ip4", ip);
    }
    for (size_t i = 0; i < c->include_count; i++)
        if (all || !c->included[i])
            add_term(record, " include:%s", c->includes[i]);
}

static bool
has_term(const char *record, struct text term)
{
    struct text rest = text_from(record), word;
    while (text_word(&rest, " ", &word))
        if (text_equal_nocase(word, term))
            return true;
    return false;
}

/* The part of a record with an error that may stay: terms without look-ups. */
struct kept {
    char *record, *dropped;
};

static void
keep_four(void *context, struct text value)
{
    struct kept *k = context;
    struct net_network network;
    char term[80];
    if (value.length > 60 || !net_network_around(value, &network))
        return;
    snprintf(term, sizeof(term), "%s:%.*s",
             network.base.family == NET_IPV6 ? "ip6" : "ip4", TEXT_ARGS(value));
    if (!has_term(k->record, text_from(term)) &&
        strlen(k->record) + strlen(term) + END_ROOM < RECORD_MAX)
        add_term(k->record, " %s", term);
}

static void
note_dropped(void *context, struct text value)
{
    struct kept *k = context;
    if (strlen(k->dropped) + value.length + 12 < 600)
        snprintf(k->dropped + strlen(k->dropped), 600 - strlen(k->dropped),
                 " include:%.*s", TEXT_ARGS(text_before(value, 200)));
}

/* A new record in place of one that is an error for receivers. */
static void
advise_new(const struct spf_case *c, struct faults *out)
{
    char record[RECORD_MAX] = "v=spf1", dropped[600] = "";
    struct kept kept = {record, dropped};
    add_addresses(c, record, true);
    struct text rest = c->records > 1 ? TEXT("") : c->record;
    spf_each(rest, "ip4", keep_four, &kept);
    spf_each(rest, "ip6", keep_four, &kept);
    spf_each(rest, "include", note_dropped, &kept);
    add_term(record, "%s", " ~all");
    faults_remedy(out,
                  "Publish this as the only SPF record of %s (one TXT record that "
                  "begins with v=spf1), in place of the present one:",
                  c->domain);
    faults_text_record(out, c->domain, text_from(record));
    if (dropped[0] != '\0')
        faults_remedy(out,
                      "\nIt leaves out%s: add again those that you still send by, as "
                      "long as doctor agrees.",
                      dropped);
}

/* The record with the missing terms in front; +all and ptr go. */
static void
advise_more(const struct spf_case *c, struct faults *out)
{
    char record[RECORD_MAX] = "v=spf1";
    struct text rest = text_after(c->record, 6), word;
    bool has_end = false, fits = true;
    /* Without +all they would not pass any more. */
    add_addresses(c, record, c->survey.passes_all);
    while (text_word(&rest, " ", &word)) {
        struct text bare = word;
        if (has_term(record, word)) /* it stands in front now */
            continue;
        if (strchr("+-~?", bare.at[0]) != NULL)
            bare = text_after(bare, 1);
        if (text_equal_nocase(bare, TEXT("ptr")) ||
            text_starts_nocase(bare, TEXT("ptr:")))
            continue;
        bool all = text_equal_nocase(bare, TEXT("all"));
        bool passes = all && (word.at[0] == '+' || bare.at == word.at);
        has_end |= all || text_starts_nocase(bare, TEXT("redirect="));
        if (passes)
            fits &= add_term(record, "%s", " ~all");
        else
            fits &= add_term(record, " %.*s", TEXT_ARGS(word));
    }
    if (!has_end)
        fits &= add_term(record, "%s", " ~all");
    if (!fits) {
        advise_new(c, out);
        return;
    }
    faults_remedy(out,
                  "Publish this in place of the SPF record of %s; it is the old one "
                  "with the missing parts:",
                  c->domain);
    faults_text_record(out, c->domain, text_from(record));
}

/* --- The verdict ------------------------------------------------------------------------ */

static bool
judge_error(const struct spf_case *c, struct faults *out)
{
    if (c->texts->status == DNS_TRY_AGAIN) {
        faults_add(out, FAULT_WARNING, c->domain,
                   "its SPF record cannot be looked up: %s", c->texts->reason);
        faults_remedy(
            out,
            "See dns.resolver; if that is all right, correct the name "
            "servers of the domain: receivers defer or refuse its mail meanwhile.");
        return true;
    }
    if (c->records == 0)
        faults_add(out, FAULT_ERROR, c->domain,
                   "it has no SPF record: receivers cannot tell that this host may "
                   "send its mail");
    else if (c->records > 1)
        faults_add(out, FAULT_ERROR, c->domain,
                   "it has %zu SPF records: receivers take that for an error",
                   c->records);
    else if (c->result == SPF_PERMERROR)
        faults_add(out, FAULT_ERROR, c->domain,
                   "its SPF record is an error for receivers: %s", c->report.why);
    else if (c->survey.result == SPF_PERMERROR)
        faults_add(out, c->seen.count > 0 ? FAULT_WARNING : FAULT_ERROR, c->domain,
                   "its SPF record is an error for receivers%s: %s",
                   c->seen.count > 0 ? " of other senders' mail" : "", c->survey.why);
    else
        return false;
    advise_new(c, out);
    return true;
}

static bool
judge_result(const struct spf_case *c, struct faults *out)
{
    char ip[NET_ADDRESS_TEXT_MAX] = "";
    for (size_t i = 0; i < c->include_count; i++)
        if (!c->included[i]) {
            faults_add(out, FAULT_ERROR, c->domain,
                       "its SPF record does not permit the smarthost: include:%s is "
                       "missing",
                       c->includes[i]);
            advise_more(c, out);
            return true;
        }
    if (c->missing_count == 0)
        return false;
    net_address_ip(&c->missing[0], ip);
    if (c->result == SPF_TEMPERROR) {
        faults_add(out, FAULT_WARNING, c->domain,
                   "its SPF record cannot be evaluated: %s", c->report.why);
        faults_remedy(out, "Correct that name, or take it out of the record.");
        return true;
    }
    faults_add(out, FAULT_ERROR, c->domain,
               "its SPF record does not permit our address %s: the result is %s", ip,
               spf_word(c->result));
    advise_more(c, out);
    return true;
}

static void
judge_style(const struct spf_case *c, struct faults *out)
{
    if (c->survey.passes_all) {
        faults_add(out, FAULT_ERROR, c->domain,
                   "its SPF record permits everybody (+all): receivers treat that as "
                   "spam's");
        advise_more(c, out);
    } else if (c->survey.uses_ptr) {
        faults_add(out, FAULT_WARNING, c->domain,
                   "its SPF record has ptr, which receivers need not evaluate "
                   "(RFC 7208, 5.5)");
        advise_more(c, out);
    } else if (c->survey.look_ups > SPF_LOOK_UPS_MAX - 2) {
        faults_add(out, FAULT_HINT, c->domain,
                   "its SPF record needs %u of the %d look-ups that receivers make",
                   c->survey.look_ups, SPF_LOOK_UPS_MAX);
        faults_remedy(out, "Take out an include of a provider that you no longer use.");
    } else if (c->untold != NULL) {
        faults_add(out, FAULT_OK, c->domain,
                   "it is valid; see there that it has the include of %s (%s)",
                   c->untold->name, c->untold->setup);
    } else {
        faults_add(out, FAULT_OK, c->domain, "%s (%u look-ups)",
                   c->seen.count > 0 ? "it permits our addresses" : "it is valid",
                   c->survey.look_ups);
    }
}

/* Behind a smarthost with its own envelope sender the record of our domain is not asked. */
static bool
is_not_asked(const struct spf_case *c)
{
    const struct provider_facts *f =
        c->target->kind == TARGET_SMTP && c->target->host[0] != '\0'
            ? provider_facts_find(text_from(c->target->host))
            : NULL;
    return f != NULL && !f->keeps_sender;
}

static bool
judge_foreign(const struct spf_case *c, struct faults *out)
{
    if (is_not_asked(c)) {
        const struct provider_facts *f =
            provider_facts_find(text_from(c->target->host));
        faults_add(out, FAULT_OK, c->domain,
                   "mail leaves by %s with an envelope sender of its own: DMARC "
                   "needs its DKIM signature for this domain (%s)",
                   f->name, f->setup);
        return true;
    }
    if (c->target->kind != TARGET_SMTP || c->include_count > 0 || c->records > 0 ||
        c->texts->status == DNS_TRY_AGAIN)
        return false;
    faults_add(out, FAULT_WARNING, c->domain,
               "it has no SPF record, and mail leaves by %s, which receivers then "
               "cannot tell from a forger",
               c->target->host);
    faults_remedy(out,
                  "The manual of %s says what to include%s%s; publish it as v=spf1 "
                  "include:THAT ~all.",
                  c->target->host, c->untold != NULL ? ": see " : "",
                  c->untold != NULL ? c->untold->setup : "");
    return true;
}

bool
doctor_judge_spf(const struct fault_world *w, struct faults *out)
{
    struct doctor *d = w->doctor;
    struct spf_case c;
    if (!open_case(&c, d, w->subject))
        return false;
    if (!judge_foreign(&c, out) && !judge_error(&c, out) && !judge_result(&c, out))
        judge_style(&c, out);
    return true;
}

bool
doctor_spf_passes(struct doctor *d, const char *domain, enum doctor_rule *out)
{
    struct spf_case c;
    *out = DOCTOR_RULE_BROKEN;
    if (!open_case(&c, d, domain))
        return false;
    bool passes =
        is_not_asked(&c) || (c.records == 1 && c.result == SPF_PASS &&
                             (c.survey.result != SPF_PERMERROR || c.seen.count > 0));
    for (size_t i = 0; i < c.include_count; i++)
        passes &= c.included[i];
    if (passes)
        *out = DOCTOR_RULE_MET;
    else if (!is_not_asked(&c) &&
             (c.texts->status == DNS_TRY_AGAIN || c.result == SPF_TEMPERROR))
        *out = DOCTOR_RULE_UNKNOWN;
    return true;
}
