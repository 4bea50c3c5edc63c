/* Settings of spool and journal, as the owner of the queue gives them (queue/queue.h), and
 * messages as they are found on disk. */
#ifndef QUEUE_SPOOL_QUEUE_SETTINGS_H
#define QUEUE_SPOOL_QUEUE_SETTINGS_H

#include "base/id.h"
#include <stdbool.h>
#include <stdint.h>

struct envelope;
struct event_hub;
struct recipient;

typedef bool queue_is_local(void *context, const struct envelope *e,
                            const struct recipient *r);

typedef struct envelope *queue_in_use(void *context, struct id id);

struct queue_settings {
    const char *spool;
    const char *host; /* our name, for other hosts that mount the spool */
    unsigned slices, slice;
    int64_t message_size_limit;
    int64_t bytes_reserve, inodes_reserve; /* refuse new mail below; 0 = derived */
    /* Size of the journal in bytes; 0 = no journal, every message becomes files
     * immediately. Messages larger than journal_message_max do so, too. */
    int64_t journal_size, journal_message_max;
    int64_t journal_segment;  /* 0 = derived from journal_size; for tests */
    bool sync_blocks;         /* never sync in the background; for tests */
    struct event_hub *events; /* borrowed; NULL: nothing is reported */
    /* Whether the recipient is qmail's "local": delivered on this machine, by its route.
     * Asked when its message becomes files, and never again; context: that of `found`.
     * NULL: no recipient is. */
    queue_is_local *is_local;
    /* The envelope of the message that the owner keeps over turns, as loaded or stored, and may
     * settle; or NULL. Asked when its files are made under it; context: that of `found`. NULL:
     * the owner settles, defers or frees each before the turn ends. */
    queue_in_use *in_use;
};

/* A message that startup, or a later scan, found. */
struct queue_entry {
    struct id id;
    int64_t due_ms;
    unsigned attempts;
};
typedef void queue_found(void *context, const struct queue_entry *entry);

#endif
