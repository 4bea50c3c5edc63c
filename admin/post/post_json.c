/* Reads the members of a message, and says which of them is wrong. */
#include "admin/post/post_json.h"

#include "mime/date.h"
#include "mime/parts/decode.h"

#include <stdio.h>
#include <string.h>

enum { NONE = -1 };
#define POST_SECONDS_MAX UINT64_C(99999999999)

enum post_member {
    MEMBER_FROM,
    MEMBER_TO,
    MEMBER_CC,
    MEMBER_BCC,
    MEMBER_REPLY_TO,
    MEMBER_SUBJECT,
    MEMBER_TEXT,
    MEMBER_HTML,
    MEMBER_ATTACHMENTS,
    MEMBER_HEADERS,
    MEMBER_TAG,
    MEMBER_SEND_AT,
    MEMBERS
};
static const char *const members[MEMBERS] = {
    "from", "to",   "cc",          "bcc",     "reply_to", "subject",
    "text", "html", "attachments", "headers", "tag",      "send_at"};

enum post_inner {
    INNER_FILENAME,
    INNER_TYPE,
    INNER_CONTENT,
    INNER_CID,
    INNER_INLINE,
    INNERS
};
static const char *const inners[INNERS] = {"filename", "type", "content", "cid",
                                           "inline"};

/* --- Errors ------------------------------------------------------------------------- */

/* The member as a client would write it: attachments[2].content. */
static void
post_json_name_field(const struct post_json *j, char out[POST_FIELD_NAME_MAX])
{
    const char *member = j->member >= 0 ? members[j->member] : "";
    if (j->member == MEMBER_ATTACHMENTS && j->stream.depth > 1 && j->part_count > 0)
        snprintf(out, POST_FIELD_NAME_MAX, "%s[%zu]%s%s", member, j->part_count - 1,
                 j->inner >= 0 ? "." : "", j->inner >= 0 ? inners[j->inner] : "");
    else if (j->member == MEMBER_HEADERS && j->name.length > 0)
        snprintf(out, POST_FIELD_NAME_MAX, "%s.%.*s", member, TEXT_ARGS(j->name));
    else
        snprintf(out, POST_FIELD_NAME_MAX, "%s", member);
}

static bool
post_json_refuse(struct post_json *j, const char *rule, const char *why)
{
    post_json_name_field(j, j->field);
    j->rule = rule;
    j->why = why;
    return false;
}

static bool
post_json_refuse_name(struct post_json *j, const char *rule, const char *why,
                      struct text name)
{
    size_t used = 0;
    (void)post_json_refuse(j, rule, why);
    used = j->member >= 0 ? strlen(j->field) : 0;
    if (used + 2 < sizeof(j->field) && used > 0)
        j->field[used++] = '.';
    (void)!text_copy(j->field + used, sizeof(j->field) - used, name);
    used = strlen(j->field);
    while (!text_is_utf8(text_of(j->field, used))) /* half a character at the end */
        j->field[--used] = '\0';
    return false;
}

static bool
post_json_wants(struct post_json *j, bool good, const char *why)
{
    return good || post_json_refuse(j, "type", why);
}

/* --- Values ------------------------------------------------------------------------- */

static bool
post_json_keep(struct post_json *j, struct text *out)
{
    *out = arena_copy(&j->arena, buffer_text(&j->value));
    return out->at != NULL ||
           post_json_refuse(j, "limit", "the members are too large together");
}

static bool
post_json_judge(struct post_json *j, const char *why)
{
    return why == NULL || post_json_refuse(j, "value", why);
}

static bool
post_json_take_mailbox(struct post_json *j)
{
    struct text kept;
    if (!post_json_keep(j, &kept))
        return false;
    if (j->member == MEMBER_FROM)
        return post_json_judge(j, compose_mailbox_read(kept, &j->from));
    if (j->mailbox_count == POST_MAILBOXES_MAX)
        return post_json_refuse(j, "limit", "there are too many mailboxes");
    j->lists[j->mailbox_count] = (unsigned char)(j->member - MEMBER_TO);
    return post_json_judge(
        j, compose_mailbox_read(kept, &j->mailboxes[j->mailbox_count++]));
}

