/* Due times of messages in S5, read from the heads of info/ID. */
#include "queue/spool/due_times.h"

#include <errno.h>

static void
head_ask(struct due_times_head *h, struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    h->id = id;
    h->file = -1;
    spool_path(SPOOL_INFO, id, path);
    h->got = disk_peek(s->disk, path, h->bytes, sizeof(h->bytes), &h->file);
}

static void
head_end(struct due_times_head *h, struct spool *s)
{
    if (h->file >= 0)
        disk_close_file(s->disk, h->file);
    h->file = -1;
}

/* Damaged or unreadable, the due time is 0: an early attempt does no harm. */
static void
head_take(struct due_times_head *h, struct spool *s, int64_t *due_ms,
          unsigned *attempts)
{
    struct envelope e = {0};
    if (h->file >= 0)
        h->got = disk_read(s->disk, h->file, 0, h->bytes, sizeof(h->bytes));
    head_end(h, s);
    if (h->got == (int64_t)sizeof(h->bytes))
        envelope_read_due(text_of(h->bytes, sizeof(h->bytes)), h->id, &e);
    *due_ms = e.delivery.due_ms;
    *attempts = e.delivery.attempts;
}

bool
due_times_ask(struct due_times *d, struct spool *s, struct id id)
{
    if (d->count == DUE_TIMES_MAX)
        return false;
    head_ask(&d->heads[d->count++], s, id);
    return true;
}

void
due_times_take(struct due_times *d, struct spool *s, struct id id, int64_t *due_ms,
               unsigned *attempts)
{
    struct due_times_head own;
    for (size_t i = d->next; i < d->count; i++) {
        if (id_compare(d->heads[i].id, id) != 0)
            continue;
        while (d->next < i)
            head_end(&d->heads[d->next++], s);
        head_take(&d->heads[d->next++], s, due_ms, attempts);
        return;
    }
    head_ask(&own, s, id);
    head_take(&own, s, due_ms, attempts);
}

void
due_times_read_todo(struct spool *s, struct id id, int64_t *due_ms, unsigned *attempts)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    struct buffer form;
    spool_path(SPOOL_TODO, id, path);
    /* Mail of other users has no due time. */
    if (disk_inspect(s->disk, path, &info) < 0 || info.kind != DISK_FILE ||
        info.size > SPOOL_FILE_MAX || (s->adopts && info.owner != s->user))
        return;
    struct envelope *e = envelope_new();
    buffer_init(&form, SPOOL_FILE_MAX);
    if (spool_read(s, SPOOL_TODO, id, &form) == 0 &&
        envelope_read_todo(buffer_text(&form), id, e) == PROGRESS_DONE) {
        *due_ms = e->delivery.due_ms > *due_ms ? e->delivery.due_ms : *due_ms;
        *attempts = e->delivery.attempts;
    }
    buffer_free(&form);
    envelope_free(&e);
}

void
due_times_drop(struct due_times *d, struct spool *s)
{
    while (d->next < d->count)
        head_end(&d->heads[d->next++], s);
    d->next = d->count = 0;
}
