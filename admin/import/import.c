/* Reads files into lines, and has each line done by the row of its name. */
#include "admin/import/import.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "sched/route/secrets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Memory ----------------------------------------------------------------------- */

void
import_init(struct import *im, const char *directory)
{
    *im = (struct import){.directory = directory};
    im->lines = memory_array(IMPORT_LINES_MAX,
                             sizeof(*im->lines)); /* they stay where they are */
    buffer_init(&im->passwords, SECRETS_FILE_MAX);
    buffer_init(&im->aliases, IMPORT_TEXT_MAX);
}

void
import_free(struct import *im)
{
    for (size_t i = 0; i < im->kept_count; i++) {
        explicit_bzero(im->kept[i], strlen(im->kept[i]));
        free(im->kept[i]);
    }
    for (size_t i = 0; i < im->setting_count; i++)
        buffer_free(&im->settings[i].value);
    buffer_forget(&im->passwords);
    buffer_free(&im->aliases);
    free(im->kept);
    free(im->lines);
}

/* NUL ends a string: what is behind one is not a setting of any of these programs. */
const char *
import_keep(struct import *im, struct text t)
{
    if (im->kept_count == im->kept_capacity) {
        im->kept_capacity = im->kept_capacity * 2 + 64;
        im->kept = memory_resize(im->kept, im->kept_capacity * sizeof(*im->kept));
    }
    return im->kept[im->kept_count++] = text_string(t);
}

const char *
import_format(struct import *im, const char *format, ...)
{
    struct buffer b;
    va_list list;
    buffer_init(&b, IMPORT_TEXT_MAX);
    va_start(list, format);
    (void)!buffer_format_list(&b, format, list);
    va_end(list);
    const char *kept = import_keep(im, buffer_text(&b));
    buffer_forget(&b);
    return kept;
}

/* --- Files ------------------------------------------------------------------------ */

bool
import_read(struct import *im, const char *beside, const char *path,
            struct text *content, const char **name, const char **why)
{
    char *bytes = NULL;
    size_t length = 0;
    const char *slash = beside != NULL ? strrchr(beside, '/') : NULL;
    *name = path[0] == '/' || slash == NULL
                ? import_keep(im, text_from(path))
                : import_format(im, "%.*s/%s", (int)(slash - beside), beside, path);
    int error = im->files++ < IMPORT_FILES_MAX
                    ? disk_read_regular(*name, IMPORT_FILE_MAX, &bytes, &length)
                    : 0;
    if (bytes != NULL) {
        *content = text_from(import_keep(im, text_of(bytes, length)));
        explicit_bzero(bytes, length);
        free(bytes);
        return true;
    }
    *why = error == 0 ? "more than 100 files are named; import it by itself"
                      : import_format(im, "%s cannot be read (%s)", *name,
                                      disk_explain(error));
    return false;
}

struct import_line *
import_add(struct import *im, const char *file, unsigned number, struct text name,
           struct text value)
{
    if (im->count == IMPORT_LINES_MAX)
        return NULL;
    bool is_last = im->count + 1 == IMPORT_LINES_MAX;
    im->lines[im->count] = (struct import_line){
        .file = file,
        .number = number,
        .name = import_keep(im, text_trim(name)),
        .value = import_keep(im, text_trim(value)),
        .fate = is_last ? IMPORT_LEFT : 0,
        .why =
            is_last ? "nothing from here on: there are more than 20,000 lines" : NULL};
    return &im->lines[im->count++];
}

