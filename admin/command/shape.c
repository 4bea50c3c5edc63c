/* Counts mail by name and age. */
#include "admin/command/shape.h"

#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/settings/complaint.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <uthash.h>

enum { MINUTE_MS = 60 * 1000, WIDTH_MIN = 5, NAME_WIDTH_MIN = 5, NAME_WIDTH_MAX = 40 };

static const int64_t ages_min[SHAPE_AGES - 1] = {5,   10,  20,  40,  80,
                                                 160, 320, 640, 1280};

struct shape_counts {
    uint64_t all, ages[SHAPE_AGES];
};

struct shape_row {
    char *name;
    struct shape_counts counts;
    UT_hash_handle hh;
};

struct shape {
    struct shape_row *rows; /* by name */
    struct shape_counts total;
};

struct shape *
shape_new(void)
{
    return memory_new(sizeof(struct shape));
}

void
shape_free(struct shape **s)
{
    struct shape_row *row, *next;
    if (*s == NULL)
        return;
    HASH_ITER (hh, (*s)->rows, row, next) {
        HASH_DEL((*s)->rows, row);
        free(row->name);
        free(row);
    }
    free(*s);
    *s = NULL;
}

static size_t
shape_age(int64_t age_ms)
{
    size_t i = 0;
    while (i < SHAPE_AGES - 1 && age_ms > ages_min[i] * MINUTE_MS)
        i++;
    return i;
}

static void
shape_count(struct shape_counts *c, size_t age, uint64_t count)
{
    c->all += count;
    c->ages[age] += count;
}

/* NULL: there are too many names. */
static struct shape_row *
shape_find(struct shape *s, struct text name)
{
    struct shape_row *row;
    char *lower = text_string(name);
    text_lower(lower, name.length);
    HASH_FIND(hh, s->rows, lower, name.length, row);
    if (row != NULL || HASH_COUNT(s->rows) == SHAPE_NAMES_MAX) {
        free(lower);
        return row;
    }
    row = memory_new(sizeof(*row));
    row->name = lower;
    HASH_ADD_KEYPTR(hh, s->rows, row->name, name.length, row);
    return row;
}

void
shape_add(struct shape *s, struct text name, int64_t age_ms, uint64_t count)
{
    size_t age = shape_age(age_ms);
    if (count == 0)
        return;
    struct shape_row *row = shape_find(s, name);
    shape_count(&s->total, age, count);
    if (row != NULL)
        shape_count(&row->counts, age, count);
}

static int
shape_compare(const struct shape_row *a, const struct shape_row *b)
{
    if (a->counts.all != b->counts.all)
        return a->counts.all < b->counts.all ? 1 : -1;
    return strcmp(a->name, b->name);
}

/* Sorts, and takes the rows that are shown out of `other`. */
static struct shape_counts
shape_others(struct shape *s)
{
    struct shape_counts rest = s->total;
    size_t shown = 0;
    HASH_SORT(s->rows, shape_compare);
    for (const struct shape_row *row = s->rows; row != NULL && shown < SHAPE_ROWS;
         row = row->hh.next, shown++) {
        rest.all -= row->counts.all;
        for (size_t i = 0; i < SHAPE_AGES; i++)
            rest.ages[i] -= row->counts.ages[i];
    }
    return rest;
}

/* --- As a table ------------------------------------------------------------------- */

struct shape_widths {
    int name, all, ages[SHAPE_AGES];
};

static int
digits(uint64_t number)
{
    return snprintf(NULL, 0, "%" PRIu64, number);
}

/* The terminal's form of a name: peers have written it. */
static char *
shape_shown(const char *name)
{
    json_t *clean = listing_text(text_from(name));
    char *shown = memory_string(json_string_value(clean));
    json_decref(clean);
    return shown;
}

static void
shape_print_row(FILE *out, const struct shape_widths *w, const char *name,
                const struct shape_counts *c)
{
    char *shown = shape_shown(name);
    fprintf(out, "%*s %*" PRIu64, w->name, shown, w->all, c->all);
    for (size_t i = 0; i < SHAPE_AGES; i++)
        fprintf(out, " %*" PRIu64, w->ages[i], c->ages[i]);
    fputc('\n', out);
    free(shown);
}

static struct shape_widths
shape_measure(const struct shape *s)
{
    struct shape_widths w = {.name = NAME_WIDTH_MIN, .all = WIDTH_MIN};
    int age = WIDTH_MIN - 1;
    size_t shown = 0;
    for (const struct shape_row *row = s->rows; row != NULL && shown < SHAPE_ROWS;
         row = row->hh.next, shown++) {
        char *name = shape_shown(row->name);
        size_t length = strlen(name);
        free(name);
        if (length > (size_t)w.name)
            w.name = length < NAME_WIDTH_MAX ? (int)length : NAME_WIDTH_MAX;
    }
    if (digits(s->total.all) > w.all)
        w.all = digits(s->total.all);
    for (size_t i = 0; i < SHAPE_AGES; i++)
        if (digits(s->total.ages[i]) > age)
            age = digits(s->total.ages[i]);
    for (size_t i = 0; i < SHAPE_AGES; i++)
        w.ages[i] = age;
    if (age < WIDTH_MIN)
        w.ages[SHAPE_AGES - 1] = WIDTH_MIN; /* that of "1280+" */
    return w;
}

