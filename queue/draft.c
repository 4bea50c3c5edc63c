/* Drafts: content while it is being received and before it is committed. */
#include "queue/draft.h"

#include "base/crypto/digest.h"
#include "base/crc.h"
#include "base/memory.h"
#include "base/number.h"
#include "queue/queue_operator.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    CONTENT_BUFFER = 64 * 1024,    /* on the way to a file */
    MEMORY_MAX = 32 * 1024 * 1024, /* of all drafts; beyond it drafts become files
                                    * earlier */
    REPORTS_MAX = 64 * 1024,       /* failures that a notification notes */
    FAILURE_SIZE_MAX = 4200,       /* of envelope_write_failure() */
    NAMES_AHEAD_MS = 20,           /* of the clock, at most */
    NAME_TRIES = 100000            /* on average as many as there are slices are
                                    * needed */
};

/* --- A draft --------------------------------------------------------------------- */

void
draft_refuse(struct queue_draft *d, struct outcome refusal)
{
    if (d->refused)
        return;
    d->refused = true;
    d->refusal = memory_new(sizeof(*d->refusal));
    *d->refusal = refusal;
}

static void
draft_fail(struct queue_draft *d, int error, const char *doing)
{
    draft_refuse(d, spool_refusal(spool_trouble(d->drafts->spool, error,
                                                d->named ? &d->id : NULL, doing)));
}

static void
draft_forget_content(struct queue_draft *d)
{
    d->drafts->in_memory -= d->content.length;
    buffer_free(&d->content);
}

void
draft_free(struct queue_draft *d)
{
    if (d->file >= 0)
        disk_close_file(d->drafts->spool->disk, d->file);
    draft_forget_content(d);
    buffer_free(&d->reports);
    free(d->refusal);
    DL_DELETE(d->drafts->list, d);
    free(d);
}

/* A file that cannot be removed now is found by its age (queue/recovery/clean.c). */
void
draft_erase(struct queue_draft *d)
{
    struct spool *s = d->drafts->spool;
    if (d->path[0] == '\0')
        return;
    int result = disk_unlink(s->disk, d->path);
    if (result < 0 && result != -ENOENT)
        (void)spool_trouble(s, result, d->named ? &d->id : NULL, "remove a draft");
}

/* An injector may run as the daemon's user. With a journal, content without
 * a record may be that of a damaged one. */
static unsigned
mode_of(const struct drafts *a, bool in_files)
{
    return !a->synchronous && in_files ? SPOOL_DAEMON_MODE : SPOOL_OWN_MODE;
}

/* S1: the draft has outgrown its buffer and becomes a file without a final name. */
static void
make_pid_file(struct queue_draft *d)
{
    struct drafts *a = d->drafts;
    int file = -EEXIST;
    char part[SLICES_SUFFIX_MAX] = "";
    /* Abandoned drafts of injectors are recognized by their age alone. */
    if (!a->synchronous)
        slices_part(a->settings.slices, a->settings.slice, part);
    while (file == -EEXIST) {
        snprintf(d->path, sizeof(d->path), "%s/%s%s%" PRId64 ".%016" PRIx64 ".%" PRIu64,
                 spool_dir_name(SPOOL_PID), part, part[0] ? "." : "",
                 loop_now_ms(a->loop) / 1000, loop_random(a->loop), a->counter++);
        file = spool_create(a->spool, d->path, mode_of(a, a->memory_max == 0));
    }
    if (file < 0) {
        d->path[0] = '\0';
        draft_fail(d, file, "make a draft");
        return;
    }
    d->file = file;
}

/* The first error counts, and the commit reports it: the client gets it once, behind
 * the content. */
static void
flush_content(struct queue_draft *d)
{
    if (d->refused || d->content.length == 0)
        return;
    assert(d->file >= 0);
    int result = disk_write(d->drafts->spool->disk, d->file, buffer_text(&d->content));
    if (result < 0)
        draft_fail(d, result, "write a message");
    d->drafts->in_memory -= d->content.length;
    buffer_clear(&d->content);
}

/* Our own mail, a bounce for example, frees more space than it takes. */
bool
drafts_admit(struct drafts *a, int64_t size_expected, bool own, struct outcome *refusal)
{
    if (a->spool->trouble[0] != '\0') {
        *refusal = spool_refusal(-EIO);
        return false;
    }
    /* The journal keeps a reserve for our own mail. */
    bool fits = (own && a->memory_max > 0) || space_has(&a->space, size_expected);
    if (!fits)
        *refusal = spool_refusal(-ENOSPC);
    return fits;
}

