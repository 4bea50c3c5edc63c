/* Finds the D marks of a message that became S5 while its envelope was in use. */
#include "queue/marks_place.h"

#include "queue/spool/load.h"

#include <errno.h>

/* Whether the message became S5 while e was in use, so that e does not say so. */
bool
marks_are_outdated(const struct marks *m, const struct envelope *e)
{
    return !e->storage.preprocessed && journaled_find(m->journaled, e->id) == NULL &&
           !id_set_has(m->seen, e->id) && !spool_has(m->spool, SPOOL_TODO, e->id);
}

/* Else the files were changed from outside. */
static bool
has_same_recipients(const struct envelope *a, const struct envelope *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; i < a->count && same; i++)
        same = text_equal(a->recipients[i].address, b->recipients[i].address);
    return same;
}

/* An envelope from before S5 lacks the places where the D marks are written. */
int
marks_bring_up_to_date(struct marks *m, struct envelope *e)
{
    struct envelope *found = NULL;
    char reason[LOAD_REASON_MAX];
    enum load_result result = load_preprocessed(m->spool, e->id, &found, reason);
    if (result != LOAD_DONE)
        return result == LOAD_LATER ? -EAGAIN : -ENOENT;
    bool same = has_same_recipients(e, found);
    for (unsigned i = 0; i < e->count && same; i++)
        e->recipients[i].mark = found->recipients[i].mark;
    e->storage.preprocessed = same;
    envelope_free(&found);
    return same ? 0 : -ENOENT;
}

static bool
marks_file_is_missing(struct spool *s, enum spool_dir dir, struct id id)
{
    char path[SPOOL_PATH_MAX];
    struct disk_info info;
    spool_path(dir, id, path);
    return disk_inspect(s->disk, path, &info) == -ENOENT;
}

/* In S4 they are still to be made. */
bool
marks_have_place(struct marks *m, struct envelope *e)
{
    bool has[2] = {false, false};
    if (!e->storage.preprocessed && !marks_are_outdated(m, e))
        return true;
    if (!e->storage.preprocessed && marks_bring_up_to_date(m, e) == -ENOENT)
        return false;
    for (unsigned i = 0; i < e->count && e->storage.preprocessed; i++)
        has[e->recipients[i].mark.channel == CHANNEL_LOCAL] = true;
    return !(has[0] && marks_file_is_missing(m->spool, SPOOL_REMOTE, e->id)) &&
           !(has[1] && marks_file_is_missing(m->spool, SPOOL_LOCAL, e->id));
}
