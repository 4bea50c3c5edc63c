/* Reads encoded-words, and parameters in any charset.
 *
 * RFC 2047 §6.2: white space between two encoded-words is not displayed. So the text
 * behind a word is added only when the next word, or its absence, is known. Words of
 * one charset that follow one another share a converter, because some senders split a
 * character between two words. */
#include "mime/word.h"

#include "mime/charset.h"
#include "mime/decode.h"
#include "mime/header.h"

#include <assert.h>

struct reading {
    struct buffer *out;
    struct charset *charset; /* of the last word */
    bool in_run;             /* only encoded-words were added since */
    bool is_full;
    unsigned problems;
    struct buffer bytes; /* of the word that is read */
};

struct word {
    struct text charset, content;
    char encoding;
    size_t length;
};

enum shape { SHAPE_TEXT, SHAPE_BROKEN, SHAPE_WORD };

static void
word_note(unsigned *problems, enum word_problem problem)
{
    *problems |= 1u << problem;
}

static bool
word_is_visible(char c)
{
    return c > ' ' && c < 0x7f;
}

/* --- One word */

/* The length of the run of visible bytes other than "?". */
static size_t
field_length(struct text t)
{
    size_t length = 0;
    while (length < t.length && word_is_visible(t.at[length]) && t.at[length] != '?')
        length++;
    return length;
}

/* "=?charset*language?encoding?content?=" at the start of t. SHAPE_TEXT: not even the
 * beginning of a word, which is no problem: "=?" may be in any text. */
static enum shape
cut_word(struct text t, struct word *word)
{
    struct text rest = text_after(t, 2);
    size_t length = field_length(rest);
    assert(text_starts(t, TEXT("=?")));
    struct text charset = text_before(rest, length);
    rest = text_after(rest, length);
    if (length == 0 || rest.length < 3 || rest.at[0] != '?' ||
        !word_is_visible(rest.at[1]) || rest.at[2] != '?')
        return SHAPE_TEXT;
    word->encoding = rest.at[1];
    rest = text_after(rest, 3);
    word->content = text_before(rest, field_length(rest));
    rest = text_after(rest, word->content.length);
    if (!text_starts(rest, TEXT("?=")))
        return SHAPE_BROKEN;
    word->length = t.length - rest.length + 2;
    /* RFC 2231 §5. */
    word->charset = text_before(charset, text_find(charset, '*'));
    return SHAPE_WORD;
}

static void
word_keep(void *context, struct text bytes)
{
    bool good = buffer_add(context, bytes);
    assert(good); /* decoded text is not longer */
}

static bool
decode_base64(struct text content, struct reading *r, bool *is_careless)
{
    struct decode d;
    decode_start(&d, ENCODING_BASE64, word_keep, &r->bytes);
    decode_add(&d, content);
    decode_end(&d);
    /* Missing padding is tolerated; a single digit has no meaning. */
    unsigned lacks = d.problems & 1u << DECODE_PADDING;
    bool whole = text_find(content, '=') != TEXT_NONE || content.length % 4 != 1;
    *is_careless = *is_careless || lacks != 0;
    return (d.problems & ~(1u << DECODE_PADDING | 1u << DECODE_LONG_LINE)) == 0 &&
           whole;
}

