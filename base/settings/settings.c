/* Typed settings: collects the values of each source and selects the strongest.
 *
 * Each row has an entry for each level, so that sources can be read in any order. No
 * value is checked before settings_apply(), and only that of the strongest entry is: a
 * weaker one may be malformed, or name a file that does not exist. Errors are
 * collected, in order to report all of them at a time; is_bad keeps one of them from
 * being reported twice. */
#include "base/settings/settings.h"

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/settings/settings_file.h"
#include "base/settings/settings_value.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FILE_SIZE_MAX = 4 * 1024 * 1024, /* a settings file, or one that a key_file names */
    MISTAKES_MAX = 64 * 1024,
    MISTAKE_MAX = 4096,
    FILES_MAX = 1024 * 1024
};

/* Weakest first. */
enum level { LEVEL_DEFAULT, LEVEL_FILE, LEVEL_ENVIRONMENT, LEVEL_ARGUMENT, LEVELS };

/* The value of one key in one source. */
struct entry {
    char *text;          /* NULL: nothing */
    char *path;          /* of the file that has it; NULL: none */
    char *origin, *name; /* "petrel.conf:12", and the key as written there */
    size_t step, line;   /* the call that read it, and the line; line 0 = no lines */
    bool is_path;        /* text names the file that has the value */
    bool is_bad;         /* reported already */
    const struct setting_synonym *synonym; /* NULL: the key itself */
};

struct settings {
    const struct setting *rows;
    const struct setting_synonym *synonyms; /* NULL: none */
    char *prefix;
    void *target;
    struct entry *entries; /* LEVELS for each row */
    size_t count, step;
    bool leaves_secrets, is_running;
    struct buffer errors, warnings;
    size_t error_count;
    struct buffer files; /* paths, each with a NUL behind it */
};

/* The place of a `key = value`. */
struct place {
    enum level level;
    const char *origin; /* without the line */
    size_t line;
};

static const char file_suffix[] = "_file";

static struct entry *
entry_at(const struct settings *s, const struct setting *row, enum level level)
{
    return &s->entries[(size_t)(row - s->rows) * LEVELS + level];
}

/* The strongest source with a value. The default always exists. */
static struct entry *
entry_effective(const struct settings *s, const struct setting *row)
{
    struct entry *entry = entry_at(s, row, LEVELS - 1);
    for (enum level level = LEVELS - 1; level > LEVEL_DEFAULT; level--, entry--)
        if (entry->text != NULL)
            break;
    return entry;
}

