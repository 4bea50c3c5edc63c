/* Acts of daemons, injectors and operators, with their promises. */
#include "t/crash/act.h"

#include "base/crc.h"
#include "base/memory.h"
#include "queue/queue_operator.h"
#include "t/sim/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    FLUSH_MS = 250,
    RECOVERY_MS = 50,
    AWAIT_TURNS = 300,
    SCAN_MS = 26 * 60 * 1000,
    AGAIN_MS = 25 * 1000, /* beyond two retries of what the disk refused */
    PIECE = 5003
};

struct answer {
    struct work *work;
    int message;
    struct answer *prev, *next;
};

void
work_begin(struct work *w, const struct setup *setup, uint64_t seed)
{
    *w = (struct work){.setup = *setup, .random = seed};
    shadow_init(&w->shadow, setup->journal_size > 0);
    sim_disk_reset();
    sim_disk_set_syncing(act_chance(w, 4) == 0 ? DISK_SYNC_BLOCKS : DISK_SYNC_AIO,
                         (int64_t)act_chance(w, 2) * 3);
}

void
work_end(struct work *w)
{
    act_stop(w, true);
    shadow_free(&w->shadow);
}

bool
act_had_trouble(struct work *w)
{
    w->shadow.troubled = w->shadow.troubled || sim_disk_has_failed();
    return w->shadow.troubled;
}

uint64_t
act_chance(struct work *w, uint64_t below)
{
    uint64_t mixed = w->random += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (mixed ^ mixed >> 31) % below;
}

int
act_any(struct work *w)
{
    return w->shadow.count > 0 ? (int)act_chance(w, w->shadow.count) : -1;
}

/* The message if its number means one; NULL otherwise. */
static struct message *
find(struct work *w, int message)
{
    return message >= 0 && message < (int)w->shadow.count ? &w->shadow.messages[message]
                                                          : NULL;
}

static struct queue *
queue_of(struct work *w, const struct message *m)
{
    return w->daemons[id_slice(m->id, w->slices)].queue;
}

/* --- Processes ------------------------------------------------------------------- */

static void
open_daemon(struct work *w, unsigned i)
{
    struct daemon *d = &w->daemons[i];
    uint64_t seed = act_chance(w, 1u << 30);
    int code = daemon_open(d, &w->setup, w->slices, i, seed, w->clock_ms);
    if (code != 0 && act_had_trouble(w)) {
        daemon_close(d);
        code = daemon_open(d, &w->setup, w->slices, i, seed + 1, w->clock_ms);
    }
    if (code != 0) {
        printf("# cannot start: %s\n", d->error);
        abort();
    }
    d->envelopes = w->envelopes;
}

static void
advance(struct work *w, int64_t ms)
{
    for (unsigned i = 0; i < w->slices; i++)
        daemon_advance(&w->daemons[i], ms);
    w->clock_ms += ms;
}

void
act_start(struct work *w, unsigned slices)
{
    w->slices = slices < w->setup.slices_max ? slices : w->setup.slices_max;
    for (unsigned i = 0; i < w->slices; i++)
        open_daemon(w, i);
    advance(w, RECOVERY_MS);
}

static void
drop_answers(struct work *w)
{
    struct answer *a, *next;
    DL_FOREACH_SAFE (w->answers, a, next)
        free(a);
    w->answers = NULL;
}

void
act_stop(struct work *w, bool killed)
{
    struct envelope *left[MESSAGES_MAX];
    memcpy(left, w->envelopes, sizeof(left));
    memset(w->envelopes, 0, sizeof(w->envelopes));
    (void)act_had_trouble(w);
    if (killed)
        sim_disk_die_at(1);
    for (unsigned m = 0; m < w->shadow.count; m++)
        w->shadow.messages[m].unseen = w->shadow.messages[m].unseen || killed;
    for (unsigned i = 0; i < w->slices; i++)
        daemon_close(&w->daemons[i]);
    for (unsigned m = 0; m < MESSAGES_MAX; m++)
        envelope_free(&left[m]);
    drop_answers(w);
    w->slices = 0;
    sim_disk_restart();
}

void
act_turn(struct work *w)
{
    advance(w, 1);
}

void
act_flush(struct work *w)
{
    bool before = w->shadow.troubled;
    advance(w, FLUSH_MS);
    if (act_had_trouble(w) && !before)
        advance(w, AGAIN_MS);
    if (w->slices > 0)
        shadow_harden(&w->shadow);
}

/* --- Accepting ------------------------------------------------------------------- */

static void
on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct answer *a = context;
    struct work *w = a->work;
    struct message *m = &w->shadow.messages[a->message];
    m->known = refusal == NULL ? STORED : REFUSED;
    w->envelopes[a->message] = e;
    DL_DELETE(w->answers, a);
    free(a);
}

static struct envelope *
envelope_for(const struct message *m)
{
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, TEXT("sender@example.org"));
    if (m->is_alias && !envelope_add(e, text_from(shadow_alias()), 0, TEXT("")))
        abort();
    for (unsigned r = 0; !m->is_alias && r < m->recipients; r++)
        if (!envelope_add(e, text_from(shadow_address(r)), NOTIFY_DEFAULT, TEXT("")))
            abort();
    return e;
}

