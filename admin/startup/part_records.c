/* Records of what has happened: the history in the spool, and events for programs. */
#include "admin/startup/parts.h"

#include "admin/history/tail.h"
#include "queue/queue_operator.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { DISK_PART = 100 /* of the file system, unless history_size is set */ };

/* The part of a directory's name that says which slice it is of; "": there are none. */
static void
part_records_slice(const struct options *o, char part[SLICES_SUFFIX_MAX])
{
    part[0] = '\0';
    if (o->slices > 1)
        slices_part((unsigned)o->slices, (unsigned)o->slice, part);
}

/* --- The history ------------------------------------------------------------------- */

/* The default is too much for a small file system. */
static struct history_settings
part_history_settings(const struct daemon *d, const struct configuration *c)
{
    struct history_settings settings = c->options.history;
    struct disk_space space;
    bool is_set = settings_origin(c->settings, TEXT("history_size")) != NULL;
    if (settings.size > 0 && !is_set &&
        disk_space(queue_disk(manager_queue(d->manager)), &space) == 0 &&
        space.bytes > 0 && space.bytes / DISK_PART < settings.size)
        settings.size = space.bytes / DISK_PART;
    if (settings.size > 0 && settings.size < PART_HISTORY_SIZE_LEAST)
        settings.size = PART_HISTORY_SIZE_LEAST;
    return settings;
}

/* A history_setup.has_space. */
static bool
part_history_has_space(void *context)
{
    const struct daemon *d = context;
    struct queue_health health = queue_health(manager_queue(d->manager));
    return (health.bytes_free < 0 || health.bytes_free >= health.bytes_reserve) &&
           (health.inodes_free < 0 || health.inodes_free >= health.inodes_reserve);
}

/* A questions_on_part(). */
static json_t *
part_history_status(void *context)
{
    const struct daemon *d = context;
    struct history_state state = history_state(d->history);
    return json_pack("{s:I,s:I,s:b,s:I}", "bytes", (json_int_t)state.bytes, "size",
                     (json_int_t)state.size, "paused", state.paused, "lost",
                     (json_int_t)state.lost);
}

/* "": the system does not tell. */
static void
part_history_boot(char out[TAIL_BOOT_MAX])
{
    char *content = NULL;
    size_t length = 0;
    out[0] = '\0';
    if (disk_read_whole("/proc/sys/kernel/random/boot_id", TAIL_BOOT_MAX, &content,
                        &length) == 0)
        snprintf(out, TAIL_BOOT_MAX, "%s", content);
    free(content);
}

int
part_history_start(struct daemon *d)
{
    char part[SLICES_SUFFIX_MAX], boot[TAIL_BOOT_MAX];
    struct history_settings settings = part_history_settings(d, d->configuration);
    part_records_slice(&d->configuration->options, part);
    part_history_boot(boot);
    struct history_setup setup = {.loop = d->loop,
                                  .log = d->log,
                                  .events = d->events,
                                  .spool = queue_disk(manager_queue(d->manager)),
                                  .part = part,
                                  .boot = boot,
                                  .has_space = part_history_has_space,
                                  .context = d};
    d->history = history_new(&setup, &settings);
    questions_on_part(control_server_questions(d->control), "history",
                      part_history_status, d);
    history_on_line(d->history, control_server_on_line, d->control);
    return 0;
}

void
part_history_reload(struct daemon *d, struct configuration *fresh)
{
    struct history_settings settings = part_history_settings(d, fresh);
    history_reload(d->history, &settings);
}

void
part_history_pause(struct daemon *d)
{
    if (d->history != NULL)
        history_on_line(d->history, NULL, NULL);
}

void
part_history_stop(struct daemon *d)
{
    history_free(&d->history);
}

/* --- Events for programs ----------------------------------------------------------- */

/* Programs get the default of events_types unless it is set. */
static uint64_t
part_events_kinds(const struct options *o)
{
    uint64_t kinds;
    struct text word;
    bool good = event_record_kinds(text_from(o->events_types), &kinds, &word);
    assert(good); /* configuration.c */
    return kinds;
}

/* An event_hub_on_keeping(). */
static void
part_events_look(void *context, struct event_keeping *out)
{
    const struct daemon *d = context;
    struct event_spool_figures figures = event_spool_figures(d->kept.spool);
    out->pending_bytes = figures.pending_bytes;
    out->lost = figures.lost;
    if (d->kept.post == NULL)
        return;
    struct event_post_view view = event_post_look(d->kept.post);
    out->failing_ms = view.failing_ms;
    out->stopped = view.state == EVENT_POST_STOPPED;
    (void)text_copy(out->why, sizeof(out->why), text_from(view.why));
}

