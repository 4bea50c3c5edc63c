/* Moves messages into the spool, with all their syncs under way at once. */
#include "queue/recovery/mover.h"

#include <assert.h>
#include <errno.h>

enum stage { STAGE_FILES, STAGE_QUEUED, STAGE_ROOMS, STAGE_DONE };

static void mover_advance(struct mover *m);

/* --- Syncs ----------------------------------------------------------------------- */

static void
mover_take_result(struct mover_sync *s, int result)
{
    struct mover *m = s->mover;
    struct spool *spool = m->spool;
    spool->syncs++;
    disk_close_file(spool->disk, s->file);
    if (s->room == ROOMS) {
        struct move *move = &m->moves[s->move];
        bool stopped = s->move >= m->count; /* its envelope is gone */
        if (result < 0 && !stopped && move->result == 0)
            move->result =
                spool_trouble(spool, result, &move->envelope->id, "sync a file");
    } else if (result < 0) {
        spool->unsynced[s->room] = true;
        m->rooms_result = spool_trouble(spool, result, NULL, "sync a directory");
    }
}

static void
mover_on_synced(void *context, int result)
{
    struct mover_sync *s = context;
    struct mover *m = s->mover;
    assert(m->running > 0);
    m->running--;
    mover_take_result(s, result);
    if (m->running == 0)
        mover_advance(m);
}

static struct mover_sync *
add_sync(struct mover *m, int file)
{
    assert(m->sync_count < sizeof(m->syncs) / sizeof(m->syncs[0]));
    struct mover_sync *s = &m->syncs[m->sync_count++];
    *s = (struct mover_sync){.mover = m, .file = file, .room = ROOMS};
    s->sync = (struct disk_sync){.done = mover_on_synced, .context = s};
    return s;
}

/* Starts what has been added; those that end at once are counted down here. */
static void
begin_syncs(struct mover *m)
{
    for (unsigned i = 0; i < m->sync_count; i++) {
        struct mover_sync *s = &m->syncs[i];
        int result = disk_sync_begin(m->spool->disk, s->file, false, &s->sync);
        if (result == DISK_SYNCING)
            m->running++;
        else
            mover_take_result(s, result);
    }
}

static void
add_room(struct mover *m, enum room room)
{
    struct spool *s = m->spool;
    if (!s->unsynced[room] || m->rooms_result < 0)
        return;
    int directory = disk_open_directory(s->disk, spool_room(room));
    if (directory < 0) {
        m->rooms_result = spool_trouble(s, directory, NULL, "open a directory");
        return;
    }
    /* Names that change meanwhile need another sync. */
    s->unsynced[room] = false;
    add_sync(m, directory)->room = room;
}

static bool
has_one(const struct mover *m)
{
    for (unsigned i = 0; i < m->count; i++)
        if (m->moves[i].result == 0)
            return true;
    return false;
}

/* --- Stages ---------------------------------------------------------------------- */

static void
write_files(struct mover *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct move *move = &m->moves[i];
        int files[SPOOL_PREPROCESSED_FILES];
        unsigned count = 0;
        struct text content = TEXT("");
        if (move->content != NULL)
            content = buffer_text(&move->content->bytes);
        move->result = spool_write_preprocessed(m->spool, move->envelope,
                                                move->content != NULL ? &content : NULL,
                                                files, &count);
        for (unsigned file = 0; file < count; file++)
            add_sync(m, files[file])->move = i;
    }
}

static void
mover_finish(struct mover *m)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct move *move = &m->moves[i];
        if (move->result == 0)
            move->result = m->rooms_result;
        if (move->result < 0)
            spool_remove_preprocessed(m->spool, move->envelope, move->content != NULL);
        else if (move->young)
            move->envelope->preprocessed = true;
        young_content_release(&move->content);
    }
}

static void
begin_stage(struct mover *m)
{
    static const enum room rooms[] = {ROOM_BOUNCE, ROOM_INFO, ROOM_LOCAL,
                                      ROOM_REMOTE, ROOM_HOLD, ROOM_MESS};
    m->sync_count = 0;
    switch ((enum stage)m->stage) {
    case STAGE_FILES:
        write_files(m);
        break;
    case STAGE_QUEUED:
        if (has_one(m))
            add_room(m, ROOM_QUEUED);
        break;
    case STAGE_ROOMS:
        for (unsigned i = 0; i < sizeof(rooms) / sizeof(rooms[0]) && has_one(m); i++)
            add_room(m, rooms[i]);
        break;
    case STAGE_DONE:
        mover_finish(m);
        return;
    }
    begin_syncs(m);
}

/* One stage after the other, as long as they end at once. */
static void
mover_advance(struct mover *m)
{
    while (m->stage != STAGE_DONE && m->running == 0) {
        m->stage++;
        begin_stage(m);
    }
    if (m->stage == STAGE_DONE && !m->starting)
        m->done(m->context);
}

bool
mover_start(struct mover *m)
{
    assert(m->count > 0 && m->count <= MOVER_MAX && m->running == 0);
    m->stage = STAGE_FILES;
    m->rooms_result = 0;
    m->starting = true;
    begin_stage(m);
    if (m->running == 0)
        mover_advance(m);
    m->starting = false;
    return m->stage == STAGE_DONE;
}

void
mover_stop(struct mover *m)
{
    for (unsigned i = 0; i < m->count; i++)
        young_content_release(&m->moves[i].content);
    m->count = 0;
}
