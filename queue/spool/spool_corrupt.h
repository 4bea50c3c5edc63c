/* Damaged messages, set aside in corrupt/: ID.DIRECTORY for each of their files, and
 * ID.note. */
#ifndef QUEUE_SPOOL_SPOOL_CORRUPT_H
#define QUEUE_SPOOL_SPOOL_CORRUPT_H

#include "queue/spool/spool.h"

void spool_corrupt_path(struct id id, const char *suffix, char out[SPOOL_PATH_MAX]);
/* A message of another user gets a note and a line only while junk_takes_note().
 *
 * Note and mess first, todo and info last: a crash in between leaves a message without
 * content, which is quarantined again. */
void spool_quarantine(struct spool *s, struct id id, const char *reason,
                      int64_t now_ms);
/* The directories whose files of the message are in corrupt/. 0, -ENOENT when there are
 * none, or another -errno, logged: one may be there. */
int spool_corrupt_dirs(struct spool *s, struct id id, unsigned *found);
/* For content without an envelope: when that is in corrupt/, the content follows it. True:
 * it did, or must wait for the disk; nothing of it may be removed. */
bool spool_quarantine_rest(struct spool *s, struct id id);
/* corrupt/ID.DIRECTORY with this content, durable but for its name. 0 or -errno. */
int spool_put_corrupt(struct spool *s, struct id id, enum spool_dir dir,
                      struct text bytes);
/* Removes the message's files from corrupt/. False: there were none. */
bool spool_erase_corrupt(struct spool *s, struct id id);
/* The id of a name in corrupt/: the part before the dot. */
bool spool_corrupt_id(const char *name, struct id *id);

#endif
