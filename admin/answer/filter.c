/* Reads and applies --to, --from, --older, --queue, --first and ids. */
#include "admin/answer/filter.h"

#include "admin/settings/complaint.h"
#include "base/settings/settings.h"

#include <string.h>
#include <sysexits.h>

static const char *const places[] = {"maildrop", "incoming", "active",  "deferred",
                                     "defrag",   "hold",     "corrupt", NULL};

static bool
filter_complain(const char *what, const char *argument)
{
    complaint_say("petrel queue", EX_USAGE, what, argument);
    return false;
}

bool
filter_is_place(const char *word)
{
    for (size_t i = 0; places[i]; i++)
        if (strcmp(places[i], word) == 0)
            return true;
    return false;
}

static struct filter_id *
find_id(struct filter *f, struct id id)
{
    for (size_t i = 0; i < f->id_count; i++)
        if (id_compare(f->ids[i].id, id) == 0)
            return &f->ids[i];
    return NULL;
}

bool
filter_add_id(struct filter *f, struct id id)
{
    if (find_id(f, id))
        return true;
    if (f->id_count == FILTER_IDS_MAX)
        return false;
    f->ids[f->id_count++] = (struct filter_id){.id = id};
    return true;
}

static bool
add_id(struct filter *f, const char *argument)
{
    struct id id;
    if (!id_read(text_from(argument), &id))
        return filter_complain("not a message id", argument);
    return filter_add_id(f, id) ||
           filter_complain("too many ids; use a filter", argument);
}

static bool
set_to(struct filter *f, const char *value)
{
    f->to = value;
    return value[0] || filter_complain("--to needs a domain or address", value);
}

static bool
set_from(struct filter *f, const char *value)
{
    f->from = strcmp(value, "<>") == 0 ? "" : value;
    return true;
}

static bool
set_older(struct filter *f, const char *value)
{
    return settings_parse_duration(text_from(value), &f->older_ms) ||
           filter_complain("--older needs a time such as 30m or 2d", value);
}

static bool
set_place(struct filter *f, const char *value)
{
    f->place = value;
    return filter_is_place(value) ||
           filter_complain(
               "--queue needs maildrop, incoming, active, deferred, defrag, "
               "hold or corrupt",
               value);
}

static bool
set_first(struct filter *f, const char *value)
{
    return id_read(text_from(value), &f->first) ||
           filter_complain("--first needs a message id", value);
}

static const struct condition {
    const char *name;
    bool (*set)(struct filter *f, const char *value);
} conditions[] = {
    {"--to",    set_to   },
    {"--from",  set_from },
    {"--older", set_older},
    {"--queue", set_place},
    {"--first", set_first},
};

/* name is "--to" or "--to=value". */
static const struct condition *
find_condition(const char *name)
{
    struct text wanted = text_before(text_from(name), strcspn(name, "="));
    for (size_t i = 0; i < sizeof(conditions) / sizeof(*conditions); i++)
        if (text_equal(wanted, text_from(conditions[i].name)))
            return &conditions[i];
    return NULL;
}

static bool
add_option(struct filter *f, char **arguments, int count, int *used)
{
    const char *argument = arguments[*used], *equal = strchr(argument, '=');
    if (strcmp(argument, "--json") == 0) {
        f->json = true;
        return true;
    }
    if (strcmp(argument, "--all") == 0) {
        f->everything = true;
        return true;
    }
    if (strcmp(argument, "--cluster") == 0) {
        f->cluster = true;
        return true;
    }
    const struct condition *condition = find_condition(argument);
    if (condition == NULL)
        return filter_complain("unknown option", argument);
    if (equal)
        return condition->set(f, equal + 1);
    if (++*used == count)
        return filter_complain("a value is missing", argument);
    return condition->set(f, arguments[*used]);
}

void
filter_clear(struct filter *f)
{
    memset(f, 0, sizeof(*f));
    f->older_ms = -1;
}

bool
filter_parse(struct filter *f, int count, char **arguments)
{
    filter_clear(f);
    for (int i = 0; i < count; i++) {
        bool good = arguments[i][0] == '-' ? add_option(f, arguments, count, &i)
                                           : add_id(f, arguments[i]);
        if (!good)
            return false;
    }
    return true;
}

static bool
is_unconditional(const struct filter *f)
{
    return f->id_count == 0 && !f->to && !f->from && !f->place && !f->wants &&
           f->older_ms < 0 && f->first.time_ms == 0;
}

bool
filter_is_open(const struct filter *f)
{
    return !f->everything && is_unconditional(f);
}

bool
filter_is_all(const struct filter *f)
{
    return f->everything && is_unconditional(f);
}

bool
filter_is_ids(const struct filter *f)
{
    return f->id_count > 0 && !f->everything && !filter_needs_envelope(f) && !f->place;
}

bool
filter_wants_id(struct filter *f, struct id id)
{
    struct filter_id *wanted = find_id(f, id);
    if (wanted)
        wanted->met = true;
    return wanted || f->id_count == 0;
}

void
filter_lose_id(struct filter *f, struct id id)
{
    struct filter_id *wanted = find_id(f, id);
    if (wanted)
        wanted->met = false;
}

const struct id *
filter_missing(const struct filter *f)
{
    for (size_t i = 0; i < f->id_count; i++)
        if (!f->ids[i].met)
            return &f->ids[i].id;
    return NULL;
}

/* An address equals, or its domain does. */
static bool
address_matches(struct text address, const char *wanted)
{
    struct text pattern = text_from(wanted);
    if (text_equal_nocase(address, pattern))
        return true;
    size_t at = text_find_last(address, '@');
    return at != TEXT_NONE && text_find(pattern, '@') == TEXT_NONE &&
           text_equal_nocase(text_after(address, at + 1), pattern);
}

/* One that has never moved has the id of its birth. */
static bool
filter_matches_first(const struct filter *f, const struct envelope *e)
{
    struct id first = e->id;
    if (e->moved.first.length > 0 && !id_parse(e->moved.first, &first))
        return false;
    return id_compare(first, f->first) == 0;
}

bool
filter_matches(const struct filter *f, const struct envelope *e, const char *place,
               int64_t now_ms)
{
    bool to = f->to == NULL;
    for (unsigned i = 0; i < e->count && !to; i++)
        to = address_matches(e->recipients[i].address, f->to);
    if (f->from && !address_matches(e->sender, f->from))
        return false;
    if (f->older_ms >= 0 && now_ms - e->birth_ms < f->older_ms)
        return false;
    if (f->first.time_ms != 0 && !filter_matches_first(f, e))
        return false;
    return to && (f->place == NULL || strcmp(f->place, place) == 0) &&
           (f->wants == NULL || f->wants(f->context, e));
}

bool
filter_needs_envelope(const struct filter *f)
{
    return f->to || f->from || f->wants || f->older_ms >= 0 || f->first.time_ms != 0;
}

bool
filter_matches_place(const struct filter *f, const char *place)
{
    return !filter_needs_envelope(f) &&
           (f->place == NULL || strcmp(f->place, place) == 0);
}
