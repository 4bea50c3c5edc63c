/* The live stream: events as they happen, for clients that read them by GET /events.
 *
 * Events are numbered; the last ones are kept, once for all readers, while somebody reads
 * and a minute longer, so that a reader whose connection broke can go on where it was.
 * Events that are not kept, or not yet read when they are dropped, are a gap in the
 * numbers, and the reader hears of it. A reader is nothing but its place: one that is slow
 * costs no memory. Without readers no event is looked at.
 *
 * The bytes are server-sent events (WHATWG HTML 9.2):
 *
 *     id: NUMBER
 *     event: event|status|skipped
 *     data: JSON in one line
 *
 *     event    as those of `petrel trace -f --json` (life.h), with `message`, an id or null
 *     status   an object of the owner, when it has changed; at most one a second
 *     skipped  {"count": N}, the events between NUMBER and the one before; null: their
 *              number is not known
 *
 * id is the number of the last event up to which all was sent; a status does not change
 * it. A comment follows when nothing was sent for some time. */
#ifndef ADMIN_API_LIVE_H
#define ADMIN_API_LIVE_H

#include "base/buffer.h"
#include "base/event/event.h"

#include <jansson.h>

struct live;
struct live_reader;
struct loop;

enum {
    LIVE_READERS_MAX = 8,
    LIVE_KEPT_MAX = 1000, /* events */
    LIVE_KEPT_BYTES_MAX = 1024 * 1024,
    LIVE_KEEP_MS = 60 * 1000,    /* without readers */
    LIVE_A_SECOND = 100,         /* events; the others are left out */
    LIVE_SESSIONS_A_SECOND = 30, /* of these: sessions that begin and end */
    LIVE_REFUSALS_A_SECOND = 40, /* of these: refused clients */
    LIVE_TICK_MS = 1000,         /* a status, and the number of events left out */
    LIVE_STATUS_SHARE = 100,     /* a status costs at most this part of the time */
    LIVE_COMMENT_MS = 15 * 1000,
    LIVE_PIECE = 32 * 1024,    /* octets; a text more */
    LIVE_TEXT_MAX = 128 * 1024 /* octets of an event or status; else left out */
};

struct live_setup {
    struct loop *loop;
    struct event_hub *events;
    json_t *(*status)(void *context); /* made anew; NULL: none is sent */
    void *context;
};

enum { LIVE_MORE_MAX = LIVE_PIECE + LIVE_TEXT_MAX + 1024 };

struct live *live_new(const struct live_setup *setup);
/* Its readers have ended. */
void live_free(struct live **live);

/* Where a reader begins: */
struct live_place {
    bool is_set;    /* false: with new events alone */
    uint64_t after; /* the last number that it knows; 0: with the oldest that is kept */
};
/* wake: live_more() has something again. NULL: there are too many readers. */
struct live_reader *live_begin(struct live *live, const struct live_place *place,
                               void (*wake)(void *context), void *context);
void live_end(struct live_reader **reader);
/* Adds the events that the reader has not had, some LIVE_PIECE at a time, to a buffer
 * that is empty and has room for LIVE_MORE_MAX. False: nothing is to be said. */
bool live_more(struct live_reader *reader, struct buffer *out);

size_t live_readers(const struct live *live);
size_t live_kept(const struct live *live); /* events */

#endif
