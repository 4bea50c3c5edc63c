/* Open addressing over packed entries. */
#include "queue/suppression/suppression_list.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_LEAST = 64,
    ALIGN = 4,
    DEAD_LEAST = 256, /* fewer are not worth a pass over all */
    REASONS_WHOLE = SUPPRESSION_REASONS_MAX - 50 /* beyond them only codes */
};

struct packed {
    uint32_t at_s;
    uint16_t length; /* of the address, which follows, and then the domain */
    uint8_t domain_length, class, strikes, reason, is_news;
};

static const char *const class_names[SUPPRESSION_CLASSES] = {
    [SUPPRESSION_NONE] = "none",     [SUPPRESSION_DOUBTFUL] = "doubtful",
    [SUPPRESSION_HARD] = "hard",     [SUPPRESSION_COMPLAINT] = "complaint",
    [SUPPRESSION_MANUAL] = "manual", [SUPPRESSION_REMOVED] = "none",
};

const char *suppression_class_name(enum suppression_class class)
{
    return class_names[class];
}

bool
suppression_class_read(struct text name, enum suppression_class *class)
{
    for (int i = 0; i < SUPPRESSION_CLASSES; i++)
        if (text_equal(name, text_from(class_names[i]))) {
            *class = (enum suppression_class)i;
            return true;
        }
    return false;
}

void
suppression_list_init(struct suppression_list *list, uint64_t seed)
{
    *list = (struct suppression_list){.seed = seed};
}

void
suppression_list_free(struct suppression_list *list)
{
    for (size_t i = 0; i < list->reason_count; i++)
        free(list->reasons[i]);
    free(list->bytes);
    free(list->slots);
    *list = (struct suppression_list){0};
}

/* --- Entries ----------------------------------------------------------------------- */

static struct packed *
list_at(const struct suppression_list *list, size_t at)
{
    return (struct packed *)(void *)(list->bytes + at);
}

