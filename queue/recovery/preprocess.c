/* Moves messages into the spool, with all their syncs under way together.
 *
 * The stages are the order of crash rule 3 (doc/dev/queue.md): the files of up to 32
 * messages are synced, then the names in todo/, then the names of S5. The caller writes
 * MOVED or removes todo/ID only after that. */
#include "queue/recovery/preprocess.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum stage { STAGE_FILES, STAGE_QUEUED, STAGE_ROOMS, STAGE_DONE };

static void preprocessor_advance(struct preprocessor *m);

/* --- Syncs ----------------------------------------------------------------------- */

static void
preprocessor_take_result(struct preprocessor_sync *s, int result)
{
    struct preprocessor *m = s->preprocessor;
    struct spool *spool = m->spool;
    spool->syncs++;
    disk_close_file(spool->disk, s->file);
    if (s->dir == SPOOL_DIRS) {
        struct preprocess *move = &m->moves[s->move];
        bool stopped = s->move >= m->count; /* its envelope was taken away */
        if (result < 0 && !stopped && move->result == 0)
            move->result = spool_trouble(spool, result, &move->id, "sync a file");
        return;
    }
    assert(spool->syncing[s->dir] > 0);
    spool->syncing[s->dir]--;
    if (result < 0) {
        spool->unsynced[s->dir] = true;
        m->dirs_result = spool_trouble(spool, result, NULL, "sync a directory");
    }
}

/* All syncs of a stage are under way together; the last to end begins the next
 * stage. */
static void
preprocessor_on_synced(void *context, int result)
{
    struct preprocessor_sync *s = context;
    struct preprocessor *m = s->preprocessor;
    assert(m->running > 0);
    m->running--;
    preprocessor_take_result(s, result);
    if (m->running == 0)
        preprocessor_advance(m);
}

/* The file stays open until its sync is over. */
static struct preprocessor_sync *
add_sync(struct preprocessor *m, int file)
{
    assert(m->sync_count < sizeof(m->syncs) / sizeof(m->syncs[0]));
    struct preprocessor_sync *s = &m->syncs[m->sync_count++];
    *s = (struct preprocessor_sync){.preprocessor = m, .file = file, .dir = SPOOL_DIRS};
    s->sync = (struct disk_sync){.done = preprocessor_on_synced, .context = s};
    return s;
}

/* Starts the added syncs; those that end immediately are counted down here. */
static void
begin_syncs(struct preprocessor *m)
{
    enum { MOST = sizeof(m->syncs) / sizeof(m->syncs[0]) };
    int files[MOST], results[MOST];
    struct disk_sync *syncs[MOST];
    for (unsigned i = 0; i < m->sync_count; i++) {
        files[i] = m->syncs[i].file;
        syncs[i] = &m->syncs[i].sync;
    }
    disk_sync_begin_many(m->spool->disk, files, false, syncs, results, m->sync_count);
    for (unsigned i = 0; i < m->sync_count; i++) {
        if (results[i] == DISK_SYNCING)
            m->running++;
        else
            preprocessor_take_result(&m->syncs[i], results[i]);
    }
}

static void
add_dir(struct preprocessor *m, enum spool_dir dir)
{
    struct spool *s = m->spool;
    if (!spool_needs_sync(s, dir) || m->dirs_result < 0)
        return;
    int directory = disk_open_directory(s->disk, spool_dir_name(dir));
    if (directory < 0) {
        m->dirs_result = spool_trouble(s, directory, NULL, "open a directory");
        return;
    }
    /* Names that change during the sync need another one. */
    s->unsynced[dir] = false;
    s->syncing[dir]++;
    add_sync(m, directory)->dir = dir;
}

/* When all messages of the round have failed, the directories need no sync. */
static bool
has_one(const struct preprocessor *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->moves[i].result == 0)
            return true;
    return false;
}

/* --- Stages ---------------------------------------------------------------------- */

/* Each message fails for itself: a damaged one does not hold the other 31. */
static void
write_files(struct preprocessor *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct preprocess *move = &m->moves[i];
        int files[SPOOL_PREPROCESSED_FILES];
        unsigned count = 0;
        struct text content = TEXT("");
        move->recipients = move->envelope->count;
        move->places = memory_array(move->recipients + 1, sizeof(*move->places));
        if (move->content != NULL)
            content = buffer_text(&move->content->bytes);
        move->result = spool_write_preprocessed(m->spool, move->envelope,
                                                move->content != NULL ? &content : NULL,
                                                move->places, files, &count);
        for (unsigned file = 0; file < count; file++)
            add_sync(m, files[file])->move = i;
    }
}

/* A failed message keeps no file of this attempt: the journal, or todo/ID, still
 * counts. */
static void
preprocessor_finish(struct preprocessor *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct preprocess *move = &m->moves[i];
        if (move->result == 0)
            move->result = m->dirs_result;
        if (move->result < 0)
            spool_remove_preprocessed(m->spool, move->id, move->content != NULL);
        journaled_content_release(&move->content);
    }
}

static void
begin_stage(struct preprocessor *m)
{
    static const enum spool_dir dirs[] = {SPOOL_BOUNCE, SPOOL_INFO, SPOOL_LOCAL,
                                          SPOOL_REMOTE, SPOOL_HOLD, SPOOL_MESS};
    m->sync_count = 0;
    switch ((enum stage)m->stage) {
    case STAGE_FILES:
        write_files(m);
        break;
    case STAGE_QUEUED:
        if (has_one(m))
            add_dir(m, SPOOL_TODO);
        break;
    case STAGE_ROOMS:
        for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]) && has_one(m); i++)
            add_dir(m, dirs[i]);
        break;
    case STAGE_DONE:
        preprocessor_finish(m);
        return;
    }
    begin_syncs(m);
}

/* One stage after the other, as long as they end immediately. */
static void
preprocessor_advance(struct preprocessor *m)
{
    while (m->stage != STAGE_DONE && m->running == 0) {
        m->stage++;
        begin_stage(m);
    }
    if (m->stage == STAGE_DONE && !m->starting)
        m->done(m->context);
}

bool
preprocess_prepare(struct preprocessor *m)
{
    assert(m->count > 0 && m->count <= PREPROCESSOR_MAX && m->running == 0);
    m->stage = STAGE_FILES;
    m->dirs_result = 0;
    m->starting = true;
    begin_stage(m);
    if (m->running == 0)
        preprocessor_advance(m);
    m->starting = false;
    return m->stage == STAGE_DONE;
}

void
preprocess_free(struct preprocess *move)
{
    journaled_content_release(&move->content);
    free(move->places);
    *move = (struct preprocess){0};
}

/* At a stop: a message that has not ended is where it was. */
void
preprocess_end(struct preprocessor *m)
{
    for (unsigned i = 0; i < m->count; i++)
        preprocess_free(&m->moves[i]);
    m->count = 0;
}
