/* A message handed in on standard input: made fit for the queue and committed.
 *
 * CRLF ends each line, and there are no NULs. The header is held until it is complete:
 * an mbox line "From x" or ">From x" in front is dropped, recipients are taken when
 * asked for, Bcc goes, all else stays as it is. A message without a header gets one.
 * Received, and From, Date and Message-ID where they are missing, become the envelope's
 * prefix. */
#ifndef ADMIN_SENDMAIL_SUBMISSION_H
#define ADMIN_SENDMAIL_SUBMISSION_H

#include "admin/sendmail/recipients.h"
#include "queue/queue.h"

enum {
    SUBMISSION_HEADER_MAX = 1024 * 1024,
    SUBMISSION_LIST_MAX = 64 * 1024 * 1024 /* with -t: a Bcc of RECIPIENTS_MAX */
};

struct submission_settings {
    const char *hostname;
    int64_t message_size_limit;
    bool from_header;      /* -t: recipients of To, Cc, Bcc (or the Resent- ones) too */
    bool dot_ends;         /* no -i: a line of one dot ends the message */
    struct text full_name; /* for From, without controls; may be empty */
    unsigned uid;          /* the caller */
};

struct submission;

/* The envelopes of recipients, with a sender and the recipients known so far, are taken
 * when the message is committed. recipients and the data that settings point to live
 * longer. loop is for the time. */
struct submission *submission_new(const struct submission_settings *settings,
                                  struct loop *loop, struct queue *queue,
                                  struct recipients *recipients);
void submission_free(struct submission **s);
/* Bytes as they come. False: enough, the rest need not be read. */
bool submission_add(struct submission *s, struct text bytes);
/* True: submission_finish() will fail, and why is known. */
bool submission_is_refused(const struct submission *s);
/* Commits, one message for each envelope of the recipients. Returns 0, or a sysexits
 * code with one line in error: then nothing is queued. id gets the name of the first
 * one. */
int submission_finish(struct submission *s, char id[ID_LENGTH + 1], char *error,
                      size_t error_size);

#endif
