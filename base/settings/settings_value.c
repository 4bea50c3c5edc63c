/* One value of a setting: numbers, sizes and durations; and misspelt keys. A value is
 * taken as a whole or refused: a number must be followed by a unit or nothing, since a
 * typing error that is cut off would become a wrong limit. The values of secret rows
 * are not shown in errors. */
#include "base/settings/settings_value.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 64, SLIPS_MAX = 2, NEAR_MIN = 4 };

struct unit {
    struct text name;
    int64_t factor;
};

static const struct unit sizes[] = {
    {TEXT(""),  1      },
    {TEXT("K"), 1 << 10},
    {TEXT("M"), 1 << 20},
    {TEXT("G"), 1 << 30},
    {TEXT("k"), 1 << 10},
    {TEXT("m"), 1 << 20},
    {TEXT("g"), 1 << 30},
    {{NULL, 0}, 0      },
};

static const struct unit durations[] = {
    {TEXT(""),   1000                   },
    {TEXT("ms"), 1                      },
    {TEXT("s"),  1000                   },
    {TEXT("m"),  60 * 1000              },
    {TEXT("h"),  60 * 60 * 1000         },
    {TEXT("d"),  24 * 60 * 60 * 1000    },
    {TEXT("w"),  7 * 24 * 60 * 60 * 1000},
    {{NULL, 0},  0                      },
};

static const struct {
    struct text word;
    bool value;
} words[] = {
    {TEXT("yes"),   true },
    {TEXT("no"),    false},
    {TEXT("true"),  true },
    {TEXT("false"), false},
    {TEXT("on"),    true },
    {TEXT("off"),   false},
    {TEXT("1"),     true },
    {TEXT("0"),     false},
};

/* Digits, then one of the units. */
static bool
parse_with_unit(struct text t, const struct unit *units, int64_t *value)
{
    size_t count = 0;
    while (count < t.length && t.at[count] >= '0' && t.at[count] <= '9')
        count++;
    struct text name = text_after(t, count);
    while (units->name.at != NULL && !text_equal(units->name, name))
        units++;
    uint64_t number;
    /* The limit of the number keeps the product within int64_t. */
    if (units->name.at == NULL ||
        !text_number(text_before(t, count), (uint64_t)(INT64_MAX / units->factor),
                     &number))
        return false;
    *value = (int64_t)number * units->factor;
    return true;
}

static bool
parse_number(struct text t, int64_t *value)
{
    bool negative = text_starts(t, TEXT("-"));
    uint64_t number;
    if (!text_number(text_after(t, negative ? 1 : 0), INT64_MAX, &number))
        return false;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static bool
parse_bool(struct text t, bool *value)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (text_equal_nocase(t, words[i].word)) {
            *value = words[i].value;
            return true;
        }
    }
    return false;
}

__attribute__((format(printf, 2, 3))) static bool
refuse(struct buffer *why, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    bool added = buffer_format_list(why, format, list);
    va_end(list);
    assert(added);
    return false;
}

/* A field of fewer bytes holds whatever max allows. */
static void
store_number(const struct setting *row, int64_t value, void *field)
{
    const int32_t word = (int32_t)value;
    const uint16_t half = (uint16_t)value;
    assert(row->size == 0 || row->size == sizeof(value) ||
           (row->min >= 0 && row->max > 0 &&
            row->max <= (row->size == sizeof(half) ? UINT16_MAX : INT32_MAX)));
    if (row->size == sizeof(half))
        memcpy(field, &half, sizeof(half));
    else if (row->size == sizeof(word))
        memcpy(field, &word, sizeof(word));
    else
        memcpy(field, &value, sizeof(value));
}

/* Numbers within bounds; the message names the bound as the user would write it. */
static bool
set_number(const struct setting *row, int64_t value, void *field, struct buffer *why)
{
    const char *unit = row->kind == SETTING_SIZE       ? " bytes"
                       : row->kind == SETTING_DURATION ? " ms"
                                                       : "";
    if (value < row->min)
        return refuse(why, "%" PRId64 "%s is less than the minimum, %" PRId64 "%s",
                      value, unit, row->min, unit);
    if (row->max != 0 && value > row->max)
        return refuse(why, "%" PRId64 "%s is more than the maximum, %" PRId64 "%s",
                      value, unit, row->max, unit);
    store_number(row, value, field);
    return true;
}

/* The number of edits between two words; optimal string alignment. The array is on the
 * stack, so words are at most KEY_MAX long. */
