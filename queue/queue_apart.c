/* Counts the messages that are apart from the queue. */
#include "queue/queue_apart.h"

#include "queue/spool/spool_corrupt.h"

#include <string.h>

enum {
    /* Times of files are as exact as the kernel's ticks: a directory that has just
     * changed may change again without another time. */
    APART_SETTLED_MS = 100,
    APART_TRUSTED_MS = 60 * 1000 /* the disk's clock may be another one */
};

static bool
apart_count_held(void *context, const char *name)
{
    struct queue_apart *apart = context;
    struct id id;
    if (!id_parse(text_from(name), &id))
        return true;
    apart->held++;
    if (apart->oldest_held_ms == 0 || (int64_t)id.time_ms < apart->oldest_held_ms)
        apart->oldest_held_ms = (int64_t)id.time_ms;
    return true;
}

/* Each message has a note; other names are bytes of a damaged journal. */
static bool
apart_count_quarantined(void *context, const char *name)
{
    struct queue_apart *apart = context;
    struct id id;
    apart->quarantined +=
        spool_corrupt_id(name, &id) && strcmp(name + ID_LENGTH, ".note") == 0;
    return true;
}

static bool
apart_is_current(const struct queue_apart_directory *d, int64_t changed_ms,
                 int64_t now_ms)
{
    return d->is_counted && d->changed_ms == changed_ms &&
           d->changed_ms < d->counted_ms - APART_SETTLED_MS &&
           now_ms >= d->counted_ms && now_ms - d->counted_ms < APART_TRUSTED_MS;
}

static void
apart_begin(struct queue_apart_count *c, struct queue_apart_directory *d,
            enum spool_dir dir)
{
    const char *name = spool_dir_name(dir);
    struct disk_info info;
    int64_t now_ms = loop_now_ms(c->loop);
    if (disk_inspect(c->spool->disk, name, &info) != 0 ||
        apart_is_current(d, info.changed_ms, now_ms) ||
        disk_listing_open(c->spool->disk, name, &d->listing) != 0)
        return;
    d->next = (struct queue_apart){0};
    d->next_changed_ms = info.changed_ms;
    d->next_counted_ms = now_ms;
}

/* True: there is more. A directory with an error counts as far as it was read. */
static bool
apart_read(struct queue_apart_directory *d, size_t most,
           bool (*each)(void *context, const char *name))
{
    if (d->listing == NULL)
        return false;
    if (disk_listing_read(d->listing, most, each, &d->next) > 0)
        return true;
    disk_listing_close(&d->listing);
    d->is_counted = true;
    d->result = d->next;
    d->changed_ms = d->next_changed_ms;
    d->counted_ms = d->next_counted_ms;
    return false;
}

static void
apart_read_on(void *context)
{
    struct queue_apart_count *c = context;
    bool more = apart_read(&c->held, QUEUE_APART_STEP, apart_count_held);
    more = apart_read(&c->corrupt, QUEUE_APART_STEP, apart_count_quarantined) || more;
    if (more)
        loop_post(c->loop, &c->task, apart_read_on, c);
}

static void
apart_ask(struct queue_apart_count *c, struct queue_apart_directory *d,
          enum spool_dir dir, bool (*each)(void *context, const char *name))
{
    if (d->listing != NULL)
        return; /* apart_read_on() reads it */
    apart_begin(c, d, dir);
    if (apart_read(d, QUEUE_APART_STEP, each))
        loop_post(c->loop, &c->task, apart_read_on, c);
}

static const struct queue_apart *
apart_known(const struct queue_apart_directory *d)
{
    return d->is_counted ? &d->result : &d->next;
}

static bool
apart_is_partial(const struct queue_apart_directory *d)
{
    return !d->is_counted && d->listing != NULL;
}

struct queue_apart
queue_apart_count(struct queue_apart_count *c)
{
    apart_ask(c, &c->held, SPOOL_HOLD, apart_count_held);
    apart_ask(c, &c->corrupt, SPOOL_CORRUPT, apart_count_quarantined);
    struct queue_apart apart = *apart_known(&c->held);
    apart.quarantined = apart_known(&c->corrupt)->quarantined;
    apart.is_partial = apart_is_partial(&c->held) || apart_is_partial(&c->corrupt);
    return apart;
}

void
queue_apart_stop(struct queue_apart_count *c)
{
    if (c->loop != NULL)
        loop_unpost(c->loop, &c->task);
    disk_listing_close(&c->held.listing);
    disk_listing_close(&c->corrupt.listing);
}
