/* Versions of a file's bytes: pages that are shared until somebody writes. */
#ifndef T_SIM_DISK_BYTES_H
#define T_SIM_DISK_BYTES_H

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Shared by versions, copies of the world and syncs in flight: never written while
 * somebody else has it. */
struct page {
    unsigned references;
    uint64_t hash; /* 0: not known */
    char at[PAGE];
};

/* NULL = a page of zeros, as are those beyond. */
struct bytes {
    struct page **pages;
    size_t page_count, size;
};

static inline bool
bytes_are_zero(const char *at, size_t size)
{
    return size == 0 || (at[0] == '\0' && memcmp(at, at + 1, size - 1) == 0);
}

static inline void
page_drop(struct page *page)
{
    if (page != NULL && --page->references == 0)
        free(page);
}

static inline struct page *
page_share(struct page *page)
{
    if (page != NULL)
        page->references++;
    return page;
}

static inline struct page *
bytes_page(const struct bytes *b, size_t index)
{
    return index < b->page_count ? b->pages[index] : NULL;
}

static inline void
bytes_make_room(struct bytes *b, size_t pages)
{
    if (pages <= b->page_count)
        return;
    b->pages = memory_resize(b->pages, pages * sizeof(*b->pages));
    for (size_t i = b->page_count; i < pages; i++)
        b->pages[i] = NULL;
    b->page_count = pages;
}

static inline void
bytes_set_page(struct bytes *b, size_t index, struct page *page)
{
    if (bytes_page(b, index) == page)
        return;
    bytes_make_room(b, index + 1);
    page_drop(b->pages[index]);
    b->pages[index] = page_share(page);
}

/* A page that nobody else has. */
static inline struct page *
bytes_own_page(struct bytes *b, size_t index)
{
    bytes_make_room(b, index + 1);
    struct page *old = b->pages[index];
    if (old != NULL && old->references == 1) {
        old->hash = 0;
        return old;
    }
    struct page *own = memory_resize(NULL, sizeof(*own));
    own->references = 1;
    own->hash = 0;
    if (old != NULL)
        memcpy(own->at, old->at, PAGE);
    else
        memset(own->at, 0, PAGE);
    page_drop(old);
    b->pages[index] = own;
    return own;
}

static inline void
bytes_write(struct bytes *b, size_t offset, struct text t)
{
    while (t.length > 0) {
        size_t index = offset / PAGE, from = offset % PAGE;
        struct text some = text_before(t, PAGE - from);
        if (some.length == PAGE && bytes_are_zero(some.at, PAGE))
            bytes_set_page(b, index, NULL);
        else
            memcpy(bytes_own_page(b, index)->at + from, some.at, some.length);
        offset += some.length;
        t = text_after(t, some.length);
        if (offset > b->size)
            b->size = offset;
    }
}

static inline void
bytes_read(const struct bytes *b, size_t offset, char *to, size_t size)
{
    while (size > 0) {
        const struct page *page = bytes_page(b, offset / PAGE);
        size_t from = offset % PAGE, some = size < PAGE - from ? size : PAGE - from;
        if (page != NULL)
            memcpy(to, page->at + from, some);
        else
            memset(to, 0, some);
        offset += some;
        to += some;
        size -= some;
    }
}

static inline void
bytes_free(struct bytes *b)
{
    for (size_t i = 0; i < b->page_count; i++)
        page_drop(b->pages[i]);
    free(b->pages);
    *b = (struct bytes){0};
}

static inline void
bytes_copy(struct bytes *to, const struct bytes *from)
{
    struct bytes copy = {.size = from->size};
    bytes_make_room(&copy, from->page_count);
    for (size_t i = 0; i < from->page_count; i++)
        copy.pages[i] = page_share(from->pages[i]);
    bytes_free(to);
    *to = copy;
}

/* Bytes beyond the size become zeros. */
static inline void
bytes_resize(struct bytes *b, size_t size)
{
    size_t last = size / PAGE, rest = size % PAGE;
    b->size = size;
    if (rest > 0 && bytes_page(b, last) != NULL &&
        !bytes_are_zero(b->pages[last]->at + rest, PAGE - rest))
        memset(bytes_own_page(b, last)->at + rest, 0, PAGE - rest);
    for (size_t i = last + (rest > 0); i < b->page_count; i++)
        bytes_set_page(b, i, NULL);
}

/* 0: zeros. */
static inline uint64_t
page_hash(struct page *page)
{
    if (page == NULL)
        return 0;
    if (page->hash != 0)
        return page->hash;
    uint64_t hash = UINT64_C(0xcbf29ce484222325), word;
    bool zero = true;
    for (size_t i = 0; i < PAGE; i += sizeof(word)) {
        memcpy(&word, page->at + i, sizeof(word));
        zero = zero && word == 0;
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    if (zero)
        return 0;
    page->hash = hash != 0 ? hash : 1;
    return page->hash;
}

#endif
