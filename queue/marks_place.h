/* Where the D marks of an envelope are on disk. Part of marks.c. */
#ifndef QUEUE_MARKS_PLACE_H
#define QUEUE_MARKS_PLACE_H

#include "queue/marks.h"

/* The message became S5 while e was in use, so that e does not say so. */
bool marks_are_outdated(const struct marks *m, const struct envelope *e);
/* From an envelope of the same message, with the same recipients. */
void marks_take_offsets(struct envelope *e, const struct envelope *from);
/* An outdated envelope lacks the offsets at which its marks are written: reads them. 0 or
 * -errno. */
int marks_bring_up_to_date(struct marks *m, struct envelope *e);

#endif
