/* The target of a request: its path, decoded, and its query.
 *
 * Pure. Strict, so that no path has two forms: it begins with "/", an escape is two
 * hexadecimal digits, and none is a NUL or, in the path, a slash; no segment of the path
 * is "." or "..". */
#ifndef BASE_HTTP_HTTP_TARGET_H
#define BASE_HTTP_HTTP_TARGET_H

#include "base/text.h"

enum { HTTP_TARGET_MAX = 2048 }; /* octets; longer ones are refused */

struct http_target {
    struct text path;  /* decoded, within room; NUL-terminated */
    struct text query; /* as it came, without "?"; borrowed */
    char room[HTTP_TARGET_MAX + 1];
};
/* 0, or the status of the answer: *why is one sentence then. */
unsigned http_target_read(struct text target, struct http_target *out, const char **why)
    __attribute__((warn_unused_result));

struct http_parameter {
    struct text name;  /* as it came */
    struct text value; /* decoded, within room; "+" is a space; NUL-terminated */
    char room[HTTP_TARGET_MAX + 1];
};
/* The next of "NAME=VALUE&NAME=VALUE"; rest begins as the query of a target that was
 * read. False at the end. */
bool http_parameter_next(struct text *rest, struct http_parameter *out);

#endif
