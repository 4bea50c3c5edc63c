/* Writes and reads the parts of a reassembled message.
 *
 * The list may be that of an earlier run, and the depth may come from another host. So
 * a line that cannot be read is skipped, and a depth that cannot be read counts as the
 * highest: the message is delivered, but not reassembled again. */
#include "defrag/reassembly/parts_list.h"

#include "base/memory.h"
#include "queue/envelope/set_mark.h"

#include <assert.h>
#include <stdlib.h>

void
parts_list_begin(unsigned depth, struct buffer *out)
{
    assert(depth > 0 && out->length == 0);
    bool fits = buffer_format(out, "%u\n", depth);
    assert(fits);
}

void
parts_list_add(struct id id, const unsigned *indexes, size_t count, struct buffer *out)
{
    assert(count > 0);
    bool fits = buffer_format(out, "%s", ID_TEXT(id));
    for (size_t i = 0; i < count; i++)
        fits = fits && buffer_format(out, " %u", indexes[i]);
    fits = fits && buffer_add(out, TEXT("\n"));
    assert(fits);
}

static unsigned
parts_list_read_depth(struct text made_of)
{
    uint64_t depth = 0;
    if (made_of.length == 0)
        return 0;
    if (!text_number(text_before(made_of, text_find(made_of, '\n')), 1000, &depth))
        return PARTS_LIST_DEPTH_MAX; /* not written by us: not reassembled again */
    return (unsigned)depth;
}

unsigned
parts_list_depth(const struct envelope *e)
{
    struct set_mark mark;
    if (!e->fragment.by_peer)
        return parts_list_read_depth(e->fragment.made_of);
    return set_mark_read(e->fragment.set_mark, &mark) ? mark.depth
                                                      : PARTS_LIST_DEPTH_MAX;
}

static bool
read_part(struct text line, struct id *id, unsigned **indexes, size_t *count)
{
    struct text word;
    uint64_t number;
    size_t space = line.length / 2 + 1;
    if (!text_cut(&line, ' ', &word) || !id_parse(word, id))
        return false;
    *indexes = memory_array(space, sizeof(**indexes));
    *count = 0;
    while (text_cut(&line, ' ', &word) && text_number(word, UINT32_MAX, &number))
        (*indexes)[(*count)++] = (unsigned)number;
    return true;
}

bool
parts_list_next(struct text *rest, struct id *id, unsigned **indexes, size_t *count)
{
    struct text line;
    while (rest->length > 0 && text_cut(rest, '\n', &line))
        if (read_part(line, id, indexes, count))
            return true; /* the first line is the depth */
    return false;
}
