/* Names in certificates, and errors of certificates in one line. */
#include "base/tls/tls_internal.h"

#include "base/net_address.h"
#include "base/printable.h"

#include <mbedtls/asn1.h>
#include <mbedtls/oid.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SAN_DNS = 2, /* RFC 5280 §4.2.1.6 */
    SAN_IP = 7,
    NAMES_TOLD = 3,
    NAME_TEXT = 256
};

int64_t
tls_time_ms(const mbedtls_x509_time *t)
{
    struct tm tm = {.tm_year = t->year - 1900,
                    .tm_mon = t->mon - 1,
                    .tm_mday = t->day,
                    .tm_hour = t->hour,
                    .tm_min = t->min,
                    .tm_sec = t->sec};
    return (int64_t)timegm(&tm) * 1000;
}

static struct text
tls_name_host_of(struct text host)
{
    if (host.length > 1 && host.at[host.length - 1] == '.')
        host.length--;
    return host;
}

/* RFC 6125 §6.4.3. Names are compared with their lengths, so that a NUL within the name
 * of a certificate does not end it. */
bool
tls_name_matches(struct text pattern, struct text host)
{
    size_t dot;
    host = tls_name_host_of(host);
    if (!host.length || !pattern.length)
        return false;
    if (!text_starts(pattern, TEXT("*.")))
        return text_equal_nocase(pattern, host);
    pattern = text_after(pattern, 1);
    dot = text_find(host, '.');
    if (dot == TEXT_NONE || dot == 0 ||
        text_find(text_after(pattern, 1), '.') == TEXT_NONE)
        return false;
    return text_equal_nocase(pattern, text_after(host, dot));
}

static struct text
text_of_buf(const mbedtls_x509_buf *b)
{
    return text_of(b->p, b->len);
}

/* -1: the head of an empty list, which mbedTLS keeps in the certificate. */
static int
tls_name_kind_of(const mbedtls_x509_sequence *s)
{
    return s->buf.p ? s->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK : -1;
}

/* For logs only: it proves nothing (RFC 9525 §2). */
static struct text
common_name(const mbedtls_x509_crt *certificate)
{
    struct text name = {0};
    for (const mbedtls_x509_name *n = &certificate->subject; n; n = n->next)
        if (n->oid.p && MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &n->oid) == 0)
            name = text_of_buf(&n->val); /* the last is the most specific */
    return name;
}

/* Compared with its length: 4 bytes never match an IPv6 address. */
static bool
names_address(const mbedtls_x509_crt *certificate, const struct net_address *ip)
{
    struct text wanted = text_of(ip->ip, ip->family == NET_IPV4 ? 4 : 16);
    for (const mbedtls_x509_sequence *s = &certificate->subject_alt_names; s;
         s = s->next)
        if (tls_name_kind_of(s) == SAN_IP && text_equal(text_of_buf(&s->buf), wanted))
            return true;
    return false;
}

/* An IP literal is compared with the addresses of a certificate, never with its names.
 */
bool
tls_certificate_names(const mbedtls_x509_crt *certificate, struct text host,
                      struct text *matched)
{
    const mbedtls_x509_sequence *s = &certificate->subject_alt_names;
    struct net_address ip;
    if (net_address_parse_ip(host, &ip)) {
        *matched = host;
        return names_address(certificate, &ip);
    }
    if (tls_name_kind_of(s) < 0) /* the common name does not count (RFC 9525 §2) */
        return false;
    for (; s; s = s->next) {
        *matched = text_of_buf(&s->buf);
        if (tls_name_kind_of(s) == SAN_DNS && tls_name_matches(*matched, host))
            return true;
    }
    return false;
}

struct text
tls_certificate_name(const mbedtls_x509_crt *certificate)
{
    for (const mbedtls_x509_sequence *s = &certificate->subject_alt_names; s;
         s = s->next)
        if (tls_name_kind_of(s) == SAN_DNS)
            return text_of_buf(&s->buf);
    return common_name(certificate);
}

/* The peer chose the name, and it goes into the log. */
void
tls_copy_name(char *to, size_t size, struct text name)
{
    text_copy(to, size, name);
    for (size_t i = 0; i < name.length && i + 1 < size; i++)
        if (to[i] < 0x20 || to[i] > 0x7e)
            to[i] = '?';
}

