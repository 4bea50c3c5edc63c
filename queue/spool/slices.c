/* Says which message names belong to our slices. */
#include "queue/spool/slices.h"

#include <assert.h>
#include <stdio.h>

void
slices_init(struct slices *s, unsigned count, unsigned own)
{
    *s = (struct slices){.count = count, .own = own};
    slices_add(s, own);
}

void
slices_add(struct slices *s, unsigned slice)
{
    assert(slice < s->count && s->count <= ID_SLICES_MAX);
    s->has[slice] = 1;
}

bool
slices_have(const struct slices *s, struct id id)
{
    return s->has[id_slice(id, s->count)] != 0;
}

bool
slices_overlap(const struct slices *s, unsigned first, unsigned last)
{
    unsigned width = slices_width(s->count);
    assert(first <= last && last < ID_SLICES_MAX);
    for (unsigned slice = first / width; slice <= last / width; slice++)
        if (s->has[slice] != 0)
            return true;
    return false;
}

unsigned
slices_width(unsigned count)
{
    assert(count > 0 && count <= ID_SLICES_MAX && (count & (count - 1)) == 0);
    return ID_SLICES_MAX / count;
}

void
slices_part(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX])
{
    unsigned width = slices_width(count);
    assert(slice < count);
    snprintf(out, SLICES_SUFFIX_MAX, "%04u-%04u", slice * width,
             (slice + 1) * width - 1);
}

bool
slices_part_read(struct text part, unsigned *first, unsigned *last)
{
    uint64_t from, to;
    if (part.length != SLICES_PART_LENGTH || part.at[4] != '-' ||
        !text_number(text_before(part, 4), ID_SLICES_MAX - 1, &from) ||
        !text_number(text_after(part, 5), ID_SLICES_MAX - 1, &to) || from > to)
        return false;
    *first = (unsigned)from;
    *last = (unsigned)to;
    return true;
}

void
slices_suffix(unsigned count, unsigned slice, char out[SLICES_SUFFIX_MAX])
{
    unsigned width = slices_width(count);
    assert(slice < count);
    out[0] = '\0';
    if (count > 1)
        snprintf(out, SLICES_SUFFIX_MAX, ".%04u-%04u", slice * width,
                 (slice + 1) * width - 1);
}
