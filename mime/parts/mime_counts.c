/* Counts bytes by kind, 16 at a time, and measures lines.
 *
 * All content that a hop may not accept is counted before it is sent, so the loop is
 * written for vector units. The lanes count in single bytes, which are added up before
 * one can overflow. */
#include "mime/parts/mime_counts.h"

#include <assert.h>
#include <string.h>

enum { WIDTH = 16, ROUNDS = 255 }; /* the maximum of a counter of one byte */

typedef signed char lanes __attribute__((vector_size(WIDTH)));
typedef unsigned char counts __attribute__((vector_size(WIDTH)));

struct lane_counts {
    counts high, nul, cr, special;
};

static uint64_t
sum(counts lane)
{
    unsigned char each[WIDTH];
    uint64_t total = 0;
    memcpy(each, &lane, sizeof(each));
    for (size_t i = 0; i < WIDTH; i++)
        total += each[i];
    return total;
}

/* A comparison gives -1 for true. Special: every byte below the space or above '~', and
 * '='. This includes line ends, which the caller subtracts. As a signed byte, each byte
 * above 127 is negative. So one comparison finds controls and 8-bit bytes. Counters are
 * unsigned, since a signed one would overflow before ROUNDS. */
static void
count_lanes(const char *at, size_t rounds, struct lane_counts *c)
{
    for (size_t i = 0; i < rounds; i++, at += WIDTH) {
        lanes v;
        memcpy(&v, at, sizeof(v));
        c->high -= (counts)(v < 0);
        c->nul -= (counts)(v == 0);
        c->cr -= (counts)(v == '\r');
        c->special -= (counts)((v < ' ') | (v == '=') | (v == 0x7f));
    }
}

/* The bytes behind the last 16 are counted one by one, by the same rules. */
static void
mime_counts_add_bytes(struct mime_counts *t, struct text bytes, uint64_t *crs)
{
    while (bytes.length >= WIDTH) {
        size_t rounds = bytes.length / WIDTH;
        struct lane_counts c = {0};
        if (rounds > ROUNDS)
            rounds = ROUNDS;
        count_lanes(bytes.at, rounds, &c);
        t->high += sum(c.high);
        t->nul += sum(c.nul);
        t->special += sum(c.special);
        *crs += sum(c.cr);
        bytes = text_after(bytes, rounds * WIDTH);
    }
    for (size_t i = 0; i < bytes.length; i++) {
        signed char v = (signed char)bytes.at[i];
        t->high += v < 0;
        t->nul += v == 0;
        t->special += v < ' ' || v == '=' || v == 0x7f;
        *crs += v == '\r';
    }
}

/* Returns the number of CR before a LF. */
static uint64_t
measure_lines(struct mime_counts *t, struct text bytes)
{
    uint64_t pairs = 0;
    size_t start = 0;
    while (start < bytes.length) {
        const char *end = bytes.at + start;
        if (*end != '\n')
            end = memchr(end, '\n', bytes.length - start);
        if (end == NULL) {
            t->line += bytes.length - start;
            break;
        }
        size_t at = (size_t)(end - bytes.at);
        bool pair = at > 0 ? end[-1] == '\r' : t->cr;
        uint64_t length = t->line + (at - start) - pair;
        t->longest = length > t->longest ? length : t->longest;
        pairs += pair;
        t->lines++;
        t->line = 0;
        start = at + 1;
    }
    return pairs;
}

/* A CR at the end of a piece is counted when the next byte is known: before a LF it is
 * a part of a line end. */
void
mime_counts_add(struct mime_counts *t, struct text bytes)
{
    uint64_t crs = 0, lines = t->lines;
    if (bytes.length == 0)
        return;
    t->bytes += bytes.length;
    mime_counts_add_bytes(t, bytes, &crs);
    uint64_t pairs = measure_lines(t, bytes);
    t->lone_lf += t->lines - lines - pairs;
    bool cr = bytes.at[bytes.length - 1] == '\r';
    /* A CR counts when the next byte is known. */
    t->lone_cr += crs + t->cr - cr - pairs;
    t->cr = cr;
    if (t->line > t->longest + 1) /* one may be the CR of the line end */
        t->longest = t->line - 1;
}

void
mime_counts_end(struct mime_counts *t)
{
    t->lone_cr += t->cr;
    t->cr = false;
    t->longest = t->line > t->longest ? t->line : t->longest;
    assert(t->lone_lf <= t->lines && t->high <= t->special && t->longest <= t->bytes);
}
