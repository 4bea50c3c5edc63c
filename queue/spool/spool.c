/* The files of a message: their names, and the steps S1 to S5 as file operations. */
#include "queue/spool/spool.h"

#include "base/sandbox/identity.h"
#include "base/memory.h"
#include "queue/spool/marker.h"
#include "queue/spool/slices.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { READ_PIECE = 16 * 1024 };

/* Other users may put names into the first four but not list them: `petrel sendmail`
 * does so (like qmail's maildrop, without a special bit). They must pass through
 * lock/. */
static const struct {
    const char *name;
    unsigned mode;
} dirs[SPOOL_DIRS] = {
    [SPOOL_PID] = {"pid",     01733},
      [SPOOL_TODO] = {"todo",    01733},
    [SPOOL_INTD] = {"intd",    01733},
      [SPOOL_INFO] = {"info",    0700 },
    [SPOOL_LOCAL] = {"local",   0700 },
      [SPOOL_REMOTE] = {"remote",  0700 },
    [SPOOL_BOUNCE] = {"bounce",  0700 },
      [SPOOL_HOLD] = {"hold",    0700 },
    [SPOOL_DEFRAG] = {"defrag",  0700 },
      [SPOOL_MESS] = {"mess",    01733},
    [SPOOL_CORRUPT] = {"corrupt", 0700 },
      [SPOOL_LOCK] = {"lock",    0711 },
};

const char spool_lock[] = "lock/daemon";

/* The files of a message, in the order of their removal. */
const enum spool_dir spool_leaving[SPOOL_LEAVING] = {
    SPOOL_TODO,   SPOOL_INFO,   SPOOL_INTD, SPOOL_LOCAL,
    SPOOL_REMOTE, SPOOL_BOUNCE, SPOOL_HOLD, SPOOL_MESS};

const char *
spool_dir_name(enum spool_dir dir)
{
    assert(dir < SPOOL_DIRS);
    return dirs[dir].name;
}

void
spool_path(enum spool_dir dir, struct id id, char out[SPOOL_PATH_MAX])
{
    const char *name = spool_dir_name(dir);
    size_t length = strlen(name);
    assert(length + 1 + ID_LENGTH < SPOOL_PATH_MAX);
    memcpy(out, name, length);
    out[length] = '/';
    id_format(id, out + length + 1);
}

void
spool_trigger_path(unsigned slices, unsigned slice, char out[SPOOL_PATH_MAX])
{
    char suffix[SLICES_SUFFIX_MAX];
    slices_suffix(slices, slice, suffix);
    snprintf(out, SPOOL_PATH_MAX, "lock/trigger%s", suffix);
}

void
spool_pull_trigger(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    /* An injector does not know `slices`: it wakes the daemon of this id for every
     * number. */
    for (unsigned slices = 1; slices <= ID_SLICES_MAX; slices *= 2) {
        spool_trigger_path(slices, id_slice(id, slices), path);
        (void)!disk_pull_fifo(s->disk, path);
    }
}

/* These end acceptance until a restart. A failed sync cannot be repeated: the kernel forgets
 * the error, and a second sync succeeds without the data. And a directory that is stale on
 * NFS stays so for all who have it open. */
static bool
spool_is_lasting(int error)
{
    return error == -EIO || error == -EROFS || error == -ESTALE;
}

int
spool_trouble(struct spool *s, int error, const struct id *id, const char *doing)
{
    char name[ID_LENGTH + 1];
    assert(error < 0);
    if (id != NULL)
        id_format(*id, name);
    log_say(s->log, LOG_LEVEL_ERROR, "queue", id != NULL ? name : NULL,
            "cannot %s in %s: %s", doing, disk_path(s->disk), strerror(-error));
    if (spool_is_lasting(error) && s->trouble[0] == '\0') {
        snprintf(s->trouble, sizeof(s->trouble), "cannot %s: %s", doing,
                 strerror(-error));
        log_say(s->log, LOG_LEVEL_ERROR, "queue", NULL,
                "spool unhealthy: no new mail until a restart (cannot %s in %s: %s); "
                "repair the disk (see dmesg), then restart petrel",
                doing, disk_path(s->disk), strerror(-error));
    }
    return error;
}

void
spool_log_strange(struct spool *s, enum spool_dir dir, size_t count)
{
    if (count > 0)
        log_say(s->log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s/: %zu files that are not messages: ignored", spool_dir_name(dir),
                count);
}

