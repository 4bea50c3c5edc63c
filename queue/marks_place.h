/* Where the D marks of an envelope are on disk. Part of marks.c. */
#ifndef QUEUE_MARKS_PLACE_H
#define QUEUE_MARKS_PLACE_H

#include "queue/marks.h"

/* The message became S5 while e was in use, so that e does not say so. */
bool marks_are_outdated(const struct marks *m, const struct envelope *e);
/* An outdated envelope lacks the places at which its marks are written: reads them. 0 or
 * -errno. */
int marks_bring_up_to_date(struct marks *m, struct envelope *e);
/* Whether files can take marks of e, now or later. */
bool marks_have_place(struct marks *m, struct envelope *e);

#endif
