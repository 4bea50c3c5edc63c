/* The form in which a message leaves: its header, its sender and its size.
 *
 * Only mail that is ours changes (envelope.ours), and only on its way to SMTP hosts that are not
 * ours: our own other hosts get it as it is stored, and mailboxes behind LMTP as a Maildir does
 * (queue/manager/message_head.h). Mail through an alias has a Delivered-To with its name, and
 * perhaps a sender of its own; mail of a redirect has an X-Original-To; a route may add fields
 * and remove some; where a smarthost refuses the null sender, notifications leave with another.
 * The steps, in their order: the header (mime/rewrite.h); conversion of 8-bit and binary
 * content, when the host needs it (mime/parts/downgrade.h). */
#ifndef SMTP_CLIENT_OUTGOING_H
#define SMTP_CLIENT_OUTGOING_H

#include "base/log/log.h"
#include "queue/queue.h"
#include "mime/verp.h"
#include "sched/route/rewrites.h"

struct outgoing_rules {
    bool to_mailbox;                 /* as a mailbox gets it: no other member counts */
    const char *hostname;            /* ours */
    const struct rewrites *rewrites; /* NULL: no table */
    const char *add_header, *remove_header; /* of the target; NULL: none */
    struct text original; /* the recipient before a redirect; empty: there was none */
    const char *bounce_sender; /* in place of the null sender; NULL: it stays */
    const struct verp *verp;   /* tagged senders; NULL: there are none */
};

struct outgoing {
    struct buffer header; /* instead of the prefix and the first `skip` bytes */
    int64_t skip;         /* of content */
    int64_t size;         /* of the whole message */
    char sender[REWRITES_ADDRESS_MAX]; /* of the envelope, replaced; "": it stays */
    bool null_sender;                  /* or it is the null sender */
    bool utf8_header;                  /* it needs SMTPUTF8, or that is unknown */
    int error; /* -errno: the header cannot be read, and nothing leaves now; else 0 */
};

/* NULL: it leaves as it is stored. rules: NULL, and its header stays. way: of its
 * recipients; NULL: no alias, or none that the host is to see. A header that is too long
 * is logged; one that cannot be read is an error of the form, which content_reader_open()
 * reports. e must outlive it. */
struct outgoing *outgoing_new(struct queue *queue, const struct envelope *e,
                              const struct recipient_way *way,
                              const struct outgoing_rules *rules, struct log *log);
/* Gives mail of ours for that recipient alone a tagged sender, and its stamp. Not the null
 * sender, nor one of an alias, nor where the sender has asked for a notification of
 * success: the notification of the next hop goes to it. Nor content of type message/...:
 * fragments belong together by their sender. *o may be NULL before. */
void outgoing_tag(struct outgoing **o, const struct envelope *e,
                  const struct recipient *recipient, const struct outgoing_rules *rules,
                  int64_t now_ms);
void outgoing_free(struct outgoing **o);

/* Facts of the mail as it leaves: in the form o, or as it is stored (o NULL). */
struct text outgoing_sender(const struct outgoing *o, const struct envelope *e);
int64_t outgoing_size(const struct outgoing *o, const struct envelope *e);
/* "": the one stored. */
struct text outgoing_header(const struct outgoing *o);
bool outgoing_has_utf8_header(const struct outgoing *o, const struct envelope *e);

#endif
