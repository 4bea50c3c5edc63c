/* Lists the sets that wait. */
#include "defrag/channel_internal.h"

#include <string.h>

static_assert((int)CHANNEL_SET_NAME == sizeof((struct manager_set){0}.name),
              "the same");

struct channel_listing {
    const struct defragmenter *channel;
    manager_set_saw *each;
    void *context;
};

static void
channel_list_numbers(const struct defragmenter *c, const struct set_info *set,
                     struct manager_set *out)
{
    uint32_t last = set->total > 0 ? set->total : set->highest;
    for (uint32_t n = 1; n <= last && n <= MANAGER_SET_LOOKS; n++)
        if (!sets_has(c->sets, set->key, n)) {
            if (out->missing_count < MANAGER_SET_NUMBERS)
                out->missing[out->missing_count++] = n;
        } else if (out->there_count < MANAGER_SET_NUMBERS) {
            out->there[out->there_count++] = n;
        }
}

static void
channel_list_one(void *context, const struct set_info *set)
{
    const struct channel_listing *l = context;
    struct manager_set view = {.first = set->first,
                               .recipient = set->recipient,
                               .owner = channel_owner(l->channel, set->key),
                               .recipients = set->recipients,
                               .messages = set->messages,
                               .have = set->have,
                               .total = set->total,
                               .bytes = set->bytes,
                               .since_ms = set->birth_ms,
                               .until_ms = set->until_ms,
                               .is_reassembling = set->reassembling};
    channel_name_set(set->key, view.name);
    channel_list_numbers(l->channel, set, &view);
    l->each(l->context, &view);
}

size_t
channel_list(void *context, size_t from, size_t count, manager_set_saw *each,
             void *each_context)
{
    const struct defragmenter *c = context;
    struct channel_listing listing = {c, each, each_context};
    return sets_list(c->sets, from, count, channel_list_one, &listing);
}
