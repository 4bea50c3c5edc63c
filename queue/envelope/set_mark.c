/* Writes and reads the mark of a fragment's set, as XDEFRAG has it. */
#include "queue/envelope/set_mark.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char digits[] = "0123456789abcdef";

void
set_mark_write(const struct set_mark *mark, char out[SET_MARK_SIZE])
{
    enum { HEX = 2 * DIGEST_SIZE, REST = SET_MARK_SIZE - HEX };
    assert(mark->depth <= SET_MARK_DEPTH_MAX);
    assert(mark->epoch_s >= 0 && mark->epoch_s <= SET_MARK_EPOCH_MAX_S);
    text_hex(mark->key, DIGEST_SIZE, out);
    int length = snprintf(out + HEX, REST, ";%u;%" PRId64 "%s", mark->depth % 10,
                          mark->epoch_s, mark->ours ? "o" : "");
    assert(length > 0 && length < REST);
}

static bool
key_read(struct text hex, unsigned char key[DIGEST_SIZE])
{
    if (hex.length != (size_t)2 * DIGEST_SIZE)
        return false;
    for (size_t i = 0; i < DIGEST_SIZE; i++) {
        size_t high = text_find(TEXT(digits), hex.at[2 * i]);
        size_t low = text_find(TEXT(digits), hex.at[2 * i + 1]);
        if (high == TEXT_NONE || low == TEXT_NONE)
            return false;
        key[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool
set_mark_read(struct text t, struct set_mark *mark)
{
    struct text key, depth;
    uint64_t number = 0, epoch_s = 0;
    mark->ours = t.length > 0 && t.at[t.length - 1] == 'o';
    t.length -= mark->ours;
    /* The rest of t is the third field: another semicolon is not a digit and
     * refused. */
    if (!text_cut(&t, ';', &key) || !key_read(key, mark->key) ||
        !text_cut(&t, ';', &depth) || depth.length != 1 ||
        !text_number(depth, SET_MARK_DEPTH_MAX, &number) || t.length == 0 ||
        t.length > SET_MARK_EPOCH_DIGITS ||
        !text_number(t, (uint64_t)SET_MARK_EPOCH_MAX_S, &epoch_s))
        return false;
    mark->depth = (unsigned)number;
    mark->epoch_s = (int64_t)epoch_s;
    return true;
}
