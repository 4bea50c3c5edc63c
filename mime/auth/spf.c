/* Evaluates a record: its terms from left to right, the first match decides. */
#include "mime/auth/spf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum spf_kind {
    SPF_ALL,
    SPF_INCLUDE,
    SPF_A,
    SPF_MX,
    SPF_PTR,
    SPF_IP4,
    SPF_IP6,
    SPF_EXISTS,
    SPF_REDIRECT,
    SPF_OTHER /* a modifier that says nothing of the address */
};

struct spf_term {
    enum spf_kind kind;
    enum spf_result result; /* of a mechanism that matches */
    struct text spec;       /* the domain, with macros; empty: the current one */
    unsigned bits4, bits6;
    struct net_network network; /* ip4, ip6 */
};

/* --- Macros (RFC 7208 §7) --------------------------------------------------------- */

enum {
    EXPANDED_MAX = 4096, /* before it is cut to a name */
    NAME_LENGTH_MAX = 253,
    LABELS_MAX = 128,
    VALUE_MAX = 512
};

static const char delimiters[] = ".-+,/_=";

struct spf_macro {
    char letter; /* lower case */
    bool is_url, is_reverse;
    unsigned keep; /* labels at the right; 0: all */
    char split[sizeof(delimiters) + 1];
};

static bool
spf_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char
spf_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* --- Syntax ----------------------------------------------------------------------- */

/* The length of "%{...}", "%%", "%_" or "%-" at the start of t; 0: it is none. */
static size_t
spf_macro_read(struct text t, struct spf_macro *out)
{
    size_t at = 3, splits = 0;
    bool has_digits = false;
    *out = (struct spf_macro){0};
    if (t.length >= 2 && (t.at[1] == '%' || t.at[1] == '_' || t.at[1] == '-')) {
        out->letter = t.at[1];
        return 2;
    }
    if (t.length < 4 || t.at[1] != '{' || !spf_is_letter(t.at[2]))
        return 0;
    out->letter = spf_lower(t.at[2]);
    out->is_url = out->letter != t.at[2];
    if (strchr("slodiphv", out->letter) == NULL)
        return 0;
    for (; at < t.length && text_is_digit(t.at[at]); at++) {
        out->keep = out->keep * 10 + (unsigned)(t.at[at] - '0');
        out->keep = out->keep > LABELS_MAX ? LABELS_MAX : out->keep;
        has_digits = true;
    }
    if (has_digits && out->keep == 0)
        return 0;
    if (at < t.length && spf_lower(t.at[at]) == 'r') {
        out->is_reverse = true;
        at++;
    }
    for (; at < t.length && t.at[at] != '}'; at++) {
        if (t.at[at] == '\0' || strchr(delimiters, t.at[at]) == NULL)
            return 0;
        if (strchr(out->split, t.at[at]) == NULL)
            out->split[splits++] = t.at[at];
    }
    return at < t.length ? at + 1 : 0;
}

/* A label that may stand last: letters, digits, hyphens within, not digits alone. */
static bool
spf_is_top_label(struct text label)
{
    bool has_letter = false;
    if (label.length == 0 || label.at[0] == '-' || label.at[label.length - 1] == '-')
        return false;
    for (size_t i = 0; i < label.length; i++) {
        char c = label.at[i];
        if (!spf_is_letter(c) && !text_is_digit(c) && c != '-')
            return false;
        has_letter |= !text_is_digit(c);
    }
    return has_letter;
}

/* Whether a macro-string (§7.1), and of a domain-spec also its end. */
static bool
spf_macro_is_valid(struct text t, bool is_domain)
{
    size_t after_macro = TEXT_NONE;
    for (size_t at = 0; at < t.length;) {
        struct spf_macro macro;
        size_t length = 1;
        if (t.at[at] == '%' &&
            (length = spf_macro_read(text_after(t, at), &macro)) == 0)
            return false;
        if (length == 1 && (t.at[at] <= ' ' || t.at[at] > '~'))
            return false;
        at += length;
        if (length > 1)
            after_macro = at;
    }
    if (!is_domain)
        return true;
    if (t.length > 0 && after_macro == t.length)
        return true;
    if (t.length > 0 && t.at[t.length - 1] == '.')
        t.length--;
    size_t dot = text_find_last(t, '.');
    return dot != TEXT_NONE && (after_macro == TEXT_NONE || dot >= after_macro) &&
           spf_is_top_label(text_after(t, dot + 1));
}

/* --- Values ----------------------------------------------------------------------- */

/* "192.0.2.3", or nibbles with dots between. */
static struct text
spf_spell_client(const struct net_address *client, char out[VALUE_MAX])
{
    size_t at = 0;
    if (client->family != NET_IPV6) {
        net_address_ip(client, out);
        return text_from(out);
    }
    for (size_t i = 0; i < 16; i++)
        at += (size_t)snprintf(out + at, VALUE_MAX - at, "%s%x.%x", i > 0 ? "." : "",
                               client->ip[i] >> 4U, client->ip[i] & 15U);
    return text_of(out, at);
}

