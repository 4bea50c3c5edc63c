/* Which part of the names is ours: our slice of so many, and those that we took over.
 *
 * Files that belong to a slice are named by its part of ID_SLICES_MAX units,
 * FIRST-LAST, so that daemons with different numbers of slices never mean the same
 * file. */
#ifndef QUEUE_SLICES_H
#define QUEUE_SLICES_H

#include "base/id.h"

enum { SLICES_SUFFIX_MAX = 16 };

struct slices {
    unsigned count, own; /* slice `own` of `count` */
    unsigned char has[ID_SLICES_MAX];
};

/* Only the own one. */
void slices_init(struct slices *s, unsigned count, unsigned own);
void slices_add(struct slices *s, unsigned slice);
bool slices_have(const struct slices *s, struct id id);
/* Units, as adopt_journal_path() counts them: whether we have one of first to last. */
bool slices_overlap(const struct slices *s, unsigned first, unsigned last);
/* Units of each slice. */
unsigned slices_width(unsigned count);
/* "FIRST-LAST". */
void slices_part(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX]);
/* "" for the only slice, else ".FIRST-LAST". */
void slices_suffix(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX]);

#endif