/* Strict: a malformed escape leaves the whole word as it is (RFC 2047 §6.3). */
static bool
decode_q(struct text content, struct reading *r)
{
    for (size_t at = 0; at < content.length; at++) {
        char c = content.at[at] == '_' ? ' ' : content.at[at];
        if (c == '=') {
            if (content.length - at < 3)
                return false;
            int high = text_hex_digit(content.at[at + 1]);
            int low = text_hex_digit(content.at[at + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(unsigned char)(high * 16 + low);
            at += 2;
        }
        word_keep(&r->bytes, text_of(&c, 1));
    }
    return true;
}

/* Into r->bytes. The size is exact: decoded text is never longer than the
 * encoded one. */
static bool
decode_content(const struct word *word, struct reading *r, bool *is_careless)
{
    buffer_init(&r->bytes, word->content.length + 1);
    switch (word->encoding) {
    case 'b':
    case 'B':
        return decode_base64(word->content, r, is_careless);
    case 'q':
    case 'Q':
        return decode_q(word->content, r);
    default:
        return false;
    }
}

/* --- Runs of words */

/* The content is only the first part of a character. */
static void
end_run(struct reading *r)
{
    bool is_bad = false;
    if (r->charset != NULL && !charset_end(r->charset, r->out, &is_bad))
        r->is_full = true;
    if (is_bad)
        word_note(&r->problems, WORD_BYTES);
    r->in_run = false;
}

static void
put_plain(struct reading *r, struct text plain)
{
    if (plain.length == 0)
        return;
    end_run(r);
    if (!r->is_full && !buffer_add(r->out, plain))
        r->is_full = true;
}

/* False: the charset is unknown. Characters do not continue in a word of another
 * charset: the run ends here. */
static bool
use_charset(struct reading *r, struct text name)
{
    if (r->charset != NULL && charset_is(r->charset, name))
        return true;
    end_run(r);
    charset_close(&r->charset);
    r->charset = charset_open(name);
    return r->charset != NULL;
}

/* Control characters would do harm in a terminal or a header. */
static void
put_word(struct reading *r)
{
    bool is_cut = false;
    size_t from = r->out->length;
    if (r->is_full || !charset_next(r->charset, r->out, &is_cut) ||
        !charset_add(r->charset, buffer_text(&r->bytes), r->out)) {
        r->is_full = true;
        return;
    }
    r->in_run = true;
    if (is_cut)
        word_note(&r->problems, WORD_CARELESS);
    if (text_has_control(text_after(buffer_text(r->out), from)))
        word_note(&r->problems, WORD_CONTROL);
}

/* Some writers put words in quotes or brackets, which is unambiguous. */
static bool
stands_alone(struct text t, size_t at, size_t length)
{
    char before = at > 0 ? t.at[at - 1] : ' ';
    char behind = at + length < t.length ? t.at[at + length] : ' ';
    return (text_is_blank(before) || before == '(' || before == '"') &&
           (text_is_blank(behind) || behind == ')' || behind == '"');
}

static bool
is_all_blank(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (!text_is_blank(t.at[i]))
            return false;
    return true;
}

/* False, with the problem noted, when the word is invalid. `plain`: bytes not added
 * yet. The word is decoded before the text in front of it is added: an invalid word
 * stays text, and so does the white space before it. */
static bool
word_take_word(struct reading *r, const struct word *word, struct text plain,
               bool alone)
{
    bool is_careless = !alone || word->content.length == 0;
    bool is_gap = r->in_run && is_all_blank(plain);
    if (!decode_content(word, r, &is_careless)) {
        word_note(&r->problems, WORD_BROKEN);
        return false;
    }
    if (!use_charset(r, word->charset)) {
        word_note(&r->problems, WORD_UNKNOWN);
        return false;
    }
    if (!is_gap)
        put_plain(r, plain);
    put_word(r);
    if (word->length > WORD_LENGTH_MAX)
        word_note(&r->problems, WORD_LONG);
    if (is_careless)
        word_note(&r->problems, WORD_CARELESS);
    return true;
}

static void
read_words(struct reading *r, struct text t)
{
    size_t plain = 0; /* bytes from here on are not added yet */
    for (size_t at = 0; !r->is_full && at + 1 < t.length;) {
        struct word word;
        if (t.at[at] != '=' || t.at[at + 1] != '?') {
            at++;
            continue;
        }
        enum shape shape = cut_word(text_after(t, at), &word);
        struct text before = text_before(text_after(t, plain), at - plain);
        if (shape == SHAPE_BROKEN)
            word_note(&r->problems, WORD_BROKEN);
        if (shape == SHAPE_WORD &&
            word_take_word(r, &word, before, stands_alone(t, at, word.length)))
            plain = at += word.length;
        else
            at += 2;
        buffer_free(&r->bytes);
    }
    put_plain(r, text_after(t, plain));
    end_run(r);
    charset_close(&r->charset);
}

/* --- Public functions */

bool
word_decode(struct text value, struct buffer *out, unsigned *problems)
{
    struct reading r = {.out = out};
    struct buffer unfolded;
    size_t start = out->length;
    buffer_init(&unfolded, value.length);
    bool good = header_unfold(value, &unfolded);
    assert(good); /* unfolding adds nothing */
    if (!text_is_utf8(buffer_text(&unfolded)))
        word_note(&r.problems, WORD_RAW);
    read_words(&r, buffer_text(&unfolded));
    buffer_free(&unfolded);
    if (r.is_full)
        out->length = start;
    else
        *problems |= r.problems;
    return !r.is_full;
}

static bool
decode_charset(struct charset *charset, struct text value, struct buffer *out,
               unsigned *problems)
{
    bool is_bad = false;
    size_t start = out->length;
    bool good = charset_add(charset, value, out) && charset_end(charset, out, &is_bad);
    if (!good)
        out->length = start;
    if (good && is_bad)
        word_note(problems, WORD_BYTES);
    if (good && text_has_control(text_after(buffer_text(out), start)))
        word_note(problems, WORD_CONTROL);
    return good;
}

static bool
has_word(struct text value)
{
    struct word word;
    for (size_t at = 0; at + 1 < value.length; at++)
        if (value.at[at] == '=' && value.at[at + 1] == '?' &&
            cut_word(text_after(value, at), &word) != SHAPE_TEXT)
            return true;
    return false;
}

/* The extended form is preferred, since it has a charset. If its charset is unknown or
 * empty, the bytes are passed through. */
bool
word_decode_parameter(const struct parameter *p, struct buffer *out, unsigned *problems)
{
    bool extended = p->both && p->extended.at != NULL;
    struct text value = extended ? p->extended : p->value;
    struct text name = extended ? p->extended_charset : p->charset;
    if (name.length > 0) {
        struct charset *charset = charset_open(name);
        if (charset != NULL) {
            bool good = decode_charset(charset, value, out, problems);
            charset_close(&charset);
            return good;
        }
        word_note(problems, WORD_UNKNOWN);
    } else if (!extended && has_word(value)) {
        word_note(problems, WORD_QUOTED);
        return word_decode(value, out, problems);
    }
    if (!text_is_utf8(value))
        word_note(problems, WORD_RAW);
    return buffer_add(out, value);
}

const char *
word_problem_text(enum word_problem problem)
{
    static const char *const texts[] = {
        [WORD_BROKEN] = "an encoded-word is malformed",
        [WORD_UNKNOWN] = "a charset is unknown",
        [WORD_LONG] = "an encoded-word is too long",
        [WORD_CARELESS] = "an encoded-word is written carelessly",
        [WORD_BYTES] = "some bytes are no characters",
        [WORD_CONTROL] = "control characters are hidden in it",
        [WORD_QUOTED] = "an encoded-word stands where none may be",
        [WORD_RAW] = "bytes that are neither ASCII nor UTF-8"};
    assert(problem < WORD_PROBLEMS);
    return texts[problem];
}