static struct text
spf_macro_value(const struct spf_query *q, struct text domain, char letter,
                char out[VALUE_MAX])
{
    struct text local = q->local.length > 0 ? q->local : TEXT("postmaster");
    int length = 0;
    switch (letter) {
    case 's':
        length =
            snprintf(out, VALUE_MAX, "%.*s@%.*s", TEXT_ARGS(text_before(local, 200)),
                     TEXT_ARGS(text_before(q->domain, 256)));
        return text_of(out, (size_t)length);
    case 'l':
        return local;
    case 'o':
        return q->domain;
    case 'd':
        return domain;
    case 'i':
        return spf_spell_client(&q->client, out);
    case 'h':
        return q->helo;
    case 'v':
        return q->client.family == NET_IPV6 ? TEXT("ip6") : TEXT("in-addr");
    default: /* p */
        return TEXT("unknown");
    }
}

struct spf_output {
    char at[EXPANDED_MAX];
    size_t length;
};

static void
spf_put(struct spf_output *out, struct text t, bool is_url)
{
    for (size_t i = 0; i < t.length && out->length + 4 < sizeof(out->at); i++) {
        char c = t.at[i];
        bool plain = spf_is_letter(c) || text_is_digit(c) ||
                     (c != '\0' && strchr("-._~", c) != NULL);
        if (is_url && !plain)
            out->length += (size_t)snprintf(out->at + out->length, 4, "%%%02X",
                                            (unsigned)(unsigned char)c);
        else
            out->at[out->length++] = c;
    }
}

/* Splits the value, keeps labels at the right, and joins them with dots. */
static void
spf_put_value(struct spf_output *out, struct text value, const struct spf_macro *m)
{
    const char *split = m->split[0] != '\0' ? m->split : ".";
    struct text labels[LABELS_MAX];
    size_t count = 0, start = 0;
    for (size_t i = 0; i <= value.length && count < LABELS_MAX; i++)
        if (i == value.length ||
            (value.at[i] != '\0' && strchr(split, value.at[i]) != NULL)) {
            labels[count++] = text_before(text_after(value, start), i - start);
            start = i + 1;
        }
    size_t kept = m->keep > 0 && m->keep < count ? m->keep : count;
    for (size_t i = 0; i < kept; i++) {
        size_t at = m->is_reverse ? kept - 1 - i : count - kept + i;
        if (i > 0)
            spf_put(out, TEXT("."), false);
        spf_put(out, labels[at], m->is_url);
    }
}

static void
spf_put_macro(struct spf_output *out, const struct spf_query *q, struct text domain,
              const struct spf_macro *m)
{
    char value[VALUE_MAX];
    if (m->letter == '%')
        spf_put(out, TEXT("%"), false);
    else if (m->letter == '_')
        spf_put(out, TEXT(" "), false);
    else if (m->letter == '-')
        spf_put(out, TEXT("%20"), false);
    else
        spf_put_value(out, spf_macro_value(q, domain, m->letter, value), m);
}

/* domain: the current one. A name that is too long loses labels at its left (§7.3). */
static void
spf_macro_expand(const struct spf_query *query, struct text domain, struct text t,
                 char out[SPF_NAME_MAX])
{
    struct spf_output all = {.length = 0};
    for (size_t at = 0; at < t.length;) {
        struct spf_macro macro;
        size_t length = t.at[at] == '%' ? spf_macro_read(text_after(t, at), &macro) : 0;
        if (length > 0)
            spf_put_macro(&all, query, domain, &macro);
        else
            spf_put(&all, text_of(t.at + at, 1), false);
        at += length > 0 ? length : 1;
    }
    struct text name = text_of(all.at, all.length);
    if (name.length > 0 && name.at[name.length - 1] == '.')
        name.length--;
    while (name.length > NAME_LENGTH_MAX) {
        size_t dot = text_find(name, '.');
        name = dot != TEXT_NONE ? text_after(name, dot + 1) : text_before(name, 0);
    }
    (void)text_copy(out, SPF_NAME_MAX, name);
}

/* --- Terms (RFC 7208 §12) --------------------------------------------------------- */

enum { IP4_BITS = 32, IP6_BITS = 128 };

static const struct {
    struct text name;
    enum spf_kind kind;
    bool needs_domain, may_have_domain;
} mechanisms[] = {
    {TEXT("all"),     SPF_ALL,     false, false},
    {TEXT("include"), SPF_INCLUDE, true,  true },
    {TEXT("a"),       SPF_A,       false, true },
    {TEXT("mx"),      SPF_MX,      false, true },
    {TEXT("ptr"),     SPF_PTR,     false, true },
    {TEXT("ip4"),     SPF_IP4,     true,  true },
    {TEXT("ip6"),     SPF_IP6,     true,  true },
    {TEXT("exists"),  SPF_EXISTS,  true,  true },
};

enum { MECHANISM_COUNT = sizeof(mechanisms) / sizeof(mechanisms[0]) };

/* Cuts the next term off a record without its version. False: there is none. */
static bool
spf_term_cut(struct text *rest, struct text *term)
{
    return text_word(rest, " ", term);
}

