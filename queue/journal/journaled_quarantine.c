/* Journaled messages that are quarantined: from the journal to corrupt/. */
#include "queue/journal/journaled_internal.h"

#include "base/memory.h"
#include "queue/spool/spool_corrupt.h"

#include <errno.h>
#include <stdlib.h>

/* The spool's files first: a mess/ID that a move left incomplete must not replace the
 * content. Until both are durable the journal has everything. */
static int
put_corrupt(struct journaled *y, const struct journaled_message *m,
            struct text envelope, struct text content, const char *reason)
{
    struct spool *s = y->spool;
    spool_quarantine(s, m->id, reason, loop_now_ms(y->loop));
    int result = spool_put_corrupt(s, m->id, SPOOL_TODO, envelope);
    if (result == 0 && !m->large)
        result = spool_put_corrupt(s, m->id, SPOOL_MESS, content);
    return result == 0 ? disk_sync_directory(s->disk, spool_dir_name(SPOOL_CORRUPT))
                       : result;
}

enum { REASON_SIZE = 160 };

/* S4 would deliver again to recipients that are done; S5 has their marks. A process
 * that delivered has read this envelope, so reading it does not crash the daemon.
 * -EBADMSG: it cannot be read. */
static int
make_preprocessed(struct journaled *y, struct journaled_message *m)
{
    char reason[REASON_SIZE];
    int files[SPOOL_PREPROCESSED_FILES], result = 0;
    unsigned count = 0;
    bool later = false;
    struct envelope *e = journaled_load(y, m, &later, reason, sizeof(reason));
    if (e == NULL)
        return later ? -EIO : -EBADMSG;
    struct journaled_content *content =
        m->large ? NULL : journaled_read_content(y, m, &result);
    struct text bytes = content != NULL ? buffer_text(&content->bytes) : TEXT("");
    struct mark_place *places = memory_array(e->count + 1, sizeof(*places));
    if (result == 0)
        result = spool_write_preprocessed(y->spool, e, content != NULL ? &bytes : NULL,
                                          places, files, &count);
    free(places);
    while (count > 0)
        disk_close_file(y->spool->disk, files[--count]);
    if (result == 0)
        result = spool_sync_preprocessed(y->spool, m->id);
    journaled_content_release(&content);
    envelope_free(&e);
    return result;
}

int
journaled_quarantine(struct journaled *y, struct journaled_message *m,
                     const char *reason)
{
    struct buffer envelope, content;
    int result = m->results != NULL ? make_preprocessed(y, m) : -EBADMSG;
    if (result == 0)
        spool_quarantine(y->spool, m->id, reason, loop_now_ms(y->loop));
    if (result != -EBADMSG)
        return result;
    result = journaled_read_form(y, m, &envelope);
    if (result < 0)
        return result;
    result = journaled_read_bytes(y, m, &content);
    if (result == 0) {
        result =
            put_corrupt(y, m, buffer_text(&envelope), buffer_text(&content), reason);
        buffer_free(&content);
    }
    buffer_free(&envelope);
    return result;
}
