/* The value of a field as it stands in a line: escaped, cut, and unable to be read as
 * more than one value. */
#ifndef BASE_LOG_LOG_VALUE_H
#define BASE_LOG_LOG_VALUE_H

#include "base/buffer.h"

#define LOG_ELLIPSIS "..."

/* Text that could be read as the end of a field and the start of another is escaped. */
enum log_guard {
    LOG_GUARD_NOTHING,
    LOG_GUARD_OPEN, /* a bracket that it does not close */
    LOG_GUARD_COMMA,
    LOG_GUARD_SPACE /* and that of a remark */
};

/* Copies t, where there is space for it. False: it is not printable ASCII alone, which
 * needs no escape; the copied bytes are to be ignored. */
bool log_value_copy_plain(struct text t, char *to) __attribute__((warn_unused_result));
/* As log_value_copy_plain(); false also for a blank, comma or angle bracket: a value
 * without these needs no guard either. True for nearly every value. */
bool log_value_copy_simple(struct text t, char *to) __attribute__((warn_unused_result));

/* A value in angle brackets needs no guard if it closes them. is_read_back: log.h's
 * log_new_apart(). */
enum log_guard log_value_guard(struct text t, bool is_read_back);
/* A remark needs a guard if it seems to end before. */
enum log_guard log_value_guard_remark(struct text t);
/* A sentence needs a guard if the words of a peer in it seem to be a field. */
enum log_guard log_value_guard_sentence(struct text t);

/* Fills value, which the caller frees, with at most limit bytes and an angle bracket. */
void log_value_build(struct buffer *value, struct text t, size_t limit,
                     enum log_guard guard);
/* Fills in a field's value: a reader skips all from a '<' at its start to the next
 * '>'. So a value that opens a bracket also closes it, or the '<' is escaped. */
void log_value_build_field(struct buffer *value, struct text t, size_t limit,
                           enum log_guard guard);

/* Length of the longest beginning of t that is at most size bytes and does not end
 * within a character or an escape. */
size_t log_value_whole(struct text t, size_t size);
/* Makes space for the ellipsis and adds it. */
void log_value_end_cut(struct buffer *b);

#endif
