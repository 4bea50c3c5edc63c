/* Writes events to files, before their effects become durable. */
#include "base/event/event_spool.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "base/event/event_spool_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENT_NAME_DIGITS = 8,
    EVENT_AGAIN_MS = 1000, /* after a failure */
    EVENT_NAMES_TRIED = 16,
    EVENT_RESERVED_MAX = 256 * 1024, /* zeros written ahead */
    EVENT_DAY_MS = 24 * 60 * 60 * 1000
};

void
event_spool_path(const struct event_spool *s, uint32_t number, char out[EVENT_PATH_MAX])
{
    int length = snprintf(out, EVENT_PATH_MAX, "%s/%08" PRIu32, s->directory, number);
    assert(length > 0 && length < EVENT_PATH_MAX);
}

static void
on_more_task(void *context)
{
    struct event_spool *s = context;
    if (s->more != NULL)
        s->more(s->more_context);
}

void
event_spool_tell_more(struct event_spool *s)
{
    loop_post(s->settings.loop, &s->more_task, on_more_task, s);
}

void
event_spool_lose(struct event_spool *s, uint64_t events, const char *why)
{
    int64_t now = loop_monotonic_ms(s->settings.loop);
    s->lost += events;
    if (s->said_ms != 0 && now - s->said_ms < EVENT_SAY_MS)
        return;
    s->said_ms = now;
    log_say(event_hub_log(s->settings.hub), LOG_LEVEL_ERROR, "events", NULL,
            "%s: events_lost=%" PRIu64, why, s->lost);
    s->lost_said = s->lost;
}

/* --- The gate --------------------------------------------------------------------- */

/* Mail goes on without its events being durable. */
static void
give_up(struct event_spool *s, const char *why)
{
    uint64_t waiting = s->gate->last - s->gate->durable;
    loop_timer_stop(s->settings.loop, &s->deadline);
    s->gate->durable = s->gate->last;
    s->ungated = true;
    loop_wake(s->settings.loop, &s->stir);
    if (waiting > 0)
        event_spool_lose(s, waiting, why);
}

static void
on_deadline(void *context)
{
    give_up(context, "the disk is too slow for events; mail is not delayed");
}

/* The oldest event that somebody waits for decides. */
static void
watch_deadline(struct event_spool *s)
{
    int64_t since = s->flying > 0 ? s->flying_ms : s->open_ms;
    if (s->gate->durable == s->gate->last)
        loop_timer_stop(s->settings.loop, &s->deadline);
    else
        loop_timer_start(s->settings.loop, &s->deadline,
                         since + EVENT_GATE_MS - loop_monotonic_ms(s->settings.loop),
                         on_deadline, s);
}

/* --- Writing ---------------------------------------------------------------------- */

static struct event_file *
last_file(const struct event_spool *s)
{
    return &s->files[s->file_count - 1];
}

static void
add_file(struct event_spool *s, uint32_t number, int64_t size)
{
    if (s->file_count == s->file_capacity) {
        s->file_capacity = s->file_capacity > 0 ? 2 * s->file_capacity : 16;
        s->files = memory_resize(s->files, s->file_capacity * sizeof(*s->files));
    }
    s->files[s->file_count++] = (struct event_file){.number = number, .size = size};
}

static void
close_current(struct event_spool *s)
{
    if (s->file >= 0)
        disk_close_file(s->settings.disk, s->file);
    s->file = -1;
}

/* The name is taken when an earlier try has failed half-way. */
static int
create_file(struct event_spool *s, uint32_t number)
{
    char path[EVENT_PATH_MAX];
    event_spool_path(s, number, path);
    int file = disk_create(s->settings.disk, path, 0600);
    if (file == -EEXIST && disk_unlink(s->settings.disk, path) == 0)
        file = disk_create(s->settings.disk, path, 0600);
    return file;
}