/* A questions_on_part(). */
static json_t *
part_events_status(void *context)
{
    const struct daemon *d = context;
    if (d->kept.spool == NULL || d->kept.post == NULL)
        return NULL;
    struct event_spool_figures figures = event_spool_figures(d->kept.spool);
    struct event_post_view view = event_post_look(d->kept.post);
    json_t *status =
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:b}", "state", event_post_word(view.state),
                  "pending_bytes", (json_int_t)figures.pending_bytes, "kept",
                  (json_int_t)figures.kept, "lost", (json_int_t)figures.lost, "batches",
                  (json_int_t)view.batches, "failures", (json_int_t)view.failures,
                  "disk_failing", (int)figures.failing);
    if (view.why[0] != '\0')
        json_object_set_new(status, "why", json_string(view.why));
    if (view.next_ms != 0)
        json_object_set_new(status, "next_ms", json_integer(view.next_ms));
    return status;
}

static bool
part_events_open(struct daemon *d, const struct event_spool_settings *settings)
{
    struct event_spool_settings with_disk = *settings;
    const char *path = disk_path(queue_disk(manager_queue(d->manager)));
    int result = disk_open(&d->kept.disk, path, false);
    if (result == 0) {
        (void)disk_sync_on(d->kept.disk, d->loop);
        with_disk.disk = d->kept.disk;
        result = event_spool_open(&d->kept.spool, &with_disk);
    }
    if (result == 0)
        return true;
    snprintf(d->error, DAEMON_ERROR_MAX, "events: cannot keep events in %.200s/%s: %s",
             path, settings->directory, strerror(-result));
    disk_close(&d->kept.disk);
    return false;
}

static void
part_events_post(struct daemon *d, const struct options *o)
{
    struct part_events *k = &d->kept;
    if (k->http == NULL)
        k->http = http_caller_new(
            &(struct http_caller_settings){.loop = d->loop,
                                           .net = d->net,
                                           .dns = d->dns,
                                           .tls = delivery_tls(d->delivery)});
    struct event_post_setup setup = {.loop = d->loop,
                                     .log = d->log,
                                     .spool = k->spool,
                                     .http = k->http,
                                     .disk = k->disk};
    if (k->post == NULL)
        k->post = event_post_new(&setup, &o->post);
    else
        event_post_use(k->post, &o->post);
}

/* False: events cannot be kept, and d->error says why. */
static bool
part_events_use(struct daemon *d, const struct options *o)
{
    char part[SLICES_SUFFIX_MAX], directory[SLICES_SUFFIX_MAX + 16];
    if (o->post.url.length == 0) {
        part_events_pause(d);
        part_events_stop(d);
        return true;
    }
    part_records_slice(o, part);
    snprintf(directory, sizeof(directory), "events%s%s", part[0] != '\0' ? "/" : "",
             part);
    struct event_spool_settings settings = {.loop = d->loop,
                                            .hub = d->events,
                                            .directory = directory,
                                            .host = o->hostname,
                                            .kinds = part_events_kinds(o),
                                            .bytes_max = o->events_max};
    if (d->kept.spool != NULL)
        event_spool_set(d->kept.spool, &settings);
    else if (!part_events_open(d, &settings))
        return false;
    part_events_post(d, o);
    if (!d->kept.answers)
        questions_on_part(control_server_questions(d->control), "events",
                          part_events_status, d);
    d->kept.answers = true;
    event_hub_on_keeping(d->events, part_events_look, d);
    return true;
}

int
part_events_start(struct daemon *d)
{
    return part_events_use(d, &d->configuration->options) ? 0 : EX_CANTCREAT;
}

void
part_events_reload(struct daemon *d, struct configuration *fresh)
{
    if (!part_events_use(d, &fresh->options))
        log_say(d->log, LOG_LEVEL_ERROR, "events", NULL, "%s", d->error);
}

void
part_events_pause(struct daemon *d)
{
    event_post_free(&d->kept.post);
    http_caller_free(&d->kept.http);
}

void
part_events_stop(struct daemon *d)
{
    if (d->kept.spool == NULL)
        return;
    event_hub_on_keeping(d->events, NULL, NULL);
    event_spool_close(&d->kept.spool);
    disk_close(&d->kept.disk);
}
