/* Common parts of the tests of the queue. */
#include "t/support/queue_kit.h"

#include "base/log/log_internal.h"
#include "queue/queue_internal.h"
#include "t/support/spool_kit.h"

void
kit_found(void *context, const struct queue_entry *entry)
{
    struct kit *k = context;
    if (k->found_count < KIT_FOUND_MAX)
        k->found[k->found_count++] = *entry;
}

void
kit_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct kit *k = context;
    k->answers++;
    if (k->stored != NULL) /* stored late: nobody has asked for it */
        envelope_free(&k->stored);
    k->stored = e;
    k->refused = refusal != NULL;
    if (refusal != NULL)
        k->refusal = *refusal;
}

int
kit_open_with(struct kit *k, const struct queue_settings *settings)
{
    *k = (struct kit){.loop = loop_new()};
    k->log = log_new(k->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    k->events = event_hub_new(k->log);
    buffer_init(&k->lines, 16 * 1024 * 1024);
    log_capture(k->log, &k->lines);
    struct queue_settings used = *settings;
    if (used.is_local == NULL)
        used.is_local = spool_kit_is_local;
    return queue_open(&k->queue, k->loop, k->log, &used, kit_found, k, k->error,
                      sizeof(k->error));
}

int
queue_kit_open(struct kit *k, const char *path)
{
    struct queue_settings settings = {
        .spool = path, .slices = 1, .message_size_limit = 1000000};
    return kit_open_with(k, &settings);
}

int
kit_open_injector(struct kit *k, const char *path)
{
    struct queue_settings settings = {
        .spool = path, .slices = 1, .message_size_limit = 1000000};
    *k = (struct kit){0};
    k->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    k->events = event_hub_new(k->log);
    buffer_init(&k->lines, 16 * 1024 * 1024);
    log_capture(k->log, &k->lines);
    return queue_open_injector(&k->queue, k->log, &settings, k->error,
                               sizeof(k->error));
}

void
kit_close(struct kit *k)
{
    queue_close(&k->queue);
    if (k->stored != NULL)
        envelope_free(&k->stored);
    event_hub_free(&k->events);
    log_free(&k->log);
    buffer_free(&k->lines);
    if (k->loop != NULL)
        loop_free(&k->loop);
}

void
kit_turns(struct kit *k, unsigned turns)
{
    for (unsigned i = 0; i < turns; i++)
        loop_turn(k->loop, 0);
    /* Syncs in the background need more of them. */
    for (unsigned i = 0; i < 60000 && queue_is_busy(k->queue); i++)
        loop_turn(k->loop, 1);
}

bool
kit_logged(const struct kit *k, const char *words)
{
    return k->lines.length > 0 &&
           memmem(k->lines.at, k->lines.length, words, strlen(words)) != NULL;
}

struct envelope *
kit_envelope(const char *sender, const char *const *recipients)
{
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, text_from(sender));
    for (; *recipients != NULL; recipients++)
        if (!envelope_add(e, text_from(*recipients), NOTIFY_DEFAULT, TEXT("")))
            abort();
    return e;
}

bool
kit_commit(struct kit *k, struct envelope *e, struct text content)
{
    struct queue_draft *draft =
        queue_begin(k->queue, (int64_t)content.length, &k->refusal);
    k->stored = NULL;
    k->refused = draft == NULL;
    if (draft == NULL) {
        envelope_free(&e);
        return false;
    }
    /* In uneven pieces. */
    for (size_t at = 0; at < content.length; at += 1009)
        (void)!queue_write(draft, text_before(text_after(content, at), 1009));
    queue_name(draft, e);
    e->prefix = envelope_text(e, TEXT("Received: by test\r\n"));
    queue_commit(&draft, &e, kit_stored, k);
    return true;
}

struct envelope *
queue_kit_accept(struct kit *k, struct envelope *e, struct text content)
{
    if (!kit_commit(k, e, content))
        return NULL;
    if (k->loop != NULL)
        kit_turns(k, 1);
    struct envelope *stored = k->stored;
    k->stored = NULL;
    return stored;
}

bool
kit_content_is(struct kit *k, const struct envelope *e, struct text want)
{
    int file = queue_content_open(k->queue, e);
    if (file < 0)
        return false;
    char *got = malloc(want.length + 2);
    int64_t size = queue_content_read(k->queue, file, 0, got, want.length + 1);
    bool same = size == (int64_t)want.length &&
                (size == 0 || memcmp(got, want.at, want.length) == 0);
    free(got);
    queue_content_close(k->queue, file);
    return same;
}

const struct queue_entry *
kit_entry(const struct kit *k, struct id id)
{
    for (size_t i = 0; i < k->found_count; i++)
        if (id_compare(k->found[i].id, id) == 0)
            return &k->found[i];
    return NULL;
}