/* A name that cannot be removed, such as a directory, is passed over. */
static int
begin_file(struct event_spool *s)
{
    uint32_t number = s->file_count > 0      ? last_file(s)->number + 1
                      : s->cursor.number > 0 ? s->cursor.number + 1
                                             : 1;
    int file = create_file(s, number);
    for (unsigned i = 1; i < EVENT_NAMES_TRIED && file == -EEXIST; i++)
        file = create_file(s, ++number);
    if (file < 0)
        return file;
    s->file = file;
    s->reserved = 0;
    add_file(s, number, 0);
    event_cursor_settle(s);
    event_cursor_limit(s);
    return 0;
}

/* A failed file may have a part of a line, which its reader passes over. Its lines are
 * kept, and go into the next file: a program that reads them twice knows them by their
 * ids. */
static void
spool_fail(struct event_spool *s, int error)
{
    char why[160];
    snprintf(why, sizeof(why), "cannot write events (%s); mail is not affected",
             strerror(-error));
    s->flying = 0;
    s->flying_events = 0;
    close_current(s);
    give_up(s, why);
    loop_timer_start(s->settings.loop, &s->again, EVENT_AGAIN_MS, NULL, NULL);
}

static void
spool_landed(struct event_spool *s)
{
    struct event_file *f = last_file(s);
    f->size += (int64_t)s->flying;
    f->events += (uint32_t)s->flying_events;
    s->kept += s->flying_events;
    buffer_take(&s->open, s->flying);
    s->open_events -= s->flying_events;
    s->flying = 0;
    s->flying_events = 0;
    uint64_t durable = s->gate->last - s->open_events;
    if (s->gate->durable < durable)
        s->gate->durable = durable;
    if (s->ungated) {
        s->ungated = false;
        log_say(event_hub_log(s->settings.hub), LOG_LEVEL_INFO, "events", NULL,
                "the disk takes events again: events_lost=%" PRIu64, s->lost);
        s->lost_said = s->lost;
    }
    watch_deadline(s);
    loop_wake(s->settings.loop, &s->stir); /* waiting events are written in this turn */
    event_spool_tell_more(s);
}

static void
on_spool_synced(void *context, int result)
{
    struct event_spool *s = context;
    if (result < 0)
        spool_fail(s, result);
    else
        spool_landed(s);
}

/* Whole lines, at most a file's worth. */
static struct text
next_lines(const struct event_spool *s, uint64_t *events)
{
    struct text lines = text_before(buffer_text(&s->open), EVENT_FILE_BYTES);
    lines = text_before(lines, text_find_last(lines, '\n') + 1);
    *events = s->open_events;
    if (lines.length == s->open.length)
        return lines;
    *events = 0;
    for (size_t at = 0; at < lines.length; at++)
        *events += lines.at[at] == '\n';
    return lines;
}

/* A sync after a write over zeros costs one flush of the device; after a write that makes
 * the file grow, a commit of the file system. Without space for zeros the file grows by
 * its lines. */
static void
reserve_ahead(struct event_spool *s, int64_t end)
{
    int64_t ahead = end < EVENT_RESERVED_MAX ? end : EVENT_RESERVED_MAX;
    s->reserved = end;
    if (end >= EVENT_FILE_BYTES)
        return;
    if (ahead > EVENT_FILE_BYTES - end)
        ahead = EVENT_FILE_BYTES - end;
    char *zeros = memory_array((size_t)ahead, 1);
    memset(zeros, 0, (size_t)ahead);
    if (disk_write_at(s->settings.disk, s->file, end, text_of(zeros, (size_t)ahead)) ==
        0)
        s->reserved += ahead;
    free(zeros);
}

