/* Hands kept events over, a batch at a time. */
#include "base/event/event_post.h"

#include "base/crypto/webhook.h"
#include "base/http/http_retry.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/printable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A file that is appended to. */
struct event_file_target {
    struct disk *disk;
    char *path;
    int file; /* -1: not open */
    void (*done)(void *context, int result);
    void *context;
    bool busy;
    struct disk_sync sync;
};

/* --- The body of a request --------------------------------------------------------- */

enum { RFC3339_MAX = 40 };

static void
rfc3339(int64_t ms, char out[RFC3339_MAX])
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm t;
    if (gmtime_r(&seconds, &t) == NULL ||
        strftime(out, RFC3339_MAX, "%Y-%m-%dT%H:%M:%SZ", &t) == 0)
        snprintf(out, RFC3339_MAX, "1970-01-01T00:00:00Z");
}

/* The same bytes whenever the batch is offered: its time is that of its first event. */
static bool
event_post_body(const struct event_batch *batch, struct buffer *out)
{
    char time[RFC3339_MAX];
    struct text rest = buffer_text(&batch->lines), line;
    const char *before = "";
    rfc3339(batch->time_ms, time);
    bool good = buffer_format(
        out, "{\"type\":\"petrel.events\",\"timestamp\":\"%s\",\"data\":[", time);
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        good = good && buffer_add(out, text_from(before)) && buffer_add(out, line);
        before = ",";
    }
    return good && buffer_add(out, TEXT("]}"));
}

/* --- A file that is appended to ----------------------------------------------------- */

/* Opened anew at the next append; waits for a sync under way. */
static void
event_file_close(struct event_file_target *t)
{
    if (t->busy)
        disk_sync_wait(t->disk);
    if (t->file >= 0)
        disk_close_file(t->disk, t->file);
    t->file = -1;
}

static void
file_end(struct event_file_target *t, int result)
{
    t->busy = false;
    if (result < 0)
        event_file_close(t); /* its content is unknown: opened anew */
    t->done(t->context, result);
}

static void
on_file_synced(void *context, int result)
{
    file_end(context, result);
}

/* Half a line is left by a full disk, or by a crash: without its end the next event would
 * be part of it. */
static int
event_file_end_line(struct event_file_target *t)
{
    struct disk_info info;
    char last = '\n';
    int result = disk_file_info(t->disk, t->file, &info);
    if (result < 0 || info.size == 0)
        return result;
    int64_t got = disk_read(t->disk, t->file, info.size - 1, &last, 1);
    if (got < 0)
        return (int)got;
    return last == '\n' ? 0 : disk_write(t->disk, t->file, TEXT("\n"));
}

/* Renamed or removed by a program that rotates it, perhaps without a word: the file
 * written to now may be compressed already, or gone. */
static bool
event_file_has_moved(const struct event_file_target *t)
{
    struct disk_info ours, named;
    int result = disk_inspect(t->disk, t->path, &named);
    if (result < 0)
        return result == -ENOENT;
    return disk_file_info(t->disk, t->file, &ours) == 0 && ours.inode != named.inode;
}

static int
file_open(struct event_file_target *t)
{
    if (t->file >= 0)
        return 0;
    int file = disk_open_file(t->disk, t->path, true);
    if (file == -ENOENT)
        file = disk_create(t->disk, t->path, 0640);
    t->file = file;
    return file < 0 ? file : event_file_end_line(t);
}

/* Appends durably; done comes later or before it returns. */
static void
event_file_append(struct event_file_target *t, struct text lines)
{
    if (t->file >= 0 && event_file_has_moved(t))
        event_file_close(t);
    t->busy = true;
    int result = file_open(t);
    if (result == 0)
        result = disk_write(t->disk, t->file, lines);
    t->sync = (struct disk_sync){.done = on_file_synced, .context = t};
    if (result == 0)
        result = disk_sync_begin(t->disk, t->file, false, &t->sync);
    if (result != DISK_SYNCING)
        file_end(t, result);
}

#define FILE_SCHEME TEXT("file:")

