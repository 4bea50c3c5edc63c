/* Scans a header while it is received, and splits one in memory into its fields.
 *
 * The scan is one state per byte, so its result does not depend on how the bytes are
 * split, and it keeps one name of at most 17 bytes. Both halves must agree on where a
 * header ends: the scan decides about fields that a relay adds in front of a message,
 * header_next() about fields that later readers find there. */
#include "mime/header.h"

#include <assert.h>
#include <string.h>

enum scan_state {
    SCAN_FIRST,      /* at the first byte: a continuation has no line to continue */
    SCAN_LINE,       /* at the start of a later line */
    SCAN_EMPTY,      /* behind a CR at the start of a line */
    SCAN_NAME,       /* in a name */
    SCAN_NAME_SPACE, /* between name and colon (obsolete, RFC 5322 §4.5) */
    SCAN_VALUE,
    SCAN_OVER
};

enum { MAILBOX_NAME_MAX = 16 }; /* "From" and some '>' */

/* The place in a Content-Type; other places do not matter. */
enum scan_type { IN_NONE, IN_TYPE, IN_SUBTYPE };

/* ftext of RFC 5322 §3.6.8. */
static bool
is_name_byte(unsigned char c)
{
    return c > ' ' && c < 0x7f && c != ':';
}

static bool
is_list(struct text name)
{
    static const struct text names[] = {TEXT("from"), TEXT("sender"), TEXT("reply-to"),
                                        TEXT("to"), TEXT("cc")};
    if (text_starts(name, TEXT("resent-")))
        name = text_after(name, 7);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (text_equal(name, names[i]))
            return true;
    return false;
}

static void
note_message_id(struct header_scan *s)
{
    s->in_id = !s->has_message_id;
    s->has_message_id = true;
}

static void
note_tag(struct header_scan *s)
{
    s->in_tag = !s->has_tag;
    s->has_tag = s->has_private = true;
}

static void
note_resent(struct header_scan *s, struct text name)
{
    s->has_resent = true;
    s->has_resent_date |= text_equal(name, TEXT("date"));
    s->has_resent_message_id |= text_equal(name, TEXT("message-id"));
    s->has_private |= text_equal(name, TEXT("bcc"));
}

static void
note_hop(struct header_scan *s, bool is_delivered)
{
    s->received++;
    s->in_delivered = is_delivered && s->delivered_count < HEADER_DELIVERED_MAX;
    if (s->in_delivered)
        s->delivered[s->delivered_count++] = TEXT_HASH;
}

static void
add_to_delivered(struct header_scan *s, char c)
{
    uint64_t *hash = &s->delivered[s->delivered_count - 1];
    if (!text_is_space(c) && c != '<' && c != '>')
        *hash = text_hash_nocase(*hash, text_of(&c, 1));
}

bool
header_scan_was_delivered(const struct header_scan *s, struct text address)
{
    uint64_t hash = text_hash_nocase(TEXT_HASH, address);
    for (unsigned i = 0; i < s->delivered_count; i++)
        if (s->delivered[i] == hash)
            return true;
    return false;
}

/* Received and Delivered-To both count towards the limit of hops, which ends mail
 * loops. */
static void
header_note_name(struct header_scan *s)
{
    struct text name = text_of(s->name, s->name_length);
    if (s->name_length > sizeof(s->name)) /* longer than all names of interest */
        return;
    if (text_equal(name, TEXT("received")) || text_equal(name, TEXT("delivered-to")))
        note_hop(s, text_starts(name, TEXT("d")));
    else if (text_equal(name, TEXT("from")))
        s->has_from = true;
    else if (text_equal(name, TEXT("date")))
        s->has_date = true;
    else if (text_equal(name, TEXT("message-id")))
        note_message_id(s);
    else if (text_equal(name, TEXT("x-petrel-tag")))
        note_tag(s);
    else if (text_equal(name, TEXT("tls-required"))) {
        s->in_tls = true;
        if (s->tls_fields < 2)
            s->tls_fields++;
    } else if (text_equal(name, TEXT("bcc")) || text_equal(name, TEXT("return-path")))
        s->has_private = true;
    else if (text_starts(name, TEXT("resent-")))
        note_resent(s, text_after(name, 7));
    s->in_list = is_list(name);
    s->in_from = text_equal(name, TEXT("from"));
    s->from_at = false;
    s->angle = 0;
    s->comments = 0;
    s->quoted_pair = s->has_at = s->has_word = false;
    s->closing = '\0';
    if (!text_equal(name, TEXT("content-type")))
        return;
    s->in_type = IN_TYPE;
    s->name_length = 0;
}

