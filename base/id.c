/* The name of a message: make, write, read, order and slice it. */
#include "base/id.h"

#include <assert.h>
#include <string.h>

enum { TIME_DIGITS = 10, HASH_DIGITS = 8, TIME_BITS = 50 };

/* Crockford's: no I, L, O, U, and sorted as ASCII is. */
static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void
write_digits(uint64_t value, char *at, size_t count)
{
    while (count > 0) {
        at[--count] = digits[value & 31];
        value >>= 5;
    }
}

static bool
read_digits(struct text t, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < t.length; i++) {
        const char *digit = memchr(digits, t.at[i], sizeof(digits) - 1);
        if (digit == NULL)
            return false;
        *value = *value << 5 | (uint64_t)(digit - digits);
    }
    return true;
}

struct id
id_make(uint64_t time_ms, const unsigned char digest[5])
{
    assert(time_ms >> TIME_BITS == 0);
    struct id id = {.time_ms = time_ms};
    for (size_t i = 0; i < 5; i++)
        id.hash = id.hash << 8 | digest[i];
    return id;
}

char *
id_format(struct id id, char out[ID_LENGTH + 1])
{
    assert(id.time_ms >> TIME_BITS == 0 && id.hash >> ID_HASH_BITS == 0);
    write_digits(id.time_ms, out, TIME_DIGITS);
    out[TIME_DIGITS] = '-';
    write_digits(id.hash, out + TIME_DIGITS + 1, HASH_DIGITS);
    out[ID_LENGTH] = '\0';
    return out;
}

bool
id_parse(struct text t, struct id *id)
{
    struct id read;
    if (t.length != ID_LENGTH || t.at[TIME_DIGITS] != '-' ||
        !read_digits(text_before(t, TIME_DIGITS), &read.time_ms) ||
        !read_digits(text_after(t, TIME_DIGITS + 1), &read.hash))
        return false;
    *id = read;
    return true;
}

bool
id_read(struct text t, struct id *id)
{
    char strict[ID_LENGTH];
    size_t length = 0;
    if (t.length != ID_LENGTH && t.length != ID_LENGTH - 1)
        return false;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.at[i];
        if (i == TIME_DIGITS && t.length == ID_LENGTH - 1)
            strict[length++] = '-';
        strict[length++] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    return id_parse(text_of(strict, length), id);
}

int
id_compare(struct id a, struct id b)
{
    if (a.time_ms != b.time_ms)
        return a.time_ms < b.time_ms ? -1 : 1;
    return (a.hash > b.hash) - (a.hash < b.hash);
}

/* The top bits: twice as many slices split each one into two neighbours. */
unsigned
id_slice(struct id id, unsigned slices)
{
    assert(slices > 0 && slices <= ID_SLICES_MAX && (slices & (slices - 1)) == 0);
    return (unsigned)(id.hash * slices >> ID_HASH_BITS);
}
