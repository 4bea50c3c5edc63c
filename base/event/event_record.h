/* An event as a program reads it: a JSON object in one line (doc/events.md).
 *
 * Pure. Always UTF-8: other bytes in texts of a peer become U+FFFD. Members that are not
 * known are left out. */
#ifndef BASE_EVENT_EVENT_RECORD_H
#define BASE_EVENT_EVENT_RECORD_H

#include "base/buffer.h"
#include "base/event/event.h"
#include "base/log/log_mask.h"

enum {
    EVENT_RECORD_MAX = 64 * 1024, /* above every sum of its members */
    EVENT_ID_MAX = 96
};

/* The kinds that a program may ask for, as bits. */
#define EVENT_RECORD_KINDS                                                             \
    (EVENT_BIT(EVENT_ACCEPTED) | EVENT_BIT(EVENT_SUBMITTED) |                          \
     EVENT_BIT(EVENT_DELIVERED) | EVENT_BIT(EVENT_DEFERRED) |                          \
     EVENT_BIT(EVENT_BOUNCED) | EVENT_BIT(EVENT_EXPIRED) | EVENT_BIT(EVENT_QUOTA) |    \
     EVENT_BIT(EVENT_BOUNCED_LATER) | EVENT_BIT(EVENT_COMPLAINED) |                    \
     EVENT_BIT(EVENT_SUPPRESSED) | EVENT_BIT(EVENT_TROUBLE) |                          \
     EVENT_BIT(EVENT_RECOVERED))

/* The kinds of a list like "delivered, bounced"; `accepted` is also mail of sendmail(1).
 * False: a word is none; *word is it then. */
bool event_record_kinds(struct text list, uint64_t *kinds, struct text *word)
    __attribute__((warn_unused_result));

struct event_record_source {
    const char *host;
    int64_t now_ms;
    /* For events that are about no message: their ids are "HEX-serial". */
    uint64_t run;
    uint64_t serial;
    const struct log_mask *mask; /* of addresses; NULL: none */
};
/* Appends the line, with its LF. False: out's limit is reached, and out is unchanged. */
bool event_record_write(const struct event *event,
                        const struct event_record_source *source, struct buffer *out)
    __attribute__((warn_unused_result));

/* Reads back a line of event_record_write(): the id, and the time. False: it is no such
 * line. */
bool event_record_read(struct text line, char id[EVENT_ID_MAX], int64_t *time_ms)
    __attribute__((warn_unused_result));

#endif