static void
add_to_name(struct header_scan *s, char c)
{
    text_lower(&c, 1);
    if (s->name_length < sizeof(s->name))
        s->name[s->name_length] = c;
    if (s->name_length <= sizeof(s->name)) /* one more means: too long */
        s->name_length++;
}

/* Comments may be nested, and a quoted pair in one may hold a parenthesis (RFC 5322
 * §3.2.2). */
static void
header_skip_comment(struct header_scan *s, char c)
{
    if (s->quoted_pair || c == '\\')
        s->quoted_pair = !s->quoted_pair;
    else if (c == '(')
        s->comments++;
    else if (c == ')')
        s->comments--;
}

/* An ambiguous type counts as composite, since another reader may see a message
 * there. */
static void
end_type(struct header_scan *s, bool has_subtype)
{
    struct text type = text_of(s->name, s->name_length);
    bool is_long = s->name_length > sizeof(s->name);
    bool is_message = !is_long && text_equal(type, TEXT("message"));
    s->in_type = is_message && has_subtype ? IN_SUBTYPE : IN_NONE;
    s->name_length = 0;
    s->is_message = s->is_message || is_long || is_message;
    s->composite = s->composite || s->is_message ||
                   (!is_long && text_equal(type, TEXT("multipart")));
}

static void
end_subtype(struct header_scan *s)
{
    struct text type = text_of(s->name, s->name_length);
    s->in_type = IN_NONE;
    s->is_partial = s->is_partial || (s->name_length <= sizeof(s->name) &&
                                      text_equal(type, TEXT("partial")));
}

/* A comment in the type, which few writers use and not all readers skip, makes the type
 * ambiguous. */
static void
add_to_type(struct header_scan *s, char c)
{
    if (s->comments > 0 || c == '(') {
        s->composite = s->is_message = true;
        header_skip_comment(s, c);
    } else if (s->in_type == IN_SUBTYPE && c == ';') {
        end_subtype(s);
    } else if (c == '/' || c == ';') {
        end_type(s, c == '/');
    } else if (!text_is_blank(c) && c != '\r' && c != '\n') {
        add_to_name(s, c);
    }
}

static void
end_entry(struct header_scan *s)
{
    s->bare = s->bare || (s->in_list && s->has_word && !s->has_at);
    s->has_at = s->has_word = false;
    s->angle = 0;
}

/* A second bracket, and text behind the closing one. */
static void
note_angle(struct header_scan *s, char c)
{
    bool good = c == '<' ? s->angle == 0 : c == '>' ? s->angle == 1 : s->angle < 2;
    s->bare = s->bare || (s->in_from && !good);
    if (c == '<' || c == '>')
        s->angle = c == '<' ? 1 : 2;
}

/* Comments, quoted strings and literals hide characters that would divide the list. The
 * text before '<' is a name, and that before ':' the name of a group. */
static void
add_to_list(struct header_scan *s, char c)
{
    if (s->comments > 0 || (c == '(' && s->closing == '\0')) {
        header_skip_comment(s, c);
        return;
    }
    if (s->closing != '\0') {
        if (c == s->closing && !s->quoted_pair)
            s->closing = '\0';
        s->quoted_pair = c == '\\' && !s->quoted_pair;
    } else if (c == ',' || c == ';') {
        end_entry(s);
    } else if (c == '<' || c == ':') {
        s->has_at = s->has_word = false;
        if (c == '<')
            note_angle(s, c);
    } else if (c == '@') {
        s->bare = s->bare || (s->in_from && s->has_at);
        s->has_at = s->from_at = true;
    } else if (c == '>') {
        note_angle(s, c);
    } else if (!text_is_blank(c) && c != '\r' && c != '\n') {
        note_angle(s, c);
        s->closing = c == '"' ? '"' : c == '[' ? ']' : '\0';
        s->has_word = true;
    }
}

static void
add_to_id(struct header_scan *s, char c)
{
    if (s->id_length < HEADER_ID_MAX && !text_is_blank(c) && c != '\r' && c != '\n')
        s->id[s->id_length++] = c;
}

struct text
header_scan_message_id(const struct header_scan *s)
{
    return text_of(s->id, s->id_length);
}

/* Bytes that are not printable are left out, also line ends: the tag goes to programs
 * as it is. */
