/* Parses types and parameters of MIME fields, in all their forms.
 *
 * RFC 2231 lets a value be split ("name*0", "name*1") and its pieces come in any order,
 * mixed with other parameters. So pieces are read into an array first, sorted by name,
 * form and index, and joined. Sorting finds duplicates and gaps, too, and stays O(n log
 * n) for a field that is made of pieces alone. All copies are in one allocation, whose
 * size is known before: see struct store. */
#include "mime/parts/parameter.h"

#include "base/memory.h"
#include "mime/header.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The form of a parameter's name, in order of preference: the plain form first, since
 * simple readers see that one. */
enum form { FORM_PLAIN, FORM_EXTENDED, FORM_CONTINUED };

struct piece {
    struct text name, value;
    enum form form;
    bool percent; /* marked with a final asterisk */
    uint32_t index, order;
};

/* Space for the copies, which are never longer than the source. */
struct store {
    char *at;
    size_t used, size;
};

static void
parameter_keep(struct store *s, char c)
{
    assert(s->used < s->size);
    s->at[s->used++] = c;
}

static bool
is_token_byte(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f &&
           strchr("()<>@,;:\\\"/[]?=", c) == NULL;
}

/* A comment without an end takes the rest of the field: header_comment_length() is
 * TEXT_NONE then. */
static void
skip_blanks(struct text *rest)
{
    while (rest->length > 0) {
        if (rest->at[0] == '(')
            *rest = text_after(*rest, header_comment_length(*rest));
        else if (text_is_space(rest->at[0]))
            *rest = text_after(*rest, 1);
        else
            break;
    }
}

static struct text
parameter_cut(struct text *rest, size_t length)
{
    struct text t = text_before(*rest, length);
    *rest = text_after(*rest, length);
    return t;
}

struct text
parameter_token(struct text *rest)
{
    size_t length = 0;
    skip_blanks(rest);
    while (length < rest->length && is_token_byte(rest->at[length]))
        length++;
    return parameter_cut(rest, length);
}

/* Copied to convert it to lower case. Names of types and parameters have no case (RFC
 * 2045 §5.1), and callers compare plainly. */
static struct text
keep_lower(struct store *s, struct text t)
{
    struct text copy = text_of(s->at + s->used, t.length);
    for (size_t i = 0; i < t.length; i++)
        parameter_keep(s, t.at[i]);
    text_lower(s->at + s->used - t.length, t.length);
    return copy;
}

/* After the opening quote. False without a closing one. */
static bool
read_quoted(struct text *rest, struct store *s)
{
    size_t at = 0;
    for (; at < rest->length && rest->at[at] != '"'; at++) {
        char c = rest->at[at];
        if (c == '\\' && at + 1 < rest->length)
            c = rest->at[++at];
        if (c != '\r' && c != '\n') /* folding, not part of the value */
            parameter_keep(s, c);
    }
    bool closed = at < rest->length;
    *rest = text_after(*rest, at + 1);
    return closed;
}

/* A token, or an unquoted value with other bytes: all up to a semicolon or a space.
 * Some senders omit the quotes that such bytes need. */
static bool
read_bare(struct text *rest, struct store *s)
{
    size_t length = 0;
    bool good = true;
    while (length < rest->length && rest->at[length] != ';' &&
           !text_is_space(rest->at[length]) && rest->at[length] != '(') {
        good = good && is_token_byte(rest->at[length]);
        parameter_keep(s, rest->at[length++]);
    }
    *rest = text_after(*rest, length);
    return good && length > 0;
}

static bool
read_value(struct text *rest, struct store *s, struct text *value)
{
    size_t start = s->used;
    bool good;
    skip_blanks(rest);
    if (rest->length > 0 && rest->at[0] == '"') {
        *rest = text_after(*rest, 1);
        good = read_quoted(rest, s);
    } else {
        good = read_bare(rest, s);
    }
    *value = text_of(s->at + start, s->used - start);
    return good;
}

/* "name", "name*", "name*0" or "name*0*" (RFC 2231 §3 and §4). */
static bool
read_form(struct text written, struct piece *piece)
{
    uint64_t index;
    size_t star = text_find(written, '*');
    piece->name = text_before(written, star);
    piece->form = FORM_PLAIN;
    if (star == TEXT_NONE || star == 0)
        return star == TEXT_NONE;
    struct text marks = text_after(written, star + 1);
    piece->form = FORM_EXTENDED;
    piece->percent = true;
    if (marks.length == 0)
        return true;
    piece->percent = marks.at[marks.length - 1] == '*';
    if (piece->percent)
        marks.length--;
    piece->form = FORM_CONTINUED;
    /* RFC 2231 §7: an index has no leading zero. */
    if (!text_number(marks, PARAMETER_MAX, &index) ||
        (marks.length > 1 && marks.at[0] == '0'))
        return false;
    piece->index = (uint32_t)index;
    return true;
}

/* False when this is not a parameter: it is skipped up to the next semicolon. It alone
 * is lost, not the parameters behind it. */
static bool
parameter_read_piece(struct text *rest, struct store *s, struct piece *piece,
                     bool *broken)
{
    struct text name = parameter_token(rest);
    skip_blanks(rest);
    if (name.length == 0 || rest->length == 0 || rest->at[0] != '=')
        return false;
    *rest = text_after(*rest, 1);
    *piece = (struct piece){.order = piece->order};
    bool good = read_form(keep_lower(s, name), piece);
    if (!read_value(rest, s, &piece->value))
        *broken = true;
    return good;
}

