/* Reads the table `rewrite` and looks addresses up: by hash, in every pattern that could
 * match. The first one in the table wins. */
#include "sched/route/rewrites.h"

#include "base/memory.h"
#include "mime/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { REWRITES_PATTERN_MAX = 400, REWRITES_SHOWN_MAX = 100 };

struct rewrites_row {
    UT_hash_handle hh;
    char *pattern;     /* normal form, lower case */
    char *replacement; /* "user@domain", "@domain" or "" (stays) */
    unsigned position;
    const struct rewrites_row *hidden_by;
};

struct rewrites {
    struct rewrites_row *rows; /* by pattern, in their order */
    char *hostname;
    bool hostname_is_local;
};

struct rewrites_reading {
    struct rewrites *rewrites;
    struct buffer *errors;
    bool bad;
};

static const char local_pattern[] = "local";

/* --- Looking up -------------------------------------------------------------------- */

static const struct rewrites_row *
rewrites_row_of(const struct rewrites *r, struct text key)
{
    struct rewrites_row *row;
    HASH_FIND(hh, r->rows, key.at, key.length, row);
    return row;
}

static const struct rewrites_row *
earlier_row(const struct rewrites_row *a, const struct rewrites_row *b)
{
    return a == NULL || (b != NULL && b->position < a->position) ? b : a;
}

/* RFC 6762, RFC 8375, the names that routers and installers give. */
static bool
is_local_domain(const struct rewrites *r, struct text domain)
{
    static const struct text suffixes[] = {TEXT(".local"), TEXT(".localdomain"),
                                           TEXT(".lan"), TEXT(".internal"),
                                           TEXT(".home.arpa")};
    bool literal = domain.length > 0 && domain.at[0] == '[';
    if (!literal && text_find(domain, '.') == TEXT_NONE)
        return true;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (text_ends_nocase(domain, suffixes[i]))
            return true;
    return r->hostname_is_local && text_equal_nocase(domain, text_from(r->hostname));
}

static const struct rewrites_row *
rewrites_match(const struct rewrites *r, struct text address, struct text domain)
{
    const struct rewrites_row *found = rewrites_row_of(r, TEXT("*"));
    if (is_local_domain(r, domain))
        found = earlier_row(found, rewrites_row_of(r, TEXT(local_pattern)));
    if (domain.length == 0)
        return found;
    found = earlier_row(found, rewrites_row_of(r, address));
    found = earlier_row(found, rewrites_row_of(r, domain));
    for (size_t at = 1; at < domain.length; at++)
        if (domain.at[at] == '.')
            found = earlier_row(found, rewrites_row_of(r, text_after(domain, at)));
    return found;
}

/* The "@" before the domain; a local part alone may have one, in quotes. */
static size_t
domain_sign(struct text address)
{
    bool quoted = address.length > 0 && address.at[address.length - 1] == '"';
    return quoted ? TEXT_NONE : text_find_last(address, '@');
}

void
rewrites_find(const struct rewrites *r, struct text address,
              struct rewrites_answer *answer)
{
    char lower[REWRITES_ADDRESS_MAX];
    *answer = (struct rewrites_answer){.local = false};
    if (!text_copy(lower, sizeof(lower), address))
        return;
    text_lower(lower, address.length);
    struct text whole = text_of(lower, address.length);
    size_t at = domain_sign(whole);
    struct text domain = at == TEXT_NONE ? TEXT("") : text_after(whole, at + 1);
    struct text local = at == TEXT_NONE ? address : text_before(address, at);
    const struct rewrites_row *row = rewrites_match(r, whole, domain);
    if (row == NULL || row->replacement[0] == '\0')
        return;
    answer->by_local = strcmp(row->pattern, local_pattern) == 0;
    answer->local = is_local_domain(r, domain);
    bool keeps = row->replacement[0] == '@';
    int length = snprintf(answer->address, sizeof(answer->address), "%.*s%s",
                          keeps ? (int)local.length : 0, local.at, row->replacement);
    if (length < 0 || (size_t)length >= sizeof(answer->address))
        *answer = (struct rewrites_answer){.local = false};
}

void
rewrites_each_domain(const struct rewrites *r,
                     void (*each)(void *context, struct text domain), void *context)
{
    for (const struct rewrites_row *row = r->rows; row != NULL; row = row->hh.next) {
        struct text replacement = text_from(row->replacement);
        size_t at = text_find_last(replacement, '@');
        if (at != TEXT_NONE)
            each(context, text_after(replacement, at + 1));
    }
}

bool
rewrites_are_empty(const struct rewrites *r)
{
    return r == NULL || r->rows == NULL;
}

/* --- Reading ------------------------------------------------------------------------ */

static void
rewrites_complain(struct rewrites_reading *r, struct text entry, const char *what)
{
    (void)!buffer_format(r->errors, "rewrite: '%.*s': %s\n",
                         TEXT_ARGS(text_before(entry, REWRITES_SHOWN_MAX)), what);
    r->bad = true;
}

/* Appends the domain in normal form, or the mailbox. False: it is none. */
static bool
rewrites_normalize(struct text t, bool mailbox, struct buffer *out)
{
    struct address address;
    if (mailbox)
        return address_parse(t, &address) && address_write(&address, out);
    return address_is_domain(t) && address_write_domain(t, out);
}

static bool
rewrites_read_pattern(struct text t, struct buffer *out)
{
    bool good;
    if (text_equal(t, TEXT("*")) || text_equal_nocase(t, TEXT(local_pattern)))
        good = buffer_add(out, t);
    else if (text_starts(t, TEXT(".")))
        good = buffer_add_byte(out, '.') &&
               rewrites_normalize(text_after(t, 1), false, out);
    else
        good = rewrites_normalize(t, text_find(t, '@') != TEXT_NONE, out);
    text_lower(out->at, out->length);
    return good;
}

