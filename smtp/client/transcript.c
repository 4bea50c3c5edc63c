/* Keeps lines in a buffer; the oldest make space for new ones. */
#include "smtp/client/transcript.h"

#include <assert.h>
#include <string.h>

/* Before the bytes of each line. */
struct transcript_head {
    uint32_t at_ms;
    uint16_t length;
    uint8_t who;
};

static size_t
transcript_size(const struct transcript *t, size_t at)
{
    struct transcript_head head;
    assert(at + sizeof(head) <= t->length);
    memcpy(&head, t->bytes + at, sizeof(head));
    return sizeof(head) + head.length;
}

static void
transcript_make_space(struct transcript *t, size_t size)
{
    size_t gone = 0;
    while (t->length - gone + size > TRANSCRIPT_MAX)
        gone += transcript_size(t, gone);
    if (gone == 0)
        return;
    t->is_cut = true;
    t->length -= gone;
    memmove(t->bytes, t->bytes + gone, t->length);
}

void
transcript_add(struct transcript *t, enum transcript_who who, struct text line)
{
    if (t == NULL)
        return;
    int64_t at_ms = t->now_ms - t->begun_ms;
    line = text_before(line, TRANSCRIPT_LINE_MAX);
    struct transcript_head head = {.at_ms = at_ms < UINT32_MAX ? (uint32_t)at_ms
                                                               : UINT32_MAX,
                                   .length = (uint16_t)line.length,
                                   .who = (uint8_t)who};
    transcript_make_space(t, sizeof(head) + line.length);
    memcpy(t->bytes + t->length, &head, sizeof(head));
    if (line.length > 0)
        memcpy(t->bytes + t->length + sizeof(head), line.at, line.length);
    t->length += sizeof(head) + line.length;
}

bool
transcript_next(const struct transcript *t, size_t *at, struct transcript_line *line)
{
    struct transcript_head head;
    if (*at >= t->length)
        return false;
    memcpy(&head, t->bytes + *at, sizeof(head));
    *line = (struct transcript_line){
        .at_ms = head.at_ms,
        .who = (enum transcript_who)head.who,
        .text = text_of(t->bytes + *at + sizeof(head), head.length)};
    *at += transcript_size(t, *at);
    return true;
}