/* How many bytes are gathered before they are written. With a journal a message stays
 * in memory until it is a record. When drafts of all clients together take too much,
 * new bytes go to files. */
static size_t
content_max(const struct queue_draft *d)
{
    const struct drafts *a = d->drafts;
    bool stays = d->file < 0 && a->memory_max > 0 && a->in_memory < MEMORY_MAX;
    return stays ? a->memory_max : CONTENT_BUFFER;
}

struct queue_draft *
draft_begin(struct drafts *a, int64_t size_expected, bool own, struct outcome *refusal)
{
    if (!drafts_admit(a, size_expected, own, refusal))
        return NULL;
    struct queue_draft *d = memory_new(sizeof(*d));
    d->drafts = a;
    d->file = -1;
    d->own = own;
    DL_APPEND(a->list, d);
    buffer_init(&d->content,
                a->memory_max > CONTENT_BUFFER ? a->memory_max : CONTENT_BUFFER);
    /* A client may never send the size that it announced. */
    if (own && size_expected > 0 && (uint64_t)size_expected <= content_max(d))
        (void)buffer_reserve(&d->content, (size_t)size_expected);
    return d;
}

/* The content becomes a file as soon as it is larger than the journal takes. */
static void
draft_gather(struct queue_draft *d, struct text bytes)
{
    while (!d->refused && bytes.length > 0) {
        size_t max = content_max(d);
        size_t space = max > d->content.length ? max - d->content.length : 0;
        struct text some = text_before(bytes, space);
        bool fits = buffer_add(&d->content, some);
        assert(fits);
        d->drafts->in_memory += some.length;
        bytes = text_after(bytes, space);
        if (bytes.length == 0)
            break;
        if (d->file < 0)
            make_pid_file(d);
        flush_content(d);
    }
}

bool
queue_write(struct queue_draft *d, struct text bytes)
{
    assert(!d->named);
    struct drafts *a = d->drafts;
    d->crc = crc_add(d->crc, bytes.at, bytes.length);
    d->size += (int64_t)bytes.length;
    /* The SMTP server enforces this limit itself; here it is for the command line. */
    if (a->synchronous && a->settings.message_size_limit > 0 &&
        d->size > a->settings.message_size_limit)
        draft_refuse(d, outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 552, "5.3.4",
                                     "Message is too large"));
    draft_gather(d, bytes);
    return !d->refused;
}

int64_t
queue_draft_size(const struct queue_draft *d)
{
    return d->size;
}

/* With their texts: the marks of e may not be on disk yet. */
void
queue_reports(struct queue_draft *d, const struct envelope *e)
{
    bool fits = true;
    d->reported = e->id;
    buffer_free(&d->reports);
    buffer_init(&d->reports, REPORTS_MAX);
    for (unsigned i = 0; i < e->delivery.failure_count && fits; i++) {
        struct failure f = e->delivery.failures[i];
        if (f.notified)
            continue;
        f.notified = true;
        envelope_write_failure(e, &f, &d->reports);
        fits = d->reports.length < REPORTS_MAX - FAILURE_SIZE_MAX;
    }
    if (!fits) /* noted afterwards alone */
        buffer_clear(&d->reports);
}

void
queue_takes(struct queue_draft *d)
{
    d->taken = true;
}

void
queue_discard(struct queue_draft **draft)
{
    if (*draft == NULL)
        return;
    draft_erase(*draft);
    draft_free(*draft);
    *draft = NULL;
}

/* --- Its name -------------------------------------------------------------------- */

/* Counter and random number give equal messages different names. */
static struct id
make_id(struct drafts *a, struct text form, int64_t now_ms)
{
    unsigned char digest[DIGEST_SIZE];
    struct buffer all;
    buffer_init(&all, form.length + 64);
    char random[16];
    number_write_digits(loop_random(a->loop), 16, sizeof(random), random);
    bool fits =
        buffer_add(&all, form) && buffer_add_number(&all, now_ms) &&
        buffer_add_byte(&all, ' ') && buffer_add_number(&all, (int64_t)a->counter++) &&
        buffer_add_byte(&all, ' ') && buffer_add(&all, text_of(random, sizeof(random)));
    assert(fits);
    digest_plain(buffer_text(&all), digest);
    buffer_free(&all);
    return id_make((uint64_t)now_ms, digest);
}