/* A line with a blank at its start goes on with the one before; "#" begins a comment. */
static bool
import_next_line(struct text *rest, unsigned *number, bool continues,
                 struct buffer *line, unsigned *first)
{
    struct text piece, before = *rest;
    buffer_clear(line);
    for (; text_cut(rest, '\n', &piece); before = *rest, ++*number) {
        struct text trimmed = text_trim(piece);
        bool is_comment = trimmed.length == 0 || trimmed.at[0] == '#';
        bool goes_on = continues && text_is_space(piece.length > 0 ? piece.at[0] : 'x');
        if (line->length > 0 && !is_comment && !goes_on) {
            *rest = before; /* it is the next one */
            return true;
        }
        if (is_comment)
            continue;
        if (line->length == 0)
            *first = *number;
        (void)!buffer_format(line, "%s%.*s", line->length > 0 ? " " : "",
                             TEXT_ARGS(text_before(trimmed, IMPORT_VALUE_MAX / 2)));
    }
    return line->length > 0;
}

/* name: up to one of the separators, which the value does not have. */
static struct text
import_cut_name(struct text line, const char *separators, struct text *value)
{
    size_t end = 0;
    while (end < line.length && strchr(separators, line.at[end]) == NULL)
        end++;
    *value = text_after(line, end + 1);
    return text_before(line, end);
}

static void
import_read_lines(struct import *im, const char *file, struct text content,
                  const char *separators, bool continues)
{
    struct buffer line;
    struct text value;
    unsigned number = 1, first = 0;
    buffer_init(&line, IMPORT_VALUE_MAX);
    while (import_next_line(&content, &number, continues, &line, &first)) {
        struct text name = import_cut_name(buffer_text(&line), separators, &value);
        (void)import_add(im, file, first, name, value);
    }
    buffer_forget(&line);
}

void
import_read_words(struct import *im, const char *file, struct text content)
{
    import_read_lines(im, file, content, " \t", false);
}

void
import_read_equals(struct import *im, const char *file, struct text content)
{
    import_read_lines(im, file, content, "=", false);
}

/* "NAME=VALUE", "NAME VALUE" or "NAME = VALUE" */
void
import_read_either(struct import *im, const char *file, struct text content)
{
    size_t at = im->count;
    import_read_lines(im, file, content, "= \t", false);
    for (; at < im->count; at++)
        while (im->lines[at].value[0] == '=' || text_is_blank(im->lines[at].value[0]))
            im->lines[at].value++;
}

void
import_read_long(struct import *im, const char *file, struct text content)
{
    import_read_lines(im, file, content, "=", true);
}

bool
import_entries(struct import *im, struct import_line *line, struct text path,
               const char *separators, import_act *each)
{
    const char *name, *why;
    struct text content;
    size_t at = im->count;
    if (!import_read(im, line->file, import_keep(im, path), &content, &name, &why)) {
        import_say(line, IMPORT_LEFT, why);
        return false;
    }
    import_read_lines(im, name, content, separators, true);
    for (size_t end = im->count; at < end; at++) {
        im->lines[at].of = line->name;
        if (im->lines[at].fate == IMPORT_UNKNOWN) {
            im->lines[at].row = line->row;
            each(im, &im->lines[at]);
        }
    }
    return true;
}

/* --- Words and values ------------------------------------------------------------- */

struct text
import_unquote(struct text value)
{
    value = text_trim(value);
    char quote = text_starts(value, TEXT("'")) ? '\'' : '"';
    return text_within(value, quote, quote);
}

bool
import_word(struct text *rest, struct text *word)
{
    char quote = '\0';
    size_t end = 0;
    *rest = text_trim(*rest);
    for (; end < rest->length && (quote != '\0' || !text_is_space(rest->at[end]));
         end++) {
        char c = rest->at[end];
        quote = quote == c                                 ? '\0'
                : quote == '\0' && (c == '"' || c == '\'') ? c
                                                           : quote;
    }
    *word = import_unquote(text_before(*rest, end));
    *rest = text_after(*rest, end);
    return end > 0;
}

struct import_line *
import_find(const struct import *im, const char *name)
{
    for (size_t i = im->count; i-- > 0;)
        if (im->lines[i].of == NULL && strcasecmp(im->lines[i].name, name) == 0)
            return &im->lines[i];
    return NULL;
}

