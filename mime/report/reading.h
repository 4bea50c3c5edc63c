/* Reads the reports that other systems send back: delivery status notifications (RFC
 * 3464, RFC 6533) also in their odd forms, bounces in plain text, complaints of feedback
 * loops (ARF, RFC 5965), receipts (RFC 8098) and automatic replies (RFC 3834). Pure.
 *
 * Content streams by in pieces of any size, in bounded memory. Nothing is an error: mail
 * that is no report is READING_NONE. A report is a claim that anybody can make: the
 * caller has to know that it answers a message of ours before it acts on it. */
#ifndef MIME_REPORT_READING_H
#define MIME_REPORT_READING_H

#include "base/outcome.h"
#include "mime/address.h"
#include "mime/report/report.h"

enum {
    READING_RECIPIENTS_MAX = 16, /* later ones are omitted */
    READING_MARKS_MAX = 8,
    READING_MARK_MAX = 64,
    READING_STAMP_MAX = 1024,
    READING_BODY_MAX = 64 * 1024 /* of the text, of the fields, of the header that came
                                    back: what is behind is not read */
};

enum reading_kind {
    READING_NONE,      /* no report */
    READING_AUTOMATIC, /* an automatic reply, or a receipt: of a message that arrived */
    READING_STATUS,    /* of deliveries: recipients */
    READING_COMPLAINT  /* feedback; its recipients may be missing */
};

struct reading_recipient {
    char address[ADDRESS_MAX + 1];  /* in normal form if it is one; "": not named */
    char original[ADDRESS_MAX + 1]; /* Original-Recipient; "": not named */
    enum report_action action;
    char status[12];             /* RFC 3463; never empty */
    int code;                    /* SMTP reply code; 0: not named */
    char text[OUTCOME_TEXT_MAX]; /* the reason, one line, printable or UTF-8 */
};

struct reading {
    enum reading_kind kind;
    bool by_text; /* STATUS: from sentences for people */
    struct reading_recipient recipients[READING_RECIPIENTS_MAX];
    size_t count;
    char reporter[256]; /* Reporting-MTA, or User-Agent of a complaint; or "" */
    char feedback[32];  /* COMPLAINT: "abuse", "fraud", "not-spam" ...; lower case */
    /* The words in the report and in the header that came back that begin with `mark`,
     * without it. */
    char marks[READING_MARKS_MAX][READING_MARK_MAX];
    size_t mark_count;
    char stamp
        [READING_STAMP_MAX]; /* the field `stamp` of that header, unfolded; or "" */
};

struct report_reader;

/* mark: of the words to look for, ignoring case; stamp: the name of a field. Both live
 * as long as the reader. */
struct report_reader *reading_new(struct text mark, struct text stamp);
void reading_add(struct report_reader *r, struct text piece);
/* Once. Lives until reading_free(). */
const struct reading *reading_end(struct report_reader *r);
void reading_free(struct report_reader **r);

#endif
