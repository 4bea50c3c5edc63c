/* The quotas: settings of senders, the file of all, and the answers to operators. */
#include "queue/manager/manager_quotas.h"
#include "queue/manager/manager_internal.h"
#include "base/memory.h"
#include "queue/spool/spool.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>

enum {
    QUOTA_ERRORS_MAX = 64 * 1024,
    QUOTA_WRITE_MS = 1000, /* after a change: there may be more */
    QUOTA_EVERY_MS = 60000 /* between two writes */
};

/* --- The file -------------------------------------------------------------------- */

/* Every value is checked by itself. */
#define TITLE "petrel quotas 1"
#define RELAY "relay "

static const char letters[QUOTA_PERIODS] = {
    [QUOTA_SECOND] = 's', [QUOTA_MINUTE] = 'm', [QUOTA_HOUR] = 'h', [QUOTA_DAY] = 'd'};

struct quota_page {
    struct buffer text;
    int64_t now_ms, ahead_ms;
};

/* A line that does not fit is left out as a whole. */
static void
quota_file_add_window(struct quota_page *page, const struct quota_use *use,
                      enum quota_period p, const char *kind, const char *name)
{
    uint32_t counts[QUOTA_SLOTS];
    int64_t end_ms;
    size_t before = page->text.length, last = QUOTA_SLOTS - 1;
    if (!quota_keep(use, p, page->now_ms, counts, &end_ms))
        return;
    while (last > 0 && counts[last] == 0)
        last--;
    bool fits = buffer_format(&page->text, "%c %lld ", letters[p],
                              (long long)(end_ms + page->ahead_ms));
    for (size_t i = 0; i <= last; i++)
        fits =
            fits && buffer_format(&page->text, "%u%s", counts[i], i < last ? "," : " ");
    if (!fits || !buffer_format(&page->text, "%s%s\n", kind, name))
        page->text.length = before;
}

static void
quota_file_add_sender(void *context, const struct quotas_state *state)
{
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++)
        if (state->quota->amounts[p] > 0)
            quota_file_add_window(context, state->use, p, "", state->name);
}

static void
quota_file_add_hop(void *context, const struct sched_quota *hop)
{
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++)
        if (hop->quota == NULL || hop->quota->amounts[p] > 0)
            quota_file_add_window(context, hop->use, p, RELAY, hop->key);
}

int
quota_file_write(struct disk *disk, const char *path, const struct quota_file *file)
{
    struct quota_page page = {.now_ms = file->now_ms - file->ahead_ms,
                              .ahead_ms = file->ahead_ms};
    buffer_init(&page.text, QUOTA_FILE_MAX);
    (void)!buffer_add(&page.text, TEXT(TITLE "\n"));
    size_t title = page.text.length;
    quotas_each(file->quotas, page.now_ms, quota_file_add_sender, &page);
    page.ahead_ms = sched_quota_ahead_ms(file->sched);
    page.now_ms = file->now_ms - page.ahead_ms;
    sched_quotas(file->sched, quota_file_add_hop, &page);
    int result = page.text.length > title
                     ? spool_write_path(disk, path, buffer_text(&page.text))
                     : disk_unlink(disk, path);
    buffer_free(&page.text);
    return result == -ENOENT ? 0 : result;
}

static bool
read_counts(struct text list, uint32_t counts[QUOTA_SLOTS])
{
    struct text word;
    uint64_t number;
    for (size_t i = 0; text_cut(&list, ',', &word); i++) {
        if (i == QUOTA_SLOTS || !text_number(word, QUOTA_AMOUNT_MAX, &number))
            return false;
        counts[i] = (uint32_t)number;
    }
    return true;
}

static void
quota_file_restore(const struct quota_file *file, struct text name, enum quota_period p,
                   const uint32_t counts[QUOTA_SLOTS], int64_t end_ms)
{
    struct text relay = TEXT(RELAY);
    bool is_hop = text_starts(name, relay);
    int64_t ahead_ms = is_hop ? sched_quota_ahead_ms(file->sched) : file->ahead_ms;
    struct quota_use *use =
        is_hop ? sched_quota_recall(file->sched, text_after(name, relay.length))
               : quotas_recall(file->quotas, name);
    if (use != NULL)
        quota_restore(use, p, file->now_ms - ahead_ms, counts, end_ms - ahead_ms);
}

