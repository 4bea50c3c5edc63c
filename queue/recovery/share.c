/* Takes the locks on slices, and adopts the journals below them. */
#include "queue/recovery/share.h"

#include "base/memory.h"
#include "queue/envelope/envelope_form.h"
#include "queue/spool/spool_form.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

enum { BUSY_MS = 2000, AGAIN_MS = 60 * 1000, TRY_MS = 100, TRIES = 100 };

void
share_init(struct share *s)
{
    unsigned count = s->settings->slices, own = s->settings->slice;
    assert(count > 0 && own < count);
    slices_init(&s->slices, count, own);
    adopt_journal_path(count, own, s->journal);
    s->lock = -1;
    s->careful = true; /* until the first pass has ended */
}

bool
share_is_own(const struct share *s, struct id id)
{
    return id_slice(id, s->slices.count) == s->slices.own;
}

/* --- Locks ----------------------------------------------------------------------- */

static int
lock_slice(struct share *s, unsigned slice)
{
    unsigned width = slices_width(s->slices.count);
    return disk_lock(s->spool->disk, spool_lock, slice * width, width);
}

/* Learns our user: files of the lock's owner are ours. */
static int
know_ourselves(struct share *s, char *error, size_t error_size)
{
    struct disk_info info;
    int result = disk_file_info(s->spool->disk, s->lock, &info);
    if (result < 0) {
        snprintf(error, error_size, "spool %s: cannot inspect the lock: %s",
                 s->settings->spool, strerror(-result));
        return EX_CANTCREAT;
    }
    s->spool->adopts = true;
    s->spool->user = info.owner;
    s->spool->foreign_max = s->settings->message_size_limit;
    return 0;
}

static void
say_taken(const struct share *s, char *error, size_t error_size)
{
    const char *spool = s->settings->spool;
    char part[SLICES_SUFFIX_MAX], host[HOLDER_HOST_MAX + 1];
    slices_part(s->slices.count, s->slices.own, part);
    holder_host(s->spool->disk, part, host);
    if (s->slices.count > 1)
        snprintf(error, error_size,
                 "spool %s: slice %u of %u is handled by another petrel (it holds its "
                 "part of %s): stop or restart that one, or set `slice` to another",
                 spool, s->slices.own, s->slices.count, spool_lock);
    else
        snprintf(error, error_size,
                 "spool %s: another petrel runs on it%s%s (it holds %s); stop that "
                 "one, or set `spool` to another directory",
                 spool, host[0] != '\0' ? ", on " : "", host, spool_lock);
}

/* Other hosts that mount the spool learn who has the slice. 0 or -errno. */
static int
share_tell(struct share *s, unsigned slice, bool is_own)
{
    const char *host = s->settings->host;
    char part[SLICES_SUFFIX_MAX];
    slices_part(s->slices.count, slice, part);
    return is_own ? holder_take(&s->spool->holder, s->spool->disk, s->loop,
                                s->spool->log, part, host != NULL ? host : "")
                  : holder_mark(&s->spool->holder, part);
}

/* Only a daemon reads the trigger. */
static bool
is_daemon_there(struct share *s)
{
    char path[SPOOL_PATH_MAX];
    spool_trigger_path(s->slices.count, s->slices.own, path);
    return disk_pull_fifo(s->spool->disk, path) == 0;
}

int
share_lock(struct share *s, char *error, size_t error_size)
{
    char doing[64];
    s->lock = lock_slice(s, s->slices.own);
    /* An operator's command may hold the lock for a moment, which must not make startup
     * fail. */
    for (int i = 0; s->lock == -EWOULDBLOCK && !is_daemon_there(s) && i < TRIES; i++) {
        loop_turn(s->loop, TRY_MS);
        s->lock = lock_slice(s, s->slices.own);
    }
    if (s->lock >= 0) {
        int result = share_tell(s, s->slices.own, true);
        if (result == 0)
            return know_ourselves(s, error, error_size);
        spool_complain(s->spool, s->settings->spool, "write lock/holder", result, error,
                       error_size);
        return EX_CANTCREAT;
    }
    if (s->lock == -EWOULDBLOCK) {
        say_taken(s, error, error_size);
        return EX_TEMPFAIL;
    }
    snprintf(doing, sizeof(doing), "lock %s", spool_lock);
    spool_complain(s->spool, s->settings->spool, doing, s->lock, error, error_size);
    return EX_CANTCREAT;
}

void
share_unlock(struct share *s)
{
    holder_stop(&s->spool->holder);
    for (size_t i = 0; i < s->taken_count; i++)
        disk_close_file(s->spool->disk, s->taken[i]);
    free(s->taken);
    if (s->lock >= 0)
        disk_close_file(s->spool->disk, s->lock);
}

/* --- Passes over the journals ----------------------------------------------------- */

static void share_on_adopted(void *context);

static void
share_prepare(struct share *s)
{
    s->adopt = (struct adopt){
        .spool = s->spool,
        .loop = s->loop,
        .slices = s->slices,
        .ours = s->slices,
        .own = s->settings->journal_size > 0 ? s->journal : NULL,
        .made = &s->made,
        .done = share_on_adopted,
        .context = s,
    };
    if (s->taking)
        slices_add(&s->adopt.slices, s->candidate);
}

static void
start_pass(void *context)
{
    struct share *s = context;
    if (adopt_is_running(&s->adopt))
        return; /* the running pass starts another one */
    share_prepare(s);
    adopt_start(&s->adopt);
}

/* Messages that are no longer withheld have come into the spool. */
struct freed {
    struct share *share;
    const struct id_set *still;
};