/* One file has at most one write that is not synced, and never two syncs under way. */
static void
spool_write(void *context)
{
    struct event_spool *s = context;
    loop_unpost(s->settings.loop, &s->stir);
    if (s->open.length == 0 || s->flying > 0 || heap_has(&s->again.node))
        return;
    uint64_t events;
    struct text lines = next_lines(s, &events);
    if (s->file >= 0 && last_file(s)->size > 0 &&
        last_file(s)->size + (int64_t)lines.length > EVENT_FILE_BYTES)
        close_current(s);
    int result = s->file >= 0 ? 0 : begin_file(s);
    if (result == 0)
        result = disk_write_at(s->settings.disk, s->file, last_file(s)->size, lines);
    if (result == 0) {
        int64_t end = last_file(s)->size + (int64_t)lines.length;
        bool grows = end > s->reserved;
        if (grows)
            reserve_ahead(s, end);
        s->flying = lines.length;
        s->flying_events = events;
        s->flying_ms = s->open_ms;
        s->sync = (struct disk_sync){.done = on_spool_synced, .context = s};
        result = disk_sync_begin(s->settings.disk, s->file, !grows, &s->sync);
    }
    if (result != DISK_SYNCING)
        on_spool_synced(s, result);
}

static void
spool_wait(void *context)
{
    struct event_spool *s = context;
    while (s->open.length > 0 && !heap_has(&s->again.node)) {
        spool_write(s);
        if (s->flying > 0)
            disk_sync_wait(s->settings.disk);
    }
    if (s->gate->durable < s->gate->last)
        give_up(s, "the disk does not take the last events");
}

/* --- Reading the hub -------------------------------------------------------------- */

/* Whether this deferral of a recipient is reported: the first, then one a day. Memory is
 * bounded: one that was forgotten is reported once more. */
static bool
deferral_is_due(struct event_spool *s, const struct event *v)
{
    char id[ID_LENGTH + 1], key[EVENT_ID_MAX];
    int64_t now = loop_monotonic_ms(s->settings.loop);
    id_format(v->id, id);
    snprintf(key, sizeof(key), "%s-%" PRIu32, id,
             v->origin != NULL ? v->origin->recipient : 0);
    uint64_t hash = text_hash_nocase(TEXT_HASH, text_from(key)) | 1;
    if (s->slots == NULL)
        s->slots = memory_array(EVENT_SLOTS, sizeof(*s->slots));
    /* The last byte of an FNV hash changes few bits; a product spreads them. */
    uint64_t spread = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    struct event_slot *slot = &s->slots[(spread >> 32) % EVENT_SLOTS];
    if (slot->hash == hash && now - slot->told_ms < EVENT_DAY_MS)
        return false;
    *slot = (struct event_slot){hash, now};
    return true;
}

static void
event_spool_hear(void *context, const struct event *event)
{
    struct event_spool *s = context;
    if (event->kind == EVENT_DEFERRED && !deferral_is_due(s, event))
        return;
    const struct log *log = event_hub_log(s->settings.hub);
    struct event_record_source source = {.host = s->host,
                                         .now_ms = loop_now_ms(s->settings.loop),
                                         .run = s->run,
                                         .serial = ++s->serial,
                                         .mask = log != NULL ? log_mask(log) : NULL};
    if (!event_record_write(event, &source, &s->open)) {
        event_spool_lose(s, 1, "the disk has not taken events for long");
        return;
    }
    if (s->open_events == s->flying_events)
        s->open_ms = loop_monotonic_ms(s->settings.loop);
    s->open_events++;
    s->gate->last++;
    if (s->ungated) {
        s->gate->durable = s->gate->last;
        s->lost++;
        if (!heap_has(&s->again.node) && s->flying == 0)
            loop_wake(s->settings.loop, &s->stir);
        return;
    }
    if (!heap_has(&s->deadline.node))
        watch_deadline(s);
    loop_wake(s->settings.loop, &s->stir);
}

/* --- Start and end ---------------------------------------------------------------- */

/* Without the zeros at the end of a file of that size. A part that cannot be read may be
 * lines: it is read later, and zeros are no events. */
static int64_t
size_of_lines(struct event_spool *s, const char *path, int64_t size)
{
    char piece[4096];
    int64_t got = 0;
    int file = disk_open_file(s->settings.disk, path, false);
    while (file >= 0 && size > 0 && got == 0) {
        int64_t from =
            size > (int64_t)sizeof(piece) ? size - (int64_t)sizeof(piece) : 0;
        got = disk_read(s->settings.disk, file, from, piece, (size_t)(size - from));
        while (got > 0 && piece[got - 1] == '\0')
            got--;
        if (got >= 0)
            size = from + got;
    }
    if (file >= 0)
        disk_close_file(s->settings.disk, file);
    return size;
}