/* False: not a line of ours. */
static bool
quota_file_read_line(struct text line, const struct quota_file *file)
{
    struct text letter, end, list;
    uint32_t counts[QUOTA_SLOTS] = {0};
    uint64_t end_ms;
    enum quota_period p = 0;
    if (!text_cut(&line, ' ', &letter) || !text_cut(&line, ' ', &end) ||
        !text_cut(&line, ' ', &list) || letter.length != 1 || line.length == 0)
        return false;
    while (p < QUOTA_PERIODS && letters[p] != letter.at[0])
        p++;
    if (p == QUOTA_PERIODS || !text_number(end, INT64_MAX / 2, &end_ms) ||
        !read_counts(list, counts))
        return false;
    quota_file_restore(file, line, p, counts, (int64_t)end_ms);
    return true;
}

int
quota_file_read(struct disk *disk, const char *path, const struct quota_file *file)
{
    struct buffer all;
    buffer_init(&all, QUOTA_FILE_MAX);
    int result = spool_read_path(disk, path, &all);
    struct text rest = buffer_text(&all), line = TEXT("");
    if (result >= 0) {
        (void)!text_cut(&rest, '\n', &line);
        result = text_equal(line, TEXT(TITLE)) ? 0 : -EILSEQ;
    }
    bool good = result == 0;
    while (result == 0 && rest.length > 0 && text_cut(&rest, '\n', &line))
        good = quota_file_read_line(line, file) && good;
    buffer_free(&all);
    return result == 0 && !good ? -EILSEQ : result;
}

/* --- Settings, and when the file is written -------------------------------------- */

/* The counts of senders use the clock that nobody sets, and the file the one that a
 * restart keeps. */
static struct quota_file
file_of(const struct manager *m)
{
    int64_t now_ms = loop_now_ms(m->loop);
    return (struct quota_file){.quotas = m->quotas,
                               .sched = m->sched,
                               .now_ms = now_ms,
                               .ahead_ms = now_ms - loop_monotonic_ms(m->loop)};
}

/* The settings have been checked: see configuration.c. */
void
manager_quotas_set(struct manager *m, struct text table)
{
    struct buffer errors;
    buffer_init(&errors, QUOTA_ERRORS_MAX);
    if (!quotas_set(m->quotas, table, &errors))
        log_say(m->log, LOG_LEVEL_ERROR, "queue", NULL, "old quotas stay: %.*s",
                TEXT_ARGS(text_trim(buffer_text(&errors))));
    buffer_free(&errors);
}

void
manager_quotas_read(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct quota_file file = file_of(m);
    manager_hint_path(m, "quotas", path);
    int result = quota_file_read(queue_disk(m->queue), path, &file);
    if (result < 0 && result != -ENOENT)
        log_say(m->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: %s; the use of quotas that it lacks is unknown", path,
                result == -EILSEQ ? "damaged, or not written by Petrel"
                                  : strerror(-result));
}

/* An error is logged once. */
static void
manager_tell_quota_file(struct manager *m, const char *path, int error)
{
    if (error == m->quotas_error)
        return;
    m->quotas_error = error;
    if (error == 0)
        log_say(m->log, LOG_LEVEL_INFO, "queue", NULL, "%s: written again", path);
    else
        log_say(m->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s: cannot be written: %s; a restart would forget the use of quotas "
                "since the last write",
                path, strerror(-error));
}

/* A change that was not written stays one. */
void
manager_quotas_write(struct manager *m)
{
    char path[MANAGER_HINT_MAX];
    struct quota_file file = file_of(m);
    loop_timer_stop(m->loop, &m->quotas_timer);
    if (!m->quotas_changed)
        return;
    m->quotas_written_ms = loop_monotonic_ms(m->loop);
    manager_hint_path(m, "quotas", path);
    int error = quota_file_write(queue_disk(m->queue), path, &file);
    m->quotas_changed = error != 0;
    manager_tell_quota_file(m, path, error);
}

static void
on_quotas_due(void *context)
{
    struct manager *m = context;
    manager_quotas_write(m);
    if (m->quotas_changed)
        loop_timer_start(m->loop, &m->quotas_timer, QUOTA_EVERY_MS, on_quotas_due, m);
}

struct quotas *
manager_quotas(struct manager *m)
{
    return m->quotas;
}

