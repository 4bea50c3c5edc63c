/* The history of each message, in files that `petrel trace` searches.
 *
 * A reader of events (base/event/event.h), with its own lines, at any level of the log.
 * Two rings of files (ring.h), so that refused clients cannot push mail out: `mail` has
 * 7/8 of the size, `refused` 1/8. A turn's lines are written at its end, once, before its
 * replies are sent; under load, beyond 16 KiB in 50 ms, they wait up to 50 ms in a tail
 * (base/pace.h, tail.h). Nothing is synced: the end of the process loses nothing, a power
 * cut some seconds, and no mail depends on it. history_line.h has the grammar. */
#ifndef ADMIN_HISTORY_HISTORY_H
#define ADMIN_HISTORY_HISTORY_H

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/event/event.h"

#define HISTORY_DIRECTORY "history"
#define HISTORY_MAIL      "mail"
#define HISTORY_REFUSED   "refused"

struct history;
struct loop;

struct history_settings {
    int64_t size;   /* of all files; 0: no history */
    int64_t age_ms; /* of the last line of a file */
};

struct history_setup {
    struct loop *loop;
    struct log *log; /* for troubles */
    struct event_hub *events;
    struct disk *spool;
    const char *part; /* of a slice, its directory below SPOOL/history, copied; "" if
                         there is one */
    const char *boot; /* see tail_open(); copied */
    /* Whether the disk has more than its reserve; asked once a second. NULL: yes. */
    bool (*has_space)(void *context);
    void *context;
};

/* Members of setup live longer. An error is logged, and the history pauses. */
struct history *history_new(const struct history_setup *setup,
                            const struct history_settings *settings);
void history_free(struct history **history); /* writes the waiting lines */
/* With size 0 the files stay as they are. */
void history_reload(struct history *history, const struct history_settings *settings);

struct history_state {
    int64_t size, bytes;
    bool paused;   /* the disk has too little space, or fails */
    uint64_t lost; /* lines that a pause has cost */
};
struct history_state history_state(const struct history *history);

/* Each line of a message from now on, with its LF, as it is written into the files or
 * would be without a pause. One function at most; NULL ends it. */
void history_on_line(struct history *history,
                     void (*on_line)(void *context, struct id id, struct text line),
                     void *context);

#endif
