/* Collects, escapes and prints checks. */
#include "admin/doctor/checklist.h"

#include "base/memory.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { STRING_MAX = 255, WRAP = 78 };

static const char *const severity_words[] = {[CHECK_OK] = "ok",
                                             [CHECK_HINT] = "hint",
                                             [CHECK_WARNING] = "warning",
                                             [CHECK_ERROR] = "error"};

/* In this order: checks that others depend on come first. */
static const char *const code_order[] = {
    "dns.resolver",    "net.port25",      "host.address", "host.name",
    "host.ptr",        "spf.record",      "dkim.key",     "dmarc.record",
    "mx.record",       "smarthost.login", "oauth.token",  "tls.certificate",
    "tls.destination", "list.blocked",    "queue.health"};

/* --- Texts -------------------------------------------------------------------------- */

/* A copy whose octets are printable ASCII; is_long: and LF. */
static char *
checklist_escape(const char *from, bool is_long)
{
    size_t size = strlen(from), at = 0;
    char *out = memory_new(4 * size + 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)from[i];
        if ((c >= ' ' && c <= '~') || (is_long && c == '\n'))
            out[at++] = (char)c;
        else
            at += (size_t)snprintf(out + at, 5, "\\x%02x", c);
    }
    return out;
}

__attribute__((format(printf, 1, 0))) static char *
checklist_format(const char *format, va_list list, bool is_long)
{
    char text[CHECKLIST_TEXT_MAX];
    vsnprintf(text, sizeof(text), format, list);
    return checklist_escape(text, is_long);
}

static void
checklist_join(char **old, char *more)
{
    size_t length = strlen(*old), size = strlen(more);
    if (length + size < 4 * (size_t)CHECKLIST_TEXT_MAX) {
        *old = memory_resize(*old, length + size + 1);
        memcpy(*old + length, more, size + 1);
    }
    free(more);
}

static void
check_clear(struct check *c)
{
    free(c->subject);
    free(c->text);
    free(c->remedy);
    free(c->detail);
}

void
checklist_cut(struct checklist *list, size_t count)
{
    while (list->count > count)
        check_clear(&list->items[--list->count]);
}

void
checklist_free(struct checklist *list)
{
    checklist_cut(list, 0);
    free(list->items);
    *list = (struct checklist){0};
}

void
checklist_add(struct checklist *list, const char *code, enum check_severity severity,
              const char *subject, const char *format, ...)
{
    va_list arguments;
    if (list->count == CHECKLIST_MAX)
        return;
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 16;
        list->items = memory_resize(list->items, list->capacity * sizeof(struct check));
    }
    va_start(arguments, format);
    list->items[list->count++] =
        (struct check){.code = code,
                       .severity = severity,
                       .subject = checklist_escape(subject, false),
                       .text = checklist_format(format, arguments, false),
                       .remedy = memory_string(""),
                       .detail = memory_string("")};
    va_end(arguments);
}

void
checklist_remedy(struct checklist *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->count > 0)
        checklist_join(&list->items[list->count - 1].remedy,
                       checklist_format(format, arguments, true));
    va_end(arguments);
}

void
checklist_detail(struct checklist *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->count > 0)
        checklist_join(&list->items[list->count - 1].detail,
                       checklist_format(format, arguments, false));
    va_end(arguments);
}

/* --- Records ------------------------------------------------------------------------ */

static void
checklist_quote(struct buffer *out, struct text t)
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
checklist_text_record(struct checklist *list, const char *name, struct text value)
{
    struct buffer out;
    buffer_init(&out, CHECKLIST_TEXT_MAX - 1024);
    for (struct text rest = value; rest.length > 0;
         rest = text_after(rest, STRING_MAX)) {
        (void)!buffer_add(&out, TEXT(" \""));
        checklist_quote(&out, text_before(rest, STRING_MAX));
        (void)!buffer_add_byte(&out, '"');
    }
    checklist_remedy(list, "\n    %.260s. 3600 IN TXT (%.*s )", name, (int)out.length,
                     out.length > 0 ? out.at : "");
    buffer_free(&out);
}

void
checklist_record(struct checklist *list, const char *name, const char *type,
                 const char *value)
{
    checklist_remedy(list, "\n    %.260s. 3600 IN %s %s", name, type, value);
}

/* --- Output ------------------------------------------------------------------------- */

size_t
checklist_count(const struct checklist *list, enum check_severity severity)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++)
        count += list->items[i].severity == severity;
    return count;
}

/* In lines of WRAP columns, at blanks. */
static void
checklist_print_wrapped(FILE *out, struct text t, int indent)
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
checklist_print_remedy(FILE *out, const char *remedy)
{
    struct text rest = text_from(remedy), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        if (text_starts(line, TEXT("    ")))
            fprintf(out, "%.*s\n", TEXT_ARGS(line));
        else
            checklist_print_wrapped(out, line, 2);
    }
}

static void
checklist_print_one(FILE *out, const struct check *c)
{
    if (c->severity == CHECK_OK) {
        fprintf(out, "ok      %-17s %s: %s\n", c->code, c->subject, c->text);
        return;
    }
    fprintf(out, "%-7s %-17s %s\n", severity_words[c->severity], c->code, c->subject);
    checklist_print_wrapped(out, text_from(c->text), 2);
    checklist_print_wrapped(out, text_from(c->detail), 4);
    checklist_print_remedy(out, c->remedy);
    putc('\n', out);
}

/* By severity, then in the order of the table, of subjects, of arrival. */
static int
check_compare(const void *a, const void *b)
{
    const struct check *one = a, *other = b;
    size_t at[2] = {0, 0};
    if (one->severity != other->severity)
        return one->severity < other->severity ? 1 : -1;
    for (size_t i = 0; i < sizeof(code_order) / sizeof(code_order[0]); i++) {
        at[0] = strcmp(one->code, code_order[i]) == 0 ? i : at[0];
        at[1] = strcmp(other->code, code_order[i]) == 0 ? i : at[1];
    }
    if (at[0] != at[1])
        return at[0] < at[1] ? -1 : 1;
    int by_subject = strcmp(one->subject, other->subject);
    return by_subject != 0 ? by_subject : strcmp(one->text, other->text);
}

void
checklist_sort(struct checklist *list)
{
    if (list->count > 0)
        qsort(list->items, list->count, sizeof(list->items[0]), check_compare);
}

void
checklist_print(const struct checklist *list, FILE *out)
{
    for (size_t i = 0; i < list->count; i++)
        checklist_print_one(out, &list->items[i]);
    size_t errors = checklist_count(list, CHECK_ERROR);
    size_t warnings = checklist_count(list, CHECK_WARNING);
    size_t hints = checklist_count(list, CHECK_HINT);
    size_t good = checklist_count(list, CHECK_OK);
    fprintf(out, "%zu error%s, %zu warning%s, %zu hint%s; %zu check%s ok\n", errors,
            errors == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s", hints,
            hints == 1 ? "" : "s", good, good == 1 ? " is" : "s are");
}

json_t *
checklist_json(const struct checklist *list)
{
    json_t *all = json_array();
    for (size_t i = 0; i < list->count; i++) {
        const struct check *c = &list->items[i];
        json_array_append_new(
            all, json_pack("{s:s,s:s,s:s,s:s,s:s,s:s}", "code", c->code, "severity",
                           severity_words[c->severity], "subject", c->subject, "text",
                           c->text, "remedy", c->remedy, "detail", c->detail));
    }
    return json_pack("{s:o}", "checks", all);
}