void
manager_note_quotas(struct manager *m)
{
    if (m->quotas_changed)
        return;
    m->quotas_changed = true;
    int64_t now = loop_monotonic_ms(m->loop), wait = QUOTA_WRITE_MS;
    if (m->quotas_written_ms != 0 && m->quotas_written_ms + QUOTA_EVERY_MS - now > wait)
        wait = m->quotas_written_ms + QUOTA_EVERY_MS - now;
    loop_timer_start(m->loop, &m->quotas_timer, wait, on_quotas_due, m);
}

void
manager_tell_quota(struct manager *m, const struct quotas_refusal *refusal)
{
    struct event event = {.kind = EVENT_QUOTA,
                          .relay = text_from(refusal->name),
                          .text = text_from(refusal->outcome.text)};
    if (refusal->first)
        event_tell(m->events, &event);
}

/* --- For operators ---------------------------------------------------------------- */

struct quota_walk {
    struct manager *manager;
    void (*each)(void *context, const struct manager_quota *quota);
    void *context;
    int64_t now_ms, ahead_ms;
    const char *wanted; /* a next hop, as route_key() has it */
    struct quota found;
};

static void
walk_sender(void *context, const struct quotas_state *state)
{
    const struct quota_walk *w = context;
    w->each(w->context, &(struct manager_quota){.who = state->name,
                                                .quota = state->quota,
                                                .use = state->use,
                                                .now_ms = w->now_ms,
                                                .ahead_ms = w->ahead_ms});
}

static void
find_in_route(void *context, const struct target *target)
{
    struct quota_walk *w = context;
    char key[ROUTE_KEY_MAX];
    if (quota_is_none(&target->transport.quota))
        return;
    (void)route_key(target, TEXT(""), key);
    if (strcmp(key, w->wanted) == 0)
        w->found = target->transport.quota;
}

/* Without mail on its way the routes know its quota. One that no route has any more is
 * no quota now. */
static void
walk_hop(void *context, const struct sched_quota *hop)
{
    struct quota_walk *w = context;
    const struct quota *quota = hop->quota;
    if (quota == NULL && w->manager->routes != NULL) {
        w->wanted = hop->key;
        w->found = (struct quota){.first = 0};
        route_each_target(w->manager->routes, find_in_route, w);
        quota = &w->found;
    }
    if (quota != NULL && !quota_is_none(quota))
        w->each(w->context, &(struct manager_quota){.who = hop->key,
                                                    .is_relay = true,
                                                    .quota = quota,
                                                    .use = hop->use,
                                                    .now_ms = w->now_ms,
                                                    .ahead_ms = w->ahead_ms});
}

void
manager_each_quota(struct manager *m,
                   void (*each)(void *context, const struct manager_quota *quota),
                   void *context)
{
    int64_t now_ms = loop_now_ms(m->loop);
    struct quota_walk walk = {.manager = m, .each = each, .context = context};
    walk.now_ms = loop_monotonic_ms(m->loop);
    walk.ahead_ms = now_ms - walk.now_ms;
    quotas_each(m->quotas, walk.now_ms, walk_sender, &walk);
    walk.ahead_ms = sched_quota_ahead_ms(m->sched);
    walk.now_ms = now_ms - walk.ahead_ms;
    sched_quotas(m->sched, walk_hop, &walk);
}

/* No name of a sender is one of a next hop: their kinds differ. */
bool
manager_reset_quota(struct manager *m, struct text who)
{
    bool known = quotas_reset(m->quotas, who);
    if (known)
        manager_quota_retry(m);
    else
        known = sched_quota_reset(m->sched, who);
    if (known) {
        manager_note_quotas(m);
        manager_wake(m);
    }
    return known;
}

/* --- Mail of sendmail(1) --------------------------------------------------------- */

/* It is counted when it is first loaded. Mail over the quota stays in todo/ and goes by
 * itself. */
#define QUOTA_RETRY_LEAST_MS INT64_C(1000)
#define QUOTA_RETRY_MOST_MS  (INT64_C(10) * 60 * 1000)

/* Its first words say why a message waits: see manager_quota_retry(). */
#define QUOTA_REASON TEXT("Quota: ")

enum { AGE_PART = 16 };

bool
manager_quota_waits(const struct manager *m, struct id id)
{
    return text_starts(text_from(deferral_reasons_find(m->reasons, id)), QUOTA_REASON);
}

