/* The view of `petrel top`: the daemon's status as a few lines and a table of sites. */
#ifndef ADMIN_COMMAND_TOP_VIEW_H
#define ADMIN_COMMAND_TOP_VIEW_H

#include "base/buffer.h"

#include <jansson.h>

enum top_order { TOP_BY_MAIL, TOP_BY_SESSIONS, TOP_BY_NAME, TOP_ORDERS };

enum { TOP_SAMPLES = 62, TOP_LINES_MAX = 1024 * 1024 /* bytes of a picture */ };

struct top_sample {
    int64_t at_ms, in, out; /* monotonic; messages since the daemon's start */
};

/* Plain data; 0 is empty. */
struct top_view {
    json_t *status; /* owned; NULL: none has come */
    enum top_order order;
    size_t scroll; /* sites passed over */
    bool paused;
    const char *trouble; /* borrowed; NULL: the daemon answers */
    struct top_sample last, before;
    struct top_sample samples[TOP_SAMPLES]; /* of a minute, one a second; a ring */
    size_t count;                           /* ever put there */
    int64_t uptime_s;
};

/* Takes the answer to `status`. at_ms: monotonic. */
void top_view_take(struct top_view *v, json_t *status, int64_t at_ms);
/* Adds lines of text; at most rows of them, 0: as many as there are. */
void top_view_draw(struct top_view *v, size_t rows, int64_t now_ms, struct buffer *out);
void top_view_end(struct top_view *v);

#endif
