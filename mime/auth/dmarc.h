/* DMARC policy records (RFC 7489 §6.3): reads them, and walks up from a domain to the one
 * whose record counts. Pure. */
#ifndef MIME_AUTH_DMARC_H
#define MIME_AUTH_DMARC_H

#include "base/text.h"

enum { DMARC_LABELS_MAX = 5 };

enum dmarc_found {
    DMARC_NONE,
    DMARC_SEVERAL,   /* counts as none */
    DMARC_MALFORMED, /* has no valid p= */
    DMARC_FOUND
};
enum dmarc_policy { DMARC_POLICY_NONE, DMARC_POLICY_QUARANTINE, DMARC_POLICY_REJECT };

struct dmarc_record {
    struct text text; /* the whole record */
    enum dmarc_policy policy, subdomains;
    bool strict_dkim;
    struct text reports; /* rua=; empty: none */
};

/* texts: all TXT records of a _dmarc name. out is set when FOUND, text also when
 * MALFORMED. */
enum dmarc_found dmarc_read(const struct text *texts, size_t count,
                            struct dmarc_record *out);
/* The domain to ask behind `domain`: its parent; of more than DMARC_LABELS_MAX labels first
 * the last of these. Empty: there is none, since a top-level domain is not asked. */
struct text dmarc_parent(struct text domain);
/* "none", "quarantine", "reject". */
const char *dmarc_policy_word(enum dmarc_policy policy);

#endif