static size_t
read_pieces(struct text rest, struct store *s, struct piece *pieces, bool *broken)
{
    size_t count = 0;
    for (;;) {
        skip_blanks(&rest);
        if (rest.length == 0)
            return count;
        if (rest.at[0] == ';') {
            rest = text_after(rest, 1);
            continue;
        }
        if (count == PARAMETER_MAX) {
            *broken = true;
            return count;
        }
        pieces[count].order = (uint32_t)count;
        if (parameter_read_piece(&rest, s, &pieces[count], broken))
            count++;
        else
            *broken = true;
        skip_blanks(&rest);
        if (rest.length > 0 && rest.at[0] != ';') { /* junk behind a value */
            *broken = true;
            size_t end = text_find(rest, ';');
            rest = text_after(rest, end == TEXT_NONE ? rest.length : end);
        }
    }
}

/* The order of appearance comes last: the first of two equal pieces counts, for any
 * order of equal elements by qsort(). */
static int
compare_pieces(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    int order = text_compare(a->name, b->name);
    if (order == 0)
        order = (a->form > b->form) - (a->form < b->form);
    if (order == 0)
        order = (a->index > b->index) - (a->index < b->index);
    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

/* False at an invalid percent sign, which stays. */
static bool
decode_percent(struct text t, struct store *s)
{
    bool good = true;
    for (size_t at = 0; at < t.length; at++) {
        int high =
            at + 2 < t.length && t.at[at] == '%' ? text_hex_digit(t.at[at + 1]) : -1;
        int low = high >= 0 ? text_hex_digit(t.at[at + 2]) : -1;
        good = good && (t.at[at] != '%' || low >= 0);
        parameter_keep(s, low >= 0 ? (char)(high * 16 + low) : t.at[at]);
        at += low >= 0 ? 2 : 0;
    }
    return good;
}

/* Cuts charset'language' off the front. Both quotes are required, even if charset and
 * language are empty (RFC 2231 §4). */
static bool
cut_charset(struct text *value)
{
    size_t first = text_find(*value, '\'');
    if (first == TEXT_NONE)
        return false;
    size_t second = text_find(text_after(*value, first + 1), '\'');
    if (second == TEXT_NONE)
        return false;
    *value = text_after(*value, first + second + 2);
    return true;
}

/* Only the first piece of an extended value has a charset (RFC 2231 §4.1); pieces
 * without a final asterisk are not percent-encoded. */
static bool
join_piece(const struct piece *piece, bool first, struct store *s)
{
    struct text value = piece->value;
    bool good = true;
    if (!piece->percent) {
        for (size_t i = 0; i < value.length; i++)
            parameter_keep(s, value.at[i]);
        return true;
    }
    if (first)
        good = cut_charset(&value);
    return decode_percent(value, s) && good;
}

/* Joins count pieces of one name and form; their indices must be consecutive. A missing
 * piece leaves the value as it is up to the gap. */
static bool
join_pieces(const struct piece *pieces, size_t count, struct parameter *out,
            struct store *s)
{
    size_t start = s->used;
    uint32_t next = 0;
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && pieces[i].index == pieces[i - 1].index) {
            if (!text_equal(pieces[i].value, pieces[i - 1].value))
                out->twice = true;
        } else if (pieces[i].index == next) {
            good = join_piece(&pieces[i], i == 0, s) && good;
            next++;
        } else {
            good = false; /* a gap: later pieces are lost */
        }
    }
    out->value = text_of(s->at + start, s->used - start);
    return good;
}

static size_t
same_run(const struct piece *pieces, size_t count, bool same_form)
{
    size_t run = 1;
    while (run < count && text_equal(pieces[run].name, pieces[0].name) &&
           (!same_form || pieces[run].form == pieces[0].form))
        run++;
    return run;
}

/* The plain form becomes the value, since simple readers see that one: the comparison
 * of the ids of fragments must agree with them. */
static void
parameter_gather(struct parameters *p, const struct piece *pieces, size_t count,
                 struct store *s)
{
    p->list = count == 0 ? NULL : memory_array(count, sizeof(p->list[0]));
    for (size_t i = 0; i < count;) {
        struct parameter *out = &p->list[p->count++];
        size_t form = same_run(pieces + i, count - i, true);
        size_t all = same_run(pieces + i, count - i, false);
        out->name = pieces[i].name;
        out->both = all > form;
        if (!join_pieces(pieces + i, form, out, s) || out->twice)
            p->broken = true;
        i += all;
    }
}

void
parameters_read(struct parameters *p, struct text value)
{
    struct piece pieces[PARAMETER_MAX];
    parameters_free(p);
    /* Space for the pieces and for the joined value: neither is longer than the
     * source. */
    struct store s = {.size = 2 * value.length + 1};
    s.at = p->store = memory_new(s.size);
    p->type = keep_lower(&s, parameter_token(&value));
    skip_blanks(&value);
    if (value.length > 0 && value.at[0] == '/') {
        value = text_after(value, 1);
        p->subtype = keep_lower(&s, parameter_token(&value));
        skip_blanks(&value);
    }
    if (p->type.length == 0 || (value.length > 0 && value.at[0] != ';'))
        p->broken = true;
    size_t junk = text_find(value, ';');
    value = text_after(value, junk == TEXT_NONE ? value.length : junk);
    size_t count = read_pieces(value, &s, pieces, &p->broken);
    qsort(pieces, count, sizeof(pieces[0]), compare_pieces);
    parameter_gather(p, pieces, count, &s);
}

void
parameters_free(struct parameters *p)
{
    free(p->store);
    free(p->list);
    *p = (struct parameters){0};
}

const struct parameter *
parameters_find(const struct parameters *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (text_equal(p->list[i].name, text_from(name)))
            return &p->list[i];
    return NULL;
}

bool
parameters_is(const struct parameters *p, const char *type, const char *subtype)
{
    return text_equal(p->type, text_from(type)) &&
           text_equal(p->subtype, text_from(subtype));
}
