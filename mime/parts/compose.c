/* Composes header fields, and the structure of a message of parts. */
#include "mime/parts/compose.h"

#include "base/crypto/base64.h"

#include <stdio.h>
#include <string.h>

enum {
    WORD_BYTES = 42,   /* of an encoded word: "=?UTF-8?B?...?=" has 68 characters */
    PLAIN_MAX = 900,   /* a longer word is encoded, so that it can be folded */
    PIECE_COLUMN = 70, /* of a parameter in pieces */
    SIMPLE_NAME_MAX = 60
};

/* --- Judges ----------------------------------------------------------------------- */

const char *
compose_judge_value(struct text value)
{
    if (value.length > COMPOSE_VALUE_MAX)
        return "is too long";
    if (text_has_control(value))
        return "has a line end or another control character";
    return text_is_utf8(value) ? NULL : "is not UTF-8";
}

static bool
compose_is_token(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] <= ' ' || t.at[i] > '~' || strchr("()<>@,;:\\\"/[]?=", t.at[i]))
            return false;
    return t.length > 0;
}

/* Fields that have a member of their own, or are ours to write. */
const char *
compose_judge_name(struct text name)
{
    static const char *const taken[] = {
        "From",        "To",           "Cc",           "Bcc",
        "Subject",     "Reply-To",     "MIME-Version", "Received",
        "Return-Path", "X-Petrel-Tag", "Delivered-To", "DKIM-Signature"};
    if (name.length > SIMPLE_NAME_MAX || !compose_is_token(name))
        return "is no name of a header field";
    if (text_starts_nocase(name, TEXT("Content-")) ||
        text_starts_nocase(name, TEXT("Resent-")))
        return "is not for the sender to set";
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        if (text_equal_nocase(name, text_from(taken[i])))
            return "is not for the sender to set here";
    return NULL;
}

const char *
compose_judge_type(struct text type)
{
    const char *why = compose_judge_value(type);
    struct text rest = type, kind, essence;
    if (why != NULL)
        return why;
    if (type.length > COMPOSE_TYPE_MAX || !text_is_ascii(type) ||
        !text_cut(&rest, ';', &essence) || !text_cut(&essence, '/', &kind) ||
        essence.at == NULL || !compose_is_token(kind) ||
        !compose_is_token(text_trim(essence)))
        return "is no media type";
    return text_equal_nocase(kind, TEXT("multipart")) ||
                   text_equal_nocase(kind, TEXT("message"))
               ? "must not be multipart or message"
               : NULL;
}

const char *
compose_judge_id(struct text id)
{
    for (size_t i = 0; i < id.length; i++)
        if (id.at[i] <= ' ' || id.at[i] > '~' || strchr("<>()\\\"", id.at[i]) != NULL)
            return "is no Content-ID";
    return id.length == 0 || id.length > COMPOSE_TYPE_MAX ? "is no Content-ID" : NULL;
}

const char *
compose_mailbox_read(struct text t, struct compose_mailbox *out)
{
    const char *why = compose_judge_value(t);
    size_t angle = text_find_last(t = text_trim(t), '<');
    if (why != NULL)
        return why;
    *out = (struct compose_mailbox){.address = t};
    if (t.length == 0)
        return "is empty";
    if (angle == TEXT_NONE)
        return t.at[t.length - 1] == '>' ? "is no mailbox" : NULL;
    if (t.at[t.length - 1] != '>')
        return "is no mailbox";
    out->name = text_trim(text_before(t, angle));
    out->address =
        text_trim(text_before(text_after(t, angle + 1), t.length - angle - 2));
    return out->address.length == 0 ? "is empty" : NULL;
}

/* --- Fields ----------------------------------------------------------------------- */

/* Writes tokens, each after white space that may become a fold. */
struct compose_line {
    struct buffer *out;
    size_t column;
    bool fits;
};

static void
compose_put(struct compose_line *l, struct text bytes)
{
    l->fits = l->fits && buffer_add(l->out, bytes);
    l->column += bytes.length;
}

