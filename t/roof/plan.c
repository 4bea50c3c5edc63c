/* Items of a run, and those that are omitted. */
#include "t/roof/plan.h"

#include "t/roof/roof.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

static struct plan none;
static struct plan *plan = &none;
static uint64_t outer[DEPTH_MAX];
static unsigned depth;

static struct plan_kind *
plan_kind(struct plan *p, struct text name)
{
    for (size_t i = 0; i < p->kind_count; i++)
        if (text_equal(name, text_from(p->kinds[i].name)))
            return &p->kinds[i];
    if (p->kind_count == PLAN_KINDS_MAX || name.length >= PLAN_NAME_MAX)
        return NULL;
    struct plan_kind *k = &p->kinds[p->kind_count++];
    return text_copy(k->name, sizeof(k->name), name) ? k : NULL;
}

bool
plan_omits(const struct plan_kind *k, unsigned number)
{
    return number < PLAN_ITEMS_MAX && (k->omitted[number / 8] >> number % 8 & 1) != 0;
}

void
plan_omit(struct plan_kind *k, unsigned from, unsigned end, bool omitted)
{
    for (unsigned i = from; i < end && i < PLAN_ITEMS_MAX; i++) {
        unsigned bit = 1U << i % 8, byte = k->omitted[i / 8];
        k->omitted[i / 8] = (unsigned char)(omitted ? byte | bit : byte & ~bit);
    }
}

/* "7" or "0-3" */
static bool
read_range(struct plan_kind *k, struct text range)
{
    uint64_t from, to;
    struct text first;
    bool single = text_find(range, '-') == TEXT_NONE;
    text_cut(&range, '-', &first);
    if (!text_number(first, PLAN_ITEMS_MAX, &from))
        return false;
    to = from;
    if (!single && !text_number(range, PLAN_ITEMS_MAX, &to))
        return false;
    plan_omit(k, (unsigned)from, (unsigned)to + 1, true);
    return true;
}

bool
plan_read(struct plan *p, struct text list)
{
    struct text word, name, range;
    memset(p, 0, sizeof(*p));
    while (text_word(&list, " ", &word)) {
        text_cut(&word, ':', &name);
        struct plan_kind *k = plan_kind(p, name);
        if (k == NULL || word.length == 0)
            return false;
        while (word.length > 0) {
            text_cut(&word, '.', &range);
            if (!read_range(k, range))
                return false;
        }
    }
    return true;
}

static void
write_kind(const struct plan_kind *k, char *out, size_t *used)
{
    char between = ':';
    unsigned end;
    for (unsigned i = 0; i < PLAN_ITEMS_MAX && i < k->count; i = end) {
        end = i + 1;
        if (!plan_omits(k, i))
            continue;
        while (end < PLAN_ITEMS_MAX && end < k->count && plan_omits(k, end))
            end++;
        if (*used + PLAN_NAME_MAX + 16 > PLAN_TEXT_MAX)
            return;
        if (between == ':')
            *used +=
                (size_t)sprintf(out + *used, "%s%s", *used > 0 ? " " : "", k->name);
        *used += (size_t)sprintf(out + *used, end > i + 1 ? "%c%u-%u" : "%c%u", between,
                                 i, end - 1);
        between = '.';
    }
}

void
plan_write(const struct plan *p, char out[PLAN_TEXT_MAX])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < p->kind_count; i++)
        write_kind(&p->kinds[i], out, &used);
}

void
plan_begin(struct plan *p)
{
    plan = p;
    for (size_t i = 0; i < p->kind_count; i++)
        p->kinds[i].count = 0;
}

bool
plan_takes(const char *kind, unsigned number)
{
    struct plan_kind *k = plan_kind(plan, text_from(kind));
    assert(k != NULL);
    if (number >= k->count)
        k->count = number + 1;
    return !plan_omits(k, number);
}

unsigned
plan_next(const char *kind)
{
    const struct plan_kind *k = plan_kind(plan, text_from(kind));
    assert(k != NULL);
    return k->count;
}

void
plan_enter(const char *kind, unsigned number)
{
    assert(depth < DEPTH_MAX);
    uint64_t own = roof_fork(kind) + number;
    outer[depth++] = roof_exchange_stream(roof_random_of(&own));
}

void
plan_leave(void)
{
    assert(depth > 0);
    (void)roof_exchange_stream(outer[--depth]);
}
