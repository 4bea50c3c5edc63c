/* Reassembles the fragments of a message/partial into the message they were cut from
 * (RFC 2046 §5.2.2.1, RFC 8098 §2.4; doc/defragment.md "Reassembly"), as a stream.
 *
 *   reassemble_start()   with the header of fragment 1; fields that do not belong to the
 *                        message within stay
 *   reassemble_add()     the bodies of fragments 1, 2, ... in order, in pieces of any size
 *   reassemble_seam()    after each body but the last
 *   reassemble_end()     after the last body
 *
 * The header within may reach over seams. The fields that the fragmenter has moved into
 * it are taken from it: Content-*, Subject, Message-ID, Encrypted, MIME-Version, and the
 * three fields for disposition notifications. */
#ifndef DEFRAG_REASSEMBLY_REASSEMBLE_H
#define DEFRAG_REASSEMBLY_REASSEMBLE_H

#include "mime/header.h"

/* Bytes of the header within; a longer one is not reassembled. */
enum { REASSEMBLE_HEADER_MAX = 256 * 1024 };

enum reassemble_trouble {
    REASSEMBLE_GOOD,
    REASSEMBLE_NO_HEADER, /* it begins with a line that is neither a field nor empty */
    REASSEMBLE_LONG_HEADER, /* beyond REASSEMBLE_HEADER_MAX */
    REASSEMBLE_NO_WRITE     /* write returned false */
};

/* Takes the next bytes of the reassembled message; false: stop. */
typedef bool reassemble_write(void *context, struct text bytes);

struct reassemble {
    struct text outer; /* borrowed until the header is written */
    reassemble_write *write;
    void *context;
    struct buffer inner; /* the header within, up to here */
    struct header_scan scan;
    enum reassemble_trouble trouble;
    /* The caller may set it after reassemble_start(): without a Subject within, the one of
     * fragment 1 stays (fragmenters of RFC 1521). */
    bool keeps_subject;
    bool has_header; /* the header is written */
    bool has_last;   /* this fragment's body has a byte... */
    char last;       /* ...; this is the last */
};

/* outer: the header of fragment 1 with or without the empty line behind it. */
void reassemble_start(struct reassemble *j, struct text outer, reassemble_write *write,
                      void *context);
/* These return false on trouble; only reassemble_free() may follow. */
bool reassemble_add(struct reassemble *j, struct text bytes)
    __attribute__((warn_unused_result));
/* A body that does not end with a line end gets one: the transport has lost it. */
bool reassemble_seam(struct reassemble *j) __attribute__((warn_unused_result));
bool reassemble_end(struct reassemble *j) __attribute__((warn_unused_result));
void reassemble_free(struct reassemble *j);

/* "its first line is no header field" */
const char *reassemble_trouble_text(enum reassemble_trouble trouble);

#endif