/* 4yz in any case: the client keeps the message, and another host of ours may take
 * it. */
struct outcome
spool_refusal(int error)
{
    assert(error < 0);
    bool full = error == -ENOSPC || error == -EDQUOT;
    return full ? outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 452, "4.3.1",
                               "Insufficient system storage")
                : outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 451, "4.3.0",
                               "Cannot store the message now");
}

/* --- Opening --------------------------------------------------------------------- */

/* Directories made by root are no spool of `user` before they are given to that
 * user. */
static void
write_remedy(const struct spool *s, const char *path, int error, char *out, size_t size)
{
    struct disk_info info;
    char user[IDENTITY_NAME_MAX];
    bool denied = error == -EACCES || error == -EPERM;
    if (error == -EROFS)
        snprintf(out, size, "mount it read-write");
    else if (error == -ENOSPC || error == -EDQUOT)
        snprintf(out, size, "free space on it");
    else if (denied && s->disk &&
             disk_inspect(s->disk, dirs[SPOOL_MESS].name, &info) == 0 &&
             info.kind == DISK_DIRECTORY && info.owner == 0) {
        identity_name(user);
        snprintf(out, size, "chown -R %s %s", user, path);
    } else
        snprintf(out, size, "make it writable for this user");
}

/* The remedy stands in the line itself: it is read by people whose mail does not
 * start. */
int
spool_complain(const struct spool *s, const char *path, const char *doing, int error,
               char *out, size_t size)
{
    char remedy[256];
    write_remedy(s, path, error, remedy, sizeof(remedy));
    snprintf(out, size,
             "spool %s: cannot %s: %s (%s, or set `spool` to a directory that is "
             "writable)",
             path, doing, strerror(-error), remedy);
    return error;
}

/* An injector may find directories that it cannot write, and may go on without those it
 * does not need. The daemon must have all of them. */
int
spool_open(struct spool *s, const char *path, bool injector, struct log *log,
           char *error, size_t error_size)
{
    struct disk_info info;
    char doing[32];
    *s = (struct spool){.log = log};
    int result = disk_open(&s->disk, path, true);
    if (result < 0)
        return spool_complain(s, path, "make or open the directory", result, error,
                              error_size);
    for (unsigned i = 0; i < SPOOL_DIRS; i++) {
        result = disk_make_directory(s->disk, dirs[i].name, dirs[i].mode);
        /* An existing directory suffices where we may not write. A reader accepts that
         * one is missing, as in the spool of an older release. */
        if (result < 0 && injector &&
            (i == SPOOL_DEFRAG || (disk_inspect(s->disk, dirs[i].name, &info) == 0 &&
                                   info.kind == DISK_DIRECTORY)))
            result = 0;
        if (result < 0) {
            snprintf(doing, sizeof(doing), "make %s", dirs[i].name);
            spool_complain(s, path, doing, result, error, error_size);
            spool_close(s);
            return result;
        }
    }
    /* Changes of a process that died may not be durable. */
    for (unsigned i = 0; i < SPOOL_DIRS; i++)
        s->unsynced[i] = !injector;
    s->foreign = !disk_is_owner(s->disk);
    if (s->foreign && disk_inspect(s->disk, dirs[SPOOL_MESS].name, &info) == 0)
        s->reader = info.owner;
    return 0;
}

/* Other users may write a byte into the trigger; only the daemon reads it. */
int
spool_make_trigger(struct spool *s, const char *path)
{
    return disk_make_fifo(s->disk, path, 0622);
}

/* The files are the daemon's whole state: there is nothing to write. */
void
spool_close(struct spool *s)
{
    disk_close(&s->disk);
}

/* --- Single files ---------------------------------------------------------------- */

/* The daemon must be able to read mail that another user injects. */
int
spool_create(struct spool *s, const char *path, unsigned mode)
{
    return s->foreign ? disk_create_for(s->disk, path, s->reader)
                      : disk_create(s->disk, path, mode);
}

/* Never over an existing file, which may be another user's link. `replace` removes it
 * first. */
