/* Parses the parts of a message and emits events while its content streams by.
 *
 * RFC 2045, RFC 2046 §5.1. Pieces of any size; linear in time, bounded in memory, no
 * recursion. It never fails: malformed structure is an event PROBLEM, and its bytes are
 * passed on. Every byte of the content is in exactly one event, in order, so a filter
 * can copy the events that it does not change.
 *
 * Each part emits BEGIN, a FIELD for each header field, HEADER (the empty line), its
 * content, and END. The content is
 *
 *     of a multipart       OUTSIDE (preamble), DELIMITER and BEGIN..END of each inner
 *                          part, DELIMITER, OUTSIDE (epilogue)
 *     of a message/rfc822  BEGIN..END of the inner message
 *     of other parts       BODY
 *
 * A boundary matches a whole line, apart from trailing white space: "--foo" never ends
 * a part whose boundary is "foobar", nor the other way round. RFC 2046 §5.1.1 lets
 * readers compare the beginning of a line only, and some do; where the result differs,
 * PROBLEM is emitted. The line end before a delimiter belongs to the delimiter. CRLF
 * and LF end lines; a lone CR does not. A header line that is not a field ends the
 * header (as in mime/header.h). */
#ifndef MIME_PARTS_STRUCTURE_H
#define MIME_PARTS_STRUCTURE_H

#include "mime/parts/parameter.h"

enum {
    STRUCTURE_DEPTH_MAX = 100,         /* levels; deeper ones are not parsed */
    STRUCTURE_PARTS_MAX = 1000,        /* behind them, everything is OUTSIDE */
    STRUCTURE_HEADER_MAX = 100 * 1024, /* of a part; the rest is not parsed */
    STRUCTURE_BOUNDARY_MAX = 2048,     /* 70 is legal; with a longer one: not parsed */
    STRUCTURE_PADDING_MAX = 256        /* white space behind a boundary */
};

enum structure_encoding {
    ENCODING_7BIT, /* also when there is no field */
    ENCODING_8BIT,
    ENCODING_BINARY,
    ENCODING_QUOTED,
    ENCODING_BASE64,
    ENCODING_OTHER
};

enum structure_holds { STRUCTURE_LEAF, STRUCTURE_MULTIPART, STRUCTURE_MESSAGE };

/* Each is emitted at most once for a part. */
enum structure_problem {
    PROBLEM_NONE,
    PROBLEM_ODD_LINE,      /* a line that is not a field ended the header */
    PROBLEM_LONG_HEADER,   /* not all of it was parsed */
    PROBLEM_BROKEN_TYPE,   /* Content-Type is malformed, at least in part */
    PROBLEM_TWO_TYPES,     /* the first one counts */
    PROBLEM_TWO_ENCODINGS, /* with different values; the first one counts */
    PROBLEM_UNKNOWN_ENCODING,
    PROBLEM_ENCODED_COMPOSITE, /* base64 or quoted-printable where it may not be */
    PROBLEM_NO_BOUNDARY,       /* multipart without one: not parsed */
    PROBLEM_LONG_BOUNDARY,     /* not parsed */
    PROBLEM_TOO_DEEP,          /* not parsed */
    PROBLEM_TOO_MANY_PARTS,
    /* a line begins with a delimiter but is longer: not a delimiter */
    PROBLEM_ALMOST,
    PROBLEM_NO_PARTS,  /* the boundary does not occur */
    PROBLEM_NOT_CLOSED /* the closing delimiter is missing */
};

struct structure_part {
    unsigned number; /* in order of appearance; the message itself is 0 */
    unsigned depth;  /* of the message itself: 0 */
    /* its header is that of a message: the whole, or in a message/rfc822 */
    bool is_message;
    unsigned problems; /* bits 1 << PROBLEM_x so far */
    /* From HEADER on: */
    bool has_type, has_encoding, has_version; /* the field was present */
    enum structure_holds holds;
    enum structure_encoding encoding;
    uint64_t header_at, body_at; /* offsets in the content */
    /* Only in the event HEADER: as given, or the default (text/plain, in a
     * multipart/digest message/rfc822). */
    const struct parameters *type;
};

enum structure_kind {
    STRUCTURE_BEGIN,
    /* a field with its line ends; without a name: bytes of a header too long to parse,
     * in pieces */
    STRUCTURE_FIELD,
    STRUCTURE_HEADER,  /* the header is over; bytes: the empty line, if there was one */
    STRUCTURE_BODY,    /* bytes of a leaf part, in pieces */
    STRUCTURE_OUTSIDE, /* bytes before, between and behind parts, in pieces */
    STRUCTURE_DELIMITER, /* of `part`, whose inner parts have reported END; with the line
                            end before it */
    STRUCTURE_END,       /* offset: after the last byte of the part */
    STRUCTURE_PROBLEM
};

/* Borrowed until the call returns. */
struct structure_event {
    enum structure_kind kind;
    const struct structure_part *part;
    uint64_t offset; /* of bytes, or of the problem */
    struct text bytes;
    struct text name, value;        /* FIELD; value still folded */
    enum structure_problem problem; /* PROBLEM */
};
typedef void structure_happened(void *context, const struct structure_event *event);

struct structure;

/* Emits BEGIN of the message before it returns. */
struct structure *structure_new(structure_happened *on_event, void *context);
void structure_add(struct structure *s, struct text piece);
/* Emits the rest, and END of all open parts. Once; then only structure_free(). */
void structure_end(struct structure *s);
void structure_free(struct structure **s);

/* "base64", "7bit"...; "other" for unknown ones. */
const char *structure_encoding_name(enum structure_encoding encoding);

#endif
