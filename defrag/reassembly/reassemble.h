/* Joins the fragments of a message/partial to the message they were cut from (RFC 2046
 * §5.2.2.1, RFC 8098 §2.4; doc/defragment.md "Reassembly"), byte for byte, as they
 * stream by.
 *
 *   reassemble_start()   with the header of fragment 1: of it stays what is not the
 * whole message's own reassemble_add()     the bodies of fragments 1, 2, ... in order,
 * in pieces of any size, reassemble_seam()    after each of them but the last
 *   reassemble_end()     after the last
 *
 * The header at the start of the joined body may reach over seams. Of it come the
 * fields that the fragmenter has moved inside: Content-*, Subject, Message-ID,
 * Encrypted, MIME-Version, and the three fields for disposition notices. */
#ifndef DEFRAG_REASSEMBLE_H
#define DEFRAG_REASSEMBLE_H

#include "mime/header.h"

enum {
    REASSEMBLE_HEADER_MAX = 256 * 1024
}; /* of the header within; more is not joined */

enum reassemble_trouble {
    REASSEMBLE_GOOD,
    REASSEMBLE_NO_HEADER, /* it begins with a line that is neither a field nor empty */
    REASSEMBLE_LONG_HEADER, /* beyond REASSEMBLE_HEADER_MAX */
    REASSEMBLE_NO_WRITE     /* write said so */
};

/* Takes the next bytes of the joined message; false: no more of it. */
typedef bool reassemble_write(void *context, struct text bytes);

struct reassemble {
    struct text outer; /* borrowed until the header is written */
    reassemble_write *write;
    void *context;
    struct buffer inner; /* the header within, as far as it is known */
    struct header_scan scan;
    enum reassemble_trouble trouble;
    bool keeps_subject; /* yours to set after the start: without a Subject within, that
                           of fragment 1 stays (RFC 1521's fragmenters) */
    bool has_header;    /* it is written */
    bool has_last;      /* this fragment's body has a byte... */
    char last;          /* ...the last of which is this */
};

/* outer: the header of fragment 1 with or without the empty line behind it. */
void reassemble_start(struct reassemble *j, struct text outer, reassemble_write *write,
                      void *context);
/* False once there is trouble: then only reassemble_free() helps. */
bool reassemble_add(struct reassemble *j, struct text bytes)
    __attribute__((warn_unused_result));
/* A body without a line end at its end gets one: the transport has lost it. */
bool reassemble_seam(struct reassemble *j) __attribute__((warn_unused_result));
bool reassemble_end(struct reassemble *j) __attribute__((warn_unused_result));
void reassemble_free(struct reassemble *j);

/* "its first line is no header field" */
const char *reassemble_trouble_text(enum reassemble_trouble trouble);

#endif