/* S2: the name is reserved once its file in mess/ exists. */
static int
draft_take_name(struct queue_draft *d, struct id id)
{
    struct spool *s = d->drafts->spool;
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_MESS, id, path);
    if (d->refused)
        return 0;
    if (d->file < 0) {
        /* Content in memory becomes a file only without a record. */
        int file = spool_create(s, path, mode_of(d->drafts, true));
        if (file < 0)
            return file;
        d->file = file;
    } else {
        int result = disk_link(s->disk, d->path, path);
        if (result < 0)
            return result;
        /* A failure leaves a second name, which clean.c removes. */
        result = disk_unlink(s->disk, d->path);
        if (result < 0)
            (void)spool_trouble(s, result, &id, "remove a draft's first name");
    }
    memcpy(d->path, path, sizeof(path));
    return 0;
}

/* Names of one millisecond sort by their hash. To keep the order of arrival each
 * message takes the next millisecond, a little ahead of the clock. */
static int64_t
name_time(struct drafts *a, int64_t now_ms)
{
    int64_t last = a->named_ms, latest = now_ms + NAMES_AHEAD_MS;
    /* A last name beyond `latest` means that the clock was set back. */
    if (last < now_ms || last > latest)
        a->named_ms = now_ms;
    else if (last < latest)
        a->named_ms++;
    return a->named_ms;
}

void
queue_name(struct queue_draft *d, struct envelope *e)
{
    assert(!d->named);
    struct drafts *a = d->drafts;
    const struct queue_settings *settings = &a->settings;
    bool in_memory = d->file < 0 && a->memory_max > 0;
    int64_t now_ms = loop_now_ms(a->loop), named_ms = name_time(a, now_ms);
    struct buffer form;
    int result = -EEXIST;
    e->id = (struct id){0};
    if (e->birth_ms == 0)
        e->birth_ms = now_ms;
    e->content_size = d->size;
    e->content_crc = d->crc;
    buffer_init(&form, SPOOL_FILE_MAX);
    envelope_write_todo(e, &form);
    for (unsigned i = 0; i < NAME_TRIES && result == -EEXIST; i++) {
        d->id = make_id(a, buffer_text(&form), named_ms);
        /* No file shows that the name is used. With 40 bits of hash per millisecond it
         * is unique. */
        if (id_slice(d->id, settings->slices) == settings->slice)
            result = in_memory ? 0 : draft_take_name(d, d->id);
    }
    buffer_free(&form);
    d->named = true;
    e->id = d->id;
    if (result < 0)
        draft_fail(d, result, "make a message file");
    if (in_memory)
        return;
    flush_content(d);
    draft_forget_content(d);
}

void
draft_want_file(struct queue_draft *d)
{
    assert(d->named);
    if (d->file >= 0 || d->refused)
        return;
    int result = draft_take_name(d, d->id);
    if (result < 0)
        draft_fail(d, result, "make a message file");
    else
        flush_content(d);
    draft_forget_content(d);
}

bool
drafts_have(const struct drafts *a, struct id id)
{
    const struct queue_draft *d;
    DL_FOREACH (a->list, d)
        if (d->named && id_compare(d->id, id) == 0)
            return true;
    return false;
}

void
drafts_health(struct drafts *a, struct queue_health *health)
{
    bool has_space = space_has(&a->space, 0),
         known = a->space.now.bytes_free < INT64_MAX;
    health->path = disk_path(a->spool->disk);
    health->bytes_reserve = a->space.bytes_reserve;
    health->inodes_reserve = a->space.inodes_reserve;
    health->bytes_free = known ? a->space.now.bytes_free : -1;
    health->inodes_free = known ? a->space.now.inodes_free : -1;
    if (a->spool->trouble[0] != '\0')
        snprintf(health->reason, sizeof(health->reason), "%s", a->spool->trouble);
    else if (!has_space)
        snprintf(health->reason, sizeof(health->reason), "the disk is full");
}

void
drafts_start(struct drafts *a)
{
    const struct queue_settings *settings = &a->settings;
    assert(settings->slices > 0 && settings->slice < settings->slices);
    a->space = (struct space){.spool = a->spool,
                              .loop = a->loop,
                              .logs = !a->synchronous,
                              .bytes_reserve = settings->bytes_reserve,
                              .inodes_reserve = settings->inodes_reserve};
    space_start(&a->space);
}

void
drafts_stop(struct drafts *a)
{
    space_stop(&a->space);
}