/* blanks: before the token, at least one. */
static void
compose_put_token(struct compose_line *l, struct text blanks, struct text token)
{
    if (l->column + blanks.length + token.length > COMPOSE_COLUMN && l->column > 1) {
        l->fits = l->fits && buffer_add(l->out, TEXT("\r\n"));
        l->column = 0;
    }
    compose_put(l, blanks);
    compose_put(l, token);
}

static struct compose_line
compose_begin(struct buffer *out, struct text name)
{
    struct compose_line l = {.out = out, .fits = true};
    compose_put(&l, name);
    compose_put(&l, TEXT(":"));
    return l;
}

/* The bytes of whole characters. */
static size_t
compose_word_length(struct text t)
{
    size_t length = 0, one;
    uint32_t code;
    while (length < t.length) {
        one = text_character(text_after(t, length), &code);
        one = one > 0 ? one : 1;
        if (length + one > WORD_BYTES)
            break;
        length += one;
    }
    return length;
}

/* White space between two encoded words does not count (RFC 2047 §6.2). */
static void
compose_put_encoded(struct compose_line *l, struct text value)
{
    struct buffer word;
    while (value.length > 0) {
        size_t length = compose_word_length(value);
        buffer_init(&word, COMPOSE_COLUMN);
        bool fits = buffer_add(&word, TEXT("=?UTF-8?B?")) &&
                    base64_encode(text_before(value, length), &word) &&
                    buffer_add(&word, TEXT("?="));
        l->fits = l->fits && fits;
        compose_put_token(l, TEXT(" "), buffer_text(&word));
        buffer_free(&word);
        value = text_after(value, length);
    }
}

static bool
compose_is_plain(struct text value)
{
    struct text rest = value, word;
    if (!text_is_ascii(value) || memmem(value.at, value.length, "=?", 2) != NULL)
        return false;
    while (text_word(&rest, " ", &word))
        if (word.length > PLAIN_MAX)
            return false;
    return true;
}

static void
compose_put_words(struct compose_line *l, struct text value)
{
    static const struct text blank = {" ", 1};
    struct text blanks = blank;
    while (value.length > 0) {
        size_t spaces = 0, word = 0;
        while (spaces < value.length && value.at[spaces] == ' ')
            spaces++;
        if (spaces > 0)
            blanks = text_before(value, spaces);
        value = text_after(value, spaces);
        while (word < value.length && value.at[word] != ' ')
            word++;
        compose_put_token(l, blanks, text_before(value, word));
        value = text_after(value, word);
    }
}

bool
compose_field(struct buffer *out, struct text name, struct text value)
{
    struct compose_line l = compose_begin(out, name);
    value = text_trim(value);
    if (value.length == 0)
        compose_put(&l, TEXT(" "));
    else if (compose_is_plain(value))
        compose_put_words(&l, value);
    else
        compose_put_encoded(&l, value);
    compose_put(&l, TEXT("\r\n"));
    return l.fits;
}

/* --- Mailboxes -------------------------------------------------------------------- */

static bool
compose_is_phrase(struct text name)
{
    struct text word;
    while (text_word(&name, " ", &word))
        if (!compose_is_token(word) || text_find(word, '.') != TEXT_NONE)
            return false;
    return true;
}

/* Without the quotes that it came in. */
static bool
compose_unquote(struct buffer *out, struct text name)
{
    bool quoted =
        name.length >= 2 && name.at[0] == '"' && name.at[name.length - 1] == '"';
    bool fits = true;
    if (!quoted)
        return buffer_add(out, name);
    name = text_before(text_after(name, 1), name.length - 2);
    for (size_t i = 0; i < name.length && fits; i++) {
        if (name.at[i] == '\\' && i + 1 < name.length)
            i++;
        fits = buffer_add_byte(out, name.at[i]);
    }
    return fits;
}

static void
compose_put_name(struct compose_line *l, struct text name)
{
    struct buffer quoted;
    if (!compose_is_plain(name) || name.length > PLAIN_MAX / 2) {
        compose_put_encoded(l, name);
        return;
    }
    if (compose_is_phrase(name)) {
        compose_put_words(l, name);
        return;
    }
    buffer_init(&quoted, 2 * COMPOSE_VALUE_MAX + 2);
    l->fits = l->fits && buffer_add_quoted(&quoted, name);
    compose_put_token(l, TEXT(" "), buffer_text(&quoted));
    buffer_free(&quoted);
}