static void
add_to_tag(struct header_scan *s, char c)
{
    c = c == '\t' ? ' ' : c;
    if (s->tag_length < HEADER_TAG_MAX && c >= ' ' && c <= '~' &&
        (c != ' ' || s->tag_length > 0))
        s->tag[s->tag_length++] = c;
}

struct text
header_scan_tag(const struct header_scan *s)
{
    return text_trim(text_of(s->tag, s->tag_length));
}

static void
add_to_tls(struct header_scan *s, char c)
{
    bool is_within = s->tls_length > 0 && s->tls_length < sizeof(s->tls);
    if (text_is_space(c) && !is_within)
        return;
    text_lower(&c, 1);
    if (s->tls_length < sizeof(s->tls))
        s->tls[s->tls_length] = c;
    if (s->tls_length <= sizeof(s->tls))
        s->tls_length++;
}

bool
header_scan_waives_tls(const struct header_scan *s)
{
    return s->tls_fields == 1 && s->tls_length == 2 && memcmp(s->tls, "no", 2) == 0;
}

bool
header_scan_has_bare(const struct header_scan *s)
{
    return s->bare || (s->in_list && s->has_word && !s->has_at) ||
           (s->in_from && !s->from_at);
}

/* At the start of the header white space continues nothing, so there is no header. A
 * line without a name ends the header: content follows. */
static enum scan_state
start_line(struct header_scan *s, char c, bool first)
{
    s->line_start = s->length;
    if (text_is_blank(c) && s->in_tag)
        add_to_tag(s, c);
    if (text_is_blank(c))
        return first ? SCAN_OVER : SCAN_VALUE;
    if (s->in_type == IN_SUBTYPE)
        end_subtype(s);
    end_entry(s);
    s->bare = s->bare || (s->in_from && !s->from_at);
    s->in_list = s->in_from = s->in_id = s->in_tag = s->in_tls = s->in_delivered =
        false;
    s->name_length = 0;
    s->in_type = IN_NONE;
    if (c == '\r')
        return SCAN_EMPTY;
    if (!is_name_byte((unsigned char)c))
        return SCAN_OVER;
    add_to_name(s, c);
    return SCAN_NAME;
}

/* "From", or with '>' before it. */
static bool
is_mailbox_name(struct text name)
{
    while (text_starts(name, TEXT(">")))
        name = text_after(name, 1);
    return text_equal_nocase(name, TEXT("from"));
}

/* "From " without a colon, in the first line only, is left from a mailbox file. It is
 * skipped as if it were a field; otherwise it would end the header, and the fields
 * behind it would be body to every reader. */
static enum scan_state
in_name(struct header_scan *s, char c)
{
    if (c == ':') {
        s->has_odd_name = s->has_odd_name || s->state == SCAN_NAME_SPACE;
        header_note_name(s);
        return SCAN_VALUE;
    }
    if (text_is_blank(c))
        return SCAN_NAME_SPACE;
    if (s->state == SCAN_NAME_SPACE && s->line_start == 0 &&
        s->name_length <= MAILBOX_NAME_MAX &&
        is_mailbox_name(text_of(s->name, s->name_length))) {
        s->mailbox_line = true;
        return c == '\n' ? SCAN_LINE : SCAN_VALUE;
    }
    if (!is_name_byte((unsigned char)c) || s->state == SCAN_NAME_SPACE)
        return SCAN_OVER;
    add_to_name(s, c);
    return SCAN_NAME;
}

static enum scan_state
scan_byte(struct header_scan *s, char c)
{
    switch ((enum scan_state)s->state) {
    case SCAN_FIRST:
        return start_line(s, c, true);
    case SCAN_LINE:
        return start_line(s, c, false);
    case SCAN_NAME:
    case SCAN_NAME_SPACE:
        return in_name(s, c);
    case SCAN_VALUE:
        return c == '\n' ? SCAN_LINE : SCAN_VALUE;
    case SCAN_EMPTY:
    case SCAN_OVER:
        break;
    }
    return SCAN_OVER; /* the empty line, or CR without LF: either way the end */
}

void
header_scan_start(struct header_scan *s)
{
    *s = (struct header_scan){.state = SCAN_FIRST};
}

/* A value is skipped to its line end by memchr(): only the line end changes the state,
 * and most bytes of a header are in values. */
