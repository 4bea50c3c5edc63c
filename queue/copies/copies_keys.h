/* The names of keys and fields of copies in Redis. Pure.
 *
 *   pc:{GROUP}:owner               hash; field HOST:IDENTITY: the host that owns these copies
 *   pc:{GROUP}:HOST:IDENTITY       hash, with these fields for each message:
 *     ID          the number of the batch that stored it, a newline, and the envelope with its
 *                 state now: envelope_write_given(). Replaced whole when the state changes
 *     ID:c        the content, up to `copies_message_max`; absent: it is in chunks
 *     n           the number of the last batch that was stored; it rises by one
 *   pc:{GROUP}:HOST:IDENTITY:ID    list: the content in chunks of COPIES_CHUNK bytes
 *   pc:{GROUP}:HOST:IDENTITY:ID:n  list: such chunks on their way
 *   pc:{GROUP}:HOST:IDENTITY:ID:e  list: an envelope on its way
 *
 * GROUP is the name of the group, or HOST without one, and without the number of a slice.
 * IDENTITY is lock/identity of the spool.
 * A copy that lacks bytes of its content was not acknowledged: its client heard 451. */
#ifndef QUEUE_COPIES_COPIES_KEYS_H
#define QUEUE_COPIES_COPIES_KEYS_H

#include "base/id.h"
#include "queue/copies/copies_settings.h"
#include "queue/spool/spool_identity.h"

#define COPIES_PREFIX "pc:"

enum {
    COPIES_CHUNK = 256 * 1024,
    COPIES_NAME_MAX = GROUP_HOST_MAX + 1 + SPOOL_IDENTITY_DIGITS,
    COPIES_KEY_MAX = GROUP_HOST_MAX + COPIES_NAME_MAX + ID_LENGTH + 16
};

/* GROUP. */
struct text copies_key_group(const struct copies_settings *settings);
/* HOST:IDENTITY. */
void copies_name(const char *host, const char *identity, char out[COPIES_NAME_MAX + 1]);
/* name: HOST:IDENTITY. */
void copies_key(const struct copies_settings *settings, const char *name,
                char out[COPIES_KEY_MAX + 1]);
void copies_key_chunks(const struct copies_settings *settings, const char *name,
                       struct id id, char out[COPIES_KEY_MAX + 1]);
void copies_key_owner(const struct copies_settings *settings,
                      char out[COPIES_KEY_MAX + 1]);
/* The value of the field ID: batch and form. False: it is none. */
bool copies_read_field(struct text value, uint64_t *batch, struct text *form);

#endif