struct text
import_value(const struct import *im, const char *name)
{
    const struct import_line *line = import_find(im, name);
    return import_unquote(text_from(line != NULL ? line->value : ""));
}

bool
import_is_yes(struct text value)
{
    return text_equal_nocase(value, TEXT("yes")) ||
           text_equal_nocase(value, TEXT("on")) ||
           text_equal_nocase(value, TEXT("true")) || text_equal(value, TEXT("1"));
}

const struct import_row *
import_row_of(const struct import_row *rows, struct text name)
{
    for (const struct import_row *row = rows; row->name != NULL; row++) {
        struct text own = text_from(row->name), word;
        while (text_word(&own, " ", &word)) {
            bool begins = word.at[word.length - 1] == '*';
            if (begins ? text_starts_nocase(name, text_before(word, word.length - 1))
                       : text_equal_nocase(name, word))
                return row;
        }
    }
    return NULL;
}

/* --- The run ---------------------------------------------------------------------- */

static const struct import_kind *const import_kinds[] = {
    &import_postfix, &import_msmtp,     &import_ssmtp, &import_nullmailer,
    &import_dma,     &import_opensmtpd, &import_exim,  NULL};

const struct import_kind *
import_named(struct text name)
{
    for (size_t i = 0; import_kinds[i] != NULL; i++)
        if (text_equal_nocase(name, text_from(import_kinds[i]->name)))
            return import_kinds[i];
    return NULL;
}

/* The lines that this kind would understand. */
static size_t
import_count_known(const struct import_kind *kind, struct text content)
{
    struct import trial;
    size_t known = 0;
    import_init(&trial, "/");
    trial.kind = kind;
    kind->read(&trial, "", content);
    for (size_t i = 0; i < trial.count; i++) {
        const struct import_row *row =
            import_row_of(kind->rows, text_from(trial.lines[i].name));
        known += row != NULL && strcmp(row->name, "*") != 0;
    }
    import_free(&trial);
    return known;
}

const struct import_kind *
import_guess(const char *path, struct text content)
{
    struct text whole = text_from(path), word;
    while (whole.length > 1 && whole.at[whole.length - 1] == '/')
        whole.length--;
    size_t slash = text_find_last(whole, '/'), most = 0;
    struct text base = slash == TEXT_NONE ? whole : text_after(whole, slash + 1);
    const struct import_kind *best = NULL;
    for (size_t i = 0; import_kinds[i] != NULL; i++) {
        struct text names = text_from(import_kinds[i]->files);
        while (text_word(&names, " ", &word))
            if (text_equal(word, base))
                return import_kinds[i];
    }
    for (size_t i = 0; import_kinds[i] != NULL; i++) {
        size_t known = import_count_known(import_kinds[i], content);
        if (known > most)
            most = known, best = import_kinds[i];
    }
    return best;
}

bool
import_lacks_relay(const struct import *im)
{
    return im->kind->only_relays && !import_has(im, "relay") &&
           !import_has(im, "sender_routes");
}

/* Acts may add lines: of files that a line names. They have their fates already. */
void
import_run(struct import *im)
{
    if (im->kind->begin != NULL)
        im->kind->begin(im);
    for (size_t i = 0, count = im->count; i < count; i++) {
        struct import_line *line = &im->lines[i];
        line->row = import_row_of(im->kind->rows, text_from(line->name));
        if (line->row != NULL && line->of == NULL && line->fate == IMPORT_UNKNOWN)
            line->row->act(im, line);
    }
    if (im->kind->end != NULL)
        im->kind->end(im);
    import_clean_aliases(im);
    if (im->passwords.length > 0 || im->lacks_password != NULL)
        import_put(im, NULL, "auth_passwords",
                   import_format(im, "%s/passwords", im->directory));
    if (im->lacks_password != NULL || import_lacks_relay(im))
        import_put(im, NULL, "routes", "* hold");
}
