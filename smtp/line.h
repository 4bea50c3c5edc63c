/* Command lines off a stream: CRLF ends a line and nothing else does. */
#ifndef SMTP_LINE_H
#define SMTP_LINE_H

#include "base/text.h"

/* How many bytes at the front of t are none of CR, LF and NUL. */
size_t line_run(struct text t);

enum line_fault {
    LINE_TOO_LONG, /* limit bytes and no CRLF */
    LINE_ODD       /* CR without LF, LF without CR, or NUL (RFC 5321 §2.3.8) */
};

/* Cuts the next line, without its CRLF, off *input; at most limit bytes long. MORE:
 * *input is unchanged; call again when it has grown. BAD: *fault says why, *input is
 * unchanged. The answer does not depend on how the stream was cut. */
enum progress line_next(struct text *input, size_t limit, struct text *line,
                        enum line_fault *fault) __attribute__((warn_unused_result));

#endif