int
spool_write_new(struct spool *s, enum spool_dir dir, struct id id, struct text bytes,
                bool replace)
{
    char path[SPOOL_PATH_MAX];
    spool_path(dir, id, path);
    int file = spool_create(s, path, SPOOL_OWN_MODE);
    if (file == -EEXIST && replace) {
        file = spool_remove(s, dir, id);
        if (file == 0)
            file = spool_create(s, path, SPOOL_OWN_MODE);
    }
    if (file < 0)
        return spool_trouble(s, file, &id, "make a file");
    s->unsynced[dir] = true;
    int result = disk_write_at(s->disk, file, 0, bytes); /* it is empty */
    if (result < 0) {
        disk_close_file(s->disk, file);
        (void)spool_remove(s, dir, id);
        return spool_trouble(s, result, &id, "write a file");
    }
    return file;
}

int
spool_sync(struct spool *s, int file, const struct id *id)
{
    int result = disk_sync(s->disk, file);
    s->syncs++;
    return result < 0 ? spool_trouble(s, result, id, "sync a file") : 0;
}

bool
spool_needs_sync(const struct spool *s, enum spool_dir dir)
{
    return s->unsynced[dir] || s->syncing[dir] > 0;
}

/* todo/ is the first: a message that is gone elsewhere must not come back there. */
int
spool_sync_dirs(struct spool *s, unsigned mask)
{
    static const enum spool_dir order[] = {SPOOL_TODO,  SPOOL_BOUNCE, SPOOL_INFO,
                                           SPOOL_LOCAL, SPOOL_REMOTE, SPOOL_HOLD,
                                           SPOOL_MESS};
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        enum spool_dir dir = order[i];
        if (!spool_needs_sync(s, dir) || (mask & SPOOL_BIT(dir)) == 0)
            continue;
        int result = disk_sync_directory(s->disk, spool_dir_name(dir));
        s->syncs++;
        if (result == -EACCES)
            return result; /* an injector's: see commit.c */
        if (result < 0)
            return spool_trouble(s, result, NULL, "sync a directory");
        s->unsynced[dir] = false;
    }
    return 0;
}

/* A file that is missing is removed: a startup repeats removals that a crash has cut
 * off. */
int
spool_remove(struct spool *s, enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    spool_path(dir, id, path);
    int result = disk_unlink(s->disk, path);
    if (result == -ENOENT)
        return 0;
    if (result == -EISDIR) /* another user's: counted, not logged for each */
        return junk_remove(s, path) == JUNK_STUCK ? result : 0;
    if (result < 0)
        return spool_trouble(s, result, &id, "remove a file");
    s->unsynced[dir] = true;
    return 0;
}

bool
spool_has(struct spool *s, enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(dir, id, path);
    return disk_inspect(s->disk, path, &info) == 0;
}

/* Any other answer than "there" and "not there" is trouble: a file that an error hides
 * must not count as missing. */
int
spool_dirs_of(struct spool *s, struct id id, unsigned *found)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    *found = 0;
    for (size_t i = 0; i < SPOOL_LEAVING; i++) {
        spool_path(spool_leaving[i], id, path);
        int result = disk_inspect(s->disk, path, &info);
        if (result == 0)
            *found |= SPOOL_BIT(spool_leaving[i]);
        else if (result != -ENOENT)
            return spool_trouble(s, result, &id, "look for a file");
    }
    return 0;
}

/* The size is not asked first: the file may be another user's, and grow. */
int
spool_read_path(struct disk *disk, const char *path, struct buffer *out)
{
    int64_t got = 0;
    int file = disk_open_file(disk, path, false);
    if (file < 0)
        return file;
    buffer_clear(out);
    do {
        out->length += (size_t)got;
        char *space_for_more = buffer_reserve(out, READ_PIECE);
        got = space_for_more == NULL ? -EFBIG
                                     : disk_read(disk, file, (int64_t)out->length,
                                                 space_for_more, READ_PIECE);
    } while (got > 0);
    disk_close_file(disk, file);
    return (int)got;
}

/* A reader sees the old text or the new one, because the rename replaces the whole
 * file. */
int
spool_write_path(struct disk *disk, const char *path, struct text text)
{
    char draft[256];
    snprintf(draft, sizeof(draft), "%.240s.new", path);
    disk_unlink(disk, draft);
    int file = disk_create(disk, draft, SPOOL_OWN_MODE);
    if (file < 0)
        return file;
    int result = disk_write(disk, file, text);
    disk_close_file(disk, file);
    if (result >= 0)
        result = disk_rename(disk, draft, path);
    if (result < 0)
        disk_unlink(disk, draft); /* a full disk needs its space */
    return result;
}

