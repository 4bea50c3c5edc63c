/* Evaluates a record: its terms from left to right, the first match decides. */
#include "mime/auth/spf.h"

#include "mime/auth/spf_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_MAX = 63 };

static const struct text version = TEXT("v=spf1");

struct spf_run {
    const struct spf_query *query;
    struct spf_report *report;
};

/* The result of one mechanism. */
enum spf_match { SPF_MATCHES, SPF_DIFFERS, SPF_ENDS };

static enum spf_result spf_run_domain(struct spf_run *r, const char *domain);

static enum spf_result __attribute__((format(printf, 3, 4)))
spf_give_up(struct spf_run *r, enum spf_result result, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(r->report->why, sizeof(r->report->why), format, list);
    va_end(list);
    r->report->result = result;
    return result;
}

/* --- Look-ups ----------------------------------------------------------------------- */

/* False: the limit is reached. */
static bool
spf_count(struct spf_run *r, const char *domain)
{
    if (r->report->look_ups++ < SPF_LOOK_UPS_MAX)
        return true;
    spf_give_up(r, SPF_PERMERROR,
                "more than %d look-ups are needed (RFC 7208 §4.6.4); at that of %s",
                SPF_LOOK_UPS_MAX, domain);
    return false;
}

/* False: likewise. */
static bool
spf_count_void(struct spf_run *r, const char *name)
{
    if (++r->report->voids <= SPF_VOIDS_MAX)
        return true;
    spf_give_up(r, SPF_PERMERROR,
                "more than %d look-ups have no answer (RFC 7208 §4.6.4); the last: %s",
                SPF_VOIDS_MAX, name);
    return false;
}

/* NULL: it ends here. is_counted: an answer without data counts. */
static const struct spf_answer *
spf_ask(struct spf_run *r, enum spf_type type, const char *name, bool is_counted)
{
    static const struct spf_answer nothing = {.found = SPF_VOID};
    const struct spf_query *q = r->query;
    const struct spf_answer *answer =
        name[0] == '\0' ? &nothing : q->look_up(q->context, type, name);
    if (answer == NULL) {
        r->report->result = SPF_ASKS;
        return NULL;
    }
    if (answer->found == SPF_UNKNOWN) {
        spf_give_up(r, SPF_TEMPERROR, "%s cannot be looked up", name);
        return NULL;
    }
    bool is_void = answer->found == SPF_VOID && is_counted;
    return !is_void || spf_count_void(r, name) ? answer : NULL;
}

/* --- Mechanisms --------------------------------------------------------------------- */

static bool
spf_has_client(const struct spf_run *r, const struct spf_term *t,
               const struct net_address *address)
{
    struct net_network network = {.base = *address};
    bool is_four = address->family == NET_IPV4;
    const struct net_address *client = &r->query->client;
    network.bits = is_four ? t->bits4 : t->bits6;
    return !r->query->is_survey && client->family == address->family &&
           net_network_has(&network, client);
}

/* Addresses of the client's family alone count, so that a name without any is void. */
static enum spf_match
spf_match_addresses(struct spf_run *r, const struct spf_term *t, const char *name,
                    enum net_family family)
{
    size_t fit = 0;
    bool found = false;
    const struct spf_answer *answer = spf_ask(r, SPF_ADDRESSES, name, false);
    if (answer == NULL)
        return SPF_ENDS;
    for (size_t i = 0; i < answer->count; i++) {
        const struct net_address *a = &answer->addresses[i];
        bool counts = a->family == family || r->query->is_survey;
        fit += counts;
        found |= counts && spf_has_client(r, t, a);
    }
    if (fit > 0)
        return found ? SPF_MATCHES : SPF_DIFFERS;
    return spf_count_void(r, name) ? SPF_DIFFERS : SPF_ENDS;
}

static enum spf_match
spf_match_mx(struct spf_run *r, const struct spf_term *t, const char *name)
{
    enum spf_match match = SPF_DIFFERS;
    char host[SPF_NAME_MAX];
    const struct spf_answer *answer = spf_ask(r, SPF_EXCHANGERS, name, true);
    if (answer == NULL)
        return SPF_ENDS;
    if (answer->count > SPF_EXCHANGERS_MAX) {
        spf_give_up(r, SPF_PERMERROR, "mx: %s has more than %d MX records", name,
                    SPF_EXCHANGERS_MAX);
        return SPF_ENDS;
    }
    for (size_t i = 0; i < answer->count && match == SPF_DIFFERS; i++) {
        if (answer->hosts[i].length == 0 || /* the null MX */
            !text_copy(host, sizeof(host), answer->hosts[i]))
            continue;
        match = spf_match_addresses(r, t, host, r->query->client.family);
    }
    return match;
}