/* False: it is neither a name nor an address. */
static bool
tls_name_format(const mbedtls_x509_sequence *s, char name[NAME_TEXT])
{
    bool is_ip = tls_name_kind_of(s) == SAN_IP && (s->buf.len == 4 || s->buf.len == 16);
    if (is_ip) {
        struct net_address ip = {.family = s->buf.len == 4 ? NET_IPV4 : NET_IPV6};
        char address[NET_ADDRESS_TEXT_MAX];
        memcpy(ip.ip, s->buf.p, s->buf.len);
        net_address_ip(&ip, address);
        snprintf(name, NAME_TEXT, "%s", address);
    } else if (tls_name_kind_of(s) == SAN_DNS) {
        tls_copy_name(name, NAME_TEXT, text_before(text_of_buf(&s->buf), TLS_NAME_MAX));
    }
    return is_ip || tls_name_kind_of(s) == SAN_DNS;
}

void
tls_certificate_each_name(const mbedtls_x509_crt *certificate,
                          void (*each)(void *context, const char *name), void *context)
{
    const mbedtls_x509_sequence *s = &certificate->subject_alt_names;
    char name[NAME_TEXT];
    bool any = false;
    for (; s; s = s->next)
        if (tls_name_format(s, name)) {
            each(context, name);
            any = true;
        }
    tls_copy_name(name, sizeof(name),
                  text_before(common_name(certificate), TLS_NAME_MAX));
    if (!any && name[0] != '\0')
        each(context, name);
}

/* "a.example, b.example and 5 others" */
static void
list_names(const mbedtls_x509_crt *certificate, char *to, size_t size)
{
    const mbedtls_x509_sequence *s = &certificate->subject_alt_names;
    char name[NAME_TEXT];
    size_t told = 0, others = 0, length = 0;
    to[0] = '\0';
    for (; s; s = s->next) {
        if (!tls_name_format(s, name))
            continue;
        /* The certificate of a large provider may have hundreds. */
        if (told == NAMES_TOLD) {
            others++;
            continue;
        }
        snprintf(to + length, size - length, "%s%s", told++ ? ", " : "", name);
        length = strlen(to);
    }
    if (others)
        snprintf(to + length, size - length, " and %zu others", others);
}

static void
explain_name(const mbedtls_x509_crt *certificate, struct text host, char *to,
             size_t size)
{
    char names[NAMES_TOLD * NAME_TEXT + 32], wanted[NAME_TEXT];
    tls_copy_name(wanted, sizeof(wanted), host);
    if (tls_name_kind_of(&certificate->subject_alt_names) < 0) {
        snprintf(to, size,
                 "certificate does not name %s (it has no alternative names, and a "
                 "common name does not count)",
                 wanted);
        return;
    }
    list_names(certificate, names, sizeof(names));
    snprintf(to, size, "certificate does not name %s (it names %s)", wanted,
             names[0] ? names : "nobody");
}

static void
explain_issuer(const mbedtls_x509_crt *certificate, int depth, char *to, size_t size)
{
    char issuer[NAME_TEXT];
    if (text_equal(text_of_buf(&certificate->issuer_raw),
                   text_of_buf(&certificate->subject_raw)) &&
        depth == 0) {
        snprintf(to, size, "certificate is self-signed");
        return;
    }
    if (mbedtls_x509_dn_gets(issuer, sizeof(issuer), &certificate->issuer) < 0)
        snprintf(issuer, sizeof(issuer), "with a long name");
    printable_make(issuer); /* the peer chose it: see tls_copy_name() */
    snprintf(to, size, "unknown issuer %s", issuer);
}

static void
explain_time(const char *what, int depth, const mbedtls_x509_time *t, char *to,
             size_t size)
{
    snprintf(to, size, "%s %s %04d-%02d-%02d %02d:%02d:%02d UTC",
             depth ? "certificate of the issuer" : "certificate", what, t->year, t->mon,
             t->day, t->hour, t->min, t->sec);
}

/* The most serious first: without a trusted issuer anybody could have written the dates
 * and names. */
void
tls_explain(const mbedtls_x509_crt *certificate, int depth, uint32_t flags,
            struct text host, char *to, size_t size)
{
    if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) {
        explain_issuer(certificate, depth, to, size);
    } else if (flags & MBEDTLS_X509_BADCERT_EXPIRED) {
        explain_time("has expired on", depth, &certificate->valid_to, to, size);
    } else if (flags & MBEDTLS_X509_BADCERT_FUTURE) {
        explain_time("is not valid before", depth, &certificate->valid_from, to, size);
        size_t length = strlen(to);
        snprintf(to + length, size - length, ", or the clock of this host is wrong");
    } else if (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) {
        explain_name(certificate, host, to, size);
    } else {
        mbedtls_x509_crt_verify_info(to, size, "", flags);
        to[strcspn(to, "\n")] = '\0';
    }
}
