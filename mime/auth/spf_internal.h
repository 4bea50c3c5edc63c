/* Terms of SPF records, and macros in them. Internal to mime/spf*.c. */
#ifndef MIME_AUTH_SPF_INTERNAL_H
#define MIME_AUTH_SPF_INTERNAL_H

#include "mime/auth/spf.h"

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

/* Cuts the next term off a record without its version. False: there is none. */
bool spf_term_cut(struct text *rest, struct text *term);
/* False: a syntax error, with *why for people. */
bool spf_term_read(struct text t, struct spf_term *out, const char **why);

/* Whether a macro-string (§7.1), and of a domain-spec also its end. */
bool spf_macro_is_valid(struct text t, bool is_domain);
/* domain: the current one. A name that is too long loses labels at its left (§7.3). */
void spf_macro_expand(const struct spf_query *query, struct text domain, struct text t,
                      char out[SPF_NAME_MAX]);

#endif