static bool
is_notified(const struct envelope *e, unsigned recipient)
{
    for (unsigned i = 0; i < e->delivery.failure_count; i++)
        if (e->delivery.failures[i].recipient == recipient)
            return e->delivery.failures[i].notified;
    return false;
}

/* Failures that no notice has told. */
static unsigned
untold(const struct work *w, int message, bool which[RECIPIENTS_MAX])
{
    const struct message *m = &w->shadow.messages[message];
    unsigned count = 0;
    for (unsigned r = 0; r < m->recipients; r++) {
        which[r] = m->failed[r] && !is_notified(w->envelopes[message], r);
        count += which[r];
    }
    return count;
}

/* The message's number, or -1: none. failures: it tells those of told_of. */
static int
offer(struct work *w, struct queue *q, unsigned recipients, size_t size, int told_of,
      bool failures, bool is_alias)
{
    struct outcome refusal;
    int number = shadow_add(&w->shadow, recipients, size, told_of);
    if (number < 0)
        return -1;
    struct message *m = &w->shadow.messages[number];
    m->is_alias = is_alias;
    struct text content = shadow_content(&w->shadow, (unsigned)number);
    struct queue_draft *draft = queue_begin(q, (int64_t)content.length, &refusal);
    if (draft == NULL)
        return -1;
    for (size_t at = 0; at < content.length; at += PIECE)
        (void)!queue_write(draft, text_before(text_after(content, at), PIECE));
    struct envelope *e = envelope_for(m);
    queue_name(draft, e);
    m->id = e->id;
    m->known = OFFERED;
    e->prefix = envelope_text(e, TEXT("Received: by test\r\n"));
    struct answer *a = memory_new(sizeof(*a));
    *a = (struct answer){.work = w, .message = number};
    DL_APPEND(w->answers, a);
    if (failures) {
        (void)untold(w, told_of, m->tells);
        queue_reports(draft, w->envelopes[told_of]);
        for (unsigned r = 0; r < RECIPIENTS_MAX; r++)
            if (m->tells[r]) /* perhaps: with the notice */
                w->shadow.messages[told_of].notified[r] = MAYBE;
    }
    queue_commit(&draft, &e, on_stored, a);
    return number;
}

void
act_accept(struct work *w, unsigned recipients, size_t size)
{
    unsigned which = w->slices > 0 ? w->shadow.count % w->slices : 0;
    if (w->slices > 0)
        (void)!offer(w, w->daemons[which].queue, recipients, size, -1, false, false);
}

void
act_await(struct work *w)
{
    for (unsigned i = 0; i < AWAIT_TURNS && w->answers != NULL; i++)
        act_turn(w);
    if (w->answers != NULL)
        advance(w, AGAIN_MS);
    w->hung = w->hung || w->answers != NULL;
}

static void
inject(struct work *w, unsigned messages, unsigned recipients, size_t size,
       bool is_alias)
{
    struct daemon injector;
    w->shadow.injected = true;
    if (daemon_open_injector(&injector, &w->setup, act_chance(w, 1u << 30)) != 0) {
        daemon_close(&injector);
        if (act_had_trouble(w))
            return;
        printf("# cannot inject\n");
        abort();
    }
    int numbers[INJECTED_MAX];
    assert(messages <= INJECTED_MAX);
    queue_commit_begin(injector.queue);
    for (unsigned i = 0; i < messages; i++)
        numbers[i] = offer(w, injector.queue, recipients, size, -1, false, is_alias);
    queue_commit_end(injector.queue);
    for (unsigned i = 0; i < messages; i++)
        if (numbers[i] >= 0)
            envelope_free(&w->envelopes[numbers[i]]);
    daemon_close(&injector);
}

void
act_inject(struct work *w, unsigned messages, unsigned recipients, size_t size)
{
    inject(w, messages, recipients, size, false);
}

void
act_inject_alias(struct work *w, size_t size)
{
    inject(w, 1, RECIPIENTS_MAX, size, true);
}

static void
plant_file(struct disk *disk, const char *dir, const char *name, struct text bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int file = disk_create(disk, path, 0644);
    if (file < 0)
        return; /* its own stands there, or the disk is dead */
    (void)!disk_write(disk, file, bytes);
    (void)!disk_sync(disk, file);
    disk_close_file(disk, file);
    (void)!disk_sync_directory(disk, dir);
}

void
act_plant(struct work *w, int message)
{
    struct message *m = find(w, message);
    struct text content = TEXT("planted\r\n");
    char name[ID_LENGTH + 1];
    struct buffer form;
    if (m == NULL || w->slices == 0 || m->known != STORED)
        return;
    struct envelope *e = envelope_new();
    e->id = m->id;
    e->content_size = (int64_t)content.length;
    e->content_crc = crc_add(0, content.at, content.length);
    if (!envelope_add(e, TEXT("planted@b.test"), NOTIFY_DEFAULT, TEXT("")))
        abort();
    buffer_init(&form, 4096);
    envelope_write_todo(e, &form);
    envelope_free(&e);
    id_format(m->id, name);
    struct disk *disk = queue_disk(queue_of(w, m));
    plant_file(disk, "mess", name, content);
    plant_file(disk, "todo", name, buffer_text(&form));
    buffer_free(&form);
}