int
spool_read(struct spool *s, enum spool_dir dir, struct id id, struct buffer *out)
{
    char path[SPOOL_PATH_MAX];
    spool_path(dir, id, path);
    return spool_read_path(s->disk, path, out);
}

/* --- S4, S5 ---------------------------------------------------------------------- */

int
spool_enter_todo(struct spool *s, struct id id)
{
    char intd[SPOOL_PATH_MAX], todo[SPOOL_PATH_MAX];
    spool_path(SPOOL_INTD, id, intd);
    spool_path(SPOOL_TODO, id, todo);
    s->unsynced[SPOOL_TODO] = true; /* with any answer */
    int result = disk_link(s->disk, intd, todo);
    return result < 0 ? spool_trouble(s, result, &id, "link a file") : 0;
}

/* The sync of a new file makes its name durable, too. */
static int
put_durably(struct spool *s, enum spool_dir dir, struct id id, struct text bytes)
{
    int file = spool_write_new(s, dir, id, bytes, true);
    if (file < 0)
        return file;
    int result = spool_sync(s, file, &id);
    disk_close_file(s->disk, file);
    return result;
}

static enum spool_dir
channel_dir(enum channel channel)
{
    return channel == CHANNEL_LOCAL ? SPOOL_LOCAL : SPOOL_REMOTE;
}

/* The files of one message that is becoming S5. */
struct writing {
    struct spool *spool;
    const struct envelope *envelope;
    int *files;
    unsigned count;
    int result;
    struct buffer form, other;
};

static void
spool_put(struct writing *w, enum spool_dir dir, struct text bytes)
{
    if (w->result < 0)
        return;
    w->result = spool_write_new(w->spool, dir, w->envelope->id, bytes, true);
    if (w->result >= 0)
        w->files[w->count++] = w->result;
}

/* The only place that decides in which of the two files a recipient is. Returns how many are
 * in local/. */
static unsigned
choose_channels(const struct spool *s, const struct envelope *e,
                struct mark_place *places)
{
    unsigned local = 0;
    for (unsigned i = 0; i < e->count; i++) {
        bool is_local = s->is_local != NULL &&
                        s->is_local(s->is_local_context, e, &e->recipients[i]);
        places[i].channel = is_local ? CHANNEL_LOCAL : CHANNEL_REMOTE;
        local += is_local;
    }
    return local;
}

static void
put_channels(struct writing *w, struct mark_place *places)
{
    buffer_clear(&w->form);
    buffer_clear(&w->other);
    envelope_write_channels(w->envelope, places, &w->form, &w->other);
    if (w->form.length > 0)
        spool_put(w, SPOOL_LOCAL, buffer_text(&w->form));
    if (w->other.length > 0)
        spool_put(w, SPOOL_REMOTE, buffer_text(&w->other));
}

/* Failures are written again as a whole: those that a file had before are in the
 * envelope. */
static void
put_failures(struct writing *w)
{
    const struct envelope *e = w->envelope;
    if (e->delivery.failure_count == 0)
        return;
    buffer_clear(&w->form);
    for (unsigned i = 0; i < e->delivery.failure_count; i++)
        envelope_write_failure(e, &e->delivery.failures[i], &w->form);
    spool_put(w, SPOOL_BOUNCE, buffer_text(&w->form));
}

static const enum spool_dir scrap[] = {SPOOL_INFO, SPOOL_LOCAL, SPOOL_REMOTE,
                                       SPOOL_BOUNCE};

/* Before S5, todo or the journal is authoritative and the rest is scrap (doc/dev/design.md
 * "Crash rules"). */
void
spool_remove_preprocessed(struct spool *s, struct id id, bool with_content)
{
    for (size_t i = 0; i < sizeof(scrap) / sizeof(scrap[0]); i++)
        (void)spool_remove(s, scrap[i], id);
    s->has_scrap = true;
    if (with_content)
        (void)spool_remove(s, SPOOL_MESS, id);
}

/* An older attempt may have left files. Each of them could come back beside the new ones
 * and fit: marks, or texts, of another moment. So they are gone durably before. */