bool
compose_name(struct buffer *out, struct text field, struct text name)
{
    struct compose_line l = compose_begin(out, field);
    compose_put_name(&l, name);
    return l.fits;
}

bool
compose_mailboxes(struct buffer *out, struct text name,
                  const struct compose_mailbox *list, size_t count)
{
    struct compose_line l = compose_begin(out, name);
    struct buffer plain, address;
    for (size_t i = 0; i < count; i++) {
        bool named = list[i].name.length > 0;
        buffer_init(&plain, COMPOSE_VALUE_MAX);
        buffer_init(&address, COMPOSE_VALUE_MAX);
        l.fits = l.fits && compose_unquote(&plain, list[i].name) &&
                 (!named || buffer_add_byte(&address, '<')) &&
                 buffer_add(&address, list[i].address) &&
                 (!named || buffer_add_byte(&address, '>')) &&
                 (i + 1 == count || buffer_add_byte(&address, ','));
        compose_put_name(&l, buffer_text(&plain));
        compose_put_token(&l, TEXT(" "), buffer_text(&address));
        buffer_free(&address);
        buffer_free(&plain);
    }
    compose_put(&l, TEXT("\r\n"));
    return l.fits;
}

/* --- Parameters ------------------------------------------------------------------- */

static bool
compose_is_simple(struct text name)
{
    return name.length <= SIMPLE_NAME_MAX && text_is_ascii(name);
}

/* RFC 2231 §3, §4: pieces of octets, each a line. */
static bool
compose_add_pieces(struct buffer *out, struct text value)
{
    static const char hex[] = "0123456789ABCDEF";
    bool fits = true;
    size_t column = PIECE_COLUMN;
    unsigned number = 0;
    for (size_t i = 0; i < value.length && fits; i++) {
        char c = value.at[i];
        bool plain = text_is_digit(c) || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
        if (column >= PIECE_COLUMN) {
            fits = buffer_format(out, ";\r\n filename*%u*=%s", number,
                                 number == 0 ? "UTF-8''" : "");
            column = 20;
            number++;
        }
        const char coded[3] = {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
        fits = fits && buffer_add(out, plain ? text_of(&c, 1) : text_of(coded, 3));
        column += plain ? 1 : 3;
    }
    return fits;
}

static bool
compose_add_file_name(struct buffer *out, struct text name)
{
    if (name.length == 0)
        return true;
    return compose_is_simple(name) ? buffer_add(out, TEXT(";\r\n filename=")) &&
                                         buffer_add_quoted(out, name)
                                   : compose_add_pieces(out, name);
}

/* --- Structure -------------------------------------------------------------------- */

struct compose_writer {
    struct compose *out;
    const struct compose_part *parts;
    size_t count;
    struct text boundary;
    bool fits;
};

static void
compose_say(struct compose_writer *w, const char *text)
{
    w->fits = w->fits && buffer_add(&w->out->literals, text_from(text));
}

static bool
compose_has(const struct compose_writer *w, enum compose_role role)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->parts[i].role == role)
            return true;
    return false;
}

/* level: a letter, one for each container. */
static void
compose_open(struct compose_writer *w, const char *kind, char level)
{
    w->fits = w->fits &&
              buffer_format(&w->out->literals,
                            "Content-Type: multipart/%s;\r\n boundary=\"=_%.*s%c\"\r\n",
                            kind, TEXT_ARGS(w->boundary), level);
}

static void
compose_delimit(struct compose_writer *w, char level, bool last)
{
    w->fits = w->fits && buffer_format(&w->out->literals, "\r\n--=_%.*s%c%s\r\n",
                                       TEXT_ARGS(w->boundary), level, last ? "--" : "");
}

static void
compose_end_step(struct compose_writer *w, int part)
{
    struct compose *c = w->out;
    size_t from = c->count > 0 ? c->steps[c->count - 1].to : 0;
    c->steps[c->count++] = (struct compose_step){from, c->literals.length, part};
}

