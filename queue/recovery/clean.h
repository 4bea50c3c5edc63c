/* Cleaning: removes drafts of dead daemons at startup; every hour, files of dead
 * injectors in pid/, mess/ and intd/, and files of all directories whose message has
 * gone.
 *
 * Files younger than 36 hours stay: an injector gives up after 24. The age is the ctime
 * of the newest file: restoring or copying renews it, reading does not (doc/dev/design.md
 * "Crash rules"). The name does not count.
 *
 * A sweep lists one directory after the other and checks a few files in a turn, so that
 * no client waits for it. Recovery judges suspected files, as at startup; each removal
 * is one log line. */
#ifndef QUEUE_RECOVERY_CLEAN_H
#define QUEUE_RECOVERY_CLEAN_H

#include "base/loop/loop.h"
#include "queue/recovery/removal.h"
#include "queue/spool/id_list.h"
#include "queue/spool/id_set.h"
#include "queue/spool/slices.h"
#include "queue/journal/journaled.h"

enum { CLEAN_AGE_MS = 36 * 60 * 60 * 1000 };

struct clean {
    struct spool *spool;
    struct loop *loop;
    /* Messages that the daemon knows are skipped: they end on their own. */
    const struct journaled *journaled; /* large and held ones have files, too */
    const struct id_set *seen;
    const struct removal *removal;
    const struct slices *slices; /* others' files may have their envelope elsewhere */
    const bool *careful; /* a journal has not been adopted: only pid/ is swept */
    /* Files of id, all of them old, that are not a complete message. */
    void (*suspect)(void *context, struct id id);
    void *context;

    struct loop_timer hourly, more;
    struct buffer drafts; /* names in pid/, each with its NUL */
    size_t drafts_next, drafts_strange;
    struct id_list names;
    size_t next;
    enum spool_dir dir;           /* being listed; SPOOL_DIRS: all are listed */
    struct disk_listing *listing; /* NULL: dir is the next */
    size_t strange;
    bool sweeping;
};

/* The caller sets the members from spool to context before. Removes drafts of dead
 * daemons in this call: call it before a draft is made. Sweeps pid/ in later turns and
 * all directories every hour; at startup recovery does the rest. */
void clean_start(struct clean *c);
void clean_stop(struct clean *c);

/* A message in S2 or S3 of a slice that we have locked, known to have neither todo nor info,
 * and not at work in this process: removes files of a daemon, which is dead, and old ones,
 * with a log line; leaves others. */
void clean_leftover(struct spool *s, struct id id, int64_t now_ms);

#endif
