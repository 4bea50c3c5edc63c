/* The syntax of a settings file: comments, continued lines, `key = value`. A line with
 * an error is skipped with its continuations, and reading goes on, so that all errors
 * of the file are reported at a time. '#' begins a comment only at the beginning of a
 * line, because values may contain it. */
#include "base/settings/settings_file.h"

#include <assert.h>
#include <string.h>

static bool
settings_file_is_empty(struct text line)
{
    struct text trimmed = text_trim(line);
    return trimmed.length == 0 || trimmed.at[0] == '#';
}

static bool
is_indented(struct text line)
{
    return line.length > 0 && (line.at[0] == ' ' || line.at[0] == '\t');
}

/* Joins the lines that continue the value; comments between them do not end it. */
static void
join_lines(struct settings_file *f)
{
    struct text rest = f->rest, line;
    for (size_t number = f->number + 1; text_cut(&rest, '\n', &line); number++) {
        if (settings_file_is_empty(line))
            continue;
        if (!is_indented(line))
            break;
        bool added = (f->value.length == 0 || buffer_add_byte(&f->value, '\n')) &&
                     buffer_add(&f->value, text_trim(line));
        assert(added); /* the limit is the whole file */
        f->rest = rest;
        f->number = number;
    }
}

void
settings_file_start(struct settings_file *f, struct text content)
{
    /* Some editors begin a file with a byte order mark. */
    if (text_starts(content, TEXT("\xef\xbb\xbf")))
        content = text_after(content, 3);
    *f = (struct settings_file){.rest = content};
    buffer_init(&f->value, content.length);
    /* A value may be a password: a buffer that grows would leave copies behind. */
    (void)!buffer_reserve(&f->value, content.length);
}

/* Its next value is not longer than the file. */
static void
value_forget(struct settings_file *f)
{
    if (f->value.length > 0)
        explicit_bzero(f->value.at, f->value.length);
    f->value.length = 0;
}

bool
settings_file_next(struct settings_file *f, struct settings_line *line)
{
    struct text value;
    do {
        if (!text_cut(&f->rest, '\n', &value))
            return false;
        f->number++;
    } while (settings_file_is_empty(value));

    *line = (struct settings_line){.number = f->number};
    value_forget(f);
    if (is_indented(value)) {
        line->error = "an indented line continues the one above it, and there is none: "
                      "keys begin in the first column";
    } else {
        text_cut(&value, '=', &line->key);
        line->key = text_trim(line->key);
        if (value.at == NULL && text_find(line->key, ':') != TEXT_NONE)
            line->error = "expected 'key = value', with '=' and not ':'";
        else if (value.at == NULL || line->key.length == 0)
            line->error = "expected 'key = value'";
    }
    if (line->error == NULL) {
        bool added = buffer_add(&f->value, text_trim(value));
        assert(added);
    }
    join_lines(f); /* after an error too: a continuation is not a second error */
    if (line->error == NULL)
        line->value = buffer_text(&f->value);
    else
        line->key = line->value = TEXT("");
    return true;
}

void
settings_file_end(struct settings_file *f)
{
    value_forget(f);
    buffer_free(&f->value);
}
