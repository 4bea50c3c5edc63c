/* Converts charsets to UTF-8: UTF-8 and US-ASCII by its own code, the others by
 * iconv(3).
 *
 * Own code finds and replaces invalid bytes of the two usual charsets in one way, with
 * any C library. It also needs none of iconv's tables, which a static binary may lack.
 * An incomplete character at the end of a piece waits for the next one, either in
 * held[] or in the state of iconv: pieces may be cut anywhere. */
#include "mime/charset.h"

#include "base/memory.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

/* No charset has longer characters; escape sequences count. */
enum { HELD_MAX = 32, CHUNK = 512 };

enum kind { KIND_ASCII, KIND_UTF8, KIND_FOREIGN };

struct charset {
    char name[CHARSET_NAME_MAX + 1];
    enum kind kind;
    iconv_t foreign;
    bool is_bad;
    bool is_swallowed; /* the first part of a character is in `foreign` */
    size_t held_length;
    char held[HELD_MAX]; /* the same, for our own code */
};

/* --- UTF-8 */

static bool
put_unknown(struct charset *c, struct buffer *out)
{
    c->is_bad = true;
    return buffer_add(out, TEXT("\xef\xbf\xbd"));
}

/* Returns the number of bytes at the end that begin a character; TEXT_NONE at the
 * limit. */
static size_t
put_utf8(struct charset *c, struct text t, struct buffer *out)
{
    while (t.length > 0) {
        size_t whole, length = text_character_start(t, &whole);
        if (length < whole && length == t.length)
            return length;
        if (length == whole ? !buffer_add(out, text_before(t, length))
                            : !put_unknown(c, out))
            return TEXT_NONE;
        t = text_after(t, length);
    }
    return 0;
}

static size_t
put_ascii(struct charset *c, struct text t, struct buffer *out)
{
    for (size_t i = 0; i < t.length; i++)
        if ((unsigned char)t.at[i] < 0x80 ? !buffer_add_byte(out, t.at[i])
                                          : !put_unknown(c, out))
            return TEXT_NONE;
    return 0;
}

/* --- Others */

/* Some versions of iconv emit code points that UTF-8 excludes. All output passes here,
 * so it is well-formed in any case. */
static bool
put_checked(struct charset *c, struct text t, struct buffer *out)
{
    size_t left = put_utf8(c, t, out);
    return left != TEXT_NONE && (left == 0 || put_unknown(c, out));
}

/* Returns the number of bytes at the end that begin a character; TEXT_NONE at the
 * limit. iconv() stops for three reasons: no space in chunk (E2BIG, the loop
 * continues), an incomplete character (EINVAL) and an invalid one (EILSEQ): one byte of
 * it is skipped. */
static size_t
put_foreign(struct charset *c, struct text t, struct buffer *out)
{
    char *at = (char *)t.at; /* iconv() only reads there */
    size_t left = t.length;
    while (left > 0) {
        char chunk[CHUNK], *to = chunk;
        size_t before = left, space = sizeof(chunk);
        bool failed = iconv(c->foreign, &at, &left, &to, &space) == (size_t)-1;
        int error = failed ? errno : 0;
        if (!put_checked(c, text_of(chunk, (size_t)(to - chunk)), out))
            return TEXT_NONE;
        /* Some converters take the incomplete character into their state: nothing is
         * left then, and only the error tells it. */
        c->is_swallowed = error == EINVAL && left == 0;
        if (error == EINVAL && left <= HELD_MAX)
            return left;
        /* A call that neither reads nor writes anything would be repeated forever. */
        bool moved = left < before || to > chunk;
        if (left > 0 && (!moved || (failed && error != E2BIG))) {
            at++; /* iconv() stopped before an invalid character */
            left--;
            if (!put_unknown(c, out))
                return TEXT_NONE;
        }
    }
    return 0;
}

/* Some converters hold back a character that the next one may change; then reset the
 * shift state. */
static bool
flush_foreign(struct charset *c, struct buffer *out)
{
    char chunk[CHUNK], *to = chunk;
    size_t space = sizeof(chunk);
    if (c->kind != KIND_FOREIGN)
        return true;
    if (iconv(c->foreign, NULL, NULL, &to, &space) == (size_t)-1)
        (void)iconv(c->foreign, NULL, NULL, NULL, NULL);
    return put_checked(c, text_of(chunk, (size_t)(to - chunk)), out);
}

/* --- Names */

/* The meaning in practice of names that stand for a smaller charset, or that iconv does
 * not know. The larger charset contains all characters of the smaller one. */