static int
clear_scrap(struct spool *s, struct id id)
{
    char path[SPOOL_PATH_MAX];
    unsigned mask = 0;
    for (size_t i = 0; i < sizeof(scrap) / sizeof(scrap[0]); i++) {
        spool_path(scrap[i], id, path);
        int result = disk_unlink(s->disk, path);
        mask |= SPOOL_BIT(scrap[i]);
        if (result < 0 && result != -ENOENT)
            return spool_trouble(s, result, &id, "remove a file");
        if (result == 0)
            s->has_scrap = s->unsynced[scrap[i]] = true;
    }
    int result = s->has_scrap ? spool_sync_dirs(s, mask) : 0;
    s->has_scrap = s->has_scrap && result < 0;
    return result;
}

/* mess/ID comes first, because no other file of a message may exist without its
 * content. info/ID comes last, because it makes the files a message. */
int
spool_write_preprocessed(struct spool *s, const struct envelope *e,
                         const struct text *content, struct mark_place *places,
                         int files[SPOOL_PREPROCESSED_FILES], unsigned *count)
{
    struct writing w = {.spool = s, .envelope = e, .files = files};
    struct id before = guard_enter(&s->guard, e->id);
    assert(!e->storage.preprocessed);
    buffer_init(&w.form, SPOOL_FILE_MAX);
    buffer_init(&w.other, SPOOL_FILE_MAX);
    w.result = clear_scrap(s, e->id);
    if (content != NULL)
        spool_put(&w, SPOOL_MESS, *content);
    put_failures(&w);
    unsigned local = choose_channels(s, e, places);
    put_channels(&w, places);
    buffer_clear(&w.form);
    envelope_write_info(e, local, &w.form);
    spool_put(&w, SPOOL_INFO, buffer_text(&w.form));
    buffer_free(&w.form);
    buffer_free(&w.other);
    guard_leave(&s->guard, before);
    *count = w.count;
    if (w.result >= 0)
        return 0;
    while (w.count > 0)
        disk_close_file(s->disk, files[--w.count]);
    *count = 0;
    spool_remove_preprocessed(s, e->id, content != NULL);
    return w.result;
}

/* The process that wrote these files may have died before its syncs. Their names may
 * not be durable either, hence unsynced[]. */
int
spool_sync_preprocessed(struct spool *s, struct id id)
{
    static const enum spool_dir files[] = {SPOOL_MESS, SPOOL_BOUNCE, SPOOL_LOCAL,
                                           SPOOL_REMOTE, SPOOL_INFO};
    char path[SPOOL_PATH_MAX];
    unsigned dirs_mask = SPOOL_BIT(SPOOL_TODO);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        spool_path(files[i], id, path);
        int file = disk_open_file(s->disk, path, false);
        if (file == -ENOENT)
            continue;
        int result = file;
        if (file >= 0) {
            result = spool_sync(s, file, &id);
            disk_close_file(s->disk, file);
        }
        if (result < 0)
            return result;
        s->unsynced[files[i]] = true;
        dirs_mask |= SPOOL_BIT(files[i]);
    }
    return spool_sync_dirs(s, dirs_mask);
}

int
spool_leave_todo(struct spool *s, struct id id, bool released)
{
    /* A todo that remains is harmless: the next startup finds a whole S5 and removes
     * it. */
    int result = spool_remove(s, SPOOL_TODO, id);
    (void)spool_remove(s, SPOOL_INTD, id);
    if (released)
        marker_drop(s, MARKER_RELEASED, id);
    return result;
}

int
spool_append_failures(struct spool *s, struct id id, struct text texts)
{
    char path[SPOOL_PATH_MAX];
    spool_path(SPOOL_BOUNCE, id, path);
    int file = disk_open_file(s->disk, path, true);
    if (file == -ENOENT)
        return put_durably(s, SPOOL_BOUNCE, id, texts);
    if (file < 0)
        return spool_trouble(s, file, &id, "open a bounce file");
    int result = disk_write(s->disk, file, texts);
    if (result < 0)
        (void)spool_trouble(s, result, &id, "write a bounce file");
    else
        result = spool_sync(s, file, &id);
    disk_close_file(s->disk, file);
    return result;
}