static bool
post_json_take_field(struct post_json *j)
{
    size_t i = j->field_count;
    if (i == POST_FIELDS_MAX)
        return post_json_refuse(j, "limit", "there are too many header fields");
    if (!post_json_judge(j, compose_judge_value(buffer_text(&j->value))) ||
        !post_json_keep(j, &j->field_values[i]))
        return false;
    j->field_names[i] = j->name;
    j->field_count++;
    j->name = TEXT("");
    return true;
}

static bool
post_json_take_inner(struct post_json *j)
{
    struct compose_part *p = &j->parts[j->part_count - 1];
    struct text value = buffer_text(&j->value);
    const char *why = compose_judge_value(value);
    if (why == NULL && j->inner == INNER_FILENAME &&
        value.length > COMPOSE_FILE_NAME_MAX)
        why = "is too long";
    if (why == NULL && j->inner == INNER_TYPE)
        why = compose_judge_type(value);
    if (why == NULL && j->inner == INNER_CID)
        why = compose_judge_id(value);
    return post_json_judge(j, why) &&
           post_json_keep(j, j->inner == INNER_FILENAME ? &p->file_name
                             : j->inner == INNER_TYPE   ? &p->type
                                                        : &p->id);
}

const char *
post_json_read_time(struct text value, int64_t *ms)
{
    uint64_t seconds = 0;
    if (text_number(value, POST_SECONDS_MAX, &seconds))
        *ms = (int64_t)seconds * 1000;
    else if (!date_read_utc(value, ms))
        return "must be a time like 2030-01-31T08:00:00Z, or seconds since 1970";
    *ms = (*ms + 999) / 1000 * 1000;
    return NULL;
}

/* A string that is kept is whole. */
static bool
post_json_take(struct post_json *j)
{
    struct text value = buffer_text(&j->value);
    switch ((enum post_member)j->member) {
    case MEMBER_FROM:
    case MEMBER_TO:
    case MEMBER_CC:
    case MEMBER_BCC:
    case MEMBER_REPLY_TO:
        return post_json_take_mailbox(j);
    case MEMBER_SUBJECT:
        return post_json_judge(j, compose_judge_value(value)) &&
               post_json_keep(j, &j->subject);
    case MEMBER_TAG:
        return post_json_judge(j, value.length > POST_TAG_MAX ? "is too long"
                                  : !text_is_ascii(value)
                                      ? "is not ASCII"
                                      : compose_judge_value(value)) &&
               post_json_keep(j, &j->tag);
    case MEMBER_SEND_AT:
        return post_json_judge(j, post_json_read_time(value, &j->send_at_ms));
    case MEMBER_HEADERS:
        return post_json_take_field(j);
    case MEMBER_ATTACHMENTS:
        return post_json_take_inner(j);
    case MEMBER_TEXT:
    case MEMBER_HTML:
    case MEMBERS:
        break;
    }
    return true;
}

/* --- Contents ----------------------------------------------------------------------- */

static bool
post_json_is_content(const struct post_json *j)
{
    return j->member == MEMBER_TEXT || j->member == MEMBER_HTML ||
           (j->member == MEMBER_ATTACHMENTS && j->inner == INNER_CONTENT);
}

static struct post_content *
post_json_content(struct post_json *j)
{
    return &j->contents[j->part_count - 1];
}

static bool
post_json_check_base64(struct post_json *j, struct text piece)
{
    for (size_t i = 0; i < piece.length; i++) {
        char c = piece.at[i];
        if (text_is_space(c))
            continue;
        bool pads = c == '=' && j->quad % 4 >= 2;
        if ((!pads && decode_base64_digit(c) < 0) || (!pads && j->padding > 0))
            return post_json_refuse(j, "base64", "is not base64 (RFC 4648)");
        j->padding += pads;
        j->quad++;
    }
    return true;
}

static bool
post_json_take_piece(struct post_json *j, struct text piece)
{
    struct post_content *c;
    if (!post_json_is_content(j))
        return buffer_add(&j->value, piece) ||
               post_json_refuse(j, "limit", "is too long");
    if (j->member == MEMBER_ATTACHMENTS)
        return post_json_check_base64(j, piece);
    c = post_json_content(j);
    c->bytes += piece.length;
    for (size_t i = 0; i < piece.length; i++)
        c->beyond += (unsigned char)piece.at[i] >= 0x80;
    return true;
}

