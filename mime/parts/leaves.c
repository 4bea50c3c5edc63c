/* Gathers leaves from the events of the structure; decodes names and charsets. */
#include "mime/parts/leaves.h"

#include "mime/parts/decode.h"

#include <string.h>

enum { TEXTS_MAX = 4 * LEAVES_MAX * (LEAVES_TEXT_MAX + 1) + 1, WORD_MAX = 2048 };

/* --- Charsets ----------------------------------------------------------------------- */

enum leaf_charset
leaves_charset(struct text name)
{
    static const struct {
        const char *name;
        enum leaf_charset charset;
    } known[] = {
        {"",             LEAF_UTF8 },
        {"utf-8",        LEAF_UTF8 },
        {"utf8",         LEAF_UTF8 },
        {"us-ascii",     LEAF_UTF8 },
        {"ascii",        LEAF_UTF8 },
        {"unknown-8bit", LEAF_UTF8 },
        {"iso-8859-1",   LEAF_LATIN},
        {"latin1",       LEAF_LATIN},
        {"windows-1252", LEAF_LATIN},
        {"cp1252",       LEAF_LATIN},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (text_equal_nocase(name, text_from(known[i].name)))
            return known[i].charset;
    return LEAF_OTHER;
}

size_t
leaves_from_latin(unsigned char byte, char out[4])
{
    static const unsigned short upper[32] = {
        0x20ac, 0xfffd, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021,
        0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0xfffd, 0x017d, 0xfffd,
        0xfffd, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
        0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0xfffd, 0x017e, 0x0178};
    unsigned code = byte >= 0x80 && byte < 0xa0 ? upper[byte - 0x80] : byte;
    return text_write_character(code, out);
}

/* --- Encoded words ------------------------------------------------------------------ */

struct leaf_word {
    struct buffer *out;
    enum leaf_charset charset;
};

static void
leaf_word_write(void *context, struct text bytes)
{
    const struct leaf_word *w = context;
    char character[4];
    if (w->charset != LEAF_LATIN)
        (void)!buffer_add(w->out, text_before(bytes, w->out->limit - w->out->length));
    for (size_t i = 0; i < bytes.length && w->charset == LEAF_LATIN; i++)
        (void)!buffer_add(
            w->out, text_of(character,
                            leaves_from_latin((unsigned char)bytes.at[i], character)));
}

/* t begins with "=?": the length of the word if it is one that can be decoded, or 0. */
static size_t
leaf_word_decode(struct text t, struct buffer *out)
{
    struct text rest = text_after(t, 2), whole, charset, kind, coded;
    if (!text_cut(&rest, '?', &whole) || !text_cut(&rest, '?', &kind) ||
        !text_cut(&rest, '?', &coded) || rest.length == 0 || rest.at[0] != '=' ||
        text_find(coded, ' ') != TEXT_NONE)
        return 0;
    (void)text_cut(&whole, '*', &charset); /* a language follows: RFC 2231 §5 */
    bool quoted = text_equal_nocase(kind, TEXT("q"));
    struct leaf_word w = {out, leaves_charset(charset)};
    struct decode d;
    if ((!quoted && !text_equal_nocase(kind, TEXT("b"))) || w.charset == LEAF_OTHER ||
        charset.length == 0 || coded.length > WORD_MAX)
        return 0;
    decode_start(&d, quoted ? ENCODING_QUOTED : ENCODING_BASE64, leaf_word_write, &w);
    for (size_t i = 0; i < coded.length; i++)
        decode_add(&d, quoted && coded.at[i] == '_' ? TEXT("=20")
                                                    : text_of(coded.at + i, 1));
    decode_end(&d);
    return (size_t)(rest.at + 1 - t.at);
}

/* White space between two encoded words does not count (RFC 2047 §6.2). */
void
leaves_decode_words(struct text value, struct buffer *out)
{
    bool was_word = false;
    while (value.length > 0) {
        size_t blanks = 0, word;
        while (blanks < value.length && text_is_space(value.at[blanks]))
            blanks++;
        struct text rest = text_after(value, blanks);
        size_t before = out->length;
        if (!was_word || !text_starts(rest, TEXT("=?")))
            (void)!buffer_add(out, text_before(value, blanks));
        word = text_starts(rest, TEXT("=?")) ? leaf_word_decode(rest, out) : 0;
        was_word = word > 0;
        if (word == 0) {
            out->length = before;
            (void)!buffer_add(out, text_before(value, blanks));
            word = rest.length > 0;
            while (word < rest.length && !text_is_space(rest.at[word]) &&
                   !text_starts(text_after(rest, word), TEXT("=?")))
                word++;
            (void)!buffer_add(out, text_before(rest, word));
        }
        value = text_after(rest, word);
    }
}

/* --- Leaves ------------------------------------------------------------------------- */

struct text
leaves_text(const struct leaves *l, size_t at)
{
    return text_from(l->texts.at + at);
}

/* 0, the empty string, beyond the limit. */
static size_t
leaves_keep(struct leaves *l, struct text t)
{
    struct buffer decoded;
    size_t at = l->texts.length;
    buffer_init(&decoded, LEAVES_TEXT_MAX);
    leaves_decode_words(t, &decoded);
    struct text kept = buffer_text(&decoded);
    kept = text_before(kept, text_find(kept, '\0'));
    bool fits = kept.length > 0 && l->texts.limit - at > kept.length &&
                buffer_add(&l->texts, kept) && buffer_add_byte(&l->texts, '\0');
    buffer_free(&decoded);
    return fits ? at : 0;
}

static void
leaves_on_field(struct leaves *l, const struct structure_event *e)
{
    struct parameters p = {0};
    struct text id = text_within(text_trim(e->value), '<', '>');
    if (text_equal_nocase(e->name, TEXT("content-id"))) {
        l->under_way.id = leaves_keep(l, id);
    } else if (text_equal_nocase(e->name, TEXT("content-disposition"))) {
        parameters_read(&p, e->value);
        const struct parameter *name = parameters_find(&p, "filename");
        l->under_way.is_inline = !text_equal(p.type, TEXT("attachment"));
        if (name != NULL)
            l->under_way.name = leaves_keep(l, name->value);
        parameters_free(&p);
    }
}

static struct text
leaves_parameter(const struct parameters *type, const char *name)
{
    const struct parameter *p = parameters_find(type, name);
    return p != NULL ? p->value : TEXT("");
}

static void
leaves_on_header(struct leaves *l, const struct structure_part *part)
{
    const struct parameters *t = part->type;
    struct leaf *leaf = &l->under_way;
    struct text charset = leaves_parameter(t, "charset");
    char type[LEAVES_TEXT_MAX];
    (void)text_copy(type, sizeof(type), t->type);
    size_t length = strlen(type);
    if (length + 2 < sizeof(type)) {
        type[length] = '/';
        (void)text_copy(type + length + 1, sizeof(type) - length - 1, t->subtype);
    }
    leaf->encoding = part->encoding;
    leaf->from = part->body_at;
    leaf->type = leaves_keep(l, text_from(type));
    if (leaf->name == 0)
        leaf->name = leaves_keep(l, leaves_parameter(t, "name"));
    leaf->charset_name = leaves_keep(l, charset);
    leaf->charset = leaves_charset(charset);
    bool may_show = leaf->is_inline && leaf->name == 0 && leaf->charset != LEAF_OTHER &&
                    part->encoding != ENCODING_OTHER;
    bool *has = parameters_is(t, "text", "plain")  ? &l->has_text
                : parameters_is(t, "text", "html") ? &l->has_page
                                                   : NULL;
    leaf->role = !may_show || has == NULL || *has ? LEAF_FILE
                 : has == &l->has_text            ? LEAF_TEXT
                                                  : LEAF_PAGE;
    if (leaf->role != LEAF_FILE)
        *has = true;
}

/* One whose parts are not found is a leaf; parts behind the last are omitted. */
static void
leaves_on_multipart(struct leaves *l, const struct structure_event *e)
{
    bool is_leaf = (e->part->problems & 1U << PROBLEM_NO_PARTS) != 0;
    bool is_cut = (e->part->problems & 1U << PROBLEM_TOO_MANY_PARTS) != 0;
    if (is_leaf && l->count < LEAVES_MAX) {
        l->under_way.type = leaves_keep(l, TEXT("multipart/mixed"));
        l->under_way.from = e->part->body_at;
        l->under_way.to = e->offset;
        l->list[l->count++] = l->under_way;
    } else {
        l->omitted += is_leaf || is_cut;
    }
}

static void
leaves_on_event(void *context, const struct structure_event *e)
{
    struct leaves *l = context;
    const struct structure_part *part = e->part;
    if (l->message != 0 && (part->number + 1 != l->message || e->kind != STRUCTURE_END))
        return; /* of the message within */
    if (e->kind == STRUCTURE_BEGIN) {
        l->under_way = (struct leaf){.is_inline = true};
    } else if (e->kind == STRUCTURE_FIELD && l->count < LEAVES_MAX) {
        leaves_on_field(l, e);
    } else if (e->kind == STRUCTURE_HEADER && part->holds != STRUCTURE_MULTIPART) {
        l->message = part->holds == STRUCTURE_MESSAGE ? part->number + 1 : 0;
        if (l->count == LEAVES_MAX)
            l->omitted++;
        else
            leaves_on_header(l, part);
    } else if (e->kind == STRUCTURE_END && part->holds != STRUCTURE_MULTIPART) {
        l->message = 0;
        l->under_way.to = e->offset;
        if (l->count < LEAVES_MAX && e->offset >= l->under_way.from)
            l->list[l->count++] = l->under_way;
    } else if (e->kind == STRUCTURE_END) {
        leaves_on_multipart(l, e);
    }
}

void
leaves_begin(struct leaves *l)
{
    *l = (struct leaves){0};
    buffer_init(&l->texts, TEXTS_MAX);
    (void)!buffer_add_byte(&l->texts, '\0');
    l->structure = structure_new(leaves_on_event, l);
}

void
leaves_add(struct leaves *l, struct text piece)
{
    structure_add(l->structure, piece);
}

void
leaves_end(struct leaves *l)
{
    structure_end(l->structure);
    structure_free(&l->structure);
}

void
leaves_free(struct leaves *l)
{
    structure_free(&l->structure);
    buffer_free(&l->texts);
}
