/* Looks up the published record of each key that signs, so that a key that no receiver
 * can verify is reported: mail leaves all the same, signed. Asked once a day, and once
 * an hour while the record does not fit or is not known. Only keys in use cost a
 * question. */
#ifndef SMTP_TRUST_DKIM_CHECK_H
#define SMTP_TRUST_DKIM_CHECK_H

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "smtp/trust/dkim_keys.h"

enum {
    DKIM_CHECKS_MAX = 8, /* questions at a time; a key beyond them waits for its next
                          * signature */
    DKIM_CHECK_GOOD_MS = 24 * 3600 * 1000,
    DKIM_CHECK_BAD_MS = 3600 * 1000
};

struct dkim_check;
struct dkim_check *dkim_check_new(struct loop *loop, struct log *log, struct dns *dns);
/* The key has signed. It must live until dkim_check_stop(). */
void dkim_check_used(struct dkim_check *c, struct dkim_key *key);
/* Takes back all questions. */
void dkim_check_stop(struct dkim_check *c);
void dkim_check_free(struct dkim_check **c);

#endif