static bool
post_json_new_part(struct post_json *j, enum compose_role role)
{
    if (j->part_count == COMPOSE_PARTS_MAX)
        return post_json_refuse(j, "limit", "there are too many attachments");
    j->parts[j->part_count++] =
        (struct compose_part){.role = role, .base64 = role == COMPOSE_ATTACHED};
    return true;
}

static bool
post_json_begin_string(struct post_json *j)
{
    buffer_clear(&j->value);
    if (!post_json_is_content(j))
        return true;
    if (j->member != MEMBER_ATTACHMENTS &&
        !post_json_new_part(j, j->member == MEMBER_TEXT ? COMPOSE_TEXT : COMPOSE_HTML))
        return false;
    *post_json_content(j) = (struct post_content){.from = j->stream.at};
    j->quad = j->padding = 0;
    return true;
}

/* Text that is mostly beyond ASCII is shorter in base64. */
static bool
post_json_end_string(struct post_json *j)
{
    if (!post_json_is_content(j))
        return post_json_take(j);
    struct post_content *c = post_json_content(j);
    c->to = j->stream.at + 1;
    if (j->member != MEMBER_ATTACHMENTS)
        j->parts[j->part_count - 1].base64 = c->beyond > c->bytes / 3;
    else if (j->quad % 4 != 0)
        return post_json_refuse(j, "base64", "is not whole base64 (RFC 4648)");
    return true;
}

/* --- Structure ---------------------------------------------------------------------- */

static int
post_json_find(const char *const *names, int count, struct text name)
{
    for (int i = 0; i < count; i++)
        if (text_equal(name, text_from(names[i])))
            return i;
    return NONE;
}

/* A name in the object, in an attachment, or in headers. */
static bool
post_json_take_name(struct post_json *j, struct text name)
{
    bool outer = j->stream.depth == 1;
    if (!outer && j->member == MEMBER_HEADERS) {
        const char *why = compose_judge_name(name);
        if (why != NULL)
            return post_json_refuse_name(j, "name", why, name);
        for (size_t i = 0; i < j->field_count; i++)
            if (text_equal_nocase(j->field_names[i], name))
                return post_json_refuse_name(j, "twice", "is there twice", name);
        j->name = arena_copy(&j->arena, name);
        return j->name.at != NULL ||
               post_json_refuse(j, "limit", "the members are too large together");
    }
    j->inner = NONE;
    if (outer)
        j->member = NONE;
    int found = outer ? post_json_find(members, MEMBERS, name)
                      : post_json_find(inners, INNERS, name);
    unsigned *seen = outer ? &j->seen : &j->seen_inner;
    if (found < 0)
        return post_json_refuse_name(j, "unknown", "a member that is not known", name);
    if (outer)
        j->member = found;
    else
        j->inner = found;
    if ((*seen & 1u << found) != 0)
        return post_json_refuse(j, "twice", "is there twice");
    *seen |= 1u << found;
    return true;
}

/* Depths: 1 in the object, 2 in a list or in headers, 3 in an attachment. */
static bool
post_json_open(struct post_json *j, bool object)
{
    unsigned depth = j->stream.depth;
    bool list = j->member >= MEMBER_TO && j->member <= MEMBER_REPLY_TO;
    if (depth == 1)
        return object || post_json_refuse(j, "type", "the body must be an object");
    if (depth == 2 && j->member == MEMBER_HEADERS)
        return post_json_wants(j, object, "must be an object of strings");
    if (depth == 2)
        return post_json_wants(j, !object && (list || j->member == MEMBER_ATTACHMENTS),
                               j->member == MEMBER_ATTACHMENTS
                                   ? "must be a list of objects"
                                   : "must be a string");
    if (depth == 3 && j->member == MEMBER_ATTACHMENTS) {
        j->inner = NONE;
        j->seen_inner = 0;
        return post_json_wants(j, object, "must be an object") &&
               post_json_new_part(j, COMPOSE_ATTACHED);
    }
    return post_json_wants(j, false, "must be a string");
}

/* An attachment is whole. */
static bool
post_json_end_attachment(struct post_json *j)
{
    struct compose_part *p = &j->parts[j->part_count - 1];
    j->inner = NONE;
    if ((j->seen_inner & 1u << INNER_CONTENT) == 0)
        return post_json_refuse_name(j, "required", "is needed", TEXT("content"));
    if (p->id.length > 0 && (j->seen_inner & 1u << INNER_INLINE) == 0)
        p->role = COMPOSE_INLINE;
    return true;
}

