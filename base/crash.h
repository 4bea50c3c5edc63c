/* Notes in a word of the caller's that this process crashes: that it ends by SIGABRT
 * (an assertion, a watchdog), SIGSEGV, SIGBUS, SIGFPE or SIGILL. With the word in
 * shared memory the next process can tell a crash from an end that came from outside:
 * SIGKILL, a lack of memory or a power cut leaves no note. */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include <stdint.h>

/* From now on a crash sets *word to 1. One word a process: the last one counts. The
 * signal then has the effect that it had before the first call. */
void crash_mark(volatile uint32_t *word);
/* No more; nothing if another word has taken its place. */
void crash_unmark(volatile uint32_t *word);

#endif
