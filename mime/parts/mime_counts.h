/* Counts the bytes and lines of content that not every next hop accepts. */
#ifndef MIME_PARTS_MIME_COUNTS_H
#define MIME_PARTS_MIME_COUNTS_H

#include "base/text.h"

/* Zeroed before the first use. Lines end in LF. */
struct mime_counts {
    uint64_t bytes;
    uint64_t high; /* above 127 */
    uint64_t nul;
    uint64_t
        lone_cr; /* without a LF after it; a final one counts in mime_counts_end() */
    uint64_t lone_lf; /* without a CR before it */
    uint64_t lines;   /* line ends */
    uint64_t special; /* bytes that quoted-printable may have to encode, or more */
    uint64_t longest; /* line, without its CR LF; at least */
    uint64_t line;    /* length of the last line so far */
    bool cr;          /* the last byte was one */
};

/* Adds a piece of any size; some GB a second. */
void mime_counts_add(struct mime_counts *t, struct text bytes);
/* Counts a final CR and a final line without line end. */
void mime_counts_end(struct mime_counts *t);

#endif