/* Much mail may wait for one quota: a message that was refused before asks again less
 * often than its turn might come, so that it is not read again and again. */
static int64_t
quota_due_ms(const struct active *a, int64_t ready_in_ms)
{
    int64_t now_ms = loop_now_ms(a->manager->loop);
    int64_t pause = (now_ms - a->envelope->birth_ms) / AGE_PART;
    pause = pause > QUOTA_RETRY_LEAST_MS ? pause : QUOTA_RETRY_LEAST_MS;
    pause = pause < QUOTA_RETRY_MOST_MS ? pause : QUOTA_RETRY_MOST_MS;
    return now_ms + (ready_in_ms > pause ? ready_in_ms : pause);
}

static void
quota_wait(struct active *a, const struct quotas_refusal *refusal, int64_t ready_in_ms)
{
    begin_wait(a, &refusal->outcome, manager_quota_waits(a->manager, a->id),
               quota_due_ms(a, ready_in_ms));
}

static uint32_t
quota_recipients(const struct envelope *e)
{
    uint32_t open = e->count - e->delivery.done, given = e->storage.given;
    return given > 0 && (given < open || e->delivery.done == 0) ? given : open;
}

/* Mail that another host has given while it waited there, as its reason says: it waits here
 * for the quotas of this host. After an attempt the words may be those of a receiver. */
static bool
quota_was_waiting(const struct active *a)
{
    const struct envelope *e = a->envelope;
    return e->moved.given > 0 && e->delivery.attempts == 0 &&
           manager_quota_waits(a->manager, a->id);
}

/* Only mail still in todo/ has not been counted. A crash before it leaves todo/ counts it
 * twice. */
static bool
quota_is_due(const struct active *a)
{
    const struct envelope *e = a->envelope;
    return e->ours &&
           ((e->storage.injected && !e->storage.preprocessed) || quota_was_waiting(a));
}

/* The number is the same user on all hosts, as far as they agree. */
static uint32_t
quota_uid(const struct envelope *e)
{
    uint64_t uid = QUOTAS_NO_UID;
    if (e->storage.injected)
        return e->storage.injector;
    if (text_starts(e->submitter, TEXT("uid:")))
        (void)!text_number(text_after(e->submitter, 4), UINT32_MAX, &uid);
    return (uint32_t)uid;
}

enum manager_quota_verdict
manager_quota_take(struct active *a, struct outcome *never)
{
    struct manager *m = a->manager;
    const struct envelope *e = a->envelope;
    struct quotas_sender sender = {.uid = quota_uid(e), .address = e->sender};
    struct quotas_refusal refusal;
    if (a->claim != NULL || quotas_are_empty(m->quotas) || !quota_is_due(a))
        return MANAGER_QUOTA_PASSES;
    int64_t now_ms = loop_monotonic_ms(m->loop);
    a->claim = memory_new(sizeof(*a->claim));
    a->claimed = quota_recipients(e);
    if (quotas_take(m->quotas, &sender, a->claimed, now_ms, a->claim, &refusal)) {
        if (manager_quota_waits(m, a->id))
            deferral_reasons_forget(m->reasons, a->id);
        return MANAGER_QUOTA_PASSES;
    }
    manager_quota_settle(a, false);
    manager_tell_quota(m, &refusal);
    if (refusal.ready_ms == INT64_MAX) {
        *never = refusal.outcome;
        return MANAGER_QUOTA_NEVER;
    }
    quota_wait(a, &refusal, refusal.ready_ms - now_ms);
    return MANAGER_QUOTA_WAITS;
}

void
manager_quota_settle(struct active *a, bool goes)
{
    struct manager *m = a->manager;
    if (a->claim == NULL)
        return;
    quotas_settle(m->quotas, a->claim, goes ? a->claimed : 0,
                  loop_monotonic_ms(m->loop));
    if (goes)
        manager_note_quotas(m);
    free(a->claim);
    a->claim = NULL;
}

/* --- New quotas ------------------------------------------------------------------- */

static void
retry_waiting(void *context, struct id id, unsigned number)
{
    struct manager *m = context;
    (void)number;
    if (manager_quota_waits(m, id))
        (void)sched_retry(m->sched, id);
}

void
manager_quota_retry(struct manager *m)
{
    deferral_reasons_each(m->reasons, retry_waiting, m);
    manager_wake(m);
}
