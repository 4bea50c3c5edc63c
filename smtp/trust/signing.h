/* Signs mail at delivery (DKIM): whose key, one signature for a message and form
 * however many hosts get it, and the line of messages that wait for theirs.
 *
 * An RSA operation takes milliseconds, so that a turn of the loop does at most one; of
 * Ed25519 it does 32.
 * Nothing is kept on disk: after a restart mail that waits is signed anew. */
#ifndef SMTP_TRUST_SIGNING_H
#define SMTP_TRUST_SIGNING_H

#include "base/loop/loop.h"
#include "queue/envelope/envelope.h"
#include "smtp/trust/dkim_keys.h"

/* Signatures that are kept for further hosts; the least recently used is dropped. */
enum { SIGNING_KEPT_MAX = 1024 };

struct signing;
struct dns;
/* keys are taken over; NULL: nothing is signed. dns looks up their records; NULL: does
 * not. */
struct signing *signing_new(struct loop *loop, struct log *log, struct dns *dns,
                            struct dkim_keys *keys);
/* Passes under way end with the old keys; kept signatures are dropped. */
void signing_reload(struct signing *s, struct dkim_keys *keys);
void signing_free(struct signing **s);
/* Whether there are keys at all. */
bool signing_is_on(const struct signing *s);

/* So far: signatures, operations that failed, and the longest line. */
struct signing_counts {
    uint64_t signed_count, failed;
    size_t longest;
};
struct signing_counts signing_counts(const struct signing *s);
/* Keys that could not sign, or that receivers cannot verify: the name of the record, and
 * a sentence. */
void signing_each_trouble(const struct signing *s,
                          void (*each)(void *context, const char *name,
                                       const char *domain, const char *why),
                          void *context);

/* The forms of a message that may have different signatures. */
enum signing_form {
    SIGNING_PLAIN,
    SIGNING_RAW,  /* by BDAT: neither line ends nor anything else change */
    SIGNING_7BIT, /* converted */
    SIGNING_8BIT  /* binary content, converted */
};

struct signature {
    struct text fields; /* to send before the header; "": unsigned */
    struct text names;  /* "D/S,D/S" for the log */
    bool failed;        /* a key fits, but cannot sign: the mail must wait */
};

/* One message on its way to one host, in one form. */
struct signing_pass;
/* sender: of the envelope as it leaves. header: as it leaves if it differs from the one
 * stored, else empty: after a reload it may be another one, which shares no signature. */
struct signing_pass *signing_pass_new(struct signing *s, const struct envelope *e,
                                      struct text sender, enum signing_form form,
                                      struct text header);
/* Header and content of that form, before dot-stuffing, in pieces. */
void signing_pass_add(struct signing_pass *p, struct text bytes);
/* No more bytes are needed: the signature is kept from before, or there is none. */
bool signing_pass_has_enough(const struct signing_pass *p);
/* After the last byte, or when it has enough: done is called in a later turn, unless the
 * pass is freed before. */
void signing_pass_end(struct signing_pass *p, void (*done)(void *context),
                      void *context);
/* Since then, until the pass is freed. */
const struct signature *signing_pass_result(const struct signing_pass *p);
void signing_pass_free(struct signing_pass **p);

#endif
