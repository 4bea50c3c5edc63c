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
static bool
is_label(struct text label)
{
    if (label.length == 0 || label.at[0] == '-' || label.at[label.length - 1] == '-')
        return false;
    if (label.length > LABEL_MAX && text_is_ascii(label))
        return false;
    for (size_t at = 0; at < label.length;) {
        uint32_t point = next_point(label, &at);
        if (point < 0x80 && !is_alphanumeric((unsigned char)point) && point != '-' &&
            point != '_')
            return false;
        if (is_deceptive(point))
            return false;
    }
    return true;
}

static bool
is_literal(struct text t)
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
    if (text_starts_nocase(ip, TEXT("IPv6:")))
        return false;
    struct net_address address;
    return net_address_parse_ip(ip, &address) &&
           address.family == (six ? NET_IPV6 : NET_IPV4);
}

bool
address_is_domain(struct text t)
{
    if (t.length == 0 || t.length > ADDRESS_DOMAIN_MAX)
        return false;
    if (t.at[0] == '[')
        return is_literal(t);
    if (!is_safe_utf8(t))
        return false;
    struct text rest = t, label;
    while (text_cut(&rest, '.', &label))
        if (!is_label(label))
            return false;
    return true;
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

/* SRS puts a whole address into a local part, and all hosts take such ones. */
static size_t
local_part_max(struct text t)
{
    struct text plain = text_after(t, t.length > 0 && t.at[0] == '"' ? 1 : 0);
    bool is_srs = text_starts_nocase(plain, TEXT("SRS0")) ||
                  text_starts_nocase(plain, TEXT("SRS1"));
    return is_srs ? ADDRESS_MAX : ADDRESS_LOCAL_MAX;
}

bool
address_is_local(struct text t)
{
    if (t.length == 0 || t.length > local_part_max(t) || !is_safe_utf8(t))
        return false;
    if (t.at[0] == '"') /* no mailbox has the empty name "" */
        return t.length > 2 && quoted_length(t) == t.length;
    return is_dot_string(t);
}

bool
address_parse(struct text mailbox, struct address *out)
{
    size_t length = local_length(mailbox);
    if (mailbox.length > ADDRESS_MAX || length + 1 >= mailbox.length ||
        mailbox.at[length] != '@')
        return false;
    *out = (struct address){.local = text_before(mailbox, length),
                            .domain = text_after(mailbox, length + 1),
                            .utf8 = !text_is_ascii(mailbox)};
    return address_is_local(out->local) && address_is_domain(out->domain);
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

bool
address_parse_path(struct text *rest, struct address *out)
{
    size_t length = path_length(*rest);
    if (length == 0 || length > ADDRESS_MAX + 2)
        return false;
    struct text path = text_of(rest->at + 1, length - 2);
    *rest = text_after(*rest, length);
    if (path.length == 0) {
        *out = (struct address){.local = path, .domain = path};
        return true;
    }
    if (text_equal_nocase(path, TEXT("postmaster"))) {
        *out = (struct address){.local = path, .domain = text_after(path, path.length)};
        return true;
    }
    if (path.at[0] == '@' && !drop_route(&path))
        return false;
    return address_parse(path, out);
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
write_quoted(struct text plain, struct buffer *out)
{
    bool good = buffer_add_byte(out, '"');
    for (size_t at = 0; good && at < plain.length; at++) {
        if (plain.at[at] == '"' || plain.at[at] == '\\')
            good = buffer_add_byte(out, '\\');
        good = good && buffer_add_byte(out, plain.at[at]);
    }
    return good && buffer_add_byte(out, '"');
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
        is_dot_string(local) ? buffer_add(out, local) : write_quoted(local, out);
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
