/* Tagged senders (VERP): mail of ours leaves with a sender that names message and recipient,
 * so that a report that comes back can be trusted. Pure.
 *
 *   LOCAL+IIIIIIIIIIIIIIIIIITTRRRRRRMMMMMMMMMM@DOMAIN
 *
 * I: the id of the message without its hyphen. T: the day, as in mime/srs.h. R: 30 bits of
 * a keyed hash of the recipient, M: 50 bits of a keyed hash of I, T and R; the key is a
 * secret of SRS. Any case is taken back. Nobody but the recipient, and the hosts on the
 * way, knows a valid tag, and it is good for no other recipient.
 *
 * A tag cannot be turned into an address. So the message has a stamp, a field of its
 * header, with the recipient and the sender's domain: reports in which the address is
 * hidden, or is another one behind a forwarder, still have it. */
#ifndef MIME_VERP_H
#define MIME_VERP_H

#include "base/buffer.h"
#include "base/id.h"
#include "mime/address.h"
#include "mime/srs.h"

#define VERP_STAMP "X-Petrel-Return"

enum { VERP_TAG_LENGTH = 18 + 2 + 6 + 10, VERP_LOCAL_MAX = 64 - 1 - VERP_TAG_LENGTH };

struct verp;

/* address: LOCAL@DOMAIN, with a local part of letters, digits, dots, hyphens and
 * underscores, at most VERP_LOCAL_MAX; see verp_fits(). keys: taken over; if they are
 * blind, no sender is tagged, and no tag can be verified. */
struct verp *verp_new(struct text address, struct srs *keys);
void verp_free(struct verp **verp);
bool verp_fits(struct text address);
bool verp_is_blind(const struct verp *verp);
/* "LOCAL+" */
struct text verp_mark(const struct verp *verp);

/* The sender for a message to the recipient (in normal form), which may be blind: false.
 * The stamp is appended to out as a field, with CRLF; sender: the true one. */
bool verp_make(const struct verp *verp, struct id id, struct text recipient,
               int64_t now_ms, char out[ADDRESS_MAX + 1])
    __attribute__((warn_unused_result));
bool verp_stamp(const struct verp *verp, struct text tagged, struct text sender,
                struct text recipient, struct buffer *out)
    __attribute__((warn_unused_result));

enum verp_answer {
    VERP_NO,     /* not an address of this kind */
    VERP_PLAIN,  /* LOCAL@DOMAIN: of feedback loops */
    VERP_GOOD,   /* a tag of ours */
    VERP_FORGED, /* not a tag of ours */
    VERP_OLD,    /* one of ours, made too long ago */
    VERP_BLIND   /* it has the form, and the secrets are unknown now */
};
struct verp_tag {
    struct id id;
    char text[VERP_TAG_LENGTH + 1]; /* in upper case */
    size_t key;                     /* which secret has made it */
};
enum verp_answer verp_read(const struct verp *verp, const struct address *address,
                           int64_t now_ms, struct verp_tag *tag);
/* The same for what stands behind verp_mark(). */
enum verp_answer verp_read_tag(const struct verp *verp, struct text text,
                               int64_t now_ms, struct verp_tag *tag);
/* Whether the tag was made for that address. */
bool verp_is_for(const struct verp *verp, const struct verp_tag *tag,
                 struct text recipient);
/* The recipient and the sender's domain of the stamp. False: it is not that of the tag. */
bool verp_read_stamp(const struct verp *verp, const struct verp_tag *tag,
                     struct text stamp, char recipient[ADDRESS_MAX + 1],
                     char domain[ADDRESS_DOMAIN_MAX + 1]);

#endif
