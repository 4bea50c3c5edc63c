/* Events of the structure parser as one text, and what must hold of any of them. */
#ifndef T_SUPPORT_STRUCTURE_KIT_H
#define T_SUPPORT_STRUCTURE_KIT_H

#include "mime/parts/structure.h"

#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>

/* Pieces of bodies are joined, so the trace does not depend on how they were cut:
 * "(" part begins, f[field] x[bytes of a field not looked at] h<holds type/subtype>[line]
 * b[body] o[outside] d[delimiter] "!" problem, ")" part ends. */
struct trace {
    struct buffer text, content;
    char open; /* the bracket that is not closed */
    unsigned depth, begun, ended, headers;
    bool broken; /* a promise of the header */
};

/* The trace of content cut into pieces of `piece` bytes, the first of `first`; 0 for
 * first: as the others. The caller frees. */
struct trace trace_of(struct text content, size_t first, size_t piece);

void trace_free(struct trace *t);

/* A text for people: "a boundary is missing". */
const char *structure_problem_text(enum structure_problem problem);

#endif
