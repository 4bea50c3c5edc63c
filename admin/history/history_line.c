/* Reads lines of the history. */
#include "admin/history/history_line.h"

#include <string.h>

enum { TIME_LENGTH = 24, PROGRAM_MAX = 20, YEAR_LEAST = 1970, YEAR_MOST = 9999 };

/* The number of count digits at `at`, or -1. */
static int64_t
digits_read(const char *at, size_t count)
{
    int64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        if (!text_is_digit(at[i]))
            return -1;
        value = value * 10 + (at[i] - '0');
    }
    return value;
}

/* Days since 1970 of the proleptic Gregorian calendar; years begin in March, so that
 * the leap day is their last. */
static int64_t
days_since_1970(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2;
    int64_t era = year / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t
history_line_time(struct text t)
{
    if (t.length != TIME_LENGTH || t.at[4] != '-' || t.at[7] != '-' ||
        t.at[10] != 'T' || t.at[13] != ':' || t.at[16] != ':' || t.at[19] != '.' ||
        t.at[23] != 'Z')
        return -1;
    int64_t year = digits_read(t.at, 4), month = digits_read(t.at + 5, 2),
            day = digits_read(t.at + 8, 2), hour = digits_read(t.at + 11, 2),
            minute = digits_read(t.at + 14, 2), second = digits_read(t.at + 17, 2),
            ms = digits_read(t.at + 20, 3);
    if (year < YEAR_LEAST || year > YEAR_MOST || month < 1 || month > 12 || day < 1 ||
        day > 31 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60 || ms < 0)
        return -1;
    int64_t days = days_since_1970(year, month, day);
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms;
}

/* Cuts "TIME PROGRAM: [ID: ]" off *rest. */
static bool
history_line_head(struct text *rest, struct history_line *out)
{
    *out = (struct history_line){
        .time_ms = history_line_time(text_before(*rest, TIME_LENGTH))};
    struct text t = text_after(*rest, TIME_LENGTH);
    if (out->time_ms < 0 || !text_starts(t, TEXT(" ")))
        return false;
    t = text_after(t, 1);
    size_t colon = text_find(text_before(t, PROGRAM_MAX + 1), ':');
    if (colon == TEXT_NONE || colon == 0 ||
        !text_starts(text_after(t, colon), TEXT(": ")))
        return false;
    out->program = text_before(t, colon);
    t = text_after(t, colon + 2);
    if (id_parse(text_before(t, ID_LENGTH), &out->id) &&
        text_starts(text_after(t, ID_LENGTH), TEXT(": ")))
        t = text_after(t, ID_LENGTH + 2);
    else
        out->id = (struct id){0};
    *rest = t;
    return true;
}

bool
history_line_glance(struct text line, int64_t *time_ms, struct id *id)
{
    struct history_line read;
    bool is_line = history_line_head(&line, &read);
    *time_ms = read.time_ms;
    *id = read.id;
    return is_line;
}

bool
history_line_read(struct text line, struct history_line *out)
{
    if (!history_line_head(&line, out) || line.length == 0)
        return false;
    out->fields = line;
    struct history_field first;
    if (!history_line_field(&line, &first) || !text_equal(first.key, TEXT("event")))
        return false;
    out->event = first.value;
    return out->event.length > 0;
}

/* The length of the value that t begins with. */
static size_t
value_length(struct text t)
{
    size_t close = text_starts(t, TEXT("<")) ? text_find(t, '>') : TEXT_NONE;
    if (close != TEXT_NONE) {
        struct text behind = text_after(t, close + 1);
        if (behind.length == 0 || text_starts(behind, TEXT(", ")) ||
            text_starts(behind, TEXT(" (")))
            return close + 1;
    }
    for (size_t i = 0; i + 1 < t.length; i++)
        if ((t.at[i] == ',' && t.at[i + 1] == ' ') ||
            (t.at[i] == ' ' && t.at[i + 1] == '('))
            return i;
    return t.length;
}

bool
history_line_field(struct text *fields, struct history_field *field)
{
    struct text t = *fields;
    if (t.length == 0)
        return false;
    if (text_starts(t, TEXT(" ("))) {
        t = text_after(t, 2);
        bool closed = t.length > 0 && t.at[t.length - 1] == ')';
        field->key = TEXT("");
        field->value = text_before(t, closed ? t.length - 1 : t.length);
        *fields = TEXT("");
        return true;
    }
    size_t equals = text_find(t, '=');
    if (equals == TEXT_NONE)
        return false;
    field->key = text_before(t, equals);
    t = text_after(t, equals + 1);
    size_t length = value_length(t);
    field->value = text_before(t, length);
    t = text_after(t, length);
    *fields = text_starts(t, TEXT(", ")) ? text_after(t, 2) : t;
    return true;
}

struct text
history_line_value(const struct history_line *line, const char *key)
{
    struct text rest = line->fields, wanted = text_from(key);
    struct history_field field;
    while (history_line_field(&rest, &field))
        if (text_equal(field.key, wanted))
            return field.value;
    return TEXT("");
}
