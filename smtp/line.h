/* Cuts command lines off a stream; only CRLF ends a line. */
#ifndef SMTP_LINE_H
#define SMTP_LINE_H

#include "base/text.h"

/* The number of bytes at the front of t before the first CR, LF or NUL. */
size_t line_run(struct text t);

enum line_fault {
    LINE_TOO_LONG, /* limit bytes without CRLF */
    LINE_ODD       /* CR without LF, LF without CR, or NUL (RFC 5321 §2.3.8) */
};

/* Cuts the next line, without its CRLF, off *input; at most limit bytes long. MORE:
 * *input is unchanged; call again when it has grown. BAD: *fault is the cause, *input is
 * unchanged. The result does not depend on the boundaries of the reads. */
enum progress line_next(struct text *input, size_t limit, struct text *line,
                        enum line_fault *fault) __attribute__((warn_unused_result));

#endif