/* `exists` asks for an A record, for any family of the client (§5.7). */
static enum spf_match
spf_match_exists(struct spf_run *r, const char *name)
{
    struct spf_term any = {.kind = SPF_EXISTS};
    unsigned voids = r->report->voids;
    enum spf_match match = spf_match_addresses(r, &any, name, NET_IPV4);
    if (match == SPF_DIFFERS && r->report->voids == voids && !r->query->is_survey)
        return SPF_MATCHES;
    return match;
}

static enum spf_match
spf_match_include(struct spf_run *r, const char *name)
{
    switch (spf_run_domain(r, name)) {
    case SPF_PASS:
        return r->query->is_survey ? SPF_DIFFERS : SPF_MATCHES;
    case SPF_NEUTRAL:
    case SPF_FAIL:
    case SPF_SOFTFAIL:
        return SPF_DIFFERS;
    case SPF_NONE:
        spf_give_up(r, SPF_PERMERROR, "include:%s: that domain has no SPF record",
                    name);
        return SPF_ENDS;
    case SPF_TEMPERROR:
    case SPF_PERMERROR:
    case SPF_ASKS:
        break;
    }
    return SPF_ENDS;
}

static enum spf_match
spf_match_term(struct spf_run *r, const char *domain, const struct spf_term *t)
{
    char name[SPF_NAME_MAX];
    struct text spec = t->spec.length > 0 ? t->spec : TEXT("%{d}");
    bool asks = t->kind != SPF_ALL && t->kind != SPF_IP4 && t->kind != SPF_IP6;
    spf_macro_expand(r->query, text_from(domain), spec, name);
    if (asks && !spf_count(r, name))
        return SPF_ENDS;
    switch (t->kind) {
    case SPF_ALL:
        r->report->passes_all |= t->result == SPF_PASS;
        return r->query->is_survey ? SPF_DIFFERS : SPF_MATCHES;
    case SPF_INCLUDE:
        return spf_match_include(r, name);
    case SPF_A:
        return spf_match_addresses(r, t, name, r->query->client.family);
    case SPF_MX:
        return spf_match_mx(r, t, name);
    case SPF_PTR:
        r->report->uses_ptr = true;
        return SPF_DIFFERS;
    case SPF_IP4:
    case SPF_IP6:
        return !r->query->is_survey && net_network_has(&t->network, &r->query->client)
                   ? SPF_MATCHES
                   : SPF_DIFFERS;
    case SPF_EXISTS:
        return spf_match_exists(r, name);
    case SPF_REDIRECT:
    case SPF_OTHER:
        break;
    }
    return SPF_DIFFERS;
}

/* --- Records ------------------------------------------------------------------------ */

bool
spf_is_record(struct text text)
{
    return text_starts_nocase(text, version) &&
           (text.length == version.length || text.at[version.length] == ' ');
}

/* All terms, before any of them counts (§4.6). */
static bool
spf_validate(struct spf_run *r, const char *domain, struct text rest,
             struct spf_term *redirect)
{
    struct text word;
    struct spf_term t;
    const char *why;
    bool has_exp = false;
    redirect->spec = TEXT("");
    while (spf_term_cut(&rest, &word)) {
        if (!spf_term_read(word, &t, &why)) {
            spf_give_up(r, SPF_PERMERROR, "in the record of %s, '%.*s' %s", domain,
                        TEXT_ARGS(text_before(word, 100)), why);
            return false;
        }
        bool exp = t.kind == SPF_OTHER && text_starts_nocase(word, TEXT("exp="));
        if ((t.kind == SPF_REDIRECT && redirect->spec.length > 0) || (exp && has_exp)) {
            spf_give_up(r, SPF_PERMERROR, "the record of %s has '%.*s' twice", domain,
                        exp ? 4 : 9, word.at);
            return false;
        }
        has_exp |= exp;
        if (t.kind == SPF_REDIRECT)
            *redirect = t;
    }
    return true;
}

