/* Counts the bytes and lines of content that not every next hop accepts. */
#ifndef MIME_PARTS_TALLY_H
#define MIME_PARTS_TALLY_H

#include "base/text.h"

/* Zeroed before the first use. Lines end in LF. */
struct tally {
    uint64_t bytes;
    uint64_t high; /* above 127 */
    uint64_t nul;
    uint64_t lone_cr; /* without a LF after it; a final one counts in tally_end() */
    uint64_t lone_lf; /* without a CR before it */
    uint64_t lines;   /* line ends */
    uint64_t special; /* bytes that quoted-printable may have to encode, or more */
    uint64_t longest; /* line, without its CR LF; at least */
    uint64_t line;    /* length of the last line so far */
    bool cr;          /* the last byte was one */
};

/* Adds a piece of any size; some GB a second. */
void tally_add(struct tally *t, struct text bytes);
/* Counts a final CR and a final line without line end. */
void tally_end(struct tally *t);

#endif