enum {
    POST_BODY_MAX = 256 * 1024,
    POST_FIELDS_MAX = 2048,
    POST_SAY_MS = 60 * 60 * 1000 /* failures of one kind in a row */
};

struct event_post {
    struct event_post_setup setup;
    char *url;
    char place[HTTP_HOST_MAX + 24]; /* for the log: a path may be a secret */
    bool to_file, cleartext;
    struct webhook_key keys[WEBHOOK_SECRETS_MAX];
    size_t key_count;
    unsigned batch_max;
    int64_t linger_ms;
    struct event_batch batch;
    bool has_batch; /* under way, or to be offered again */
    bool stopped;
    bool lingers, linger_is_over;
    struct buffer body;
    struct http_call *call;
    struct event_file_target file;
    struct loop_task next;
    struct loop_timer timer; /* of the linger, or of the next try */
    uint64_t batches, failures;
    unsigned in_a_row;
    int64_t failing_since_ms, said_ms, next_ms;
    char why[EVENT_WHY_MAX];
};

static void event_post_go(void *context);

/* --- URLs ------------------------------------------------------------------------- */

const char *
event_post_check_url(struct text url)
{
    struct http_url parsed;
    const char *why;
    if (text_starts(url, FILE_SCHEME)) {
        struct text path = text_after(url, FILE_SCHEME.length);
        return path.length > 1 && path.at[0] == '/' && !text_has_control(path)
                   ? NULL
                   : "file: is followed by an absolute path";
    }
    if (!http_url_parse(url, &parsed, &why))
        return why;
    if (!parsed.secure && !http_url_is_private(parsed.host))
        return "http:// is for loopback, private addresses and names without a dot: "
               "write https://";
    return NULL;
}

bool
event_post_is_local(struct text url)
{
    struct http_url parsed;
    struct net_address address;
    const char *why;
    if (text_starts(url, FILE_SCHEME))
        return true;
    if (!http_url_parse(url, &parsed, &why))
        return false;
    return strcmp(parsed.host, "localhost") == 0 ||
           (net_address_parse_ip(text_from(parsed.host), &address) &&
            net_address_is_loopback(&address));
}

/* --- The end of a try ------------------------------------------------------------- */

static void
post_taken(struct event_post *p)
{
    if (p->in_a_row > 0)
        log_say(p->setup.log, LOG_LEVEL_INFO, "events", NULL,
                "%s takes events again, after %u failed tr%s", p->place, p->in_a_row,
                p->in_a_row == 1 ? "y" : "ies");
    p->has_batch = false;
    p->batches++;
    p->in_a_row = 0;
    p->failing_since_ms = p->said_ms = p->next_ms = 0;
    p->why[0] = '\0';
    event_spool_taken(p->setup.spool);
    loop_post(p->setup.loop, &p->next, event_post_go, p);
}

/* Text of a receiver may be in it. */
static void
note_why(struct event_post *p, const char *why)
{
    (void)!text_copy(p->why, sizeof(p->why), text_from(why));
    printable_make(p->why);
    p->failures++;
    p->in_a_row++;
    if (p->failing_since_ms == 0)
        p->failing_since_ms = loop_monotonic_ms(p->setup.loop);
}

static void
again(void *context)
{
    struct event_post *p = context;
    p->next_ms = 0;
    event_post_go(p);
}

/* after_ms: the delay that the receiver asks for, or -1. */
static void
post_failed(struct event_post *p, const char *why, int64_t after_ms)
{
    struct loop *loop = p->setup.loop;
    int64_t now = loop_monotonic_ms(loop), delay = EVENT_AGAIN_MIN_MS;
    note_why(p, why);
    for (unsigned i = 1; i < p->in_a_row && delay < EVENT_AGAIN_MAX_MS; i++)
        delay *= 2;
    if (delay > EVENT_AGAIN_MAX_MS)
        delay = EVENT_AGAIN_MAX_MS;
    if (after_ms > delay)
        delay = after_ms;
    if (p->said_ms == 0 || now - p->said_ms >= POST_SAY_MS) {
        p->said_ms = now;
        log_say(p->setup.log, LOG_LEVEL_WARNING, "events", NULL,
                "%s does not take events, which wait: %s", p->place, p->why);
    }
    p->next_ms = loop_now_ms(loop) + delay;
    loop_timer_start(loop, &p->timer, delay, again, p);
}