void
act_notice_injected(struct work *w)
{
    advance(w, SCAN_MS);
    if (w->slices > 0)
        shadow_harden(&w->shadow);
    act_load_all(w);
}

/* --- Delivering ------------------------------------------------------------------ */

void
act_load(struct work *w, int message)
{
    struct message *m = find(w, message);
    if (m == NULL || w->slices == 0 || w->envelopes[message] != NULL ||
        m->known == ABSENT || m->known == REFUSED)
        return;
    struct answer *a;
    DL_FOREACH (w->answers, a)
        if (a->message == message)
            return;
    struct envelope *e = queue_load(queue_of(w, m), m->id);
    if (e == NULL)
        return;
    shadow_expand(m, e);
    w->envelopes[message] = e;
    m->unseen = false;
    /* A result not written before its process was killed never happened. */
    for (unsigned r = 0; r < m->recipients && r < e->count; r++)
        if (!e->recipients[r].done && m->marks[r] == MAYBE)
            m->marks[r] = NO;
    if (m->retired == MAYBE)
        m->retired = NO;
    if (m->warned == MAYBE && e->delivery.warned_s == 0)
        m->warned = NO;
    for (unsigned r = 0; r < m->recipients; r++)
        if (m->notified[r] == MAYBE && !is_notified(e, r))
            m->notified[r] = NO;
}

void
act_load_all(struct work *w)
{
    for (unsigned i = 0; i < w->slices; i++)
        for (size_t f = 0; f < w->daemons[i].found_count; f++)
            act_load(w, shadow_find(&w->shadow, w->daemons[i].found[f].id));
}

void
act_settle(struct work *w, int message, unsigned recipient, bool failed)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL || recipient >= m->recipients ||
        w->envelopes[message]->recipients[recipient].done)
        return;
    struct failure failure = shadow_failure((unsigned)message, recipient);
    m->marks[recipient] = MAYBE;
    m->failed[recipient] = failed;
    queue_settle(queue_of(w, m), w->envelopes[message], recipient, failed ? &failure : NULL);
}

void
act_defer(struct work *w, int message, int64_t in_ms)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL)
        return;
    struct daemon *d = &w->daemons[id_slice(m->id, w->slices)];
    queue_defer(d->queue, &w->envelopes[message], loop_now_ms(d->loop) + in_ms, 1);
}

void
act_warn(struct work *w, int message, int64_t in_ms)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL)
        return;
    if (w->envelopes[message]->delivery.warned_s == 0) {
        int notice = offer(w, queue_of(w, m), 1, 200, message, false, false);
        act_await(w);
        if (notice >= 0 && w->shadow.messages[notice].known == STORED) {
            w->envelopes[message]->delivery.warned_s = 1;
            m->warned = MAYBE;
        }
    }
    act_defer(w, message, in_ms);
}

/* False: they could not be told. */
static bool
tell(struct work *w, int message)
{
    struct message *m = find(w, message);
    bool which[RECIPIENTS_MAX];
    if (untold(w, message, which) == 0)
        return true;
    int notice = offer(w, queue_of(w, m), 1, 200, message, true, false);
    act_await(w);
    if (notice >= 0 && w->shadow.messages[notice].known == STORED)
        return true;
    for (unsigned r = 0; r < m->recipients; r++)
        if (which[r])
            m->notified[r] = NO;
    return false;
}

void
act_report(struct work *w, int message, int64_t in_ms)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL)
        return;
    if (tell(w, message))
        queue_notified(queue_of(w, m), w->envelopes[message]);
    act_defer(w, message, in_ms);
}

void
act_finish(struct work *w, int message)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL)
        return;
    for (unsigned r = 0; r < m->recipients; r++)
        act_settle(w, message, r, false);
    if (!tell(w, message)) {
        act_defer(w, message, 1000);
        return;
    }
    m->retired = MAYBE;
    queue_retire(queue_of(w, m), &w->envelopes[message]);
}

void
act_finish_all(struct work *w)
{
    for (unsigned m = 0; m < w->shadow.count; m++)
        act_finish(w, (int)m);
}

void
act_hold(struct work *w, int message)
{
    struct message *m = find(w, message);
    if (m == NULL || w->envelopes[message] == NULL || m->held != NO)
        return;
    m->held = MAYBE;
    if (queue_hold(queue_of(w, m), w->envelopes[message], "a test", true) == 0)
        m->held = SURE;
    act_defer(w, message, 0);
}

void
act_remove(struct work *w, int message)
{
    struct message *m = find(w, message);
    if (m == NULL || w->slices == 0 || m->known != STORED || m->retired != NO)
        return;
    m->removed = MAYBE;
    (void)queue_remove(queue_of(w, m), m->id);
    envelope_free(&w->envelopes[message]);
}
