/* Lists of faults: collects, escapes, sorts and prints them. */
#include "admin/findings/faults.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_MAX = 255, WRAP = 78 };

const char *
fault_severity_word(enum fault_severity severity)
{
    static const char *const words[] = {[FAULT_OK] = "ok",
                                        [FAULT_HINT] = "hint",
                                        [FAULT_WARNING] = "warning",
                                        [FAULT_ERROR] = "error"};
    return words[severity];
}

/* --- Lists ---------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 0))) static char *
fault_format(const char *format, va_list list)
{
    char text[FAULTS_TEXT_MAX];
    vsnprintf(text, sizeof(text), format, list);
    return memory_string(text);
}

void
faults_cut(struct faults *list, size_t count)
{
    while (list->count > count) {
        struct fault *f = &list->items[--list->count];
        free(f->subject);
        free(f->text);
        free(f->remedy);
        free(f->detail);
        free(f->object);
    }
}

void
faults_free(struct faults *list)
{
    faults_cut(list, 0);
    free(list->items);
    *list = (struct faults){0};
}

/* Takes the text. */
static void
faults_put(struct faults *list, enum fault_severity severity, const char *subject,
           char *text)
{
    if (list->count == FAULTS_MAX) {
        free(text);
        return;
    }
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 16;
        list->items = memory_resize(list->items, list->capacity * sizeof(struct fault));
    }
    list->items[list->count++] = (struct fault){.row = list->row,
                                                .severity = severity,
                                                .subject = memory_string(subject),
                                                .text = text,
                                                .remedy = memory_string(""),
                                                .detail = memory_string(""),
                                                .object = memory_string("")};
}

void
faults_add(struct faults *out, enum fault_severity severity, const char *subject,
           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    faults_put(out, severity, subject, fault_format(format, arguments));
    va_end(arguments);
}

bool
faults_found(struct faults *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    faults_put(out, out->row->severity, "", fault_format(format, arguments));
    va_end(arguments);
    return false;
}

void
faults_if(struct faults *out, const char *code, bool holds)
{
    out->row = faults_row(code);
    if (holds)
        faults_found(out, "%s", out->row->sentence);
}

static void
fault_join(char **old, char *more)
{
    size_t length = strlen(*old), size = strlen(more);
    if (length + size < 4 * (size_t)FAULTS_TEXT_MAX) {
        *old = memory_resize(*old, length + size + 1);
        memcpy(*old + length, more, size + 1);
    }
    free(more);
}

void
faults_remedy(struct faults *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->count > 0)
        fault_join(&list->items[list->count - 1].remedy,
                   fault_format(format, arguments));
    va_end(arguments);
}

void
faults_detail(struct faults *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->count > 0)
        fault_join(&list->items[list->count - 1].detail,
                   fault_format(format, arguments));
    va_end(arguments);
}

bool
faults_about(struct faults *list, const char *object)
{
    struct fault *last = &list->items[list->count - 1];
    free(last->object);
    last->object = text_string(text_before(text_from(object), FAULTS_OBJECT_MAX - 1));
    return false;
}

/* --- Records ------------------------------------------------------------------------ */

static void
faults_quote(struct buffer *out, struct text t)
{
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if (c == '"' || c == '\\')
            (void)!buffer_format(out, "\\%c", c);
        else if (c < ' ' || c > '~')
            (void)!buffer_format(out, "\\%03u", c);
        else
            (void)!buffer_add_byte(out, (char)c);
    }
}

void
faults_text_record(struct faults *list, const char *name, struct text value)
{
    struct buffer out;
    buffer_init(&out, FAULTS_TEXT_MAX - 1024);
    for (struct text rest = value; rest.length > 0;
         rest = text_after(rest, STRING_MAX)) {
        (void)!buffer_add(&out, TEXT(" \""));
        faults_quote(&out, text_before(rest, STRING_MAX));
        (void)!buffer_add_byte(&out, '"');
    }
    faults_remedy(list, "\n    %.260s. 3600 IN TXT (%.*s )", name, (int)out.length,
                  out.length > 0 ? out.at : "");
    buffer_free(&out);
}

void
faults_record(struct faults *list, const char *name, const char *type,
              const char *value)
{
    faults_remedy(list, "\n    %.260s. 3600 IN %s %s", name, type, value);
}