static bool
post_json_is_string_place(const struct post_json *j)
{
    unsigned depth = j->stream.depth;
    bool list = j->member >= MEMBER_TO && j->member <= MEMBER_REPLY_TO;
    if (depth == 1)
        return j->member != MEMBER_ATTACHMENTS && j->member != MEMBER_HEADERS;
    if (depth == 2)
        return list || j->member == MEMBER_HEADERS;
    return depth == 3 && j->inner != INNER_INLINE;
}

static bool
post_json_take_scalar(struct post_json *j, struct text value)
{
    bool inner = j->stream.depth == 3 && j->inner == INNER_INLINE;
    if (j->stream.depth == 1 && j->member == MEMBER_SEND_AT)
        return post_json_judge(j, post_json_read_time(value, &j->send_at_ms));
    if (inner &&
        (text_equal(value, TEXT("true")) || text_equal(value, TEXT("false")))) {
        if (text_equal(value, TEXT("true")))
            j->parts[j->part_count - 1].role = COMPOSE_INLINE;
        return true;
    }
    return post_json_refuse(j, "type",
                            inner ? "must be true or false" : "must be a string");
}

static bool
post_json_on(void *context, enum json_event event, struct text text)
{
    struct post_json *j = context;
    if (j->stream.depth == 0 && event != JSON_EVENT_OBJECT_END)
        return post_json_refuse(j, "type", "the body must be an object");
    switch (event) {
    case JSON_EVENT_OBJECT:
    case JSON_EVENT_ARRAY:
        return post_json_open(j, event == JSON_EVENT_OBJECT);
    case JSON_EVENT_OBJECT_END:
        return j->stream.depth != 2 || j->member != MEMBER_ATTACHMENTS ||
               post_json_end_attachment(j);
    case JSON_EVENT_ARRAY_END:
        break;
    case JSON_EVENT_NAME:
        return post_json_take_name(j, text);
    case JSON_EVENT_STRING:
        return post_json_is_string_place(j)
                   ? post_json_begin_string(j)
                   : post_json_refuse(j, "type", "must not be a string");
    case JSON_EVENT_PIECE:
        return post_json_take_piece(j, text);
    case JSON_EVENT_STRING_END:
        return post_json_end_string(j);
    case JSON_EVENT_SCALAR:
        return post_json_take_scalar(j, text);
    }
    return true;
}

/* --- public ------------------------------------------------------------------------- */

void
post_json_start(struct post_json *j)
{
    memset(j, 0, sizeof(*j));
    j->member = j->inner = NONE;
    arena_init(&j->arena, POST_MEMBERS_MAX);
    buffer_init(&j->value, COMPOSE_VALUE_MAX + 1);
    json_stream_start(&j->stream, post_json_on, j);
}

void
post_json_free(struct post_json *j)
{
    arena_free(&j->arena);
    buffer_free(&j->value);
}

/* An error of the reader, or one that is noted already. */
static bool
post_json_stopped(struct post_json *j)
{
    if (j->why != NULL)
        return false;
    j->field[0] = '\0';
    j->rule = "json";
    j->why = j->stream.error;
    return false;
}

bool
post_json_add(struct post_json *j, struct text bytes)
{
    return json_stream_add(&j->stream, bytes) != PROGRESS_BAD || post_json_stopped(j);
}

static bool
post_json_needs(struct post_json *j, unsigned any, const char *field, const char *why)
{
    if ((j->seen & any) != 0)
        return true;
    j->member = j->inner = NONE;
    (void)post_json_refuse(j, "required", why);
    snprintf(j->field, sizeof(j->field), "%s", field);
    return false;
}

bool
post_json_end(struct post_json *j)
{
    if (json_stream_end(&j->stream) == PROGRESS_BAD)
        return post_json_stopped(j);
    return post_json_needs(j, 1u << MEMBER_FROM, "from", "is needed") &&
           post_json_needs(j, 1u << MEMBER_TO | 1u << MEMBER_CC | 1u << MEMBER_BCC,
                           "to", "to, cc or bcc is needed") &&
           post_json_needs(
               j, 1u << MEMBER_TEXT | 1u << MEMBER_HTML | 1u << MEMBER_ATTACHMENTS,
               "text", "text, html or attachments is needed");
}
