/* An entry as a line: in the file of suppressed addresses, and in lists that operators
 * import. Pure. */
#ifndef QUEUE_SUPPRESSION_SUPPRESSION_RECORD_H
#define QUEUE_SUPPRESSION_SUPPRESSION_RECORD_H

#include "base/buffer.h"
#include "queue/suppression/suppression_list.h"

/* Three bytes for one, and the numbers. */
enum {
    SUPPRESSION_LINE_MAX = 3 * (SUPPRESSION_ADDRESS_MAX + SUPPRESSION_DOMAIN_MAX +
                                SUPPRESSION_REASON_MAX) +
                           80
};

/* The first line of a file. */
#define SUPPRESSION_TITLE "petrel suppressed 1\n"

/* An entry, and room for its texts. */
struct suppression_record {
    struct suppression_entry entry;
    char room[SUPPRESSION_ADDRESS_MAX + SUPPRESSION_DOMAIN_MAX +
              SUPPRESSION_REASON_MAX + 3];
};

/* "CRC AT CLASS STRIKES DOMAIN ADDRESS REASON" LF. CRC is that of the rest of the line, in
 * eight hexadecimal digits; AT is in seconds since 1970; the last three are xtext, DOMAIN
 * is * for all senders. False at out's limit. */
bool suppression_record_write(const struct suppression_entry *entry, struct buffer *out)
    __attribute__((warn_unused_result));
/* The line is without its LF. False: it is damaged, or not such a line. */
bool suppression_record_read(struct text line, struct suppression_record *out)
    __attribute__((warn_unused_result));

/* The address in the form of a list: without needless quotes, in lower case. False: it is
 * not one, or has control characters. */
bool suppression_normal(struct text address, char out[SUPPRESSION_ADDRESS_MAX + 1])
    __attribute__((warn_unused_result));
/* Sets text in out, cut, and with "?" for what is not printable. */
void suppression_reason(struct text text, char out[SUPPRESSION_REASON_MAX + 1]);

/* A line of a list: "ADDRESS[,REASON[,DATE[,CLASS[,DOMAIN]]]]", fields perhaps in double
 * quotes. DATE is YYYY-MM-DD, perhaps with THH:MM:SSZ, or seconds since 1970; without
 * one it is now. Without CLASS a reason that speaks of a complaint is one, any other the
 * operator's own. "": an entry, or nothing (class NONE): an empty line or a comment; else
 * the error. */
const char *suppression_import_line(struct text line, int64_t now_s,
                                    struct suppression_record *out);
/* The same form, with LF. */
bool suppression_export_line(const struct suppression_entry *entry, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
