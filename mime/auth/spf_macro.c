/* Macros of SPF (RFC 7208 §7). */
#include "mime/auth/spf_internal.h"

#include <stdio.h>
#include <string.h>

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

bool
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

void
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
