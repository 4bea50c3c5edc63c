/* A table of open contents: handles for bytes in memory and for files alike. */
#include "queue/content.h"

#include "base/memory.h"
#include "queue/queue_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A handle is the index of a row. Closed rows form a list and are used again. */
struct open_content {
    bool open;
    int file;                        /* -1: bytes in memory */
    struct journaled_content *bytes; /* with a reference */
    int next_unused;
};

void
contents_start(struct contents *c)
{
    c->unused = -1;
}

static struct open_content *
row_of(const struct contents *c, int content)
{
    assert(content >= 0 && content < c->count && c->rows[content].open);
    return &c->rows[content];
}

static void
contents_close(struct contents *c, int content)
{
    struct open_content *row = row_of(c, content);
    if (row->bytes != NULL)
        journaled_content_release(&row->bytes);
    else
        disk_close_file(c->spool->disk, row->file);
    *row = (struct open_content){.next_unused = c->unused};
    c->unused = content;
}

void
contents_stop(struct contents *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->rows[i].open)
            contents_close(c, i);
    free(c->rows);
    c->rows = NULL;
    c->count = 0;
}

static int
take_row(struct contents *c, struct open_content row)
{
    int index = c->unused;
    if (index < 0) {
        index = c->count++;
        c->rows = memory_resize(c->rows, (size_t)c->count * sizeof(*c->rows));
    } else {
        c->unused = c->rows[index].next_unused;
    }
    c->rows[index] = row;
    return index;
}

static int
contents_open(struct contents *c, struct id id)
{
    struct open_content row = {.open = true, .file = -1};
    struct journaled_message *m = journaled_find(c->journaled, id);
    int error = 0;
    if (m != NULL && !m->large) {
        row.bytes = journaled_read_content(c->journaled, m, &error);
        return row.bytes == NULL ? error : take_row(c, row);
    }
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_MESS, id, path);
    row.file = disk_open_file(c->spool->disk, path, false);
    return row.file < 0 ? row.file : take_row(c, row);
}

int
queue_content_open(struct queue *q, const struct envelope *e)
{
    struct id before = queue_enter(q, e->id);
    int content = contents_open(&q->contents, e->id);
    queue_leave(q, before);
    return content;
}

int64_t
queue_content_read(struct queue *q, int content, int64_t offset, char *to, size_t size)
{
    const struct contents *c = &q->contents;
    const struct open_content *row = row_of(c, content);
    assert(offset >= 0);
    if (row->bytes == NULL)
        return disk_read(c->spool->disk, row->file, offset, to, size);
    struct text rest = buffer_text(&row->bytes->bytes);
    rest =
        text_after(rest, (uint64_t)offset < rest.length ? (size_t)offset : rest.length);
    rest = text_before(rest, size);
    if (rest.length > 0)
        memcpy(to, rest.at, rest.length);
    return (int64_t)rest.length;
}

struct text
queue_content_bytes(struct queue *q, int content)
{
    const struct open_content *row = row_of(&q->contents, content);
    return row->bytes != NULL ? buffer_text(&row->bytes->bytes) : (struct text){0};
}

void
queue_content_close(struct queue *q, int content)
{
    contents_close(&q->contents, content);
}
