/* Reads and writes the addresses of MAIL, RCPT and address lists.
 *
 * Every accepted address goes into commands, log lines, reports and files of the spool.
 * So controls and ill-formed UTF-8 are refused, also in quotes. Each accepted mailbox
 * has a normal form within the limits, and equal mailboxes have the same one. */
#include "mime/address.h"

#include "base/dns/idna.h"
#include "base/net_address.h"

#include <assert.h>
#include <string.h>

/* RFC 1035 §2.3.4; a UTF-8 label has only the limit of the domain */
enum { LABEL_MAX = 63 };

static const char too_long[] = "longer than 254 octets";

static bool
is_alphanumeric(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* atext of RFC 5322 §3.2.3 and RFC 6531 §3.3. */
static bool
is_atext(unsigned char c)
{
    return is_alphanumeric(c) || c >= 0x80 ||
           (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

/* Returns the code point at t.at[*at], in well-formed text, and advances *at. */
static uint32_t
next_point(struct text t, size_t *at)
{
    unsigned char c = (unsigned char)t.at[(*at)++];
    if (c < 0x80)
        return c;
    unsigned more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    uint32_t point = c & (0x3fU >> more);
    for (; more > 0; more--) {
        assert(*at < t.length);
        point = point << 6 | ((unsigned char)t.at[(*at)++] & 0x3fU);
    }
    return point;
}

/* Well-formed UTF-8 without C1 controls, line and paragraph separators. They end lines
 * or control a terminal, as the controls of ASCII do. */
static bool
is_safe_utf8(struct text t)
{
    if (text_is_ascii(t))
        return true;
    if (!text_is_utf8(t))
        return false;
    for (size_t at = 0; at < t.length;) {
        uint32_t point = next_point(t, &at);
        if ((point >= 0x80 && point < 0xa0) || point == 0x2028 || point == 0x2029)
            return false;
    }
    return true;
}

/* Characters that IDNA maps to a dot, an @ or nothing: two readers would see two
 * domains. */
static bool
is_deceptive(uint32_t point)
{
    return point == 0xa0 || point == 0xad || (point >= 0x2000 && point <= 0x200b) ||
           (point >= 0x200e && point <= 0x206f) ||
           (point >= 0x3000 && point <= 0x3002) || point == 0xfeff ||
           (point >= 0xff00 && point <= 0xff65);
}

/* The labels of RFC 5321 §4.1.2 and RFC 6531 §3.3, and '_', which names in the DNS
 * have, too. */
static const char *
label_fault(struct text label)
{
    if (label.length == 0)
        return "two dots in the domain, or one in front";
    if (label.at[0] == '-' || label.at[label.length - 1] == '-')
        return "a hyphen at the end of a label of the domain";
    if (label.length > LABEL_MAX && text_is_ascii(label))
        return "a label of the domain is longer than 63 octets";
    for (size_t at = 0; at < label.length;) {
        uint32_t point = next_point(label, &at);
        if (point == '@')
            return "two @";
        if (point < 0x80 && !is_alphanumeric((unsigned char)point) && point != '-' &&
            point != '_')
            return "a character that no domain has";
        if (is_deceptive(point))
            return "a character that looks like another one in the domain";
    }
    return NULL;
}

bool
address_read_literal(struct text t, struct net_address *out)
{
    if (t.length < 3 || t.at[0] != '[' || t.at[t.length - 1] != ']')
        return false;
    struct text ip = text_of(t.at + 1, t.length - 2);
    bool six = text_starts_nocase(ip, TEXT("IPv6:"));
    if (six)
        ip = text_after(ip, 5);
    for (size_t at = 0; at < ip.length; at++) /* no zone, no second tag */
        if (!is_alphanumeric((unsigned char)ip.at[at]) && ip.at[at] != '.' &&
            !(six && ip.at[at] == ':'))
            return false;
    return !text_starts_nocase(ip, TEXT("IPv6:")) && net_address_parse_ip(ip, out) &&
           out->family == (six ? NET_IPV6 : NET_IPV4);
}

static bool
is_literal(struct text t)
{
    struct net_address address;
    return address_read_literal(t, &address);
}

static const char *
domain_fault(struct text t)
{
    const char *fault = NULL;
    if (t.length == 0)
        return "no domain";
    if (t.length > ADDRESS_DOMAIN_MAX)
        return "the domain is longer than 255 octets";
    if (t.at[0] == '[')
        return is_literal(t) ? NULL : "a malformed address literal";
    if (!is_safe_utf8(t))
        return "the domain is not UTF-8";
    struct text rest = t, label;
    while (fault == NULL && text_cut(&rest, '.', &label))
        fault = label_fault(label);
    return fault;
}

bool
address_is_domain(struct text t)
{
    return domain_fault(t) == NULL;
}

/* Dot-string of RFC 5321 §4.1.2, without limit. */
static bool
is_dot_string(struct text t)
{
    bool after_dot = true;
    for (size_t at = 0; at < t.length; at++) {
        if (t.at[at] == '.') {
            if (after_dot)
                return false;
            after_dot = true;
        } else if (is_atext((unsigned char)t.at[at])) {
            after_dot = false;
        } else {
            return false;
        }
    }
    return !after_dot;
}

/* The quoted string at the front of t with its quotes; 0 when it does not end or holds
 * a control. Behind a backslash only ASCII is allowed (quoted-pairSMTP of RFC 5321
 * §4.1.2), and no control either: quotes do not make a line end safe. */
static size_t
quoted_length(struct text t)
{
    assert(t.length > 0 && t.at[0] == '"');
    for (size_t at = 1; at < t.length; at++) {
        if (t.at[at] == '"')
            return at + 1;
        if (t.at[at] == '\\') {
            at++;
            if (at == t.length || (unsigned char)t.at[at] >= 0x80)
                return 0;
        }
        if ((unsigned char)t.at[at] < ' ' || t.at[at] == 0x7f)
            return 0;
    }
    return 0;
}

/* The length of the local part at the front: a quoted string, or all bytes up to the
 * first one that must be quoted. An @ is thus searched only behind the local part,
 * whose quotes may hold others. */
static size_t
local_length(struct text t)
{
    if (t.length > 0 && t.at[0] == '"')
        return quoted_length(t);
    size_t at = 0;
    while (at < t.length && (t.at[at] == '.' || is_atext((unsigned char)t.at[at])))
        at++;
    return at;
}

static const char *
odd_byte(char c)
{
    return c == ' ' || c == '\t' ? "a blank outside quotes"
                                 : "a character that must be in quotes";
}

/* Dots may be anywhere: mailboxes such as a..b and a. exist, and what is meant is clear.
 * They are quoted where they are written. */
static const char *
local_fault(struct text t)
{
    if (t.length == 0)
        return "no local part";
    if (!is_safe_utf8(t))
        return "the local part is not UTF-8";
    if (t.at[0] == '"') {
        if (quoted_length(t) != t.length)
            return "a quoted string without an end, or with text after it";
        return t.length > 2 ? NULL : "no local part"; /* no mailbox has the name "" */
    }
    size_t dots = 0;
    while (dots < t.length && t.at[dots] == '.')
        dots++;
    if (dots == t.length)
        return "only dots before the @";
    size_t length = local_length(t);
    return length == t.length ? NULL : odd_byte(t.at[length]);
}

bool
address_is_local(struct text t)
{
    return t.length <= ADDRESS_MAX && local_fault(t) == NULL;
}

/* The normal form of a local part may need quotes, and has to be within the limit as
 * well. */
static size_t
written_length(const struct address *a)
{
    bool quotes =
        a->local.length > 0 && a->local.at[0] != '"' && !is_dot_string(a->local);
    return a->local.length + 1 + a->domain.length + (quotes ? 2 : 0);
}

const char *
address_judge(struct text mailbox, struct address *out)
{
    size_t length = local_length(mailbox);
    struct text local = text_before(mailbox, length);
    struct text domain = text_after(mailbox, length);
    if (length == 0 && mailbox.length > 0 && mailbox.at[0] == '"')
        local = mailbox; /* it does not end */
    const char *fault = local_fault(local);
    if (mailbox.length > ADDRESS_MAX + 1)
        return too_long;
    if (domain.length > 0 && domain.at[0] != '@' && local.length < mailbox.length)
        return odd_byte(domain.at[0]);
    if (fault != NULL)
        return fault;
    domain = text_after(domain, domain.length > 0 ? 1 : 0);
    if (domain.length > 1 && domain.at[domain.length - 1] == '.')
        domain = text_before(domain, domain.length - 1);
    *out = (struct address){
        .local = local, .domain = domain, .utf8 = !text_is_ascii(mailbox)};
    fault = domain_fault(domain);
    return fault == NULL && written_length(out) > ADDRESS_MAX ? too_long : fault;
}

bool
address_parse(struct text mailbox, struct address *out)
{
    return address_judge(mailbox, out) == NULL;
}

/* Drops "@a,@b:" off the front of path; false if malformed. A server must accept such a
 * route and should ignore it (RFC 5321 appendix C). */
static bool
drop_route(struct text *path)
{
    struct text route = *path;
    while (route.length > 0 && route.at[0] == '@') {
        route = text_after(route, 1);
        size_t end = 0;
        if (route.length > 0 && route.at[0] == '[') {
            end = text_find(route, ']'); /* the colons of an IPv6 literal */
            if (end == TEXT_NONE)
                return false;
        }
        while (end < route.length && route.at[end] != ',' && route.at[end] != ':')
            end++;
        if (end == route.length || !address_is_domain(text_before(route, end)))
            return false;
        bool last = route.at[end] == ':';
        route = text_after(route, end + 1);
        if (last) {
            *path = route;
            return true;
        }
    }
    return false;
}

/* The length of "<...>" at the front of t; 0 when there is no end. Quoted strings are
 * skipped, since a '>' in quotes is data. The limit is that of RFC 5321 §4.5.3.1.3, 256
 * bytes with the brackets. */
static size_t
path_length(struct text t)
{
    if (t.length == 0 || t.at[0] != '<')
        return 0;
    for (size_t at = 1; at < t.length && at < ADDRESS_MAX + 2; at++) {
        if (t.at[at] == '>')
            return at + 1;
        if (t.at[at] == '"') {
            size_t quoted = quoted_length(text_after(t, at));
            if (quoted == 0)
                return 0;
            at += quoted - 1;
        }
    }
    return 0;
}

const char *
address_judge_path(struct text *rest, struct address *out)
{
    size_t length = path_length(*rest);
    if (length == 0 || length > ADDRESS_MAX + 2)
        return rest->length > ADDRESS_MAX + 2 ? too_long : "no > behind the address";
    struct text path = text_of(rest->at + 1, length - 2);
    *rest = text_after(*rest, length);
    if (path.length == 0) {
        *out = (struct address){.local = path, .domain = path};
        return NULL;
    }
    if (text_equal_nocase(path, TEXT("postmaster"))) {
        *out = (struct address){.local = path, .domain = text_after(path, path.length)};
        return NULL;
    }
    if (path.at[0] == '@' && !drop_route(&path))
        return "no local part, or a malformed source route";
    return address_judge(path, out);
}

/* Copies local without quotes and backslashes to out; the result is not longer. The
 * quotes are notation: "a"@b and a@b are one mailbox. */
static struct text
unquote(struct text local, char out[ADDRESS_MAX])
{
    assert(local.length <= ADDRESS_MAX);
    if (local.length < 2 || local.at[0] != '"')
        return local;
    size_t length = 0;
    for (size_t at = 1; at + 1 < local.length; at++) {
        if (local.at[at] == '\\')
            at++;
        out[length++] = local.at[at];
    }
    return text_of(out, length);
}

static bool
to_a_labels(struct text domain, char ascii[IDNA_NAME_MAX])
{
    return !text_is_ascii(domain) && idna_to_ascii(domain, ascii) &&
           address_is_domain(text_from(ascii));
}

/* Lower case only. */
static bool
write_as_it_is(struct text domain, struct buffer *out)
{
    size_t start = out->length;
    if (!buffer_add(out, domain))
        return false;
    text_lower(out->at + start, domain.length);
    struct text written = text_after(buffer_text(out), start);
    if (text_starts(written, TEXT("[ipv6:")))
        memcpy(out->at + start, "[IPv6:", 6); /* the spelling of RFC 5321 §4.1.3 */
    return true;
}

bool
address_write_domain(struct text domain, struct buffer *out)
{
    char ascii[IDNA_NAME_MAX];
    if (to_a_labels(domain, ascii))
        return buffer_add(out, text_from(ascii));
    return write_as_it_is(domain, out);
}

/* A-labels are longer: if they exceed the limit, the mailbox keeps its form. Every
 * accepted mailbox must have a normal form that can be parsed again. */
static bool
write_behind(struct text domain, size_t start, struct buffer *out)
{
    char ascii[IDNA_NAME_MAX];
    bool fits = to_a_labels(domain, ascii) &&
                out->length - start + strlen(ascii) <= ADDRESS_MAX;
    return fits ? buffer_add(out, text_from(ascii)) : write_as_it_is(domain, out);
}

/* The quotes are removed first and added again only where the local part needs them: so
 * equal mailboxes have equal text. */
bool
address_write(const struct address *a, struct buffer *out)
{
    size_t start = out->length;
    bool alone = a->domain.length == 0;
    if (alone && a->local.length == 0)
        return true;
    char plain[ADDRESS_MAX];
    struct text local = unquote(a->local, plain);
    bool good =
        is_dot_string(local) ? buffer_add(out, local) : buffer_add_quoted(out, local);
    if (good && alone && text_equal_nocase(local, TEXT("postmaster")))
        text_lower(out->at + start, local.length);
    if (good && !alone)
        good = buffer_add_byte(out, '@') && write_behind(a->domain, start, out);
    if (!good)
        out->length = start;
    return good;
}

bool
address_write_local(const struct address *a, struct buffer *out)
{
    char plain[ADDRESS_MAX];
    return buffer_add(out, unquote(a->local, plain));
}