static struct text
usual_name(struct text name)
{
    static const struct {
        struct text written, meant;
    } rows[] = {
        {TEXT("gb2312"),         TEXT("GB18030")   },
        {TEXT("gbk"),            TEXT("GB18030")   },
        {TEXT("ks_c_5601-1987"), TEXT("CP949")     },
        {TEXT("euc-kr"),         TEXT("CP949")     },
        {TEXT("x-sjis"),         TEXT("SHIFT_JIS") },
        {TEXT("iso-8859-8-i"),   TEXT("ISO-8859-8")},
        {TEXT("iso-8859-8-e"),   TEXT("ISO-8859-8")},
        {TEXT("iso-8859-6-i"),   TEXT("ISO-8859-6")},
        {TEXT("iso-8859-6-e"),   TEXT("ISO-8859-6")},
        {TEXT("x-mac-roman"),    TEXT("MACINTOSH") },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (text_equal_nocase(name, rows[i].written))
            return rows[i].meant;
    return name;
}

/* Excludes names that iconv might take for a path or an option. A '/' begins options
 * such as "//IGNORE", which would hide invalid bytes. */
static bool
charset_is_name(struct text name)
{
    for (size_t i = 0; i < name.length; i++)
        if (!isalnum((unsigned char)name.at[i]) &&
            strchr("-_.:+()", name.at[i]) == NULL)
            return false;
    return name.length > 0 && name.length <= CHARSET_NAME_MAX &&
           memchr(name.at, '\0', name.length) == NULL;
}

static bool
is_one_of(struct text name, const struct text *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal_nocase(name, names[i]))
            return true;
    return false;
}

/* --- Public functions */

/* The name is copied twice: iconv_open() needs the usual name with a NUL, and
 * charset_is() compares the name as it was given. */
struct charset *
charset_open(struct text name)
{
    static const struct text utf8[] = {TEXT("utf-8"), TEXT("utf8")};
    static const struct text ascii[] = {TEXT("us-ascii"), TEXT("ascii")};
    struct charset *c;
    if (!charset_is_name(name))
        return NULL;
    c = memory_new(sizeof(*c));
    if (is_one_of(name, utf8, 2)) {
        c->kind = KIND_UTF8;
    } else if (is_one_of(name, ascii, 2)) {
        c->kind = KIND_ASCII;
    } else {
        c->kind = KIND_FOREIGN;
        text_copy(c->name, sizeof(c->name), usual_name(name));
        c->foreign = iconv_open("UTF-8", c->name);
        if (c->foreign == (iconv_t)-1) {
            free(c);
            return NULL;
        }
    }
    text_copy(c->name, sizeof(c->name), name);
    return c;
}

void
charset_close(struct charset **c)
{
    if (*c != NULL && (*c)->kind == KIND_FOREIGN)
        iconv_close((*c)->foreign);
    free(*c);
    *c = NULL;
}

bool
charset_is(const struct charset *c, struct text name)
{
    return text_equal_nocase(text_from(c->name), name);
}

static size_t
charset_put(struct charset *c, struct text bytes, struct buffer *out)
{
    switch (c->kind) {
    case KIND_ASCII:
        break;
    case KIND_UTF8:
        return put_utf8(c, bytes, out);
    case KIND_FOREIGN:
        return put_foreign(c, bytes, out);
    }
    return put_ascii(c, bytes, out);
}

/* The held bytes begin a character that the new ones complete: both are converted as
 * one text. At the limit the state is undefined: see the header. */
bool
charset_add(struct charset *c, struct text bytes, struct buffer *out)
{
    if (bytes.length == 0)
        return true;
    struct buffer whole;
    buffer_init(&whole, sizeof(c->held) + bytes.length);
    bool good = buffer_add(&whole, text_of(c->held, c->held_length)) &&
                buffer_add(&whole, bytes);
    assert(good);
    size_t left = charset_put(c, buffer_text(&whole), out);
    if (left != TEXT_NONE) {
        assert(left <= sizeof(c->held) && left <= whole.length);
        memcpy(c->held, whole.at + whole.length - left, left);
        c->held_length = left;
    }
    buffer_free(&whole);
    return left != TEXT_NONE;
}

bool
charset_next(struct charset *c, struct buffer *out, bool *is_cut)
{
    *is_cut = c->held_length > 0 || c->is_swallowed;
    return *is_cut || flush_foreign(c, out);
}

/* A part of a character at the end of the text is an invalid one. */
bool
charset_end(struct charset *c, struct buffer *out, bool *is_bad)
{
    bool is_cut, good = charset_next(c, out, &is_cut);
    if (good && is_cut)
        good = flush_foreign(c, out) && put_unknown(c, out);
    c->held_length = 0;
    c->is_swallowed = false;
    *is_bad = c->is_bad;
    c->is_bad = false;
    return good;
}
