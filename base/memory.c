/* Allocation that ends the process when there is no memory. */
#include "base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 20 };

static _Noreturn void
memory_give_up(void)
{
    fputs("petrel: out of memory\n", stderr);
    abort(); /* no peer can cause this: its data has limits */
}

/* By default glibc raises its threshold to the largest such block that was freed: a
 * large array that grows then leaves its former places behind as holes. */
void
memory_return_large(void)
{
#ifdef __GLIBC__
    (void)mallopt(M_MMAP_THRESHOLD, LARGE);
    (void)mallopt(M_TRIM_THRESHOLD, 2 * LARGE); /* glibc's own ratio */
#endif
}

void
memory_trim(void)
{
#if defined(__GLIBC__) || defined(malloc_trim) /* etc/release/musl-trim.patch */
    malloc_trim(0);
#endif
}

void *
memory_array(size_t count, size_t size)
{
    /* calloc() may return NULL for 0 bytes, so at least one is requested. */
    if (count == 0 || size == 0)
        count = size = 1;
    void *made = calloc(count, size);
    if (made == NULL)
        memory_give_up();
    return made;
}

void *
memory_new(size_t size)
{
    return memory_array(1, size);
}

void *
memory_resize(void *old, size_t size)
{
    void *made = realloc(old, size > 0 ? size : 1);
    if (made == NULL)
        memory_give_up();
    return made;
}

char *
memory_string(const char *source)
{
    char *made = strdup(source);
    if (made == NULL)
        memory_give_up();
    return made;
}
