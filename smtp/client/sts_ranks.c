/* A list for each value, in the order of use. */
#include "smtp/client/sts_ranks.h"

#include <assert.h>
#include <utlist.h>

static void
sts_rank_add(struct sts_ranks *ranks, struct sts_place *place, enum sts_value value)
{
    struct sts_rank *rank = &ranks->of[value];
    place->value = value;
    place->is_ranked = true;
    DL_APPEND(rank->places, place);
    rank->count++;
    rank->bytes += place->bytes;
    ranks->count++;
    ranks->bytes += place->bytes;
}

void
sts_ranks_remove(struct sts_ranks *ranks, struct sts_place *place)
{
    struct sts_rank *rank = &ranks->of[place->value];
    if (!place->is_ranked)
        return;
    assert(rank->count > 0 && rank->bytes >= place->bytes);
    place->is_ranked = false;
    DL_DELETE(rank->places, place);
    rank->count--;
    rank->bytes -= place->bytes;
    ranks->count--;
    ranks->bytes -= place->bytes;
}

/* Those that are used would otherwise become all. */
static void
sts_ranks_degrade(struct sts_ranks *ranks)
{
    const struct sts_rank *used = &ranks->of[STS_VALUE_USED];
    while (used->count > ranks->count_max / 5 * 4 ||
           used->bytes > ranks->bytes_max / 5 * 4) {
        struct sts_place *oldest = used->places;
        sts_ranks_remove(ranks, oldest);
        sts_rank_add(ranks, oldest, STS_VALUE_ENFORCE);
    }
}

void
sts_ranks_put(struct sts_ranks *ranks, struct sts_place *place, enum sts_value value,
              size_t bytes)
{
    sts_ranks_remove(ranks, place);
    place->bytes = bytes;
    sts_rank_add(ranks, place, value);
    sts_ranks_degrade(ranks);
}

bool
sts_ranks_are_full(const struct sts_ranks *ranks)
{
    return ranks->count > ranks->count_max || ranks->bytes > ranks->bytes_max;
}

static struct sts_place *
sts_ranks_from(const struct sts_ranks *ranks, unsigned value)
{
    for (; value < STS_VALUES; value++)
        if (ranks->of[value].places != NULL)
            return ranks->of[value].places;
    return NULL;
}

struct sts_place *
sts_ranks_first(const struct sts_ranks *ranks)
{
    return sts_ranks_from(ranks, 0);
}

struct sts_place *
sts_ranks_after(const struct sts_ranks *ranks, const struct sts_place *place)
{
    return place->next != NULL ? place->next : sts_ranks_from(ranks, place->value + 1);
}
