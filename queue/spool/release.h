/* Releases messages from hold/ and corrupt/, and reads the notes there. */
#ifndef QUEUE_SPOOL_RELEASE_H
#define QUEUE_SPOOL_RELEASE_H

#include "queue/spool/spool.h"

/* Removes hold/ID, durably. 0, -ENOENT when there is none, or -errno. */
int release_held(struct spool *s, struct id id);
/* Moves the files of corrupt/ID back to their directories, durably, if they are a
 * complete message: all or none. todo and info go first, mess last: after a crash in
 * between, the next startup quarantines the message again. 0, -ENOENT when there are
 * none, -EEXIST when the spool has a message of that name, -EBADMSG when it is still
 * damaged, or -errno. */
int release_quarantined(struct spool *s, struct id id);

/* "TIME REASON" without the line end, from hold/ID or corrupt/ID.note (directory);
 * empty when the message is there without a note. 0, or -errno (-ENOENT: not there). */
enum { RELEASE_NOTE_MAX = 640 };
int release_note(struct spool *s, enum spool_dir dir, struct id id,
                 char note[RELEASE_NOTE_MAX]);

#endif