static void
report_freed(void *context, struct id id)
{
    struct freed *f = context;
    if (!id_set_has(f->still, id) && slices_have(&f->share->slices, id))
        recover_report(f->share->recover, id);
}

/* Waits for the next pass. */
static void
share_take_result(struct share *s)
{
    const struct adopted *result = &s->adopt.result;
    struct id_set before = s->withheld;
    struct freed freed = {s, &s->withheld};
    s->withheld = s->adopt.withheld;
    id_set_each(&before, report_freed, &freed);
    id_set_free(&before);
    s->adoptions += result->journals > 0;
    /* When nothing was left, nothing can have been added to our part: we hold its
     * lock. */
    s->blocked = result->blocking && s->careful;
    s->careful = result->busy || result->unreadable || result->refused;
    if (s->careful)
        loop_timer_start(s->loop, &s->again, result->busy ? BUSY_MS : AGAIN_MS,
                         start_pass, s);
}

void
share_adopt(struct share *s)
{
    share_prepare(s);
    adopt_synchronously(&s->adopt);
    share_take_result(s);
}

/* --- Taking over ------------------------------------------------------------------ */

static void
share_report(struct share *s, const char *error)
{
    share_adopted *adopted = s->adopted;
    s->taking = false;
    s->adopted = NULL;
    if (adopted != NULL)
        adopted(s->adopted_context, error, s->adopt.result.messages);
}

static void
share_give_up(struct share *s, const char *error)
{
    disk_close_file(s->spool->disk, s->candidate_lock);
    share_report(s, error);
}

/* The lock is held until this daemon stops: no other one may serve the slice
 * meanwhile. */
static void
keep_lock(struct share *s)
{
    s->taken = memory_resize(s->taken, (s->taken_count + 1) * sizeof(*s->taken));
    s->taken[s->taken_count++] = s->candidate_lock;
}

/* Its journal has been moved to the spool; its other mail is there already. */
static void
share_take(struct share *s)
{
    slices_add(&s->slices, s->candidate);
    s->adoptions++; /* counted again: only now it is ours */
    int result = recover_add_slice(s->recover, s->candidate);
    if (result < 0) {
        s->slices.has[s->candidate] = 0;
        snprintf(s->reason, sizeof(s->reason), "cannot open its trigger in lock/: %s",
                 strerror(-result));
        share_give_up(s, s->reason);
        return;
    }
    keep_lock(s);
    log_say(s->spool->log, LOG_LEVEL_INFO, "queue", NULL,
            "serving slice %u of %u until this daemon stops", s->candidate,
            s->slices.count);
    share_report(s, NULL);
}

static void
share_on_adopted(void *context)
{
    struct share *s = context;
    bool was_blocked = s->blocked;
    bool concerned = s->taking && s->adopt.slices.has[s->candidate] != 0;
    share_take_result(s);
    if (concerned && (s->adopt.result.unreadable || s->adopt.result.refused))
        share_give_up(
            s, "the disk refused a part of its journal, which is left as it was: "
               "see the log");
    else if (concerned && !s->adopt.result.busy)
        share_take(s);
    /* This pass began before the candidate was known, and did not look at its
     * journal. */
    else if (s->taking && !concerned)
        start_pass(s);
    if (was_blocked && !s->blocked)
        recover_go_on(s->recover);
}

static bool
want(struct share *s, unsigned slice)
{
    unsigned count = s->slices.count;
    s->reason[0] = '\0';
    s->candidate_lock = -1;
    if (slice >= count)
        snprintf(s->reason, sizeof(s->reason), "no such slice: there are 0 to %u",
                 count - 1);
    else if (s->slices.has[slice] != 0)
        snprintf(s->reason, sizeof(s->reason), "slice %u of %u is handled here already",
                 slice, count);
    /* Else its journal would be damage to us. */
    else if (spool_form_raise(s->spool->disk, envelope_form(), "", s->reason,
                              sizeof(s->reason)) == 0)
        s->candidate_lock = lock_slice(s, slice);
    int told = s->candidate_lock >= 0 ? share_tell(s, slice, false) : 0;
    if (told < 0) {
        disk_close_file(s->spool->disk, s->candidate_lock);
        s->candidate_lock = told;
    }
    if (s->candidate_lock == -EWOULDBLOCK)
        snprintf(s->reason, sizeof(s->reason),
                 "slice %u of %u is handled by another petrel, which runs", slice,
                 count);
    else if (s->candidate_lock < 0 && s->reason[0] == '\0')
        snprintf(s->reason, sizeof(s->reason), "cannot lock %s: %s", spool_lock,
                 strerror(-s->candidate_lock));
    return s->candidate_lock >= 0;
}

const char *
share_take_over(struct share *s, unsigned slice, share_adopted *adopted, void *context)
{
    if (s->taking)
        return "another slice is just being taken over";
    if (!want(s, slice))
        return s->reason;
    s->taking = true;
    s->candidate = slice;
    s->adopted = adopted;
    s->adopted_context = context;
    start_pass(s);
    return NULL;
}

void
share_ignore(struct share *s, void *context)
{
    if (s->taking && s->adopted_context == context)
        s->adopted = NULL;
}

void
share_stop(struct share *s)
{
    adopt_stop(&s->adopt);
    loop_timer_stop(s->loop, &s->again);
    if (s->taking)
        disk_close_file(s->spool->disk, s->candidate_lock);
    s->taking = false;
    id_set_free(&s->withheld);
    id_set_free(&s->made);
}
