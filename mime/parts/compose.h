/* Composes a message of parts: header fields, and the structure around contents that are
 * streamed. Pure.
 *
 * What is composed is ASCII but for addresses beyond it: texts of fields become encoded
 * words (RFC 2047), names of files parameters of RFC 2231. Lines are folded at 78 columns,
 * none is longer than 998. Values with control characters are the caller's to refuse
 * (compose_judge_*), so none can end a field. */
#ifndef MIME_PARTS_COMPOSE_H
#define MIME_PARTS_COMPOSE_H

#include "base/buffer.h"

enum {
    COMPOSE_COLUMN = 78,
    COMPOSE_PARTS_MAX = 102, /* text, html and 100 more */
    COMPOSE_VALUE_MAX = 16 * 1024,
    COMPOSE_FILE_NAME_MAX = 255,
    COMPOSE_TYPE_MAX = 200, /* and of a Content-ID */
    COMPOSE_BOUNDARY_MAX = 40
};

/* --- Fields ----------------------------------------------------------------------- */

/* NULL, or the rule that is broken. Controls are refused by all of them. */
const char *compose_judge_value(struct text value);
const char *compose_judge_name(struct text name); /* of a field of the sender's own */
const char *compose_judge_type(struct text type);
const char *compose_judge_id(struct text id); /* without <> */

struct compose_mailbox {
    struct text name, address; /* slices; the name as given, perhaps with its quotes */
};
/* "ADDRESS" or "NAME <ADDRESS>". The address is not judged. NULL, or why not. */
const char *compose_mailbox_read(struct text t, struct compose_mailbox *out);

/* False: out's limit is reached. */
bool compose_field(struct buffer *out, struct text name, struct text value)
    __attribute__((warn_unused_result));
/* "FIELD: NAME" of a mailbox: words, a quoted string, or encoded words. The address, and the
 * end of the line, are the caller's. The name is not judged. */
bool compose_name(struct buffer *out, struct text field, struct text name)
    __attribute__((warn_unused_result));
bool compose_mailboxes(struct buffer *out, struct text name,
                       const struct compose_mailbox *list, size_t count)
    __attribute__((warn_unused_result));

/* --- Structure -------------------------------------------------------------------- */

enum compose_role { COMPOSE_TEXT, COMPOSE_HTML, COMPOSE_INLINE, COMPOSE_ATTACHED };
struct compose_part {
    enum compose_role role;
    bool base64; /* the content will be; otherwise quoted-printable */
    struct text type, file_name, id; /* of INLINE and ATTACHED; each may be empty */
};

/* A literal, then the content of a part in its encoding. */
struct compose_step {
    size_t from, to; /* of the literals */
    int part;        /* -1: none; the end */
};
struct compose {
    struct buffer literals;
    struct compose_step steps[COMPOSE_PARTS_MAX + 1];
    size_t count;
};
/* From MIME-Version to the last line; the fields of the message come before. At most one
 * part is TEXT, and one HTML. boundary: characters that are unique to this message. False:
 * limit is reached. compose_free() in either case. */
bool compose_structure(struct compose *c, const struct compose_part *parts,
                       size_t count, struct text boundary, size_t limit)
    __attribute__((warn_unused_result));
void compose_free(struct compose *c);

#endif