static bool
event_spool_take_name(void *context, const char *name)
{
    struct event_spool *s = context;
    struct text t = text_from(name);
    uint64_t number;
    char path[EVENT_PATH_MAX];
    struct disk_info info;
    if (t.length != EVENT_NAME_DIGITS || !text_number(t, EVENT_NUMBER_MAX, &number) ||
        number == 0)
        return true;
    event_spool_path(s, (uint32_t)number, path);
    if (disk_inspect(s->settings.disk, path, &info) == 0 && info.kind == DISK_FILE)
        add_file(s, (uint32_t)number, size_of_lines(s, path, info.size));
    return true;
}

static int
compare_files(const void *a, const void *b)
{
    uint32_t left = ((const struct event_file *)a)->number;
    uint32_t right = ((const struct event_file *)b)->number;
    return (left > right) - (left < right);
}

/* Makes the directories above it, too. */
static int
make_place(struct disk *disk, const char *directory)
{
    const char *slash = strchr(directory, '/');
    int result = 0;
    if (slash != NULL) {
        char *above = text_string(text_of(directory, (size_t)(slash - directory)));
        result = disk_make_directory(disk, above, 0700);
        free(above);
    }
    return result == 0 ? disk_make_directory(disk, directory, 0700) : result;
}

static void
free_spool(struct event_spool *s)
{
    free(s->directory);
    free(s->host);
    free(s->files);
    free(s->slots);
    buffer_free(&s->open);
    free(s);
}

void
event_spool_set(struct event_spool *s, const struct event_spool_settings *settings)
{
    free(s->host);
    s->host = memory_string(settings->host);
    s->settings.kinds = settings->kinds;
    s->settings.bytes_max = settings->bytes_max;
    event_read(s->settings.hub, settings->kinds, event_spool_hear, s);
    event_cursor_limit(s);
}

int
event_spool_open(struct event_spool **spool,
                 const struct event_spool_settings *settings)
{
    struct event_spool *s = memory_new(sizeof(*s));
    *spool = NULL;
    s->settings = *settings;
    s->directory = memory_string(settings->directory);
    s->file = s->cursor.file = -1;
    s->run = loop_random(settings->loop);
    buffer_init(&s->open, EVENT_GATHERED_MAX);
    int result = make_place(settings->disk, s->directory);
    if (result == 0)
        result = disk_list(settings->disk, s->directory, event_spool_take_name, s);
    if (result < 0) {
        free_spool(s);
        return result;
    }
    if (s->file_count > 0)
        qsort(s->files, s->file_count, sizeof(*s->files), compare_files);
    event_cursor_open(s);
    s->gate = event_hub_gate(settings->hub);
    s->gate->write = spool_write;
    s->gate->wait = spool_wait;
    s->gate->context = s;
    event_hub_keep(settings->hub, true);
    event_spool_set(s, settings);
    *spool = s;
    return 0;
}

void
event_spool_close(struct event_spool **spool)
{
    struct event_spool *s = *spool;
    if (s == NULL)
        return;
    *spool = NULL;
    event_read(s->settings.hub, 0, event_spool_hear, s);
    event_hub_keep(s->settings.hub, false);
    spool_wait(s);
    s->gate->write = s->gate->wait = NULL;
    s->gate->context = NULL;
    loop_timer_stop(s->settings.loop, &s->deadline);
    loop_timer_stop(s->settings.loop, &s->again);
    loop_unpost(s->settings.loop, &s->stir);
    event_cursor_close(s);
    loop_unpost(s->settings.loop, &s->more_task);
    close_current(s);
    free_spool(s);
}

void
event_spool_on_more(struct event_spool *s, void (*more)(void *context), void *context)
{
    s->more = more;
    s->more_context = context;
}