static void
compose_leaf(struct compose_writer *w, size_t index)
{
    const struct compose_part *p = &w->parts[index];
    struct buffer *out = &w->out->literals;
    bool is_file = p->role == COMPOSE_INLINE || p->role == COMPOSE_ATTACHED;
    struct text type = p->type.length > 0 ? p->type : TEXT("application/octet-stream");
    if (is_file)
        w->fits = w->fits && compose_field(out, TEXT("Content-Type"), type);
    else
        compose_say(w, p->role == COMPOSE_TEXT
                           ? "Content-Type: text/plain; charset=utf-8\r\n"
                           : "Content-Type: text/html; charset=utf-8\r\n");
    compose_say(w, p->base64 ? "Content-Transfer-Encoding: base64\r\n"
                             : "Content-Transfer-Encoding: quoted-printable\r\n");
    if (p->id.length > 0)
        w->fits =
            w->fits && buffer_format(out, "Content-ID: <%.*s>\r\n", TEXT_ARGS(p->id));
    if (is_file) {
        compose_say(w, p->role == COMPOSE_INLINE ? "Content-Disposition: inline"
                                                 : "Content-Disposition: attachment");
        w->fits = w->fits && compose_add_file_name(out, p->file_name);
        compose_say(w, "\r\n");
    }
    compose_say(w, "\r\n");
    compose_end_step(w, (int)index);
}

static void
compose_leaves(struct compose_writer *w, enum compose_role role, char level)
{
    for (size_t i = 0; i < w->count; i++) {
        if (w->parts[i].role != role)
            continue;
        if (level != 0)
            compose_delimit(w, level, false);
        compose_leaf(w, i);
    }
}

/* Images that a page shows belong to it alone (RFC 2387). */
static void
compose_page(struct compose_writer *w)
{
    bool related = compose_has(w, COMPOSE_INLINE);
    if (related) {
        compose_open(w, "related", 'r');
        compose_say(w, "\r\n");
    }
    compose_leaves(w, COMPOSE_HTML, related ? 'r' : 0);
    if (related) {
        compose_leaves(w, COMPOSE_INLINE, 'r');
        compose_delimit(w, 'r', true);
    }
}

static void
compose_texts(struct compose_writer *w)
{
    bool page = compose_has(w, COMPOSE_HTML), text = compose_has(w, COMPOSE_TEXT);
    if (page && text) {
        compose_open(w, "alternative", 'a');
        compose_say(w, "\r\n");
        compose_leaves(w, COMPOSE_TEXT, 'a');
        compose_delimit(w, 'a', false);
        compose_page(w);
        compose_delimit(w, 'a', true);
    } else if (page) {
        compose_page(w);
    } else {
        compose_leaves(w, COMPOSE_TEXT, 0);
    }
}

bool
compose_structure(struct compose *c, const struct compose_part *parts, size_t count,
                  struct text boundary, size_t limit)
{
    assert(count <= COMPOSE_PARTS_MAX && boundary.length <= COMPOSE_BOUNDARY_MAX);
    struct compose_writer w = {
        .out = c, .parts = parts, .count = count, .boundary = boundary, .fits = true};
    bool page = compose_has(&w, COMPOSE_HTML);
    bool mixed =
        compose_has(&w, COMPOSE_ATTACHED) || (!page && compose_has(&w, COMPOSE_INLINE));
    c->count = 0;
    buffer_init(&c->literals, limit);
    compose_say(&w, "MIME-Version: 1.0\r\n");
    if (mixed) {
        compose_open(&w, "mixed", 'm');
        compose_say(&w, "\r\n");
    }
    if (mixed && (page || compose_has(&w, COMPOSE_TEXT)))
        compose_delimit(&w, 'm', false);
    compose_texts(&w);
    if (mixed) {
        if (!page)
            compose_leaves(&w, COMPOSE_INLINE, 'm');
        compose_leaves(&w, COMPOSE_ATTACHED, 'm');
        compose_delimit(&w, 'm', true);
    } else {
        compose_say(&w, "\r\n");
    }
    compose_end_step(&w, -1);
    return w.fits;
}

void
compose_free(struct compose *c)
{
    buffer_free(&c->literals);
    c->count = 0;
}