static size_t
count_slips(struct text a, struct text b)
{
    size_t slips[KEY_MAX + 1][KEY_MAX + 1];
    assert(a.length <= KEY_MAX && b.length <= KEY_MAX);
    for (size_t i = 0; i <= a.length; i++) {
        for (size_t j = 0; j <= b.length; j++) {
            size_t least = i + j;
            if (i > 0 && j > 0) {
                size_t replaced = a.at[i - 1] != b.at[j - 1];
                least = slips[i - 1][j - 1] + replaced;
                if (slips[i - 1][j] + 1 < least)
                    least = slips[i - 1][j] + 1;
                if (slips[i][j - 1] + 1 < least)
                    least = slips[i][j - 1] + 1;
            }
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] &&
                a.at[i - 2] == b.at[j - 1] && slips[i - 2][j - 2] + 1 < least)
                least = slips[i - 2][j - 2] + 1;
            slips[i][j] = least;
        }
    }
    return slips[a.length][b.length];
}

bool
settings_parse_duration(struct text t, int64_t *ms)
{
    return parse_with_unit(t, durations, ms);
}

bool
settings_parse_size(struct text t, int64_t *bytes)
{
    return parse_with_unit(t, sizes, bytes);
}

/* "'a': say b, c or d" */
static bool
refuse_word(const char *const *list, const char *shown, struct buffer *why)
{
    bool good = buffer_format(why, "'%.100s': say %s", shown, list[0]);
    for (size_t i = 1; good && list[i] != NULL; i++)
        good = buffer_format(why, "%s%s", list[i + 1] ? ", " : " or ", list[i]);
    assert(good);
    return false;
}

static bool
set_word(const struct setting *row, struct text t, void *field, struct buffer *why)
{
    int value = (int)row->min;
    const char *const *word = row->words;
    for (; *word != NULL && !text_equal(t, text_from(*word)); word++)
        value++;
    if (*word == NULL)
        return refuse_word(row->words, t.at, why);
    if (row->size == sizeof(bool))
        memcpy(field, &(bool){value != 0}, sizeof(bool));
    else
        memcpy(field, &value, sizeof(value));
    return true;
}

bool
settings_value_set(const struct setting *row, char *text, void *target,
                   struct buffer *why)
{
    char *field = (char *)target + row->offset;
    struct text t = text_from(text);
    int64_t number = 0;
    bool flag = false;
    const char *shown = row->secret ? "the value" : text;
    switch (row->kind) {
    case SETTING_STRING:
    case SETTING_LIST:
        /* "key =" unsets the value of a weaker source. */
        if (t.length == 0)
            text = NULL;
        /* Borrowed: the entry of the settings owns it. */
        if (row->size == sizeof(t))
            memcpy(field, &t, sizeof(t));
        else
            memcpy(field, &text, sizeof(text));
        return true;
    case SETTING_WORD:
        return set_word(row, t, field, why);
    case SETTING_BOOL:
        if (!parse_bool(t, &flag))
            return refuse(why, "'%.60s' is neither yes nor no", shown);
        if (row->size == sizeof(int))
            memcpy(field, &(int){flag}, sizeof(int));
        else
            memcpy(field, &flag, sizeof(flag));
        return true;
    case SETTING_NUMBER:
        if (!parse_number(t, &number))
            return refuse(why, "'%.60s' is not a number", shown);
        return set_number(row, number, field, why);
    case SETTING_SIZE:
        if (!settings_parse_size(t, &number))
            return refuse(why, "'%.60s' is not a size: digits, then K, M, G or nothing",
                          shown);
        return set_number(row, number, field, why);
    case SETTING_DURATION:
        if (!settings_parse_duration(t, &number))
            return refuse(
                why, "'%.60s' is not a time: digits, then ms, s, m, h, d, w or nothing",
                shown);
        return set_number(row, number, field, why);
    }
    abort(); /* a kind that does not exist */
}

struct text
settings_text(const struct setting *row, const void *target)
{
    const void *field = (const char *)target + row->offset;
    return row->size == sizeof(struct text) ? *(const struct text *)field
                                            : text_from(*(char *const *)field);
}

const struct setting *
settings_find(const struct setting *rows, struct text key)
{
    for (const struct setting *row = rows; row->key != NULL; row++)
        if (text_equal(text_from(row->key), key))
            return row;
    return NULL;
}

