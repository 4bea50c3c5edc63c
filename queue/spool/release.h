/* The operator's way out of hold/ and corrupt/, and what the notes there say. */
#ifndef QUEUE_RELEASE_H
#define QUEUE_RELEASE_H

#include "queue/spool/spool.h"

/* hold/ID goes, durably. 0, -ENOENT when there is none, or -errno. */
int release_held(struct spool *s, struct id id);
/* The files of corrupt/ID go back to their directories, durably, if they make a whole message
 * there: all or none. todo and info go first, mess last: what a crash leaves in between
 * is quarantined again by the next start. 0, -ENOENT when there are none, -EEXIST when
 * the spool has a message of that name, -EBADMSG when it is still damaged, or -errno.
 */
int release_quarantined(struct spool *s, struct id id);

/* "TIME REASON" without the line end, from hold/ID or corrupt/ID.note (directory); empty
 * when the message is there but nothing was written. 0, or -errno (-ENOENT: not there).
 */
enum { RELEASE_NOTE_MAX = 640 };
int release_note(struct spool *s, enum spool_dir dir, struct id id,
                 char note[RELEASE_NOTE_MAX]);

#endif
