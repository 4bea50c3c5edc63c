/* Key records of DKIM (RFC 6376 §3.6.1): whether the record at
 * SELECTOR._domainkey.DOMAIN lets receivers verify signatures of our key. Pure. */
#ifndef MIME_AUTH_DKIM_RECORD_H
#define MIME_AUTH_DKIM_RECORD_H

#include "base/text.h"

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
