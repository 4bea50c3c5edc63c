/* The acts that the tables of several programs name. */
#include "admin/import/import.h"

#include "base/memory.h"
#include "base/net_address.h"
#include "mime/alias.h"

#include <stdlib.h>
#include <string.h>

/* --- Acts ------------------------------------------------------------------------- */

/* The template is of a row: "A%B", or "+UNIT". */
static const char *
import_fill(struct import *im, const char *template, struct text value)
{
    const char *at = template != NULL ? strchr(template, '%') : NULL;
    if (at != NULL)
        return import_format(im, "%.*s%.*s%s", (int)(at - template), template,
                             TEXT_ARGS(value), at + 1);
    bool bare =
        template != NULL && value.length > 0 && text_digits(value) == value.length;
    return import_format(im, "%.*s%s", TEXT_ARGS(value), bare ? template + 1 : "");
}

void
import_as(struct import *im, struct import_line *line)
{
    struct text value = import_unquote(text_from(line->value));
    if (value.length == 0)
        import_say(line, IMPORT_NEEDLESS, "it is empty");
    else
        import_put(im, line, line->row->with, import_fill(im, line->row->why, value));
}

static void
import_key(struct import *im, struct import_line *entry)
{
    import_put(im, entry, entry->row->with,
               import_fill(im, entry->row->why, text_from(entry->name)));
}

void
import_words(struct import *im, struct import_line *line)
{
    struct text rest = import_unquote(text_from(line->value)), word;
    import_say(line, IMPORT_NEEDLESS, "it is empty");
    while (text_word(&rest, ", \t;", &word)) {
        const char *path = strstr(import_keep(im, word), ":/");
        if (path == NULL && word.at[0] != '/')
            import_put(im, line, line->row->with,
                       import_fill(im, line->row->why, word));
        else if (import_entries(im, line, path != NULL ? text_from(path + 1) : word,
                                " \t", import_key))
            line->setting = line->row->with, import_say(line, IMPORT_TAKEN, NULL);
    }
}

void
import_networks(struct import *im, struct import_line *line)
{
    struct text rest = import_unquote(text_from(line->value)), word;
    struct net_network network;
    if (text_find(rest, '!') !=
        TEXT_NONE) { /* the others have those that it excludes */
        import_say(line, IMPORT_LEFT,
                   "it excludes some; write relay_from = NETWORKS without them");
        return;
    }
    if (line->row->why != NULL && rest.length > 0) { /* they are not among the others */
        import_put(im, line, "relay_from", "127.0.0.0/8");
        import_put(im, line, "relay_from", "::1");
    }
    if (rest.length == 0)
        import_say(line, IMPORT_NEEDLESS, "it is empty");
    while (text_word(&rest, ", \t;{}", &word)) {
        if (text_starts_nocase(word, TEXT("[::ffff:")))
            continue; /* the IPv4 networks are beside it */
        if (word.at[0] == '/')
            (void)import_entries(im, line, word, " \t", import_key);
        else if (net_network_parse(word, &network))
            import_put(im, line, "relay_from", import_keep(im, word));
        else
            import_say(
                line, IMPORT_LEFT,
                import_format(im, "'%.*s' is no network; write relay_from = NETWORKS",
                              TEXT_ARGS(text_before(word, 80))));
    }
}

void
import_name(struct import *im, struct import_line *line)
{
    struct text value = import_unquote(text_from(line->value)), content = value;
    const char *name, *why;
    if (value.length > 0 && value.at[0] == '/' &&
        !import_read(im, line->file, import_keep(im, value), &content, &name, &why))
        import_say(line, IMPORT_LEFT, why);
    else
        import_put(im, line, "hostname",
                   import_keep(im, text_before(content, text_find(content, '\n'))));
}

void
import_needless(struct import *im, struct import_line *line)
{
    (void)im;
    import_say(line, IMPORT_NEEDLESS, line->row->with);
}

void
import_leave(struct import *im, struct import_line *line)
{
    (void)im;
    import_say(line, IMPORT_LEFT, line->row->with);
}

void
import_share(struct import *im, struct import_line *line)
{
    (void)im;
    line->setting = line->row->with;
    import_say(line, IMPORT_TAKEN, line->row->why);
}

void
import_unless(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->row->with), word;
    struct text value = import_unquote(text_from(line->value));
    (void)im;
    import_say(line, IMPORT_LEFT, line->row->why);
    if (value.length == 0)
        import_say(line, IMPORT_NEEDLESS, "it is empty");
    while (text_word(&rest, " ", &word))
        if (text_equal_nocase(word, value))
            import_say(line, IMPORT_NEEDLESS, "Petrel does so anyway");
}

