/* Looks for UTF-8 in the headers of a message as it streams by, at every MIME level
 * (RFC 6531 §3.2; doc/defragment.md "Reassembly"). */
#ifndef DEFRAG_REASSEMBLY_UTF8_SCAN_H
#define DEFRAG_REASSEMBLY_UTF8_SCAN_H

#include "mime/header.h"

struct inspection {
    bool eight_bit; /* a byte above 127 anywhere */
    bool utf8;      /* in a header */
    bool unsure;    /* some parts were not examined */
    /* utf8_scan.c's own: */
    struct header_scan scan;
    struct structure *structure; /* while it may find more */
};

/* *i must not move until utf8_scan_end(). */
void utf8_scan_start(struct inspection *i);
void utf8_scan_add(struct inspection *i, struct text bytes);
/* Always needed, also when the result is not. */
void utf8_scan_end(struct inspection *i);

#endif
