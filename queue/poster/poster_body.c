/* Header from memory, the rest from the queue. */
#include "queue/poster/poster_body.h"

#include "base/memory.h"
#include "queue/manager/message_head.h"

#include <stdlib.h>

static bool
poster_body_read(struct poster_body *b, struct buffer *out)
{
    size_t room = out->limit - out->length;
    int64_t left = b->size - b->at, head = (int64_t)b->head.length;
    if ((int64_t)room > left)
        room = (size_t)left;
    if (room == 0)
        return true;
    if (b->at < head) {
        struct text rest = text_after(buffer_text(&b->head), (size_t)b->at);
        rest = text_before(rest, room);
        b->at += (int64_t)rest.length;
        return buffer_add(out, rest);
    }
    char *to = buffer_reserve(out, room);
    int64_t got = to == NULL ? -1
                             : queue_content_read(b->queue, b->content,
                                                  b->skip + b->at - head, to, room);
    if (got <= 0)
        return false; /* the envelope states the size */
    out->length += (size_t)got;
    b->at += got;
    return true;
}

static bool
poster_body_read_at(void *context, int64_t at, struct buffer *out)
{
    struct poster_body *b = context;
    b->at = at;
    return poster_body_read(b, out);
}

bool
poster_body_open(struct poster_body *b, struct queue *queue, const struct envelope *e,
                 struct text json)
{
    *b = (struct poster_body){.queue = queue, .content = queue_content_open(queue, e)};
    buffer_init(&b->head, 2 * MESSAGE_HEAD_MAX);
    if (b->content < 0)
        return false;
    b->skip = message_head_for_mailbox(queue, b->content, e, &b->head);
    if (b->skip < 0)
        return false; /* of a disk that reads again the fields would be missing */
    b->size = (int64_t)b->head.length + e->content_size - b->skip;
    if (json.length > 0) {
        b->json = memory_new(sizeof(*b->json));
        b->json->read = poster_body_read_at;
        b->json->context = b;
        b->json->size = b->size;
        b->json->envelope = json;
        b->json->header = buffer_text(&b->head);
        poster_json_begin(b->json);
    }
    return true;
}

void
poster_body_close(struct poster_body *b)
{
    if (b->content >= 0)
        queue_content_close(b->queue, b->content);
    b->content = -1;
    if (b->json != NULL)
        poster_json_free(b->json);
    free(b->json);
    b->json = NULL;
    buffer_free(&b->head);
}

void
poster_body_rewind(struct poster_body *b)
{
    b->at = 0;
    if (b->json != NULL)
        poster_json_rewind(b->json);
}

bool
poster_body_next(struct poster_body *b, struct buffer *out)
{
    return b->json != NULL ? poster_json_next(b->json, out) : poster_body_read(b, out);
}

bool
poster_body_is_over(const struct poster_body *b)
{
    return b->json != NULL ? poster_json_is_over(b->json) : b->at == b->size;
}
