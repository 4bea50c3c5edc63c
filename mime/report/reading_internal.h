/* Shared by reading*.c. */
#ifndef MIME_REPORT_READING_INTERNAL_H
#define MIME_REPORT_READING_INTERNAL_H

#include "mime/parts/decode.h"
#include "mime/report/reading.h"

/* Bodies that are kept, up to READING_BODY_MAX. */
enum reading_body {
    READING_BODY_NONE,
    READING_BODY_TEXT,     /* for people; and what is in no part */
    READING_BODY_STATUS,   /* delivery-status */
    READING_BODY_FEEDBACK, /* feedback-report */
    READING_BODY_RETURNED, /* the header of the message that came back */
    READING_BODIES
};

/* Signs in the header of the report. */
enum {
    READING_FROM_DAEMON = 1,
    READING_SUBJECT_BOUNCE = 2,
    READING_SUBJECT_AUTOMATIC = 4,
    READING_IS_AUTOMATIC = 8, /* by a field */
    READING_IS_REPORT = 16,   /* multipart/report of delivery status */
    READING_IS_RECEIPT = 32,
    READING_SUBJECT_DELAY = 64
};

struct report_reader {
    struct reading result;
    struct text mark, stamp;
    struct structure *structure;
    struct buffer bodies[READING_BODIES];
    enum reading_body body; /* of the part that streams by */
    unsigned returned;    /* the number of the part with a message that came back; 0 */
    bool is_html, in_tag; /* TEXT: tags are removed */
    bool has_plain;
    struct decode decode;
    unsigned signs;
    struct buffer failed; /* X-Failed-Recipients */
};

/* One more, zeroed; NULL: beyond the limit. */
struct reading_recipient *reading_recipient_add(struct reading *reading);
/* The address in normal form, from "joe@b.test", "<joe@b.test>", also with unitext or
 * xtext. False: it is none; out has its beginning. */
bool reading_address(struct text t, char out[ADDRESS_MAX + 1]);
/* One line, without control characters, blanks squeezed. */
void reading_squeeze(struct text t, char *out, size_t size);
/* Finds "5.1.1", and "550", in a reply of an MTA. What is not found stays. */
void reading_find_status(struct text reply, char status[12], int *code);
/* Recipients of the fields of a delivery status, or of a complaint. */
void reading_of_status(struct reading *reading, struct text fields);
void reading_of_feedback(struct reading *reading, struct text fields);
/* Recipients from the text for people and from X-Failed-Recipients. */
void reading_of_text(struct report_reader *r);

#endif