struct import_alias_reader {
    struct import *im;
    const char *file;
    bool *bad; /* of its lines, from 1 */
    struct import_name {
        const char *name;
        unsigned line;
    } * names;
    size_t count, lines;
};

static bool
import_on_name(void *context, struct text name, unsigned line)
{
    struct import_alias_reader *r = context;
    if (r->count < r->lines)
        r->names[r->count++] = (struct import_name){import_keep(r->im, name), line};
    return true;
}

static void
import_on_value(void *context, enum alias_kind kind, struct text value, unsigned line)
{
    (void)context, (void)kind, (void)value, (void)line;
}

static void
import_on_error(void *context, unsigned line, const char *what)
{
    struct import_alias_reader *r = context;
    struct import_line *l;
    if (line > r->lines || r->bad[line])
        return;
    r->bad[line] = true;
    l = import_add(r->im, r->file, line, TEXT("alias"), TEXT(""));
    if (l == NULL)
        return;
    l->of = "aliases";
    import_say(l, IMPORT_LEFT, import_format(r->im, "%s", what));
}

static int
import_compare_names(const void *a, const void *b)
{
    const struct import_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* Names each line that Petrel cannot have, and adds the others to out. True: there is
 * no such line. */
static bool
import_sift_aliases(struct import *im, const char *file, struct text content,
                    struct buffer *out)
{
    struct text rest = content, line;
    struct import_alias_reader r = {.im = im, .file = file};
    struct alias_reader reader = {import_on_name, import_on_value, import_on_error, &r};
    struct alias_reading reading;
    size_t steps = SIZE_MAX;
    bool skips = false, good = true;
    while (text_cut(&rest, '\n', &line))
        r.lines++;
    r.bad = memory_array(r.lines + 1, sizeof(*r.bad));
    r.names = memory_array(r.lines + 1, sizeof(*r.names));
    alias_begin(&reading, content, &reader);
    (void)!alias_go_on(&reading, &steps);
    qsort(r.names, r.count, sizeof(*r.names), import_compare_names);
    for (size_t i = 1; i < r.count; i++)
        if (strcmp(r.names[i].name, r.names[i - 1].name) == 0)
            import_on_error(&r, r.names[i].line, "the name stands twice");
    for (size_t number = 1; text_cut(&content, '\n', &line); number++) {
        skips =
            (skips && line.length > 0 && text_is_blank(line.at[0])) || r.bad[number];
        good = good && !skips;
        if (!skips && line.length > 0)
            (void)!buffer_format(out, "%.*s\n", TEXT_ARGS(line));
    }
    free(r.bad);
    free(r.names);
    return good;
}

void
import_alias_file(struct import *im, struct import_line *line, struct text path)
{
    struct text content;
    struct buffer good;
    const char *name, *why;
    if (!import_read(im, line->file, import_keep(im, path), &content, &name, &why)) {
        import_say(line, IMPORT_LEFT,
                   import_format(im, "%s; write aliases = FILE when it is there", why));
        return;
    }
    buffer_init(&good, IMPORT_TEXT_MAX);
    if (import_sift_aliases(im, name, content, &good))
        import_put(im, line, "aliases", name);
    else if (buffer_add(&im->aliases, buffer_text(&good))) {
        import_put(im, line, "aliases",
                   import_format(im, "%s/aliases.imported", im->directory));
        line->why = "a copy without the lines that Petrel cannot have";
    } else
        import_say(line, IMPORT_LEFT, "there are more than 1 MiB of them");
    buffer_free(&good);
}

/* A name whose addresses are gone is the next error. */
void
import_clean_aliases(struct import *im)
{
    const char *file = import_format(im, "%s/aliases.imported", im->directory);
    for (bool good = im->aliases.length == 0; !good;) {
        struct buffer out;
        buffer_init(&out, IMPORT_TEXT_MAX);
        good = import_sift_aliases(im, file, buffer_text(&im->aliases), &out);
        buffer_free(&im->aliases);
        im->aliases = out;
    }
}

void
import_aliases(struct import *im, struct import_line *line)
{
    import_alias_file(im, line, import_unquote(text_from(line->value)));
}

void
import_sender(struct import *im, struct import_line *line)
{
    struct text value = import_unquote(text_from(line->value));
    bool is_address = text_find(value, '@') != TEXT_NONE;
    if (value.length > 0 && value.at[value.length - 1] != '@')
        import_put(
            im, line, "rewrite",
            import_format(im, "local %s%.*s", is_address ? "" : "@", TEXT_ARGS(value)));
    else
        import_say(line, IMPORT_LEFT, "write rewrite = local NAME@DOMAIN");
}
