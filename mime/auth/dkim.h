/* DKIM signatures (RFC 6376, 8301, 8463): the body hash, the choice of header fields,
 * and the DKIM-Signature field. Pure; base/crypto/sign.h has the keys.
 *
 * There is one way: relaxed/relaxed, SHA-256, no l=. Fields are signed once more than
 * they occur ("oversigned"), so that nobody can add a second Subject without breaking
 * the signature. The bytes read here must be those that leave, before dot-stuffing:
 * header lines end in CRLF. */
#ifndef MIME_AUTH_DKIM_H
#define MIME_AUTH_DKIM_H

#include "base/buffer.h"
#include "base/crypto/digest.h"
#include "base/text.h"

enum {
    DKIM_HEADER_MAX = 256 * 1024, /* of a header that is signed, in bytes */
    DKIM_INSTANCES_MAX = 10,      /* of a field that is signed */
    DKIM_ADDRESS_MAX = 1024,      /* of the author */
    DKIM_FIELD_MAX = 16 * 1024,   /* of a whole DKIM-Signature, line ends included */
    DKIM_PENDING = 512,
    DKIM_NAME_MAX = 255 /* of a domain or selector, with the final NUL */
};

/* Whether d= or s= may have it: labels of letters, digits, hyphens and underscores. */
bool dkim_is_name(struct text t);

/* The hash of a body that comes in pieces of any size (RFC 6376 §3.4.4). Plain data. */
struct dkim_body {
    struct digest all;
    struct digest before_blank; /* the state before the empty lines at the end */
    bool after_cr, after_blank; /* a CR, white space: their meaning is not known yet */
    bool in_line;               /* the line has text */
    bool in_blank;              /* empty lines: before_blank is valid */
    size_t pending;             /* bytes that are not hashed yet */
    char bytes[DKIM_PENDING];
};
void dkim_body_start(struct dkim_body *b);
void dkim_body_add(struct dkim_body *b, struct text piece);
void dkim_body_end(struct dkim_body *b, unsigned char out[DIGEST_SIZE]);

/* The signed part of a header. */
struct dkim_header {
    struct buffer names;  /* the value of h= */
    struct buffer author; /* the first address in From as written; "": it has none */
    struct digest fields; /* has hashed them (§3.7) */
};
/* header: up to its empty line, with or without it. False: it cannot be signed, and
 * *why is a constant, for "not signed: WHY". */
bool dkim_header_read(struct dkim_header *h, struct text header, const char **why)
    __attribute__((warn_unused_result));
void dkim_header_free(struct dkim_header *h);

struct dkim_tags {
    const char *algorithm; /* a=: "rsa-sha256", "ed25519-sha256" */
    const char *domain, *selector;
    int64_t time_s;
    const unsigned char *body; /* bh=: of DIGEST_SIZE bytes */
};
/* Writes the field up to "b=" to out, whose limit is DKIM_FIELD_MAX, and the digest to
 * sign. */
void dkim_field_begin(const struct dkim_header *h, const struct dkim_tags *tags,
                      struct buffer *out, unsigned char digest[DIGEST_SIZE]);
/* Completes it: the field ends in CRLF and is the first of the header. */
void dkim_field_end(struct buffer *out, struct text signature);

/* Key records of DKIM (RFC 6376 §3.6.1): whether the record at
 * SELECTOR._domainkey.DOMAIN lets receivers verify signatures of our key. Pure. */

enum dkim_record {
    DKIM_RECORD_FITS,
    DKIM_RECORD_NONE,
    DKIM_RECORD_SEVERAL, /* receivers may take any of them (§3.6.2.2) */
    DKIM_RECORD_MALFORMED,
    DKIM_RECORD_REVOKED,
    DKIM_RECORD_OTHER_KIND,
    DKIM_RECORD_OTHER_KEY,
    DKIM_RECORD_OTHER_USE /* not for mail, or without SHA-256 */
};

/* texts: of all TXT records there. kind: "rsa", "ed25519". key: the value of p=. */
enum dkim_record dkim_record_judge(const struct text *texts, size_t count,
                                   struct text kind, struct text key);
/* For "NAME WORDS"; a constant. */
const char *dkim_record_words(enum dkim_record r);

#endif