static void
post_stop(struct event_post *p)
{
    note_why(p, "status 410: the receiver is gone");
    p->stopped = true;
    log_say(p->setup.log, LOG_LEVEL_ERROR, "events", NULL,
            "%s answers 410 (gone): events wait for a reload", p->place);
}

/* The status decides, even if the page behind it is malformed. */
static void
on_called(void *context, const struct http_result *result)
{
    struct event_post *p = context;
    char why[EVENT_WHY_MAX];
    p->call = NULL;
    if (result->head == NULL) {
        post_failed(p, result->error, -1);
        return;
    }
    unsigned status = result->head->status;
    if (status / 100 == 2) {
        post_taken(p);
    } else if (status == 410) {
        post_stop(p);
    } else {
        struct text after = http_reader_field(result->head, TEXT("Retry-After"));
        snprintf(why, sizeof(why), "status %u%s", status,
                 status / 100 == 3 ? ", but redirects are not followed" : "");
        post_failed(p, why,
                    http_retry_after_ms(after, loop_now_ms(p->setup.loop),
                                        EVENT_RETRY_AFTER_MAX_MS));
    }
}

static void
on_appended(void *context, int result)
{
    struct event_post *p = context;
    char why[EVENT_WHY_MAX];
    if (result == 0) {
        post_taken(p);
        return;
    }
    snprintf(why, sizeof(why), "cannot append to it: %s",
             result == -EINVAL ? "it is a link, or no regular file"
                               : strerror(-result));
    post_failed(p, why, -1);
}

/* --- A try ------------------------------------------------------------------------ */

static void
post_send(struct event_post *p)
{
    struct buffer fields;
    struct http_request request = {.method = TEXT("POST"),
                                   .type = TEXT("application/json")};
    struct http_call_options options = {.body_max = HTTP_BODY_MAX,
                                        .deadline_ms = EVENT_POST_MS,
                                        .cleartext = p->cleartext,
                                        .is_private = p->cleartext};
    buffer_clear(&p->body);
    buffer_init(&fields, POST_FIELDS_MAX);
    bool good = event_post_body(&p->batch, &p->body);
    request.body = buffer_text(&p->body);
    good = good && webhook_fields(p->batch.id, loop_now_ms(p->setup.loop) / 1000,
                                  request.body, p->keys, p->key_count, &fields);
    request.fields = buffer_text(&fields);
    if (good)
        p->call = http_call_start(p->setup.http, text_from(p->url), &request, &options,
                                  on_called, p);
    else
        post_failed(p, "the batch is too large", -1); /* limits exclude it */
    buffer_free(&fields);
    buffer_clear(&p->body);
}

static void
on_lingered(void *context)
{
    struct event_post *p = context;
    p->lingers = false;
    p->linger_is_over = true;
    event_post_go(p);
}

/* Whether to make a batch of the waiting events. */
static bool
is_time(struct event_post *p)
{
    switch (event_spool_offer(p->setup.spool, p->batch_max)) {
    case EVENT_OFFER_NONE:
    case EVENT_OFFER_BUSY:
        return false;
    case EVENT_OFFER_WHOLE:
        return true;
    case EVENT_OFFER_FEW:
        break;
    }
    if (!p->linger_is_over && !p->lingers) {
        p->lingers = true;
        loop_timer_start(p->setup.loop, &p->timer, p->linger_ms, on_lingered, p);
    }
    return p->linger_is_over;
}

/* Does the next thing, if nothing is under way. */
static void
event_post_go(void *context)
{
    struct event_post *p = context;
    if (p->call != NULL || p->file.busy || p->stopped || p->next_ms != 0)
        return;
    if (!p->has_batch) {
        if (!is_time(p) || !event_spool_batch(p->setup.spool, p->batch_max, &p->batch))
            return;
        p->has_batch = true;
        p->lingers = p->linger_is_over = false;
        loop_timer_stop(p->setup.loop, &p->timer);
    }
    if (p->to_file)
        event_file_append(&p->file, buffer_text(&p->batch.lines));
    else
        post_send(p);
}