static enum spf_result
spf_redirect(struct spf_run *r, const char *domain, const struct spf_term *t)
{
    char name[SPF_NAME_MAX];
    spf_macro_expand(r->query, text_from(domain), t->spec, name);
    if (!spf_count(r, name))
        return SPF_PERMERROR;
    enum spf_result result = spf_run_domain(r, name);
    return result == SPF_NONE
               ? spf_give_up(r, SPF_PERMERROR,
                             "redirect=%s: that domain has no SPF record", name)
               : result;
}

/* After `all` nothing is looked at, redirect included. */
static enum spf_result
spf_run_record(struct spf_run *r, const char *domain, struct text record)
{
    struct text rest = text_after(record, version.length), word;
    struct spf_term redirect, t;
    const char *why;
    bool has_all = false;
    if (!spf_validate(r, domain, rest, &redirect))
        return SPF_PERMERROR;
    while (!has_all && spf_term_cut(&rest, &word)) {
        if (!spf_term_read(word, &t, &why) || t.kind == SPF_REDIRECT ||
            t.kind == SPF_OTHER)
            continue;
        enum spf_match match = spf_match_term(r, domain, &t);
        if (match == SPF_ENDS)
            return r->report->result;
        if (match == SPF_MATCHES)
            return t.result;
        has_all = t.kind == SPF_ALL;
    }
    return redirect.spec.length > 0 && !has_all ? spf_redirect(r, domain, &redirect)
                                                : SPF_NEUTRAL;
}

/* Two labels at least, none of them empty or too long (§4.3). */
static bool
spf_is_domain(struct text domain)
{
    struct text rest = domain, label;
    size_t count = 0;
    if (domain.length > 0 && domain.at[domain.length - 1] == '.')
        rest.length--;
    for (; text_cut(&rest, '.', &label); count++)
        if (label.length == 0 || label.length > LABEL_MAX)
            return false;
    return count > 1;
}

static enum spf_result
spf_run_domain(struct spf_run *r, const char *domain)
{
    const struct text *record = NULL;
    if (!spf_is_domain(text_from(domain)))
        return SPF_NONE;
    const struct spf_answer *answer = spf_ask(r, SPF_TEXTS, domain, false);
    if (answer == NULL)
        return r->report->result;
    for (size_t i = 0; i < answer->count; i++) {
        if (!spf_is_record(answer->texts[i]))
            continue;
        if (record != NULL)
            return spf_give_up(r, SPF_PERMERROR, "%s has more than one SPF record",
                               domain);
        record = &answer->texts[i];
    }
    return record != NULL ? spf_run_record(r, domain, *record) : SPF_NONE;
}

enum spf_result
spf_check(const struct spf_query *query, struct spf_report *report)
{
    struct spf_report own = {.result = SPF_NONE};
    struct spf_run r = {.query = query, .report = report != NULL ? report : &own};
    char domain[SPF_NAME_MAX];
    *r.report = (struct spf_report){.result = SPF_NONE};
    if (text_copy(domain, sizeof(domain), query->domain))
        r.report->result = spf_run_domain(&r, domain);
    return r.report->result;
}

/* --- For readers of records ----------------------------------------------------------- */

void
spf_each(struct text record, const char *name, spf_term_met *each, void *context)
{
    static const char signs[] = "+-~?";
    struct text rest = text_after(record, version.length), word;
    struct text wanted = text_from(name);
    while (spf_term_cut(&rest, &word)) {
        if (strchr(signs, word.at[0]) != NULL)
            word = text_after(word, 1);
        if (!text_starts_nocase(word, wanted) || word.length <= wanted.length ||
            (word.at[wanted.length] != ':' && word.at[wanted.length] != '='))
            continue;
        each(context, text_after(word, wanted.length + 1));
    }
}

const char *
spf_word(enum spf_result result)
{
    static const char *const words[] = {
        [SPF_NONE] = "none",           [SPF_NEUTRAL] = "neutral",
        [SPF_PASS] = "pass",           [SPF_FAIL] = "fail",
        [SPF_SOFTFAIL] = "softfail",   [SPF_TEMPERROR] = "temperror",
        [SPF_PERMERROR] = "permerror", [SPF_ASKS] = "asks",
    };
    assert(result <= SPF_ASKS);
    return words[result];
}
