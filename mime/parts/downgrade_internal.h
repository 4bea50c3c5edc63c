/* Shared by the two passes of down-conversion; no other file includes this header. */
#ifndef MIME_PARTS_DOWNGRADE_INTERNAL_H
#define MIME_PARTS_DOWNGRADE_INTERNAL_H

#include "mime/parts/base64_lines.h"
#include "mime/parts/downgrade.h"
#include "mime/parts/quoted.h"
#include "mime/parts/structure.h"
#include "mime/parts/tally.h"

enum plan_body { PLAN_KEEP, PLAN_QUOTED, PLAN_BASE64 };

/* The conversion of one part. */
struct plan {
    enum plan_body body;
    enum structure_encoding label; /* 7BIT or 8BIT instead of the present one */
    bool relabel;
    bool add_type;    /* text/plain; charset=unknown-8bit */
    bool add_version; /* MIME-Version */
    /* its preamble or epilogue has bytes that are not allowed there */
    bool dirty;
    bool is_message, has_version;
};

struct downgrade {
    struct downgrade_way way;
    enum downgrade_verdict verdict;
    bool is_fragment; /* the message itself */
    enum downgrade_reason reason;
    struct structure *structure; /* of the pass that is under way */
    size_t planned, capacity;
    struct plan *plan; /* by part number */
    bool needed, dkim;
    bool untidy; /* there is a LF without CR */
    uint64_t size_max;
    /* Scan. */
    unsigned path[STRUCTURE_DEPTH_MAX + 1]; /* numbers of the open parts */
    /* all bytes up to the end of the part belong to it */
    bool watching;
    unsigned watched;              /* its number */
    enum downgrade_reason blocked; /* the reason not to encode it, or none */
    bool is_text, has_type;
    struct tally tally, raw;
    /* Conversion. */
    void (*write)(void *context, struct text bytes);
    void *context;
    bool encoding, labelled, soft_end;
    unsigned encoded; /* number of the part that is being encoded */
    char last_in, last_out;
    size_t column;   /* of a preamble's line */
    bool outside_cr; /* its last byte was a CR, which is not written yet */
    struct quoted quoted;
    struct base64_lines base64;
};

/* Where a header line longer than DOWNGRADE_LINE_MAX can be folded: at the last white
 * space within the limit. 0: nowhere. line: without its line end. */
size_t downgrade_fold(struct text line);

#endif
