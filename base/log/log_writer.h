/* Lines on their way to a descriptor that may be slow or that nobody reads: a bounded
 * buffer that never makes the loop wait.
 *
 * What is not taken at once waits here, and the writer watches the descriptor. When the
 * buffer is full lines are lost, until all that waits is written: then on_drained is
 * called, and its owner says how many. No line is written in part and then lost, unless
 * the descriptor fails. */
#ifndef BASE_LOG_WRITER_H
#define BASE_LOG_WRITER_H

#include "base/text.h"

struct loop;
struct log_writer;

enum {
    LOG_WRITER_MAX = 1024 * 1024, /* bytes that wait: some thousands of lines */
    LOG_WRITER_LAST_MS = 2000     /* what is left at the end has so long */
};

/* The descriptor stays the caller's; others may share it (base/net/net_outlet.h).
 * on_drained may add lines. Free it before the loop; that writes what is left, for
 * LOG_WRITER_LAST_MS at most. */
struct log_writer *log_writer_new(struct loop *loop, int descriptor,
                                  void (*on_drained)(void *context), void *context);
void log_writer_free(struct log_writer **writer);

/* Takes whole lines, with their LF; nothing is written yet. False: they are lost, and
 * counted. */
bool log_writer_add(struct log_writer *w, struct text lines)
    __attribute__((warn_unused_result));
/* Writes what goes without waiting. The loop does the rest. */
void log_writer_flush(struct log_writer *w);
/* Bytes that wait. */
size_t log_writer_waiting(const struct log_writer *w);

/* How many were lost since this was asked last, and why ("not read", "No space left
 * on device"). From now on lines are taken again. */
uint64_t log_writer_take_lost(struct log_writer *w, const char **why);

#endif
