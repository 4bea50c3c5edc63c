/* Keeps lines in shared memory. */
#include "admin/history/tail.h"

#include "base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = "history";

/* The process may end between any two stores: each change of meaning is the store of one
 * member, the last one. */
struct tail_page {
    char magic[sizeof(magic)];
    char boot[TAIL_BOOT_MAX];
    uint32_t length, which; /* of the marks */
    struct tail_mark marks[2];
    char lines[];
};
static_assert(sizeof(struct tail_page) <= TAIL_HEAD, "the file has it");

static void
tail_store(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

/* Whether an earlier process of the same start of the system has left it. */
static bool
tail_is_sound(const struct tail *t, const char *boot)
{
    const struct tail_page *p = t->page;
    return memcmp(p->magic, magic, sizeof(magic)) == 0 &&
           strncmp(p->boot, boot, TAIL_BOOT_MAX) == 0 &&
           p->length <= t->size - TAIL_HEAD &&
           (p->length == 0 || p->lines[p->length - 1] == '\n') && p->which < 2 &&
           p->marks[p->which].from <= p->length && p->marks[p->which].offset >= 0;
}

void
tail_open(struct tail *t, struct disk *disk, const char *path, size_t size,
          const char *boot)
{
    bool is_known = boot[0] != '\0' && strlen(boot) < TAIL_BOOT_MAX;
    *t = (struct tail){.disk = disk, .size = size};
    snprintf(t->path, sizeof(t->path), "%s", path);
    if (is_known)
        t->page = disk_map(disk, path, size);
    t->is_shared = t->page != NULL;
    if (!t->is_shared)
        t->page = memory_new(size);
    if (t->is_shared && tail_is_sound(t, boot))
        return;
    memset(t->page, 0, sizeof(*t->page));
    memcpy(t->page->magic, magic, sizeof(magic));
    if (is_known)
        memcpy(t->page->boot, boot, strlen(boot));
}

void
tail_close(struct tail *t)
{
    bool is_empty = t->page != NULL && t->page->length == 0;
    if (!t->is_shared)
        free(t->page);
    else
        disk_unmap(t->disk, t->page, t->size);
    if (t->is_shared && is_empty)
        (void)disk_unlink(t->disk, t->path);
    *t = (struct tail){0};
}

bool
tail_put(struct tail *t, struct text line)
{
    struct tail_page *p = t->page;
    if (line.length > t->size - TAIL_HEAD - p->length)
        return false;
    memcpy(p->lines + p->length, line.at, line.length);
    tail_store(&p->length, p->length + (uint32_t)line.length);
    return true;
}

struct text
tail_lines(const struct tail *t)
{
    return text_of(t->page->lines, t->page->length);
}

/* The mark of the written lines is none of the next ones. */
void
tail_clear(struct tail *t)
{
    tail_store(&t->page->length, 0);
    tail_set_mark(t, 0, 0, t->page->lines);
}

void
tail_set_mark(struct tail *t, uint64_t first_ms, int64_t offset, const char *at)
{
    struct tail_page *p = t->page;
    p->marks[1 - p->which] = (struct tail_mark){
        .first_ms = first_ms, .offset = offset, .from = (uint64_t)(at - p->lines)};
    tail_store(&p->which, 1 - p->which);
}

struct tail_mark
tail_mark(const struct tail *t)
{
    return t->page->marks[t->page->which];
}