/* --- Output --------------------------------------------------------------------------- */

/* Octets that are printable ASCII stay, and LF if keeps_lines. */
static void
fault_escape(char **text, bool keeps_lines)
{
    const char *from = *text;
    size_t size = strlen(from), at = 0;
    char *out = memory_new(4 * size + 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)from[i];
        if ((c >= ' ' && c <= '~') || (keeps_lines && c == '\n'))
            out[at++] = (char)c;
        else
            at += (size_t)snprintf(out + at, 5, "\\x%02x", c);
    }
    free(*text);
    *text = out;
}

void
faults_escape(struct faults *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct fault *f = &list->items[i];
        fault_escape(&f->subject, false);
        fault_escape(&f->text, false);
        fault_escape(&f->remedy, true);
        fault_escape(&f->detail, false);
    }
}

size_t
faults_count(const struct faults *list, enum fault_severity severity)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].severity == severity;
    return count;
}

/* In lines of WRAP columns, at blanks. */
static void
faults_print_wrapped(FILE *out, struct text t, int indent)
{
    struct text rest = t;
    while (rest.length > 0) {
        size_t wide = (size_t)(WRAP - indent), cut = rest.length;
        if (cut > wide) {
            size_t blank = text_find_last(text_before(rest, wide + 1), ' ');
            cut = blank != TEXT_NONE && blank > 0 ? blank : text_find(rest, ' ');
            cut = cut == TEXT_NONE ? rest.length : cut;
        }
        fprintf(out, "%*s%.*s\n", indent, "", TEXT_ARGS(text_before(rest, cut)));
        rest = text_trim(text_after(rest, cut));
    }
}

static void
faults_print_remedy(FILE *out, const char *remedy)
{
    struct text rest = text_from(remedy), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        if (text_starts(line, TEXT("    ")))
            fprintf(out, "%.*s\n", TEXT_ARGS(line));
        else
            faults_print_wrapped(out, line, 2);
    }
}

static void
faults_print_one(FILE *out, const struct fault *c)
{
    if (c->severity == FAULT_OK) {
        fprintf(out, "ok      %-17s %s: %s\n", c->row->code, c->subject, c->text);
        return;
    }
    fprintf(out, "%-7s %-17s %s\n", fault_severity_word(c->severity), c->row->code,
            c->subject);
    faults_print_wrapped(out, text_from(c->text), 2);
    faults_print_wrapped(out, text_from(c->detail), 4);
    faults_print_remedy(out, c->remedy);
    putc('\n', out);
}

/* By severity, then in the order of the table, of subjects, of arrival. */
static int
fault_compare(const void *a, const void *b)
{
    const struct fault *one = a, *other = b;
    if (one->severity != other->severity)
        return one->severity < other->severity ? 1 : -1;
    int by_code = strcmp(one->row->code, other->row->code);
    const struct fault_row *first = faults_row(one->row->code);
    if (by_code != 0)
        return first < faults_row(other->row->code) ? -1 : 1;
    int by_subject = strcmp(one->subject, other->subject);
    return by_subject != 0 ? by_subject : strcmp(one->text, other->text);
}

void
faults_sort(struct faults *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(list->items[0]), fault_compare);
}

void
faults_print(const struct faults *list, FILE *out)
{
    for (size_t i = 0; i < list->count; i++)
        faults_print_one(out, &list->items[i]);
    size_t errors = faults_count(list, FAULT_ERROR);
    size_t warnings = faults_count(list, FAULT_WARNING);
    size_t hints = faults_count(list, FAULT_HINT);
    size_t good = faults_count(list, FAULT_OK);
    fprintf(out, "%zu error%s, %zu warning%s, %zu hint%s; %zu check%s ok\n", errors,
            errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", hints,
            hints == 1 ? "" : "s", good, good == 1 ? " is" : "s are");
}

json_t *
faults_json(const struct faults *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct fault *c = &list->items[i];
        json_array_append_new(all, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "code",
                                             c->row->code, "severity",
                                             fault_severity_word(c->severity),
                                             "subject", c->subject, "text", c->text,
                                             "remedy", c->remedy, "detail", c->detail));
    }
    return json_pack("{s:o}", "checks", all);
}