void
header_scan_add(struct header_scan *s, struct text bytes)
{
    for (size_t at = 0; at < bytes.length && !s->ended; at++) {
        if (s->state == SCAN_VALUE && s->in_type != IN_NONE) {
            add_to_type(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE && s->in_list) {
            add_to_list(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE && s->in_id) {
            add_to_id(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE && s->in_tag) {
            add_to_tag(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE && s->in_tls) {
            add_to_tls(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE && s->in_delivered) {
            add_to_delivered(s, bytes.at[at]);
        } else if (s->state == SCAN_VALUE) {
            const char *end = memchr(bytes.at + at, '\n', bytes.length - at);
            size_t skip =
                end == NULL ? bytes.length - at : (size_t)(end - bytes.at) - at;
            s->has_eight_bit =
                s->has_eight_bit || !text_is_ascii(text_of(bytes.at + at, skip));
            s->length += skip;
            at += skip;
            if (end == NULL)
                return;
        }
        s->has_eight_bit = s->has_eight_bit || (unsigned char)bytes.at[at] >= 0x80;
        bool may_be_empty = s->state == SCAN_FIRST || s->state == SCAN_EMPTY;
        bool is_empty = bytes.at[at] == '\n' && (may_be_empty || s->state == SCAN_LINE);
        s->state = (unsigned char)scan_byte(s, bytes.at[at]);
        s->length++;
        if (s->state == SCAN_OVER) {
            s->ended = true;
            s->headless = s->line_start == 0 && !(may_be_empty && bytes.at[at] == '\n');
            s->unseparated = !s->headless && !is_empty;
            s->length = s->line_start;
        }
    }
}

/* The length of the first line, line end included. */
static size_t
line_length(struct text t)
{
    size_t end = text_find(t, '\n');
    return end == TEXT_NONE ? t.length : end + 1;
}

/* The same, with the lines that continue it. */
static size_t
folded_length(struct text t)
{
    size_t length = line_length(t);
    while (length < t.length && text_is_blank(t.at[length]))
        length += line_length(text_after(t, length));
    return length;
}

void
header_skip_mailbox_line(struct text *message)
{
    size_t name = 0;
    while (name < message->length && is_name_byte((unsigned char)message->at[name]))
        name++;
    size_t end = name;
    while (end < message->length && text_is_blank(message->at[end]))
        end++;
    bool is_line = end > name && name <= MAILBOX_NAME_MAX && end < message->length &&
                   message->at[end] != ':' &&
                   is_mailbox_name(text_before(*message, name));
    if (is_line)
        *message = text_after(*message, folded_length(*message));
}

/* The end of the header is the same as for the scan. White space before the colon is
 * obsolete syntax (RFC 5322 §4.5) that must be read. */
bool
header_next(struct text *rest, struct header_field *field)
{
    if (text_starts(*rest, TEXT("\n")) || text_starts(*rest, TEXT("\r\n"))) {
        *rest = text_after(*rest, rest->at[0] == '\r' ? 2 : 1);
        return false;
    }
    size_t name = 0;
    while (name < rest->length && is_name_byte((unsigned char)rest->at[name]))
        name++;
    size_t colon = name;
    while (colon < rest->length && text_is_blank(rest->at[colon]))
        colon++;
    if (name == 0 || colon == rest->length || rest->at[colon] != ':')
        return false;
    size_t length = folded_length(*rest);
    field->whole = text_before(*rest, length);
    field->name = text_before(*rest, name);
    field->value = text_after(text_without_line_end(field->whole), colon + 1);
    *rest = text_after(*rest, length);
    return true;
}

bool
header_unfold(struct text value, struct buffer *out)
{
    size_t start = out->length;
    for (size_t at = 0; at < value.length;) {
        size_t run = at;
        while (run < value.length && value.at[run] != '\r' && value.at[run] != '\n')
            run++;
        bool good = buffer_add(out, text_of(value.at + at, run - at));
        at = run;
        while (at < value.length && (value.at[at] == '\r' || value.at[at] == '\n'))
            at++;
        /* A line end without folding must neither join two words nor remain. */
        if (good && at > run && at < value.length && !text_is_blank(value.at[at]))
            good = buffer_add_byte(out, ' ');
        if (!good) {
            out->length = start;
            return false;
        }
    }
    return true;
}

/* A counter in place of recursion: the nesting is in the hands of the client. */
size_t
header_comment_length(struct text t)
{
    size_t depth = 0;
    for (size_t at = 0; at < t.length; at++) {
        char c = t.at[at];
        if (c == '\\')
            at++;
        else if (c == '(')
            depth++;
        else if (c == ')' && --depth == 0)
            return at + 1;
    }
    return TEXT_NONE;
}
