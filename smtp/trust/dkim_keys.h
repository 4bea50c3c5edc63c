/* The keys that sign outgoing mail: the setting `dkim_keys`, a table or a directory,
 * and whose they are. */
#ifndef SMTP_TRUST_DKIM_KEYS_H
#define SMTP_TRUST_DKIM_KEYS_H

#include "base/crypto/sign.h"
#include "base/dns/dns.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "mime/auth/dkim.h"

enum { DKIM_KEYS_MAX = 10000, DKIM_KEYS_PER_DOMAIN = 4, DKIM_KEYS_PER_TURN = 40 };

struct dkim_key {
    char *domain, *selector; /* in A-labels and lower case */
    char *path;
    struct sign_key *key;
    int64_t check_due_ms;    /* of the published record; monotonic */
    enum dkim_record record; /* the last answer; FITS as long as there is none */
    bool broken;             /* it could not sign */
    bool exposed;            /* all users can read the file */
};
struct dkim_keys {
    struct sign_random *random;
    struct dkim_key *list; /* by domain; of a domain RSA first */
    size_t count;
};

/* Reads lines DOMAIN SELECTOR PATH, or all files SELECTOR._domainkey.DOMAIN.pem of the
 * directory that the setting names; in parts, since a key takes 50 us: begins, reads
 * DKIM_KEYS_PER_TURN files (true: these were the last ones), and ends, at any time. NULL:
 * the setting is empty, or has errors, with one line for each ("dkim_keys: ..."). errors
 * is borrowed until the end. */
struct dkim_keys_reading;
struct dkim_keys_reading *dkim_keys_begin(struct text setting, struct buffer *errors);
bool dkim_keys_go_on(struct dkim_keys_reading *r);
struct dkim_keys *dkim_keys_end(struct dkim_keys_reading **r);
void dkim_keys_free(struct dkim_keys **keys);

/* The keys for mail of a domain in A-labels: those of the domain itself or of the
 * nearest one above it. *count: 0 for none. */
struct dkim_key *dkim_keys_find(const struct dkim_keys *keys, struct text domain,
                                size_t *count);

/* Warns of keys that receivers do not like, and of files that all users can read. */
void dkim_keys_warn(const struct dkim_keys *keys, struct log *log);

/* --- Published records ------------------------------------------------------------ */

/* Looks up the published record of each key that signs, so that a key that no receiver
 * can verify is reported: mail leaves all the same, signed. Asked once a day, and once
 * an hour while the record does not fit or is not known. Only keys in use cost a
 * question. */
enum {
    DKIM_KEYS_CHECK_MAX =
        8, /* questions at a time; a key beyond them waits for its next
                          * signature */
    DKIM_KEYS_CHECK_GOOD_MS = 24 * 3600 * 1000,
    DKIM_KEYS_CHECK_BAD_MS = 3600 * 1000
};

struct dkim_keys_check;
struct dkim_keys_check *dkim_keys_check_new(struct loop *loop, struct log *log,
                                            struct dns *dns);
/* The key has signed. It must live until dkim_keys_check_stop(). */
void dkim_keys_check_used(struct dkim_keys_check *c, struct dkim_key *key);
/* Takes back all questions. */
void dkim_keys_check_stop(struct dkim_keys_check *c);
void dkim_keys_check_free(struct dkim_keys_check **c);

#endif