/* It may be a password. */
static void
value_free(char *text)
{
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

static void
entry_clear(struct entry *entry)
{
    value_free(entry->text);
    free(entry->path);
    free(entry->origin);
    free(entry->name);
    *entry = (struct entry){0};
}

static char *
origin_string(const char *origin, size_t line)
{
    struct buffer made;
    buffer_init(&made, MISTAKE_MAX);
    bool added = line == 0 ? buffer_format(&made, "%.2048s", origin)
                           : buffer_format(&made, "%.2048s:%zu", origin, line);
    assert(added);
    char *string = text_string(buffer_text(&made));
    buffer_free(&made);
    return string;
}

/* Adds one line; text of the user must not split it or move the cursor. */
static void
settings_add_line(struct buffer *lines, const char *origin, struct text name,
                  struct text what)
{
    struct buffer line;
    buffer_init(&line, MISTAKE_MAX);
    bool whole = log_escape(text_from(origin), &line) && buffer_add(&line, TEXT(": "));
    if (whole && name.length > 0)
        whole =
            log_escape(text_before(name, 128), &line) && buffer_add(&line, TEXT(": "));
    whole = whole && log_escape(what, &line);
    /* All of the line or nothing: error_count still has it. */
    if (lines->limit - lines->length > line.length)
        whole = buffer_add(lines, buffer_text(&line)) && buffer_add_byte(lines, '\n');
    (void)whole; /* a cut line is enough */
    buffer_free(&line);
}

static void
settings_add_error(struct settings *s, const char *origin, struct text name,
                   struct text what)
{
    s->error_count++;
    settings_add_line(&s->errors, origin, name, what);
}

__attribute__((format(printf, 4, 5))) static void
complain(struct settings *s, const struct place *place, struct text name,
         const char *format, ...)
{
    char *origin = origin_string(place->origin, place->line);
    char what[MISTAKE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    settings_add_error(s, origin, name, text_from(what));
    free(origin);
}

/* The spelling of the key in this source: a user can copy it from the message. */
static char *
spell(const struct settings *s, enum level level, const struct setting *row,
      bool is_path)
{
    struct buffer name;
    buffer_init(&name, MISTAKE_MAX);
    bool upper = level == LEVEL_ENVIRONMENT;
    bool added = buffer_format(&name, "%s%s%s%s", upper ? s->prefix : "",
                               upper ? "_" : "", row->key, is_path ? file_suffix : "");
    assert(added);
    if (upper)
        for (size_t i = strlen(s->prefix); i < name.length; i++)
            if (name.at[i] >= 'a' && name.at[i] <= 'z')
                name.at[i] = (char)(name.at[i] - 'a' + 'A');
    char *string = text_string(buffer_text(&name));
    buffer_free(&name);
    return string;
}

static struct text
without_suffix(struct text key)
{
    return text_before(key, key.length - strlen(file_suffix));
}

/* It has no effect, and perhaps nobody has noticed. */
static void
warn_of_variable(struct settings *s, const struct place *place, struct text name,
                 struct text key)
{
    const struct setting *near = settings_nearest(s->rows, key);
    char *meant = near ? spell(s, place->level, near, false) : NULL;
    char what[MISTAKE_MAX];
    snprintf(what, sizeof(what), "unknown setting, ignored%s%s%s",
             near ? "; the nearest is '" : "", near ? meant : "", near ? "'" : "");
    settings_add_line(&s->warnings, place->origin, name, text_from(what));
    free(meant);
}

/* Images and services put variables of their own into the environment, such as
 * PETREL_VERSION. So there an unknown name is an error only if it resembles a setting. */
static void
complain_unknown(struct settings *s, const struct place *place, struct text name,
                 struct text key)
{
    char *lower = text_string(key);
    text_lower(lower, key.length);
    key = text_of(lower, key.length);
    bool is_path = false;
    const struct setting *near = settings_guess(s->rows, key);
    if (near == NULL && text_ends_nocase(key, text_from(file_suffix))) {
        near = settings_guess(s->rows, without_suffix(key));
        is_path = true;
    }
    if (near == NULL && place->level != LEVEL_ENVIRONMENT) {
        complain(s, place, name, "unknown setting");
    } else if (near != NULL) {
        char *meant = spell(s, place->level, near, is_path);
        complain(s, place, name, "unknown setting; did you mean '%s'?", meant);
        free(meant);
    } else if (!settings_is_of_kubernetes(key)) {
        warn_of_variable(s, place, name, key);
    }
    free(lower);
}

/* The same call has set the same row already. */
static void
complain_twice(struct settings *s, const struct place *place, struct text name,
               const struct entry *first)
{
    bool same = text_equal(name, text_from(first->name));
    if (first->line == 0 || first->step != s->step)
        complain(s, place, name, "%s is set too", first->name);
    else if (same)
        complain(s, place, name, "set twice, first in line %zu", first->line);
    else
        complain(s, place, name, "%s is set too, in line %zu", first->name,
                 first->line);
}

/* --- Names ------------------------------------------------------------------------ */

/* The meaning of a name. */
struct meaning {
    const struct setting *row;             /* NULL: unknown, or refused */
    const struct setting_synonym *synonym; /* NULL: the name is the key */
    bool is_path;                          /* the name ends in _file */
};

/* Only the synonyms match in any case: they include names of other software. */
static struct meaning
find_name(const struct settings *s, struct text key)
{
    struct meaning m = {.row = settings_find(s->rows, key)};
    const struct setting_synonym *synonym = m.row ? NULL : s->synonyms;
    for (; synonym && synonym->name; synonym++)
        if (text_equal_nocase(text_from(synonym->name), key)) {
            m.synonym = synonym;
            if (synonym->key != NULL)
                m.row = settings_find(s->rows, text_from(synonym->key));
            assert((m.row != NULL) == (synonym->key != NULL));
            break;
        }
    return m;
}

/* The whole name counts first: a key may end in _file itself. */
static struct meaning
find_meaning(const struct settings *s, struct text key)
{
    struct meaning m = find_name(s, key);
    if (m.row == NULL && m.synonym == NULL &&
        text_ends_nocase(key, text_from(file_suffix))) {
        m = find_name(s, without_suffix(key));
        m.is_path = true;
    }
    return m;
}

/* key may be another name of the row: name is the spelling in the source. */
static void
assign(struct settings *s, const struct place *place, struct text name, struct text key,
       struct text value)
{
    struct meaning m = find_meaning(s, key);
    const struct setting *row = m.row;
    if (row == NULL) {
        if (m.synonym)
            complain(s, place, name, "%s", m.synonym->help);
        else
            complain_unknown(s, place, name, key);
        return;
    }
    if (text_find(value, '\0') != TEXT_NONE) {
        complain(s, place, name, "a NUL byte in the value");
        return;
    }
    struct entry *entry = entry_at(s, row, place->level);
    /* Twice in one file is an error. A later source of the level, such as a second -o,
     * replaces the value, unless it uses another name of the setting: two names
     * together are an error. */
    if (entry->text != NULL &&
        (entry->step == s->step || entry->synonym != m.synonym)) {
        complain_twice(s, place, name, entry);
        return;
    }
    entry_clear(entry);
    *entry = (struct entry){
        .text = text_string(value),
        .path =
            place->level == LEVEL_FILE ? text_string(text_from(place->origin)) : NULL,
        .origin = origin_string(place->origin, place->line),
        .name = text_string(name),
        .step = s->step,
        .line = place->line,
        .is_path = m.is_path,
        .synonym = m.synonym,
    };
    /* In a list each line is an entry; in other values a space joins the lines. */
    if (row->kind == SETTING_LIST && !m.is_path)
        return;
    for (char *at = entry->text; *at != '\0'; at++)
        if (*at == '\n' && place->level == LEVEL_FILE)
            *at = ' ';
}

/* Reads a whole file, and keeps its name for settings_each_file(). */
static int
read_whole(struct settings *s, const char *path, bool waits, char **content,
           size_t *length)
{
    if (!buffer_add(&s->files, text_of(path, strlen(path) + 1)))
        return -EFBIG; /* more than any real configuration has */
    return waits ? disk_read_whole(path, FILE_SIZE_MAX, content, length)
                 : disk_read_regular(path, FILE_SIZE_MAX, content, length);
}

/* `key_file`: replaces the path by the content of the file. Only the strongest entry
 * comes here: a weaker one may name a file that does not exist. */
static void
load_value(struct settings *s, struct entry *entry)
{
    char *content;
    size_t length;
    struct place place = {LEVEL_FILE, entry->origin, 0};
    struct text name = text_from(entry->name);
    int error = read_whole(s, entry->text, false, &content, &length);
    /* Until all checks have passed. */
    entry->is_bad = true;
    if (error < 0) {
        char why[DISK_REASON_MAX];
        complain(s, &place, name, "cannot read '%s': %s", entry->text,
                 disk_explain_file(entry->text, error, why));
        return;
    }
    /* Some editors begin a file with a byte order mark, and end it with a line end: these
     * are no part of a password. */
    if (text_starts(text_of(content, length), TEXT("\xef\xbb\xbf"))) {
        length -= 3;
        memmove(content, content + 3, length + 1);
    }
    while (length > 0 && (content[length - 1] == '\n' || content[length - 1] == '\r'))
        content[--length] = '\0';
    if (strlen(content) != length) {
        complain(s, &place, name, "a NUL byte in '%s'", entry->text);
        explicit_bzero(content, length);
        free(content);
        return;
    }
    struct buffer origin;
    buffer_init(&origin, 2 * MISTAKE_MAX);
    bool added = buffer_format(&origin, "%s, from %.2048s", entry->origin, entry->text);
    assert(added);
    free(entry->origin);
    entry->origin = text_string(buffer_text(&origin));
    buffer_free(&origin);
    free(entry->path);
    /* It is a plain value from here on: a further settings_apply() does not read the
     * file again. */
    entry->path = entry->text;
    entry->text = content;
    entry->is_path = entry->is_bad = false;
}

/* The path of a key_file, and values but passwords. */
static void
expand_credentials(struct settings *s, struct entry *entry)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    /* Commands of any user open none of these files. */
    bool is_unused = directory == NULL && s->leaves_secrets && !entry->is_path;
    if (!settings_credential_is_in(text_from(entry->text)) || is_unused)
        return;
    const char *why = settings_credential_replace(&entry->text, directory);
    entry->is_bad = why != NULL;
    if (why != NULL)
        settings_add_error(s, entry->origin, text_from(entry->name), text_from(why));
}

static const char no_comment[] =
    "behind a value '#' begins no comment: put that into a line of its own";

static bool
has_comment(const struct entry *entry)
{
    return strstr(entry->text, " #") != NULL || strstr(entry->text, "\t#") != NULL;
}

/* An entry with an error keeps its field as it is, and is not examined again: each
 * error is reported once, also when settings_apply() is called again. */
static void
apply_row(struct settings *s, const struct setting *row)
{
    struct entry *entry = entry_effective(s, row);
    if (entry->text == NULL || entry->is_bad || (row->secret && s->leaves_secrets))
        return;
    bool expands = !row->secret || row->kind == SETTING_LIST;
    if (entry->is_path || expands)
        expand_credentials(s, entry);
    /* An empty key_file is no file: the setting is unset. */
    if (!entry->is_bad && entry->is_path && entry->text[0] != '\0')
        load_value(s, entry);
    if (!entry->is_bad && expands)
        expand_credentials(s, entry);
    if (entry->is_bad)
        return;
    /* Each word would be an error; but the text of a route may have one. */
    if (row->kind == SETTING_LIST && has_comment(entry) &&
        strstr(entry->text, "error:") == NULL) {
        entry->is_bad = true;
        settings_add_error(s, entry->origin, text_from(entry->name),
                           text_from(no_comment));
        return;
    }
    if (entry->synonym && entry->synonym->takes &&
        !entry->synonym->takes(text_from(entry->text))) {
        entry->is_bad = true;
        settings_add_error(s, entry->origin, text_from(entry->name),
                           text_from(entry->synonym->help));
        return;
    }
    struct buffer why;
    buffer_init(&why, MISTAKE_MAX);
    if (!settings_value_set(row, entry->text, s->target, &why)) {
        assert(entry !=
               entry_at(s, row, LEVEL_DEFAULT)); /* the table itself is wrong */
        entry->is_bad = true;
        settings_add_error(s, entry->origin, text_from(entry->name),
                           has_comment(entry) ? text_from(no_comment)
                                              : buffer_text(&why));
    }
    buffer_free(&why);
}

/* Each line of a list indented below its key. False at out's limit. */
static bool
put_lines(struct buffer *out, const char *indent, struct text lines)
{
    struct text line;
    while (text_cut(&lines, '\n', &line))
        if (!buffer_format(out, "%s", indent) || !log_escape(line, out) ||
            !buffer_add_byte(out, '\n'))
            return false;
    return true;
}

/* Set, and to another value. */
static bool
entry_is_changed(const struct settings *s, const struct setting *row,
                 const struct entry *entry)
{
    const struct entry *preset = entry_at(s, row, LEVEL_DEFAULT);
    struct text now = text_from(entry->text), before = text_from(preset->text);
    return entry != preset && (entry->is_path || !text_equal(now, before));
}

static const char settings_mask[] = "********";

static bool
settings_print_row(const struct setting *row, const struct entry *entry,
                   struct buffer *out)
{
    struct text value = text_from(entry->text);
    /* The path of a key_file is not a secret. */
    if (row->secret && !entry->is_path && value.length > 0)
        value = text_from(settings_mask);
    bool lines = text_find(value, '\n') != TEXT_NONE;
    if (!buffer_format(out, "%s%s =", row->key, entry->is_path ? file_suffix : "") ||
        !buffer_format(out, "%s", value.length > 0 && !lines ? " " : "") ||
        !(lines || log_escape(value, out)) || !buffer_add(out, TEXT("   # ")) ||
        !log_escape(text_from(entry->origin), out) || !buffer_add_byte(out, '\n'))
        return false;
    return !lines || put_lines(out, "    ", value);
}

static bool
example_row(const struct setting *row, struct buffer *out)
{
    struct text preset = text_from(row->preset);
    bool lines = text_find(preset, '\n') != TEXT_NONE;
    if (!put_lines(out, "# ", text_from(row->help)) ||
        !buffer_format(out, "#%s =", row->key))
        return false;
    if (lines)
        return buffer_add_byte(out, '\n') && put_lines(out, "#    ", preset);
    return buffer_format(out, "%s%.*s\n", preset.length > 0 ? " " : "",
                         TEXT_ARGS(preset));
}

struct settings *
settings_new(const struct setting *rows, const char *prefix, void *target)
{
    struct settings *s = memory_new(sizeof(*s));
    s->rows = rows;
    s->prefix = memory_string(prefix);
    s->target = target;
    while (rows[s->count].key != NULL)
        s->count++;
    s->entries = memory_array(s->count * LEVELS, sizeof(*s->entries));
    for (const struct setting *row = rows; row->key != NULL; row++) {
        struct entry *entry = entry_at(s, row, LEVEL_DEFAULT);
        entry->text = row->preset == NULL ? NULL : memory_string(row->preset);
        entry->origin = memory_string("default");
        entry->name = memory_string(row->key);
    }
    buffer_init(&s->errors, MISTAKES_MAX);
    buffer_init(&s->warnings, MISTAKES_MAX);
    buffer_init(&s->files, FILES_MAX);
    return s;
}

void
settings_free(struct settings **s)
{
    if (*s == NULL)
        return;
    for (size_t i = 0; i < (*s)->count * LEVELS; i++)
        entry_clear(&(*s)->entries[i]);
    free((*s)->entries);
    free((*s)->prefix);
    buffer_free(&(*s)->errors);
    buffer_free(&(*s)->warnings);
    buffer_free(&(*s)->files);
    free(*s);
    *s = NULL;
}

void
settings_accept_names(struct settings *s, const struct setting_synonym *synonyms)
{
    s->synonyms = synonyms;
}

void
settings_leave_secrets(struct settings *s)
{
    s->leaves_secrets = true;
}

void
settings_never_wait(struct settings *s)
{
    s->is_running = true;
}

void
settings_read_file(struct settings *s, const char *path)
{
    char *content;
    size_t length;
    struct place place = {LEVEL_FILE, path, 0};
    int error = read_whole(s, path, !s->is_running, &content, &length);
    /* Each call is a step of its own: assign() tells by that whether a key is set twice
     * in one source or replaced by a later one. */
    s->step++;
    if (error < 0) {
        char why[DISK_REASON_MAX];
        complain(s, &place, TEXT(""), "cannot read: %s",
                 disk_explain_file(path, error, why));
        return;
    }
    struct settings_file file;
    struct settings_line line;
    settings_file_start(&file, text_of(content, length));
    while (settings_file_next(&file, &line)) {
        place.line = line.number;
        if (line.error != NULL)
            complain(s, &place, TEXT(""), "%s", line.error);
        else
            assign(s, &place, line.key, line.key, line.value);
    }
    settings_file_end(&file);
    explicit_bzero(content, length); /* it may have passwords */
    free(content);
}

void
settings_refuse_file(struct settings *s, const char *path, const char *why)
{
    struct place place = {LEVEL_FILE, path, 0};
    complain(s, &place, TEXT(""), "%s", why);
}

/* A password may begin or end with a blank. */
static struct text
environment_value(const struct settings *s, struct text key, struct text value)
{
    struct meaning m = find_meaning(s, key);
    return m.row != NULL && m.row->secret && !m.is_path ? text_without_line_end(value)
                                                        : text_trim(value);
}

void
settings_read_environment(struct settings *s, char *const *environment)
{
    struct place place = {LEVEL_ENVIRONMENT, "environment", 0};
    size_t skip = strlen(s->prefix) + 1;
    s->step++;
    for (; *environment != NULL; environment++) {
        struct text value = text_from(*environment), name;
        text_cut(&value, '=', &name);
        if (name.length < skip || name.at[skip - 1] != '_' ||
            !text_starts(name, text_from(s->prefix)))
            continue;
        struct text key = text_after(name, skip);
        /* PETREL_CONFIG names the settings file itself. */
        if (text_equal(key, TEXT("CONFIG")) || value.at == NULL)
            continue;
        char *lower = text_string(key);
        text_lower(lower, key.length);
        struct text wanted = text_of(lower, key.length);
        bool mixed = false;
        for (size_t i = 0; i < key.length; i++)
            mixed = mixed || (key.at[i] >= 'a' && key.at[i] <= 'z');
        /* Only upper case counts; complain_unknown() suggests it. */
        if (mixed)
            complain_unknown(s, &place, name, wanted);
        else
            assign(s, &place, name, wanted, environment_value(s, wanted, value));
        free(lower);
    }
}

void
settings_read_argument(struct settings *s, const char *key_value)
{
    struct place place = {LEVEL_ARGUMENT, "command line", 0};
    struct text value = text_from(key_value), key;
    text_cut(&value, '=', &key);
    key = text_trim(key);
    s->step++;
    if (value.at == NULL || key.length == 0)
        complain(s, &place, key, "expected key=value");
    else
        assign(s, &place, key, key, text_trim(value));
}

/* For defaults that depend on the machine, such as its name. */
void
settings_read_preset(struct settings *s, const char *key_value)
{
    struct text value = text_from(key_value), key;
    text_cut(&value, '=', &key);
    const struct setting *row = settings_find(s->rows, key);
    assert(row != NULL && value.at != NULL);
    struct entry *entry = entry_at(s, row, LEVEL_DEFAULT);
    value_free(entry->text);
    entry->text = text_string(value);
}

void
settings_complain(struct settings *s, const char *key, const char *format, ...)
{
    const struct setting *row = settings_find(s->rows, text_from(key));
    assert(row != NULL);
    struct entry *entry = entry_effective(s, row);
    if (entry->is_bad)
        return; /* its lack of a value is reported already */
    if (has_comment(entry)) {
        entry->is_bad = true; /* each word of the comment would be another error */
        settings_add_error(s, entry->origin, text_from(entry->name),
                           text_from(no_comment));
        return;
    }
    char what[MISTAKE_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    settings_add_error(s, entry->origin, text_from(entry->name), text_from(what));
}

/* NULL: the default, or no such key. */
static const struct entry *
entry_given(const struct settings *s, struct text key)
{
    const struct setting *row = settings_find(s->rows, key);
    const struct entry *entry = row ? entry_effective(s, row) : NULL;
    return entry && entry != entry_at(s, row, LEVEL_DEFAULT) ? entry : NULL;
}

const char *
settings_origin(const struct settings *s, struct text key)
{
    const struct entry *entry = entry_given(s, key);
    return entry ? entry->origin : NULL;
}

const char *
settings_written(const struct settings *s, struct text key)
{
    const struct entry *entry = entry_given(s, key);
    return entry ? entry->text : NULL;
}

size_t
settings_apply(struct settings *s)
{
    for (const struct setting *row = s->rows; row->key != NULL; row++)
        apply_row(s, row);
    return s->error_count;
}

struct text
settings_errors(const struct settings *s)
{
    return buffer_text(&s->errors);
}

struct text
settings_warnings(const struct settings *s)
{
    return buffer_text(&s->warnings);
}

void
settings_print(const struct settings *s, struct buffer *out)
{
    for (const struct setting *row = s->rows; row->key != NULL; row++)
        if (!settings_print_row(row, entry_effective(s, row), out))
            return;
}

void
settings_print_changed(const struct settings *s, struct buffer *out)
{
    for (const struct setting *row = s->rows; row->key != NULL; row++) {
        const struct entry *entry = entry_effective(s, row);
        if (entry_is_changed(s, row, entry) && !settings_print_row(row, entry, out))
            return;
    }
}

void
settings_each(const struct settings *s,
              void (*each)(void *context, const struct setting_view *view),
              void *context)
{
    for (const struct setting *row = s->rows; row->key != NULL; row++) {
        const struct entry *entry = entry_effective(s, row);
        struct text value = text_from(entry->text);
        bool is_set = value.length > 0;
        each(context, &(struct setting_view){
                          .key = row->key,
                          .value = !is_set       ? NULL
                                   : row->secret ? settings_mask
                                                 : entry->text,
                          .preset = entry_at(s, row, LEVEL_DEFAULT)->text,
                          .source = entry->origin,
                          .is_changed = entry_is_changed(s, row, entry),
                      });
    }
}

/* For the plan of the sandbox: a reload must be able to read these files again. */
void
settings_each_file(const struct settings *s,
                   void (*each)(void *context, const char *path), void *context)
{
    for (size_t at = 0; at < s->files.length; at += strlen(s->files.at + at) + 1)
        each(context, s->files.at + at);
}

/* For warnings of files that other users can read. */
void
settings_each_secret(const struct settings *s,
                     void (*each)(void *context, const char *key, const char *path),
                     void *context)
{
    for (const struct setting *row = s->rows; row->key != NULL; row++) {
        const struct entry *entry = entry_effective(s, row);
        if (row->secret && entry->text != NULL && entry->path != NULL)
            each(context, row->key, entry->path);
    }
}

void
settings_example(const struct setting *rows, struct buffer *out)
{
    for (const struct setting *row = rows; row->key != NULL; row++)
        if ((row != rows && !buffer_add_byte(out, '\n')) || !example_row(row, out))
            return;
}
