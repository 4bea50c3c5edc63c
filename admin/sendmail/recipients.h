/* The recipients of a message handed in: as users write them, qualified, each once. */
#ifndef ADMIN_SENDMAIL_RECIPIENTS_H
#define ADMIN_SENDMAIL_RECIPIENTS_H

#include "queue/envelope/envelope.h"

enum {
    RECIPIENTS_ADDRESS_MAX = 320,
    RECIPIENTS_MAX = 1000000,
    /* The daemon loads the recipients of an envelope together: a message for more of
     * them becomes several, so that its memory does not grow with them. */
    RECIPIENTS_PER_ENVELOPE = 10000,
    RECIPIENTS_ENVELOPES_MAX = RECIPIENTS_MAX / RECIPIENTS_PER_ENVELOPE
};

struct recipients {
    /* Where they go; recipients added by others are not seen. When it is full, it joins
     * `full`, and a new one takes its place, of the same sender, ENVID and return. */
    struct envelope *envelope;
    struct envelope *full[RECIPIENTS_ENVELOPES_MAX - 1];
    unsigned full_count;
    const char *hostname;          /* of those without a domain */
    unsigned notify;               /* RFC 3461, of each */
    struct recipients_seen *known; /* recipients.c's; NULL at first */
    const char *error;             /* the first one; NULL */
    /* An entry of a header that is no address is a recipient, too, as printable text
     * that is no address. The daemon returns it to the sender with the others it cannot
     * deliver. */
    bool returns_broken;
    unsigned broken_count;               /* such recipients */
    char broken[RECIPIENTS_ADDRESS_MAX]; /* the first entry that is no address, or "" */
};

/* An address list (RFC 5322 §3.4): "a@b", "<a@b>", "Name <a@b>, c". False: error says
 * why; the addresses before it are in the envelope. */
bool recipients_add(struct recipients *r, struct text list)
    __attribute__((warn_unused_result));
/* How many there are, in all envelopes. */
unsigned recipients_count(const struct recipients *r);
/* Their envelopes: first the full ones. NULL: that was all. */
struct envelope **recipients_envelope(struct recipients *r, unsigned index);
/* Frees the envelopes, too, but for those that were taken and are NULL. */
void recipients_free(struct recipients *r);

/* The sender: the same, or one address with a name, also as PHP's mail() escapes it: "Joe
 * \<a@b\>". */
bool recipients_qualify_sender(struct text written, const char *hostname,
                               struct buffer *out) __attribute__((warn_unused_result));

/* One address: "<a@b>", "a@b", "a" (then a@hostname), in normal form. False: bad
 * syntax, or a control character anywhere. */
bool recipients_qualify(struct text written, const char *hostname, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
