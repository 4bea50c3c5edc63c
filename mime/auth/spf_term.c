/* Reads the terms of an SPF record (RFC 7208 §12). */
#include "mime/auth/spf_internal.h"

#include <string.h>

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

bool
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

bool
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
