/* Reads files of aliases. A file that is not in the form is never half understood: each
 * error has its line, and the caller then uses nothing of the file. */
#include "mime/alias.h"

#include "mime/address.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ALIAS_SHOWN_MAX = 60 };

static void __attribute__((format(printf, 3, 4)))
alias_complain(struct alias_reading *r, struct text about, const char *format, ...)
{
    char what[ALIAS_ERROR_MAX], shown[ALIAS_SHOWN_MAX * 2] = "";
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what) - sizeof(shown), format, list);
    va_end(list);
    if (about.length > 0)
        snprintf(shown, sizeof(shown),
                 "'%.*s': ", TEXT_ARGS(text_before(about, ALIAS_SHOWN_MAX)));
    char whole[ALIAS_ERROR_MAX];
    snprintf(whole, sizeof(whole), "%s%.*s", shown,
             (int)(sizeof(whole) - sizeof(shown)), what);
    r->reader->on_error(r->reader->context, r->line, whole);
}

/* --- Addresses -------------------------------------------------------------------- */

/* A mailbox, a local part, or (names only) "@domain", in normal form. */
static bool
alias_write(struct text t, bool whole_domain, struct buffer *out)
{
    struct address address = {.local = t};
    if (whole_domain && t.length > 1 && t.at[0] == '@') {
        struct text domain = text_after(t, 1);
        return address_is_domain(domain) && buffer_add_byte(out, '@') &&
               address_write_domain(domain, out);
    }
    if (address_is_local(t))
        return address_write(&address, out);
    return address_parse(t, &address) && address_write(&address, out);
}

static bool
alias_normal(struct text t, bool is_name, char out[ALIAS_NAME_MAX])
{
    struct buffer normal;
    buffer_init(&normal, ALIAS_NAME_MAX);
    bool good = alias_write(t, is_name, &normal) &&
                text_copy(out, ALIAS_NAME_MAX, buffer_text(&normal));
    buffer_free(&normal);
    return good;
}

bool
alias_key(struct text address, char key[ALIAS_NAME_MAX])
{
    if (!text_copy(key, ALIAS_NAME_MAX, address))
        return false;
    text_lower(key, address.length);
    return true;
}

/* "a text in quotes", from " on; the rest behind it. Length 0: it does not end. */
static size_t
alias_quoted_length(struct text t)
{
    for (size_t at = 1; at < t.length; at++) {
        if (t.at[at] == '\\')
            at++;
        else if (t.at[at] == '"')
            return at + 1;
    }
    return 0;
}

/* Up to the first of the bytes outside quotes. TEXT_NONE: a quote has no end. */
static size_t
alias_find(struct text t, const char *bytes)
{
    size_t at = 0;
    while (at < t.length && strchr(bytes, t.at[at]) == NULL) {
        if (t.at[at] == '\\' && at + 1 < t.length) {
            at += 2;
        } else if (t.at[at] == '"') {
            size_t length = alias_quoted_length(text_after(t, at));
            if (length == 0)
                return TEXT_NONE;
            at += length;
        } else {
            at++;
        }
    }
    return at;
}

/* Without its quotes: "|program with arguments", ":include:/a path", "/a file". */
static struct text
alias_unquoted(struct text t, char plain[ALIAS_FIELD_MAX])
{
    size_t length = 0;
    bool is_quoted =
        t.length >= 2 && t.at[0] == '"' && alias_quoted_length(t) == t.length;
    if (!is_quoted || t.length > ALIAS_FIELD_MAX)
        return t;
    for (size_t at = 1; at + 1 < t.length; at++) {
        if (t.at[at] == '\\' && at + 2 < t.length)
            at++;
        plain[length++] = t.at[at];
    }
    return text_of(plain, length);
}

/* True: it is an error, and has been reported. */
static bool
alias_is_refused(struct alias_reading *r, struct text plain, struct text shown)
{
    char first = plain.length > 0 ? plain.at[0] : '\0';
    const char *kind = first == '|'   ? "a program"
                       : first == '/' ? "a file"
                       : first == ':' ? "a directive"
                                      : NULL;
    if (kind == NULL)
        return false;
    alias_complain(r, shown,
                   "%s: Petrel starts no programs and writes no files here; see routes",
                   kind);
    return true;
}

static void
alias_read_path(struct alias_reading *r, struct text path, struct text shown)
{
    if (r->in_include)
        alias_complain(r, shown, "a file of :include: cannot include another");
    else if (path.length == 0 || path.at[0] != '/' || path.length >= ALIAS_PATH_MAX)
        alias_complain(r, shown, "write :include:/PATH, an absolute path");
    else
        r->reader->on_value(r->reader->context, ALIAS_INCLUDE, path, r->line);
}

/* Ann Example <ann@example.org>: only the part in <> counts. */
static struct text
alias_in_angles(struct text t)
{
    size_t open = alias_find(t, "<");
    if (open >= t.length || t.at[t.length - 1] != '>')
        return t;
    return text_trim(text_of(t.at + open + 1, t.length - open - 2));
}

