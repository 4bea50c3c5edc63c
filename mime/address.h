/* Mail addresses in MAIL and RCPT (RFC 5321 §4.1.2, RFC 6531). */
#ifndef MIME_ADDRESS_H
#define MIME_ADDRESS_H

#include "base/buffer.h"
#include "base/net_address.h"

/* A local part has no limit of its own: RFC 5321 §4.5.3.1 asks for none beyond 64, and
 * replies to trackers, VERP, BATV and SRS put whole addresses and keys into it. */
enum { ADDRESS_DOMAIN_MAX = 255, ADDRESS_MAX = 254 };

/* Slices of the input. local is as written, with its quotes if any; domain is empty
 * for the null path and <postmaster>; an address literal keeps its brackets. */
struct address {
    struct text local, domain;
    bool utf8; /* holds bytes >= 0x80 (well-formed; needs SMTPUTF8) */
};

/* A mailbox "local@domain" without brackets; the domain is required. Dots may stand
 * anywhere in the local part, and one behind the domain, which out does not have. */
bool address_parse(struct text mailbox, struct address *out);

/* The rule that a mailbox breaks, in words for a reply; or NULL, and *out is set. */
const char *address_judge(struct text mailbox, struct address *out);

/* Takes "<...>" off the front of *rest, good or not: "<>" (both parts empty),
 * "<local@domain>", "<postmaster>" (any case), "<@route:local@domain>" whose route is
 * checked and dropped (RFC 5321 appendix C). NULL, or the rule that is broken: anything
 * above the limits, control bytes, ill-formed UTF-8, a second @ outside quotes, no path. */
const char *address_judge_path(struct text *rest, struct address *out);

/* A local part by itself, without control characters: a quoted string, or characters of
 * atoms and dots, not only dots. */
bool address_is_local(struct text t);

/* A domain name or literal by itself (EHLO argument, route pattern): labels of letters,
 * digits, hyphen, underscore or UTF-8; no empty label, no trailing dot. */
bool address_is_domain(struct text t);
/* An address literal (RFC 5321 §4.1.3): "[192.0.2.1]", "[IPv6:2001:db8::1]". */
bool address_read_literal(struct text t, struct net_address *out);

/* A domain in normal form: lower case, U-labels as A-labels where base/dns/idna.h can
 * convert them. False at out's limit. */
bool address_write_domain(struct text domain, struct buffer *out)
    __attribute__((warn_unused_result));

/* "local@domain" with the domain in normal form and needless quotes removed, so that
 * equal mailboxes have equal text; "" for the null path, "postmaster" alone stays
 * alone; a domain whose A-labels would make it longer than ADDRESS_MAX stays as it is.
 * False at out's limit. */
bool address_write(const struct address *a, struct buffer *out)
    __attribute__((warn_unused_result));

/* The local part without quotes and backslashes (for %u). False at out's limit. */
bool address_write_local(const struct address *a, struct buffer *out)
    __attribute__((warn_unused_result));

/* RFC 3461 §4 xtext. False when malformed, at the limit, or when a decoded byte is a
 * control character. */
bool xtext_read(struct text t, struct buffer *out) __attribute__((warn_unused_result));
bool xtext_write(struct text t, struct buffer *out) __attribute__((warn_unused_result));

/* RFC 6533 §3: well-formed UTF-8 as utf-8-addr-unitext, where "+", "=", backslashes and
 * blanks are \x{HEX}. */
bool xtext_write_unitext(struct text t, struct buffer *out)
    __attribute__((warn_unused_result));
/* RFC 6533 §3: UTF-8, or unitext, as utf-8-addr-xtext, where non-ASCII characters are
 * \x{HEX}, too. */
bool xtext_write_utf8(struct text unitext, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
