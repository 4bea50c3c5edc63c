/* Messages that have ended here while the engine did not hear it: IDs in lock/ended, so that the
 * next run ends their copies, too, and takes none of them back.
 *
 * Nothing is written while the engine answers: what has ended then reaches it within a moment. */
#ifndef QUEUE_COPIES_COPIES_ENDS_H
#define QUEUE_COPIES_COPIES_ENDS_H

#include "base/buffer.h"
#include "base/id.h"

struct manager;

enum {
    COPIES_ENDS_BYTES = 4 << 20
}; /* of the file, and in memory; the rest is not noted */

struct copies_ends {
    struct manager *manager; /* NULL: nothing is noted */
    struct buffer fresh;     /* not in the file */
    size_t written;          /* bytes */
    bool is_there, is_unsynced;
};

void copies_ends_begin(struct copies_ends *ends, struct manager *manager);
void copies_ends_free(struct copies_ends *ends);
void copies_ends_note(struct copies_ends *ends, struct id id);
/* To the file, which survives the process. True: it wants copies_ends_sync(), too. */
bool copies_ends_write(struct copies_ends *ends);
void copies_ends_sync(struct copies_ends *ends);
/* Each ID of the file. */
void copies_ends_read(struct copies_ends *ends,
                      void (*each)(void *context, struct id id), void *context);
/* The engine has heard all. */
void copies_ends_drop(struct copies_ends *ends);

#endif
