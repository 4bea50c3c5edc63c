/* Records in a word of the caller that this process crashes: it ends by SIGABRT (an
 * assertion, a watchdog), SIGSEGV, SIGBUS, SIGFPE or SIGILL. If the word is in shared
 * memory, the next process can tell a crash from an end by an external cause: SIGKILL,
 * a lack of memory or a power cut does not set it. */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#include <stdint.h>

/* From now on a crash sets *word to 1. A process has one such word: the last call
 * counts. The signal then has the effect that it had before the first call. */
void crash_mark(volatile uint32_t *word);
/* Ends crash_mark() of this word; without effect if another word has replaced it. */
void crash_unmark(volatile uint32_t *word);
/* From now on a crash calls run(context), behind the mark: it is bound by the rules of
 * signal handlers, and finds the data of its owner half changed. A process has one such
 * function: the last call counts. */
void crash_call(void (*run)(void *context), void *context);
/* Ends crash_call() of this context; without effect if another call has replaced it. */
void crash_uncall(const void *context);

#endif