/* --- Start and end ---------------------------------------------------------------- */

static void
take_settings(struct event_post *p, const struct event_post_settings *settings)
{
    struct http_url parsed = {0};
    const char *why;
    free(p->url);
    p->url = text_string(settings->url);
    digest_forget(p->keys, sizeof(p->keys));
    p->key_count = webhook_keys(settings->secrets, p->keys);
    p->linger_ms = settings->linger_ms;
    p->to_file = text_starts(settings->url, FILE_SCHEME);
    p->batch_max = p->to_file ? EVENT_BATCH_ANY : settings->batch;
    p->cleartext =
        !p->to_file && http_url_parse(settings->url, &parsed, &why) && !parsed.secure;
    if (p->to_file)
        snprintf(p->place, sizeof(p->place), "%s", p->url);
    else
        snprintf(p->place, sizeof(p->place), "%s://%s", p->cleartext ? "http" : "https",
                 parsed.host);
    free(p->file.path);
    p->file.path = memory_string(p->to_file ? p->url + FILE_SCHEME.length : "");
}

struct event_post *
event_post_new(const struct event_post_setup *setup,
               const struct event_post_settings *settings)
{
    struct event_post *p = memory_new(sizeof(*p));
    p->setup = *setup;
    p->file = (struct event_file_target){
        .disk = setup->disk, .file = -1, .done = on_appended, .context = p};
    buffer_init(&p->batch.lines, EVENT_BATCH_BYTES);
    buffer_init(&p->body, POST_BODY_MAX);
    take_settings(p, settings);
    event_spool_on_more(setup->spool, event_post_go, p);
    event_post_go(p);
    return p;
}

/* A call under way may reach the old receiver; its answer does not count any more. */
void
event_post_use(struct event_post *p, const struct event_post_settings *settings)
{
    http_call_cancel(&p->call);
    event_file_close(&p->file);
    loop_timer_stop(p->setup.loop, &p->timer);
    p->stopped = p->lingers = false;
    p->next_ms = p->said_ms = 0;
    take_settings(p, settings);
    event_post_go(p);
}

void
event_post_free(struct event_post **post)
{
    struct event_post *p = *post;
    if (p == NULL)
        return;
    *post = NULL;
    http_call_cancel(&p->call);
    event_spool_on_more(p->setup.spool, NULL, NULL);
    loop_timer_stop(p->setup.loop, &p->timer);
    p->stopped = true; /* an append that ends now starts nothing */
    event_file_close(&p->file);
    loop_timer_stop(p->setup.loop, &p->timer);
    loop_unpost(p->setup.loop, &p->next);
    digest_forget(p->keys, sizeof(p->keys));
    buffer_free(&p->batch.lines);
    buffer_free(&p->body);
    free(p->file.path);
    free(p->url);
    free(p);
}

struct event_post_view
event_post_look(const struct event_post *p)
{
    struct event_post_view view = {.state = EVENT_POST_IDLE,
                                   .batches = p->batches,
                                   .failures = p->failures,
                                   .in_a_row = p->in_a_row,
                                   .next_ms = p->next_ms};
    if (p->stopped)
        view.state = EVENT_POST_STOPPED;
    else if (p->next_ms != 0)
        view.state = EVENT_POST_WAITS;
    else if (p->call != NULL || p->file.busy)
        view.state = EVENT_POST_BUSY;
    if (p->failing_since_ms != 0)
        view.failing_ms = loop_monotonic_ms(p->setup.loop) - p->failing_since_ms;
    memcpy(view.why, p->why, sizeof(view.why));
    return view;
}

const char *
event_post_word(enum event_post_state state)
{
    static const char *const words[] = {[EVENT_POST_IDLE] = "idle",
                                        [EVENT_POST_BUSY] = "posting",
                                        [EVENT_POST_WAITS] = "waiting",
                                        [EVENT_POST_STOPPED] = "stopped"};
    return words[state];
}