/* The name of a term: letters, digits, "-", "_", "." after a letter. */
static size_t
spf_name_length(struct text t)
{
    size_t length = 0;
    for (; length < t.length; length++) {
        char c = t.at[length];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter &&
            (length == 0 || (!text_is_digit(c) && c != '-' && c != '_' && c != '.')))
            break;
    }
    return length;
}

/* "/24": without a zero in front. */
static bool
spf_read_bits(struct text t, unsigned max, unsigned *bits)
{
    uint64_t value;
    if (t.length > 1 && t.at[0] == '0')
        return false;
    if (!text_number(t, max, &value))
        return false;
    *bits = (unsigned)value;
    return true;
}

/* Where the digits behind a slash at the end of t begin; TEXT_NONE: there are none. */
static size_t
spf_find_bits(struct text t)
{
    size_t at = t.length;
    while (at > 0 && text_is_digit(t.at[at - 1]))
        at--;
    return at > 0 && t.at[at - 1] == '/' ? at : TEXT_NONE;
}

/* Cuts "/24", "//64" or "/24//64" off the end of *spec. */
static bool
spf_cut_bits(struct text *spec, struct spf_term *out)
{
    out->bits4 = IP4_BITS;
    out->bits6 = IP6_BITS;
    size_t at = spf_find_bits(*spec);
    if (at != TEXT_NONE && at >= 2 && spec->at[at - 2] == '/') {
        if (!spf_read_bits(text_after(*spec, at), IP6_BITS, &out->bits6))
            return false;
        *spec = text_before(*spec, at - 2);
        at = spf_find_bits(*spec);
    }
    if (at == TEXT_NONE)
        return spec->length == 0 || spec->at[spec->length - 1] != '/';
    if (!spf_read_bits(text_after(*spec, at), IP4_BITS, &out->bits4))
        return false;
    *spec = text_before(*spec, at - 1);
    return true;
}

/* Dotted decimals without zeros in front, as net_address_parse_ip() takes them. */
static bool
spf_read_network(struct text t, struct spf_term *out)
{
    bool is_four = out->kind == SPF_IP4;
    unsigned bits = is_four ? IP4_BITS : IP6_BITS;
    size_t slash = text_find(t, '/');
    struct text ip = text_before(t, slash == TEXT_NONE ? t.length : slash);
    if (slash != TEXT_NONE && !spf_read_bits(text_after(t, slash + 1), bits, &bits))
        return false;
    if ((text_find(ip, ':') != TEXT_NONE) == is_four ||
        !net_address_parse_ip(ip, &out->network.base) ||
        (out->network.base.family == NET_IPV4) != is_four)
        return false;
    out->network.bits = bits;
    return true;
}

static bool
spf_read_mechanism(struct text t, size_t name_length, struct spf_term *out,
                   const char **why)
{
    struct text name = text_before(t, name_length), rest = text_after(t, name_length);
    size_t at = 0;
    while (at < MECHANISM_COUNT && !text_equal_nocase(name, mechanisms[at].name))
        at++;
    *why = "is not a mechanism of SPF";
    if (at == MECHANISM_COUNT)
        return false;
    *why = "is not written correctly";
    out->kind = mechanisms[at].kind;
    bool has_spec = rest.length > 0 && rest.at[0] == ':';
    if ((has_spec && !mechanisms[at].may_have_domain) ||
        (!has_spec && mechanisms[at].needs_domain))
        return false;
    rest = text_after(rest, has_spec ? 1 : 0);
    if (out->kind == SPF_IP4 || out->kind == SPF_IP6)
        return spf_read_network(rest, out);
    if ((out->kind == SPF_A || out->kind == SPF_MX) && !spf_cut_bits(&rest, out))
        return false;
    out->spec = rest;
    return has_spec ? spf_macro_is_valid(rest, true) : rest.length == 0;
}

static bool
spf_read_modifier(struct text name, struct text value, struct spf_term *out,
                  const char **why)
{
    bool redirect = text_equal_nocase(name, TEXT("redirect"));
    bool known = redirect || text_equal_nocase(name, TEXT("exp"));
    out->kind = redirect ? SPF_REDIRECT : SPF_OTHER;
    out->spec = value;
    *why = "is not written correctly";
    return spf_macro_is_valid(value, known);
}

/* False: a syntax error, with *why for people. */
static bool
spf_term_read(struct text t, struct spf_term *out, const char **why)
{
    static const char signs[] = "+-~?";
    static const enum spf_result results[] = {SPF_PASS, SPF_FAIL, SPF_SOFTFAIL,
                                              SPF_NEUTRAL};
    *out = (struct spf_term){.result = SPF_PASS};
    const char *sign = t.length > 0 && t.at[0] != '\0' ? strchr(signs, t.at[0]) : NULL;
    size_t length = spf_name_length(t);
    if (sign == NULL && length > 0 && length < t.length && t.at[length] == '=')
        return spf_read_modifier(text_before(t, length), text_after(t, length + 1), out,
                                 why);
    if (sign != NULL) {
        out->result = results[sign - signs];
        t = text_after(t, 1);
        length = spf_name_length(t);
    }
    return spf_read_mechanism(t, length, out, why);
}

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
