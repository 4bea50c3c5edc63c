/* Makes the keeper and the poster of events when `events` is set. */
#include "admin/startup/event_wiring.h"

#include "base/log/log.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { EVENTS_ERROR_MAX = 512 };

/* Programs get the default of events_types unless it is set. */
static uint64_t
event_wiring_kinds(const struct options *o)
{
    uint64_t kinds;
    struct text word;
    bool good = event_record_kinds(text_from(o->events_types), &kinds, &word);
    assert(good); /* configuration.c */
    return kinds;
}

static struct event_post_settings
post_settings(const struct options *o)
{
    return (struct event_post_settings){.url = text_from(o->events),
                                        .secrets = text_from(o->events_secret),
                                        .batch = (unsigned)o->events_batch,
                                        .linger_ms = o->events_linger_ms};
}

/* An event_hub_on_keeping(). */
static void
event_wiring_look(void *context, struct event_keeping *out)
{
    const struct event_wiring *w = context;
    struct event_spool_figures figures = event_spool_figures(w->spool);
    out->pending_bytes = figures.pending_bytes;
    out->lost = figures.lost;
    if (w->post == NULL)
        return;
    struct event_post_view view = event_post_look(w->post);
    out->failing_ms = view.failing_ms;
    out->stopped = view.state == EVENT_POST_STOPPED;
    (void)text_copy(out->why, sizeof(out->why), text_from(view.why));
}

/* A questions_on_part(). */
static json_t *
event_wiring_status(void *context)
{
    const struct event_wiring *w = context;
    if (w->spool == NULL || w->post == NULL)
        return NULL;
    struct event_spool_figures figures = event_spool_figures(w->spool);
    struct event_post_view view = event_post_look(w->post);
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
open_spool(struct event_wiring *w, const struct token_keeper *parts,
           const struct event_spool_settings *settings, char *error, size_t size)
{
    struct event_spool_settings with_disk = *settings;
    const char *path = disk_path(queue_disk(manager_queue(parts->manager)));
    int result = disk_open(&w->disk, path, false);
    if (result == 0) {
        (void)disk_sync_on(w->disk, parts->loop);
        with_disk.disk = w->disk;
        result = event_spool_open(&w->spool, &with_disk);
    }
    if (result == 0)
        return true;
    snprintf(error, size, "events: cannot keep events in %.200s/%s: %s", path,
             settings->directory, strerror(-result));
    disk_close(&w->disk);
    return false;
}

static void
start_post(struct event_wiring *w, const struct token_keeper *parts,
           const struct options *o)
{
    struct event_post_settings settings = post_settings(o);
    if (w->http == NULL)
        w->http = http_caller_new(
            &(struct http_caller_settings){.loop = parts->loop,
                                           .net = parts->net,
                                           .dns = parts->dns,
                                           .tls = delivery_tls(parts->delivery)});
    struct event_post_setup setup = {.loop = parts->loop,
                                     .log = parts->log,
                                     .spool = w->spool,
                                     .http = w->http,
                                     .disk = w->disk};
    if (w->post == NULL)
        w->post = event_post_new(&setup, &settings);
    else
        event_post_use(w->post, &settings);
}

bool
event_wiring_use(struct event_wiring *w, struct event_hub *hub,
                 const struct token_keeper *parts, struct questions *questions,
                 const struct configuration *c, char *error, size_t error_size)
{
    const struct options *o = &c->options;
    char part[SLICES_SUFFIX_MAX] = "", directory[SLICES_SUFFIX_MAX + 16];
    if (o->events == NULL) {
        event_wiring_pause(w);
        event_wiring_stop(w);
        return true;
    }
    if (o->slices > 1)
        slices_part((unsigned)o->slices, (unsigned)o->slice, part);
    snprintf(directory, sizeof(directory), "events%s%s", part[0] != '\0' ? "/" : "",
             part);
    struct event_spool_settings settings = {.loop = parts->loop,
                                            .hub = hub,
                                            .directory = directory,
                                            .host = o->hostname,
                                            .kinds = event_wiring_kinds(o),
                                            .bytes_max = o->events_max};
    w->hub = hub;
    if (w->spool != NULL)
        event_spool_set(w->spool, &settings);
    else if (!open_spool(w, parts, &settings, error, error_size))
        return false;
    start_post(w, parts, o);
    if (!w->answers)
        questions_on_part(questions, "events", event_wiring_status, w);
    w->answers = true;
    event_hub_on_keeping(hub, event_wiring_look, w);
    return true;
}

void
event_wiring_reload(struct event_wiring *w, struct event_hub *hub,
                    const struct token_keeper *parts, struct questions *questions,
                    const struct configuration *c)
{
    char error[EVENTS_ERROR_MAX];
    if (!event_wiring_use(w, hub, parts, questions, c, error, sizeof(error)))
        log_say(parts->log, LOG_LEVEL_ERROR, "events", NULL, "%s", error);
}

void
event_wiring_pause(struct event_wiring *w)
{
    event_post_free(&w->post);
    http_caller_free(&w->http);
}

void
event_wiring_stop(struct event_wiring *w)
{
    if (w->spool == NULL)
        return;
    event_hub_on_keeping(w->hub, NULL, NULL);
    event_spool_close(&w->spool);
    disk_close(&w->disk);
}