const struct setting *
settings_guess(const struct setting *rows, struct text key)
{
    const struct setting *best = NULL;
    size_t least = SLIPS_MAX + 1;
    if (key.length > KEY_MAX)
        return NULL;
    for (const struct setting *row = rows; row->key != NULL; row++) {
        struct text known = text_from(row->key);
        if (known.length > KEY_MAX)
            continue;
        size_t slips = count_slips(known, key);
        /* Two edits turn a word of four letters into any other. */
        if (slips < least && slips * 2 < known.length) {
            least = slips;
            best = row;
        }
    }
    return best;
}

const struct setting *
settings_nearest(const struct setting *rows, struct text key)
{
    const struct setting *best = NULL;
    size_t most = NEAR_MIN - 1;
    for (const struct setting *row = rows; row->key != NULL; row++) {
        size_t same = 0;
        while (same < key.length && row->key[same] == key.at[same])
            same++;
        if (same > most) {
            most = same;
            best = row;
        }
    }
    return best;
}

bool
settings_is_of_kubernetes(struct text key)
{
    static const char *const parts[] = {"service_host", "service_port", "port_"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *found = memmem(key.at, key.length, parts[i], strlen(parts[i]));
        if (found != NULL && (found == key.at || found[-1] == '_'))
            return true;
    }
    return text_equal(key, TEXT("port")) || text_ends_nocase(key, TEXT("_port"));
}

/* --- Credentials ------------------------------------------------------------------- */

static const char credential_separators[] = ", \t\r\n";
static const char credential_prefix[] = "credential:";

enum {
    CREDENTIAL_NAME_MAX = 255,
    CREDENTIAL_VALUE_MAX = 4 * 1024 * 1024 /* as a settings file */
};

static bool
is_separator(char c)
{
    for (const char *s = credential_separators; *s != '\0'; s++)
        if (c == *s)
            return true;
    return false;
}

/* Where it begins in a word: at its start, or behind "@" there or in KEY=@, as files with
 * secrets are written in tables. user@credential:25 is another thing. */
static size_t
credential_start(struct text word)
{
    for (size_t at = 0; at < word.length; at++) {
        bool may =
            at == 0 || (word.at[at - 1] == '@' && (at == 1 || word.at[at - 2] == '='));
        if (may && text_starts(text_after(word, at), text_from(credential_prefix)))
            return at;
    }
    return TEXT_NONE;
}

bool
settings_credential_is_in(struct text value)
{
    struct text word;
    while (text_word(&value, credential_separators, &word))
        if (credential_start(word) != TEXT_NONE)
            return true;
    return false;
}

/* As systemd has them: names of files. */
static bool
credential_is_name(struct text name)
{
    return name.length > 0 && name.length <= CREDENTIAL_NAME_MAX &&
           text_find(name, '/') == TEXT_NONE && !text_equal(name, TEXT(".")) &&
           !text_equal(name, TEXT("..")) && !text_has_control(name);
}

const char *
settings_credential_expand(struct text value, const char *directory, struct buffer *out)
{
    while (value.length > 0) {
        size_t length = 0;
        while (length < value.length && !is_separator(value.at[length]))
            length++;
        struct text word = text_before(value, length), name = word;
        size_t start = credential_start(word);
        if (start != TEXT_NONE) {
            name = text_after(word, start + sizeof(credential_prefix) - 1);
            if (!credential_is_name(name))
                return "credential:NAME needs the name of a file, without a slash";
            if (directory == NULL || directory[0] != '/')
                return "CREDENTIALS_DIRECTORY is not set: credential:NAME is for "
                       "LoadCredential= in a unit of systemd";
            if (!buffer_add(out, text_before(word, start)) ||
                !buffer_add(out, text_from(directory)) || !buffer_add_byte(out, '/'))
                return "it is too long";
        }
        size_t with = length < value.length ? length + 1 : length;
        if (!buffer_add(out, name) ||
            !buffer_add(out, text_after(text_before(value, with), length)))
            return "it is too long";
        value = text_after(value, with);
    }
    return NULL;
}

const char *
settings_credential_replace(char **value, const char *directory)
{
    struct buffer out;
    size_t length = strlen(*value);
    const char *why = "it is too long";
    buffer_init(&out, CREDENTIAL_VALUE_MAX);
    /* At the limit from the beginning: a buffer that grows leaves copies. */
    if (buffer_reserve(&out, CREDENTIAL_VALUE_MAX) != NULL)
        why = settings_credential_expand(text_of(*value, length), directory, &out);
    explicit_bzero(*value, length);
    free(*value);
    *value = text_string(buffer_text(&out));
    if (out.at != NULL)
        explicit_bzero(out.at, out.length);
    buffer_free(&out);
    return why;
}
