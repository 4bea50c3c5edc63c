/* Writes bytes to a file that has lost its name. */
#include "admin/post/post_spool.h"

#include <string.h>

void
post_spool_init(struct post_spool *s, struct disk *disk, const char *path)
{
    s->disk = disk;
    s->path = path;
    s->file = -1;
    buffer_init(&s->memory, POST_SPOOL_MEMORY);
}

void
post_spool_free(struct post_spool *s)
{
    buffer_free(&s->memory);
    if (s->file >= 0)
        disk_close_file(s->disk, s->file);
    s->file = -1;
}

/* One that a kill has left has no user. */
static bool
post_spool_open(struct post_spool *s)
{
    (void)disk_unlink(s->disk, s->path);
    s->file = disk_create(s->disk, s->path, 0600);
    if (s->file < 0 || disk_unlink(s->disk, s->path) < 0 ||
        disk_write(s->disk, s->file, buffer_text(&s->memory)) < 0)
        return false;
    buffer_free(&s->memory);
    return true;
}

bool
post_spool_add(struct post_spool *s, struct text bytes)
{
    if (s->file < 0 && buffer_add(&s->memory, bytes))
        return true;
    return (s->file >= 0 || post_spool_open(s)) &&
           disk_write(s->disk, s->file, bytes) >= 0;
}

size_t
post_spool_read(const struct post_spool *s, uint64_t offset, char *to, size_t size)
{
    if (s->file >= 0) {
        int64_t got = disk_read(s->disk, s->file, (int64_t)offset, to, size);
        return got > 0 ? (size_t)got : 0;
    }
    struct text rest = offset < s->memory.length
                           ? text_after(buffer_text(&s->memory), (size_t)offset)
                           : TEXT("");
    rest = text_before(rest, size);
    memcpy(to, rest.at != NULL ? rest.at : "", rest.length);
    return rest.length;
}