void
shape_print(struct shape *s, FILE *out)
{
    struct shape_counts others = shape_others(s);
    struct shape_widths w = shape_measure(s);
    size_t shown = 0;
    fprintf(out, "%*s %*s", w.name, "", w.all, "T");
    for (size_t i = 0; i < SHAPE_AGES - 1; i++)
        fprintf(out, " %*" PRId64, w.ages[i], ages_min[i]);
    fprintf(out, " %*s\n", w.ages[SHAPE_AGES - 1], "1280+");
    shape_print_row(out, &w, "TOTAL", &s->total);
    for (const struct shape_row *row = s->rows; row != NULL && shown < SHAPE_ROWS;
         row = row->hh.next, shown++)
        shape_print_row(out, &w, row->name, &row->counts);
    if (others.all > 0)
        shape_print_row(out, &w, "other", &others);
}

/* --- As JSON ---------------------------------------------------------------------- */

static json_t *
shape_make_counts(const struct shape_counts *c)
{
    json_t *ages = json_array();
    for (size_t i = 0; i < SHAPE_AGES; i++)
        json_array_append_new(ages, json_integer((json_int_t)c->ages[i]));
    return json_pack("{s:I,s:o}", "count", (json_int_t)c->all, "ages", ages);
}

json_t *
shape_make(struct shape *s)
{
    struct shape_counts others = shape_others(s);
    json_t *ages = json_array(), *rows = json_array();
    for (size_t i = 0; i < SHAPE_AGES - 1; i++)
        json_array_append_new(ages, json_integer(ages_min[i]));
    for (const struct shape_row *row = s->rows;
         row != NULL && json_array_size(rows) < SHAPE_ROWS; row = row->hh.next) {
        json_t *counts = shape_make_counts(&row->counts);
        json_object_set_new(counts, "name", listing_text(text_from(row->name)));
        json_array_append_new(rows, counts);
    }
    json_t *other = shape_make_counts(&others);
    size_t names = HASH_COUNT(s->rows) - json_array_size(rows);
    json_object_set_new(other, "names", json_integer((json_int_t)names));
    return json_pack("{s:o,s:o,s:o,s:o}", "ages_min", ages, "total",
                     shape_make_counts(&s->total), "rows", rows, "other", other);
}

static const char *const shape_by_words[] = {"recipient", "sender", "site"};

static bool
shape_choose(const char *word, enum shape_by *by)
{
    for (size_t i = 0; i < sizeof(shape_by_words) / sizeof(*shape_by_words); i++)
        if (strcmp(word, shape_by_words[i]) == 0) {
            *by = (enum shape_by)i;
            return true;
        }
    complaint_say("petrel queue", EX_USAGE, "--by needs recipient, sender or site",
                  word);
    return false;
}

const char *
shape_word(enum shape_by by)
{
    return shape_by_words[by];
}

bool
shape_parse(int *count, char **arguments, enum shape_by *by)
{
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const char *word = NULL;
        if (strncmp(arguments[i], "--by=", strlen("--by=")) == 0)
            word = arguments[i] + strlen("--by=");
        else if (strcmp(arguments[i], "--by") == 0)
            word = i + 1 < *count ? arguments[++i] : "";
        else
            arguments[kept++] = arguments[i];
        if (word != NULL && !shape_choose(word, by))
            return false;
    }
    *count = kept;
    return true;
}

/* For a local name: itself. */
static struct text
shape_domain(struct text address)
{
    size_t at = text_find_last(address, '@');
    if (address.length == 0)
        return TEXT("<>");
    return at == TEXT_NONE ? address : text_after(address, at + 1);
}

static void
shape_add_recipients(struct shape *s, const struct envelope *e, int64_t age_ms)
{
    for (unsigned i = 0; i < e->count; i++)
        if (!e->recipients[i].done)
            shape_add(s, shape_domain(e->recipients[i].address), age_ms, 1);
}

/* Held mail, and mail just found, has no site yet. */
static void
shape_add_sites(struct shape *s, const struct envelope *e, const json_t *why,
                int64_t age_ms)
{
    const json_t *hops = json_object_get(why, "hops"), *hop;
    uint64_t open = 0, known = 0;
    size_t index;
    for (unsigned i = 0; i < e->count; i++)
        open += !e->recipients[i].done;
    json_array_foreach (hops, index, hop) {
        const char *site = json_field_string(json_object_get(hop, "site"), "site");
        const char *name = site[0] ? site : json_field_string(hop, "destination");
        uint64_t waiting = (uint64_t)json_field_number(hop, "open");
        shape_add(s, text_from(name), age_ms, waiting);
        known += waiting;
    }
    if (known < open)
        shape_add(s, TEXT("no site"), age_ms, open - known);
}

void
shape_add_message(struct shape *s, enum shape_by by, const struct envelope *e,
                  const json_t *why, int64_t now_ms)
{
    int64_t age_ms = now_ms - e->birth_ms;
    switch (by) {
    case SHAPE_BY_RECIPIENT:
        shape_add_recipients(s, e, age_ms);
        return;
    case SHAPE_BY_SENDER:
        shape_add(s, shape_domain(e->sender), age_ms, 1);
        return;
    case SHAPE_BY_SITE:
        shape_add_sites(s, e, why, age_ms);
        return;
    }
}