static bool
rewrites_read_replacement(struct text t, struct buffer *out)
{
    if (text_equal(t, TEXT("=")))
        return true;
    if (text_starts(t, TEXT("@")))
        return buffer_add_byte(out, '@') &&
               rewrites_normalize(text_after(t, 1), false, out);
    return rewrites_normalize(t, true, out);
}

static const struct rewrites_row *
row_hiding(const struct rewrites *r, struct text pattern)
{
    size_t at = text_find_last(pattern, '@');
    struct text domain = at == TEXT_NONE ? pattern : text_after(pattern, at + 1);
    const struct rewrites_row *found = rewrites_row_of(r, TEXT("*"));
    if (at != TEXT_NONE)
        found = earlier_row(found, rewrites_row_of(r, domain));
    for (size_t dot = 1; dot < domain.length; dot++)
        if (domain.at[dot] == '.')
            found = earlier_row(found, rewrites_row_of(r, text_after(domain, dot)));
    return found;
}

static void
rewrites_add(struct rewrites_reading *r, struct text entry, struct text pattern,
             struct text replacement)
{
    struct rewrites *table = r->rewrites;
    if (rewrites_row_of(table, pattern) != NULL) {
        rewrites_complain(r, entry,
                          "duplicate pattern, which never matches; remove one");
        return;
    }
    if (HASH_COUNT(table->rows) >= REWRITES_MAX) {
        if (!r->bad)
            rewrites_complain(r, entry, "more than 10000 entries");
        return;
    }
    struct rewrites_row *row = memory_new(sizeof(*row));
    row->pattern = text_string(pattern);
    row->replacement = text_string(replacement);
    row->position = HASH_COUNT(table->rows);
    row->hidden_by = row_hiding(table, pattern);
    HASH_ADD_KEYPTR(hh, table->rows, row->pattern, pattern.length, row);
}

/* Up to a blank or comma outside quotes. */
static struct text
rewrites_cut_word(struct text *rest)
{
    bool quoted = false;
    size_t at = 0;
    for (; at < rest->length && (quoted || strchr(" \t\r,", rest->at[at]) == NULL);
         at++)
        if (rest->at[at] == '"')
            quoted = !quoted;
        else if (rest->at[at] == '\\' && quoted)
            at++;
    struct text word = text_before(*rest, at);
    *rest = text_after(*rest, at);
    while (rest->length > 0 && text_is_space(rest->at[0]))
        *rest = text_after(*rest, 1);
    return word;
}

static void
rewrites_read_entry(struct rewrites_reading *r, struct text *rest)
{
    struct text entry = *rest;
    struct buffer pattern, replacement;
    struct text first = rewrites_cut_word(rest), second = rewrites_cut_word(rest);
    bool ended = rest->length == 0 || rest->at[0] == ',';
    buffer_init(&pattern, REWRITES_PATTERN_MAX);
    buffer_init(&replacement, REWRITES_PATTERN_MAX);
    if (!ended)
        *rest = TEXT("");
    else if (rest->length > 0)
        *rest = text_after(*rest, 1);
    entry.length = second.length > 0 ? (size_t)(second.at - entry.at) + second.length
                                     : first.length;
    if (!ended)
        rewrites_complain(r, entry,
                          "text after the replacement; write one entry per line, or "
                          "separate with commas");
    else if (!rewrites_read_pattern(first, &pattern))
        rewrites_complain(r, entry,
                          "invalid pattern; use user@domain, domain, .domain, local "
                          "or *");
    else if (!rewrites_read_replacement(second, &replacement))
        rewrites_complain(r, entry,
                          "invalid replacement; use user@domain, @domain (keeps the "
                          "local part) or = (keeps the address)");
    else
        rewrites_add(r, entry, buffer_text(&pattern), buffer_text(&replacement));
    buffer_free(&pattern);
    buffer_free(&replacement);
}

static void
rewrites_read_line(struct rewrites_reading *r, struct text line)
{
    line = text_trim(line);
    while (line.length > 0 && line.at[0] != '#') {
        rewrites_read_entry(r, &line);
        line = text_trim(line);
    }
}

static bool
names_domain(struct text list, const char *name)
{
    struct text one;
    while (text_word(&list, " \t\r\n,", &one))
        if (text_equal_nocase(one, text_from(name)))
            return true;
    return false;
}

struct rewrites *
rewrites_new(const struct rewrites_settings *settings, struct buffer *errors)
{
    struct rewrites *made = memory_new(sizeof(*made));
    struct rewrites_reading r = {.rewrites = made, .errors = errors};
    struct text rest = settings->table, line;
    made->hostname = memory_string(settings->hostname);
    made->hostname_is_local =
        !names_domain(settings->local_domains, settings->hostname);
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        rewrites_read_line(&r, line);
    if (r.bad)
        rewrites_free(&made);
    return made;
}

void
rewrites_free(struct rewrites **rewrites)
{
    struct rewrites_row *row, *next;
    if (*rewrites == NULL)
        return;
    HASH_ITER (hh, (*rewrites)->rows, row, next) {
        HASH_DEL((*rewrites)->rows, row);
        free(row->pattern);
        free(row->replacement);
        free(row);
    }
    free((*rewrites)->hostname);
    free(*rewrites);
    *rewrites = NULL;
}

void
rewrites_each_hidden(const struct rewrites *r, rewrites_hidden *each, void *context)
{
    for (const struct rewrites_row *row = r->rows; row; row = row->hh.next)
        if (row->hidden_by != NULL)
            each(context, row->pattern, row->hidden_by->pattern);
}
