/* The slices of the spool's names that this daemon handles: its own, and those that it
 * took over.
 *
 * The name of a slice's file has its part of ID_SLICES_MAX units, FIRST-LAST, so that
 * daemons with different numbers of slices never use the same file. */
#ifndef QUEUE_SPOOL_SLICES_H
#define QUEUE_SPOOL_SLICES_H

#include "base/id.h"
#include "base/text.h"

enum { SLICES_SUFFIX_MAX = 16, SLICES_PART_LENGTH = 9 }; /* of "FIRST-LAST" */

struct slices {
    unsigned count, own; /* slice `own` of `count` */
    unsigned char has[ID_SLICES_MAX];
};

/* Has the own slice alone. */
void slices_init(struct slices *s, unsigned count, unsigned own);
void slices_add(struct slices *s, unsigned slice);
bool slices_have(const struct slices *s, struct id id);
/* Whether one of the units first to last (as adopt_journal_path() counts them) is
 * in. */
bool slices_overlap(const struct slices *s, unsigned first, unsigned last);
/* The number of units in each slice. */
unsigned slices_width(unsigned count);
/* "FIRST-LAST". */
void slices_part(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX]);
/* Reads one, of any number of slices. */
bool slices_part_read(struct text part, unsigned *first, unsigned *last)
    __attribute__((warn_unused_result));
/* "" if there is one slice, else ".FIRST-LAST". */
void slices_suffix(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX]);

#endif
