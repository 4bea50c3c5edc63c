/* Fills templates in. */
#include "admin/view/words.h"

#include "base/format_time.h"

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

static const char *
words_at(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    char until[FORMAT_TIME_MAX];
    snprintf(out, FORMAT_TIME_MAX, "%s%.60s", ms > now_ms ? "at " : "",
             format_time_until(ms, now_ms, until));
    return out;
}

static const char *
words_local(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    (void)now_ms;
    return format_time_local(ms, LOCAL_YEAR, out);
}

static const char *
words_age(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    return format_time_span((int64_t)((uint64_t)now_ms - (uint64_t)ms), out);
}

static const char *
words_span(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    (void)now_ms;
    return format_time_span(ms, out);
}

static const char *
words_brief(int64_t seconds, char out[FORMAT_TIME_MAX])
{
    char letter = seconds < 120      ? 's'
                  : seconds < 7200   ? 'm'
                  : seconds < 172800 ? 'h'
                                     : 'd';
    int64_t unit = letter == 's'   ? 1
                   : letter == 'm' ? 60
                   : letter == 'h' ? 3600
                                   : 86400;
    snprintf(out, FORMAT_TIME_MAX, "%" PRId64 "%c", seconds > 0 ? seconds / unit : 0,
             letter);
    return out;
}

static const char *
words_brief_age(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    return words_brief(now_ms / 1000 - ms / 1000, out);
}

static const char *
words_brief_until(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    return words_brief(ms / 1000 - now_ms / 1000, out);
}

static const char *
words_seconds(int64_t ms, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    (void)now_ms;
    snprintf(out, FORMAT_TIME_MAX, "%" PRId64, ms / 1000);
    return out;
}

static const char *
words_size(int64_t bytes, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double value = (double)bytes / 1000;
    size_t unit = 0;
    (void)now_ms;
    while (value >= 1000 && unit + 1 < sizeof(units) / sizeof(*units)) {
        value /= 1000;
        unit++;
    }
    snprintf(out, FORMAT_TIME_MAX, "%.1f %s", value, units[unit]);
    return out;
}

static const char *
words_dash(int64_t number, int64_t now_ms, char out[FORMAT_TIME_MAX])
{
    (void)now_ms;
    snprintf(out, FORMAT_TIME_MAX, number == 0 ? "-" : "%" PRId64, number);
    return out;
}

static const struct words_form {
    struct text name;
    const char *(*write)(int64_t number, int64_t now_ms, char out[FORMAT_TIME_MAX]);
} words_forms[] = {
    {TEXT("until"),       format_time_until}, /* "14:03:20Z (in 12 s)" */
    {TEXT("at"),          words_at         }, /* "at 14:03:20Z (in 12 s)", or "now" */
    {TEXT("since"),       format_time_since}, /* "13:03:20Z (12 s ago)" */
    {TEXT("local"),       words_local      }, /* "21 Nov 2026 12:06:15" */
    {TEXT("age"),         words_age        }, /* until now: "12 s" */
    {TEXT("span"),        words_span       },
    {TEXT("brief_age"),   words_brief_age  }, /* "45s", "12m", "3h", "2d" */
    {TEXT("brief_until"), words_brief_until},
    {TEXT("seconds"),     words_seconds    },
    {TEXT("size"),        words_size       }, /* "1.5 MB" */
    {TEXT("dash"),        words_dash       }, /* "-" for 0 */
};

static const char *
words_form(const struct words *w, struct text name, int64_t number,
           char out[FORMAT_TIME_MAX])
{
    if (text_ends_nocase(name, TEXT("_s"))) {
        name = text_before(name, name.length - 2);
        number = (int64_t)((uint64_t)number * 1000);
    }
    for (size_t i = 0; i < sizeof(words_forms) / sizeof(words_forms[0]); i++)
        if (text_equal(name, words_forms[i].name))
            return words_forms[i].write(number, w->now_ms, out);
    assert(false && "a form that templates use");
    return "";
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
    said = text_before(said, (size_t)most);
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
        said = text_from(words_form(w, rest, words_number(w, name), form));
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