static void
alias_read_value(struct alias_reading *r, struct text t)
{
    static const struct text include = TEXT(":include:");
    char plain[ALIAS_FIELD_MAX], normal[ALIAS_NAME_MAX];
    if (t.length > ALIAS_FIELD_MAX) {
        alias_complain(r, t, "too long");
        return;
    }
    struct text bare = alias_unquoted(t, plain);
    bool exact = t.at[0] == '\\';
    struct text address = exact ? text_after(t, 1) : alias_in_angles(t);
    if (text_starts_nocase(bare, include)) {
        struct text path = text_trim(text_after(bare, include.length));
        char again[ALIAS_FIELD_MAX];
        alias_read_path(r, alias_unquoted(path, again), t);
    } else if (alias_is_refused(r, bare, t)) {
        return;
    } else if (!alias_normal(address, false, normal)) {
        alias_complain(r, t,
                       "not an address; write user or user@domain, and commas "
                       "between addresses");
    } else {
        r->reader->on_value(r->reader->context, exact ? ALIAS_EXACT : ALIAS_ADDRESS,
                            text_from(normal), r->line);
    }
}

/* The next address of the line. */
static void
alias_read_next(struct alias_reading *r)
{
    size_t end = alias_find(r->values, ",");
    if (end == TEXT_NONE) {
        r->has_value = true; /* of a kind */
        alias_complain(r, r->values, "a quote does not end");
        r->values = TEXT("");
        return;
    }
    struct text value = text_trim(text_before(r->values, end));
    r->values = text_trim(text_after(r->values, end + 1));
    r->has_value |= value.length > 0;
    if (r->wanted && value.length > 0)
        alias_read_value(r, value);
}

bool
alias_read_address(struct text value, char address[ALIAS_NAME_MAX],
                   char error[ALIAS_ERROR_MAX])
{
    value = text_trim(value);
    if (alias_normal(value, false, address))
        return true;
    snprintf(error, ALIAS_ERROR_MAX, "not an address; write user or user@domain%s",
             text_find(value, ',') != TEXT_NONE || text_find(value, ' ') != TEXT_NONE
                 ? ", one; several need a line 'root: ...' in a file of aliases"
                 : "");
    return false;
}

/* --- Lines ------------------------------------------------------------------------ */

/* A name without any address would swallow its mail. */
static void
alias_end_name(struct alias_reading *r)
{
    unsigned line = r->line;
    if (r->has_name && !r->has_value) {
        r->line = r->started;
        alias_complain(r, TEXT(""), "a name without an address");
        r->line = line;
    }
    r->has_name = false;
}

static void
alias_begin_name(struct alias_reading *r, struct text line)
{
    char name[ALIAS_NAME_MAX];
    size_t colon = alias_find(line, ":");
    r->has_name = false;
    if (colon == TEXT_NONE || colon >= line.length) {
        alias_complain(r, line, "not of the form NAME: ADDRESS, ...");
        return;
    }
    struct text written = text_trim(text_before(line, colon));
    if (!alias_normal(written, true, name)) {
        alias_complain(r, written,
                       "not a name; write user, user@domain, @domain or * before the "
                       "colon, in quotes where it has blanks or signs");
        return;
    }
    text_lower(name, strlen(name));
    r->has_name = true;
    r->has_value = false;
    r->started = r->line;
    r->wanted = r->reader->on_name(r->reader->context, text_from(name), r->line);
    r->values = text_trim(text_after(line, colon + 1));
}

static bool
alias_has_control(struct text t)
{
    for (size_t at = 0; at < t.length; at++)
        if (t.at[at] != '\t' && text_has_control(text_of(t.at + at, 1)))
            return true;
    return false;
}

/* Up to its addresses. Blank and comment lines may stand within those of a name. */
static void
alias_read_line(struct alias_reading *r, struct text line)
{
    struct text trimmed = text_trim(line);
    if (trimmed.length == 0 || trimmed.at[0] == '#')
        return;
    if (alias_has_control(trimmed)) {
        alias_complain(r, TEXT(""), "a control character");
        return;
    }
    if (r->in_include) {
        r->wanted = true;
        r->values = trimmed;
    } else if (!text_is_blank(line.at[0])) {
        alias_end_name(r);
        alias_begin_name(r, trimmed);
    } else if (r->has_name) {
        r->values = trimmed;
    } else {
        alias_complain(r, trimmed,
                       "a continuation without a name before it; remove "
                       "the blanks before it");
    }
}

void
alias_begin(struct alias_reading *r, struct text file,
            const struct alias_reader *reader)
{
    *r = (struct alias_reading){.reader = reader, .lines = file, .values = TEXT("")};
}

void
alias_begin_include(struct alias_reading *r, struct text file,
                    const struct alias_reader *reader)
{
    alias_begin(r, file, reader);
    r->in_include = true;
}

bool
alias_go_on(struct alias_reading *r, size_t *steps)
{
    struct text line;
    for (; *steps > 0; --*steps) {
        if (r->values.length > 0) {
            alias_read_next(r);
        } else if (r->lines.length > 0 && text_cut(&r->lines, '\n', &line)) {
            r->line++;
            if (line.length > 0)
                alias_read_line(r, line);
        } else {
            alias_end_name(r);
            return true;
        }
    }
    return false;
}