static size_t
list_size(size_t address, size_t domain)
{
    size_t size = sizeof(struct packed) + address + domain;
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static struct suppression_entry
list_entry(const struct suppression_list *list, const struct packed *p)
{
    const char *bytes = (const char *)(p + 1);
    const char *reason = p->reason > 0 ? list->reasons[p->reason - 1] : "";
    return (struct suppression_entry){.address = text_of(bytes, p->length),
                                      .domain =
                                          text_of(bytes + p->length, p->domain_length),
                                      .reason = text_from(reason),
                                      .at_s = p->at_s,
                                      .class = (enum suppression_class)p->class,
                                      .strikes = p->strikes,
                                      .is_news = p->is_news};
}

/* The seed keeps those who choose addresses from choosing slots. */
static size_t
list_slot(const struct suppression_list *list, struct text address)
{
    uint64_t hash = text_hash_nocase(TEXT_HASH ^ list->seed, address);
    return (size_t)((hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
           (list->slot_count - 1);
}

/* The next slot of the address, from *slot on; NULL behind the last. */
static struct packed *
list_probe(const struct suppression_list *list, struct text address, size_t *slot)
{
    for (; list->slots[*slot] != 0; *slot = (*slot + 1) & (list->slot_count - 1)) {
        struct packed *p = list_at(list, (size_t)(list->slots[*slot] - 1) * ALIGN);
        if (text_equal(text_of(p + 1, p->length), address))
            return p;
    }
    return NULL;
}

static struct packed *
list_seek(const struct suppression_list *list, struct text address, struct text domain)
{
    struct packed *p;
    if (list->slot_count == 0)
        return NULL;
    size_t slot = list_slot(list, address);
    for (; (p = list_probe(list, address, &slot)) != NULL;
         slot = (slot + 1) & (list->slot_count - 1))
        if (text_equal(text_of((char *)(p + 1) + p->length, p->domain_length), domain))
            return p;
    return NULL;
}

bool
suppression_list_get(const struct suppression_list *list, struct text address,
                     struct text domain, struct suppression_entry *out)
{
    const struct packed *p = list_seek(list, address, domain);
    if (p == NULL || p->class == SUPPRESSION_NONE)
        return false;
    *out = list_entry(list, p);
    return true;
}

bool
suppression_list_find(const struct suppression_list *list, struct text address,
                      bool (*each)(void *context,
                                   const struct suppression_entry *entry),
                      void *context)
{
    const struct packed *p;
    if (list->count == 0)
        return false;
    size_t slot = list_slot(list, address);
    for (; (p = list_probe(list, address, &slot)) != NULL;
         slot = (slot + 1) & (list->slot_count - 1)) {
        struct suppression_entry entry = list_entry(list, p);
        if (p->class != SUPPRESSION_NONE && each(context, &entry))
            return true;
    }
    return false;
}

bool
suppression_list_next(struct suppression_list *list, size_t *at,
                      struct suppression_entry *out)
{
    while (*at < list->used) {
        const struct packed *p = list_at(list, *at);
        *at += list_size(p->length, p->domain_length);
        *out = list_entry(list, p);
        list->walked++;
        if (p->class != SUPPRESSION_NONE)
            return true;
    }
    return false;
}

/* --- Changes ----------------------------------------------------------------------- */

static void
list_enter(struct suppression_list *list, size_t at)
{
    const struct packed *p = list_at(list, at);
    size_t slot = list_slot(list, text_of(p + 1, p->length));
    while (list->slots[slot] != 0)
        slot = (slot + 1) & (list->slot_count - 1);
    list->slots[slot] = (uint32_t)(at / ALIGN) + 1;
}

static void
list_move_marks(struct suppression_list *list, size_t from, size_t to)
{
    for (int i = 0; i < SUPPRESSION_MARKS; i++)
        if (list->marks[i] == from)
            list->marks[i] = to;
}

/* Entries that are left move down over those that were removed. */
static void
list_close_gaps(struct suppression_list *list)
{
    size_t to = 0;
    for (size_t at = 0; at < list->used;) {
        const struct packed *p = list_at(list, at);
        size_t size = list_size(p->length, p->domain_length);
        bool stays = p->class != SUPPRESSION_NONE;
        list_move_marks(list, at, to);
        if (stays && to != at)
            memmove(list->bytes + to, list->bytes + at, size);
        to += stays ? size : 0;
        at += size;
    }
    list_move_marks(list, list->used, to);
    list->used = to;
    list->dead = 0;
}

static void
list_enter_all(struct suppression_list *list)
{
    for (size_t at = 0; at < list->used;) {
        const struct packed *p = list_at(list, at);
        list_enter(list, at);
        at += list_size(p->length, p->domain_length);
    }
}

/* For one more: two thirds of the slots are used at most. */
static void
list_make_room(struct suppression_list *list, size_t size)
{
    if (!list->pinned && list->dead > list->count / 2 + DEAD_LEAST) {
        list_close_gaps(list);
        memset(list->slots, 0, list->slot_count * sizeof(*list->slots));
        list_enter_all(list);
    }
    if (list->used + size > list->capacity) {
        list->capacity = (list->capacity + size) / 4 * 5 + 1024;
        list->bytes = memory_resize(list->bytes, list->capacity);
    }
    if ((list->count + list->dead + 1) * 3 < list->slot_count * 2)
        return;
    list->slot_count = list->slot_count > 0 ? 2 * list->slot_count : SLOTS_LEAST;
    free(list->slots);
    list->slots = memory_array(list->slot_count, sizeof(*list->slots));
    list_enter_all(list);
}

static struct packed *
list_add(struct suppression_list *list, struct text address, struct text domain)
{
    size_t size = list_size(address.length, domain.length);
    list_make_room(list, size);
    struct packed *p = list_at(list, list->used);
    memset(p, 0, size);
    p->length = (uint16_t)address.length;
    p->domain_length = (uint8_t)domain.length;
    memcpy(p + 1, address.at, address.length);
    if (domain.length > 0)
        memcpy((char *)(p + 1) + address.length, domain.at, domain.length);
    list->used += size;
    list->dead++; /* until it has a class */
    list_enter(list, list->used - size);
    return p;
}

/* The code and the status of a reply, which many have in common. */
static struct text
list_codes(struct text reason)
{
    size_t length = 0;
    while (length < reason.length &&
           (text_is_digit(reason.at[length]) || reason.at[length] == '.' ||
            reason.at[length] == ' '))
        length++;
    return text_trim(text_before(reason, length));
}

/* 0: without a reason. */
static uint8_t
list_reason(struct suppression_list *list, struct text reason)
{
    size_t at = 0, most = REASONS_WHOLE;
    for (; reason.length > 0; at = 0, reason = list_codes(reason)) {
        while (at < list->reason_count &&
               !text_equal(text_from(list->reasons[at]), reason))
            at++;
        if (at == list->reason_count && at < most)
            list->reasons[list->reason_count++] = text_string(reason);
        if (at < list->reason_count)
            return (uint8_t)(at + 1);
        if (most == SUPPRESSION_REASONS_MAX)
            break;
        most = SUPPRESSION_REASONS_MAX;
    }
    return 0;
}

bool
suppression_list_put(struct suppression_list *list,
                     const struct suppression_entry *entry)
{
    bool is_there = entry->class != SUPPRESSION_NONE;
    if (entry->address.length == 0 || entry->address.length > SUPPRESSION_ADDRESS_MAX ||
        entry->domain.length > SUPPRESSION_DOMAIN_MAX)
        return false;
    struct packed *p = list_seek(list, entry->address, entry->domain);
    if (p == NULL && is_there)
        p = list_add(list, entry->address, entry->domain);
    if (p == NULL)
        return true;
    bool was_there = p->class != SUPPRESSION_NONE;
    list->count += (size_t)is_there - (size_t)was_there;
    list->dead += (size_t)was_there - (size_t)is_there;
    list->removed += (size_t)(entry->class == SUPPRESSION_REMOVED) -
                     (size_t)(p->class == SUPPRESSION_REMOVED);
    list->news += (size_t)(is_there && entry->is_news) - (size_t)p->is_news;
    int64_t at_s = entry->at_s > 0 ? entry->at_s : 0;
    p->at_s = at_s < UINT32_MAX ? (uint32_t)at_s : UINT32_MAX;
    p->class = (uint8_t)entry->class;
    p->is_news = is_there && entry->is_news;
    size_t place = (size_t)((char *)p - list->bytes);
    if (p->is_news && place < list->marks[SUPPRESSION_MARK_NEWS])
        list->marks[SUPPRESSION_MARK_NEWS] = place;
    p->strikes = entry->strikes < UINT8_MAX ? (uint8_t)entry->strikes : UINT8_MAX;
    p->reason = list_reason(list, text_before(entry->reason, SUPPRESSION_REASON_MAX));
    return true;
}

size_t
suppression_list_memory(const struct suppression_list *list)
{
    size_t bytes = list->capacity + list->slot_count * sizeof(*list->slots);
    for (size_t i = 0; i < list->reason_count; i++)
        bytes += strlen(list->reasons[i]) + 1;
    return bytes;
}
