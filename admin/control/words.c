/* Fills templates in. */
#include "admin/control/words.h"

#include "admin/control/format_time.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX = 64 };

struct words {
    struct buffer *out;
    const json_t *object;
    int64_t now_ms;
};

/* --- Values ------------------------------------------------------------------------- */

static const json_t *
words_find(const struct words *w, struct text path)
{
    const json_t *value = w->object;
    struct text part;
    while (value != NULL && text_cut(&path, '.', &part)) {
        char key[KEY_MAX];
        uint64_t index;
        bool fits = text_copy(key, sizeof(key), part);
        assert(fits);
        value = text_number(part, SIZE_MAX, &index)
                    ? json_array_get(value, (size_t)index)
                    : json_object_get(value, key);
    }
    return value;
}

static struct text
words_string(const struct words *w, struct text path)
{
    const json_t *value = words_find(w, path);
    return json_is_string(value)
               ? text_of(json_string_value(value), json_string_length(value))
               : TEXT("");
}

static int64_t
words_term(const struct words *w, struct text term)
{
    uint64_t digits;
    if (text_number(term, INT64_MAX, &digits))
        return (int64_t)digits;
    if (text_equal(term, TEXT("now")))
        return w->now_ms;
    return json_integer_value(words_find(w, term));
}

/* Another host may have sent any number: a sum may go round. */
static int64_t
words_number(const struct words *w, struct text sum)
{
    uint64_t number = 0;
    bool subtracts = false;
    while (sum.length > 0) {
        size_t length = 0;
        while (length < sum.length && sum.at[length] != '+' && sum.at[length] != '-')
            length++;
        uint64_t term = (uint64_t)words_term(w, text_before(sum, length));
        number += subtracts ? 0 - term : term;
        subtracts = length < sum.length && sum.at[length] == '-';
        sum = text_after(sum, length + 1);
    }
    return (int64_t)number;
}

/* --- Forms -------------------------------------------------------------------------- */

static void
words_until(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    format_time_until(ms, w->now_ms, out);
}

/* "at 14:03:20Z (in 12 s)", or "now". */
static void
words_at(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    char until[FORMAT_TIME_MAX];
    snprintf(out, FORMAT_TIME_MAX, "%s%.60s", ms > w->now_ms ? "at " : "",
             format_time_until(ms, w->now_ms, until));
}

static void
words_since(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    format_time_since(ms, w->now_ms, out);
}

static void
words_local(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    (void)w;
    format_time_local(ms, LOCAL_YEAR, out);
}

static void
words_age(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    format_time_span((int64_t)((uint64_t)w->now_ms - (uint64_t)ms), out);
}

static void
words_span(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    (void)w;
    format_time_span(ms, out);
}

/* "45s", "12m", "3h", "2d" */
static void
words_brief(int64_t seconds, char out[FORMAT_TIME_MAX])
{
    int64_t unit = seconds < 120         ? 1
                   : seconds < 7200      ? 60
                   : seconds < 2 * 86400 ? 3600
                                         : 86400;
    snprintf(out, FORMAT_TIME_MAX, "%" PRId64 "%c", seconds > 0 ? seconds / unit : 0,
             unit == 1      ? 's'
             : unit == 60   ? 'm'
             : unit == 3600 ? 'h'
                            : 'd');
}

static void
words_brief_age(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    words_brief(w->now_ms / 1000 - ms / 1000, out);
}

static void
words_brief_until(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    words_brief(ms / 1000 - w->now_ms / 1000, out);
}

static void
words_size(const struct words *w, int64_t bytes, char out[FORMAT_TIME_MAX])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    (void)w;
    while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(*units)) {
        value /= 1000;
        unit++;
    }
    snprintf(out, FORMAT_TIME_MAX, "%.1f %s", value, units[unit]);
}

static void
words_seconds(const struct words *w, int64_t ms, char out[FORMAT_TIME_MAX])
{
    (void)w;
    snprintf(out, FORMAT_TIME_MAX, "%" PRId64, ms / 1000);
}

/* "-" for 0 */
static void
words_dash(const struct words *w, int64_t number, char out[FORMAT_TIME_MAX])
{
    (void)w;
    snprintf(out, FORMAT_TIME_MAX, number == 0 ? "-" : "%" PRId64, number);
}

static const struct words_form {
    struct text name;
    void (*write)(const struct words *w, int64_t number, char out[FORMAT_TIME_MAX]);
} words_forms[] = {
    {TEXT("until"),       words_until      },
    {TEXT("at"),          words_at         },
    {TEXT("since"),       words_since      },
    {TEXT("local"),       words_local      },
    {TEXT("age"),         words_age        },
    {TEXT("span"),        words_span       },
    {TEXT("brief_age"),   words_brief_age  },
    {TEXT("brief_until"), words_brief_until},
    {TEXT("seconds"),     words_seconds    },
    {TEXT("size"),        words_size       },
    {TEXT("dash"),        words_dash       },
};

