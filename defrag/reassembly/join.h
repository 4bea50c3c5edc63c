/* Joins the fragments of a message/partial to the message they were cut from (RFC 2046
 * §5.2.2.1, RFC 8098 §2.4; spec/defrag-mime.md §1.3, §1.4), byte for byte, as they
 * stream by.
 *
 *   join_start()   with the header of fragment 1: of it stays what is not the whole
 *                  message's own
 *   join_add()     the bodies of fragments 1, 2, ... in order, in pieces of any size,
 *   join_seam()    after each of them but the last
 *   join_end()     after the last
 *
 * The header at the start of the joined body may reach over seams. Of it come the
 * fields that the fragmenter has moved inside: Content-*, Subject, Message-ID,
 * Encrypted, MIME-Version, and the three fields for disposition notices. */
#ifndef DEFRAG_JOIN_H
#define DEFRAG_JOIN_H

#include "mime/header.h"

enum { JOIN_HEADER_MAX = 256 * 1024 }; /* of the header within; more is not joined */

enum join_trouble {
    JOIN_GOOD,
    JOIN_NO_HEADER,   /* it begins with a line that is neither a field nor empty */
    JOIN_LONG_HEADER, /* beyond JOIN_HEADER_MAX */
    JOIN_NO_WRITE     /* write said so */
};

/* Takes the next bytes of the joined message; false: no more of it. */
typedef bool join_write(void *context, struct text bytes);

struct join {
    struct text outer; /* borrowed until the header is written */
    join_write *write;
    void *context;
    struct buffer inner; /* the header within, as far as it is known */
    struct header_scan scan;
    enum join_trouble trouble;
    bool keeps_subject; /* yours to set after the start: without a Subject within, that
                           of fragment 1 stays (RFC 1521's fragmenters) */
    bool has_header;    /* it is written */
    bool has_last;      /* this fragment's body has a byte... */
    char last;          /* ...the last of which is this */
};

/* outer: the header of fragment 1 with or without the empty line behind it. */
void join_start(struct join *j, struct text outer, join_write *write, void *context);
/* False once there is trouble: then only join_free() helps. */
bool join_add(struct join *j, struct text bytes) __attribute__((warn_unused_result));
/* A body without a line end at its end gets one: the transport has lost it. */
bool join_seam(struct join *j) __attribute__((warn_unused_result));
bool join_end(struct join *j) __attribute__((warn_unused_result));
void join_free(struct join *j);

/* "its first line is no header field" */
const char *join_trouble_text(enum join_trouble trouble);

#endif
