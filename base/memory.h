/* Allocation that never fails: without memory the process ends, so no caller checks
 * for NULL.
 *
 * A peer cannot cause that: everything a peer can make grow has a limit beside its
 * declaration (doc/dev/design.md "Limits"). */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* To be called first in main(): blocks from 1 MiB on are given back to the system when
 * they are freed, and grow without a copy. */
void memory_return_large(void);

/* Gives whole pages of freed blocks back to the system, which would otherwise stay
 * resident below blocks in use: after startup, which reads many files once. */
void memory_trim(void);

/* size bytes, zeroed. The caller frees with free(). */
void *memory_new(size_t size);

/* As realloc(); new bytes are not initialised. */
void *memory_resize(void *old, size_t size);

/* count * size bytes, zeroed; overflow ends the process. */
void *memory_array(size_t count, size_t size);

/* A NUL-terminated copy. The caller frees. */
char *memory_string(const char *source);

/* The struct that contains the member at pointer. */
#define memory_container(pointer, type, member)                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