static void
words_form(const struct words *w, struct text name, int64_t number,
           char out[FORMAT_TIME_MAX])
{
    if (text_ends_nocase(name, TEXT("_s"))) {
        name = text_before(name, name.length - 2);
        number = (int64_t)((uint64_t)number * 1000);
    }
    for (size_t i = 0; i < sizeof(words_forms) / sizeof(words_forms[0]); i++)
        if (text_equal(name, words_forms[i].name)) {
            words_forms[i].write(w, number, out);
            return;
        }
    assert(!"such a form");
}

/* --- Templates ---------------------------------------------------------------------- */

/* field: "", "-34", ".200" or both. */
static void
words_put(const struct words *w, struct text said, struct text field)
{
    struct text width = TEXT("");
    uint64_t columns = 0, most = SIZE_MAX;
    bool is_left = text_starts(field, TEXT("-"));
    field = text_after(field, is_left);
    (void)text_cut(&field, '.', &width);
    (void)text_number(width, INT16_MAX, &columns);
    if (field.at != NULL)
        (void)text_number(field, INT16_MAX, &most);
    said = text_before(said, most);
    (void)!buffer_format(w->out, "%*.*s", is_left ? -(int)columns : (int)columns,
                         TEXT_ARGS(said));
}

/* value, as it stands between braces. */
static void
words_put_value(const struct words *w, struct text value)
{
    char form[FORMAT_TIME_MAX];
    struct text name, rest, said;
    (void)text_cut(&value, '%', &rest);
    (void)text_cut(&rest, '@', &name);
    if (rest.at != NULL) {
        words_form(w, rest, words_number(w, name), form);
        said = text_from(form);
    } else if (text_starts(name, TEXT("#"))) {
        snprintf(form, sizeof(form), "%" PRId64, words_number(w, text_after(name, 1)));
        said = text_from(form);
    } else {
        said = words_string(w, name);
    }
    words_put(w, said, value);
}

static bool
words_holds(const struct words *w, struct text condition)
{
    struct text right = condition, left;
    if (text_starts(condition, TEXT("?")))
        return words_find(w, text_after(condition, 1)) != NULL;
    if (text_find(condition, '=') != TEXT_NONE) {
        (void)text_cut(&right, '=', &left);
        return text_equal(words_string(w, left), right);
    }
    if (text_find(condition, '>') != TEXT_NONE) {
        (void)text_cut(&right, '>', &left);
        return words_number(w, left) > words_number(w, right);
    }
    const json_t *value = words_find(w, condition);
    return json_is_true(value) || json_string_length(value) > 0 ||
           json_integer_value(value) > 0;
}

/* The first such byte of t that is in no choice; t's length: there is none. */
static size_t
words_end(struct text t, char byte)
{
    size_t depth = 0, i = 0;
    for (; i < t.length && (depth > 0 || t.at[i] != byte); i++) {
        depth += t.at[i] == '[';
        depth -= t.at[i] == ']' && depth > 0;
    }
    return i;
}

static void
words_fill(const struct words *w, struct text t)
{
    while (t.length > 0) {
        size_t plain = 0;
        while (plain < t.length && t.at[plain] != '{' && t.at[plain] != '[')
            plain++;
        (void)!buffer_add(w->out, text_before(t, plain));
        if (plain == t.length)
            return;
        bool is_value = t.at[plain] == '{';
        t = text_after(t, plain + 1);
        size_t end = words_end(t, is_value ? '}' : ']');
        struct text inner = text_before(t, end), condition;
        assert(end < t.length);
        t = text_after(t, end + 1);
        if (is_value) {
            words_put_value(w, inner);
            continue;
        }
        (void)text_cut(&inner, ':', &condition);
        size_t bar = words_end(inner, '|');
        words_fill(w, words_holds(w, condition) ? text_before(inner, bar)
                                                : text_after(inner, bar + 1));
    }
}

void
words_say(struct buffer *out, const char *template, const json_t *object,
          int64_t now_ms)
{
    words_fill(&(struct words){out, object, now_ms}, text_from(template));
}

void
words_print(const char *template, const json_t *object, int64_t now_ms)
{
    struct buffer out;
    buffer_init(&out, WORDS_MAX);
    words_say(&out, template, object, now_ms);
    fwrite(out.at, 1, out.length, stdout);
    buffer_free(&out);
}

void
words_print_all(const char *template, const json_t *array, int64_t now_ms)
{
    for (size_t i = 0; i < json_array_size(array); i++)
        words_print(template, json_array_get(array, i), now_ms);
}