static int
mark_channel(struct spool *s, const struct envelope *e, enum channel channel,
             const unsigned *marks, size_t count)
{
    char path[SPOOL_PATH_MAX];
    int file = -1, result = 0;
    spool_path(channel_dir(channel), e->id, path);
    for (size_t i = 0; i < count && result == 0; i++) {
        const struct recipient *r = &e->recipients[marks[i]];
        if (r->mark.channel != channel)
            continue;
        assert(r->done && r->mark.offset >= 0);
        if (file < 0)
            file = result = disk_open_file(s->disk, path, true);
        if (file >= 0)
            result = disk_write_at(s->disk, file, r->mark.offset, TEXT("D"));
    }
    /* Overwritten bytes change neither size nor name, so no metadata needs a sync. */
    if (result >= 0 && file >= 0) {
        result = disk_sync_data(s->disk, file);
        s->syncs++;
    }
    if (file >= 0)
        disk_close_file(s->disk, file);
    return result < 0 ? spool_trouble(s, result, &e->id, "mark recipients") : 0;
}

int
spool_mark(struct spool *s, const struct envelope *e, const unsigned *marks,
           size_t count)
{
    assert(e->storage.preprocessed);
    int result = mark_channel(s, e, CHANNEL_LOCAL, marks, count);
    return result == 0 ? mark_channel(s, e, CHANNEL_REMOTE, marks, count) : result;
}

/* A lost due time means an early attempt; a lost warning, a second notification; a lost
 * release, that a route holds the message again. */
static int
write_due(struct spool *s, const struct envelope *e, bool durable)
{
    char path[SPOOL_PATH_MAX], due[ENVELOPE_DUE_SIZE];
    envelope_write_due(e, due);
    spool_path(SPOOL_INFO, e->id, path);
    int file = disk_open_file(s->disk, path, true), result = file;
    if (file >= 0) {
        result = disk_write_at(s->disk, file, ENVELOPE_DUE_OFFSET,
                               text_of(due, sizeof(due)));
        if (result == 0 && durable) {
            result = disk_sync(s->disk, file);
            s->syncs++;
        }
        disk_close_file(s->disk, file);
    }
    return result < 0 ? spool_trouble(s, result, &e->id, "write the due time") : 0;
}

int
spool_write_due(struct spool *s, const struct envelope *e)
{
    return write_due(s, e, e->delivery.warned_s != e->delivery.warned_kept_s);
}

int
spool_keep_release(struct spool *s, const struct envelope *e)
{
    struct envelope released = *e;
    assert(e->storage.preprocessed);
    released.delivery.released = true;
    return e->delivery.released ? 0 : write_due(s, &released, true);
}

/* --- Ends ------------------------------------------------------------------------ */

/* todo/ is another user's, too, and hold/ an operator's. */
unsigned
spool_places_of(const struct envelope *e)
{
    unsigned places = SPOOL_BIT(SPOOL_TODO) | SPOOL_BIT(SPOOL_INFO) |
                      SPOOL_BIT(SPOOL_HOLD) | SPOOL_BIT(SPOOL_MESS);
    if (!e->storage.preprocessed)
        return SPOOL_ANYWHERE;
    for (unsigned i = 0; i < e->count; i++)
        places |= SPOOL_BIT(channel_dir(e->recipients[i].mark.channel));
    if (e->delivery.failure_count > 0 || e->storage.failures_recorded > 0 ||
        e->storage.has_texts)
        places |= SPOOL_BIT(SPOOL_BOUNCE);
    if (e->fragment.awaits_parts)
        places |= SPOOL_BIT(SPOOL_DEFRAG);
    if (e->delivery.released)
        places |= SPOOL_BIT(SPOOL_LOCK);
    return places;
}

int
spool_remove_in(struct spool *s, struct id id, unsigned places)
{
    int result = 0;
    for (size_t i = 0; i < SPOOL_LEAVING && result == 0; i++) {
        if ((places & SPOOL_BIT(spool_leaving[i])) == 0)
            continue;
        result = spool_remove(s, spool_leaving[i], id);
        /* Scrap may remain; but while todo or info exists the message must stay
         * whole. */
        if (spool_leaving[i] != SPOOL_TODO && spool_leaving[i] != SPOOL_INFO)
            result = 0;
    }
    if (result == 0 && (places & SPOOL_BIT(SPOOL_DEFRAG)) != 0)
        marker_drop(s, MARKER_AWAITING, id);
    if (result == 0 && (places & SPOOL_BIT(SPOOL_LOCK)) != 0)
        marker_drop(s, MARKER_RELEASED, id);
    return result;
}

int
spool_remove_all(struct spool *s, struct id id)
{
    return spool_remove_in(s, id, SPOOL_ANYWHERE);
}
