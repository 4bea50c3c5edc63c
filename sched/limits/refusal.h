/* The subject of a reply that refuses mail, and the remedy for its reader. Pure.
 *
 * An outcome has host, code and words; its text alone (struct outcome_sentence) has them,
 * too. So logs, reports and commands come to the same class, also after a restart.
 * Codes decide where receivers agree on them, phrases elsewhere; a code that two
 * receivers use for different things counts by the host alone. reply_class.h has the
 * classes that decide when mail is retried. */
#ifndef SCHED_LIMITS_REFUSAL_H
#define SCHED_LIMITS_REFUSAL_H

#include "base/outcome.h"

#include <stdbool.h>

enum { REFUSAL_HINT_MAX = 240 };

enum refusal_class {
    REFUSAL_OTHER,      /* not a reply, or one without a known meaning */
    REFUSAL_NO_USER,    /* no such mailbox, or a disabled one */
    REFUSAL_NO_DOMAIN,  /* the recipient's domain takes no mail */
    REFUSAL_FULL,       /* the mailbox */
    REFUSAL_TOO_BIG,    /* the message */
    REFUSAL_AUTH,       /* SPF, DKIM or DMARC */
    REFUSAL_PTR,        /* name of our address; mail over IPv6 without one */
    REFUSAL_REPUTATION, /* our address is on a list, or unknown */
    REFUSAL_CONTENT,    /* spam or a virus, by its content */
    REFUSAL_SENDER,     /* not a sender of this account */
    REFUSAL_LOGIN,      /* user, password, or the way of login */
    REFUSAL_QUOTA,      /* the account has sent its share */
    REFUSAL_TLS,        /* the receiver demands TLS */
    REFUSAL_FORM,       /* RFC 5322 */
    REFUSAL_RELAY,      /* we may not relay there */
    REFUSAL_POLICY,     /* the account is blocked */
    REFUSAL_CLASSES
};

enum refusal_class refusal_classify(const struct outcome *outcome);
/* By the text of an outcome alone, as the queue and the history keep it. */
enum refusal_class refusal_classify_text(const char *text);
/* "no_user", "auth" ...; "" for OTHER. */
const char *refusal_name(enum refusal_class class);
/* The name of a receiver with many hosts, by one of them; NULL: it is not known. */
const char *refusal_receiver(struct text host);
/* Whether it is about an IPv6 address as such: a message may pass from an IPv4 one. */
bool refusal_is_of_ipv6(const struct outcome *outcome);
/* One sentence without a period. False: there is nothing to say. */
bool refusal_hint(const struct outcome *outcome, char out[REFUSAL_HINT_MAX])
    __attribute__((warn_unused_result));
bool refusal_hint_text(const char *text, char out[REFUSAL_HINT_MAX])
    __attribute__((warn_unused_result));

#endif
