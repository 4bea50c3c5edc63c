/* Masks mail addresses in texts of log lines and events: the domain stays.
 *
 * Pure. In texts of peers all that looks like an address is one: what stands before an
 * '@', in angle brackets all of it, and what stands behind a '<' where a text was cut. A
 * name alone, as in "no user joe", is not known to be an address. */
#ifndef BASE_LOG_LOG_MASK_H
#define BASE_LOG_LOG_MASK_H

#include "base/buffer.h"
#include "base/crypto/digest.h"

enum log_addresses {
    LOG_ADDRESSES_FULL,
    LOG_ADDRESSES_DOMAIN, /* "***@example.org" */
    LOG_ADDRESSES_HASH /* "3f1c0a9be2@example.org", of the key and the address, in any
                           * case of its letters; without the key as DOMAIN */
};
enum { LOG_MASK_HASH = 10 /* digits */ };

struct log_mask {
    enum log_addresses form;
    bool has_key;
    unsigned char key[DIGEST_SIZE];
};

/* The masked text: t, or within out. The caller frees out in any case. */
struct text log_mask_text(const struct log_mask *mask, struct text t,
                          struct buffer *out);
/* The same of an address: one without a domain is masked, too. */
struct text log_mask_address(const struct log_mask *mask, struct text address,
                             struct buffer *out);
/* The same of the name of a login, all of it before the domain that it may have. */
struct text log_mask_name(const struct log_mask *mask, struct text name,
                          struct buffer *out);
/* The next hop of a log line or event: the path of a Maildir has the name of its user. */
struct text log_mask_relay(const struct log_mask *mask, const char *relay);

#endif
