/* The daemon that holds a spool, where other hosts may mount the file system.
 *
 * A lock on a network file system ends when its host is cut off, and another host takes the
 * spool. The first one comes back and knows nothing of that: it would go on, and answer 250
 * for mail that nobody reads. So each daemon writes a word of its own into lock/holder.PART
 * when it has the lock, and reads it behind each sync that is answered, and every 2 s. Another
 * word, and it ends as if it were killed: it writes nothing more.
 *
 * Where another host held the spool before, a start waits until nothing of that time can be
 * in the cache of this host: it would miss the last mail of the other one.
 *
 * On a local file system nothing is written, and nothing is asked. */
#ifndef QUEUE_SPOOL_HOLDER_H
#define QUEUE_SPOOL_HOLDER_H

#include "base/loop/loop.h"
#include "base/text.h"

struct disk;
struct log;

enum {
    HOLDER_HOST_MAX = 64, /* of its name; the rest is cut off */
    HOLDER_TEXT_MAX =
        32 + HOLDER_HOST_MAX, /* 16 digits, a blank, the host, a newline */
    HOLDER_CHECK_MS = 2000,
    /* A client of a network file system answers from its cache for a second. */
    HOLDER_CACHE_MS = 3000
};

struct holder {
    struct disk *disk;
    struct log *log;
    struct loop *loop;
    struct loop_timer timer;
    char path[32];
    char text[HOLDER_TEXT_MAX]; /* "": the file system is local */
    bool is_lost;
};

/* For the holder of the lock on that part (slices.h). 0, or -errno: the disk refuses the
 * file. */
int holder_take(struct holder *h, struct disk *disk, struct loop *loop, struct log *log,
                const char *part, const char *host) __attribute__((warn_unused_result));
void holder_stop(struct holder *h);
/* The same for a further part, whose daemon is dead. */
int holder_mark(const struct holder *h, const char *part)
    __attribute__((warn_unused_result));
/* False: another daemon has it, which is logged, and the loop stops; or the disk does not
 * say. The sync before this call then counts as failed. */
bool holder_is_ours(struct holder *h);
/* The host that holds the part, for words; "": nothing is known. */
void holder_host(struct disk *disk, const char *part, char out[HOLDER_HOST_MAX + 1]);

#endif
