/* defrag/set/set.c: the open sets, in pages and oldest first. */
#include "defrag/set/set.h"

#include "t/support/tap.h"

#include <string.h>

#define NOW INT64_C(1700000000000)

enum { DUE_MS = 1000000 };

static struct id
list_add(struct sets *s, char key, uint32_t number, uint32_t total, size_t recipients)
{
    static const struct text names[] = {TEXT("a@x"), TEXT("b@x")};
    static uint64_t serial;
    static unsigned absorbed[2];
    struct set_answer answer = {.absorbed = absorbed};
    struct fragment f = {.id = {(uint64_t)NOW, ++serial},
                         .number = number,
                         .total = total,
                         .size = 100,
                         .until_ms = NOW + DUE_MS,
                         .memory_ms = DUE_MS,
                         .recipients = names,
                         .count = recipients};
    memset(f.key, key, sizeof(f.key));
    memset(f.digest, (int)number, sizeof(f.digest));
    sets_add(s, &f, NOW, &answer);
    return f.id;
}

struct listed {
    size_t count;
    char keys[5];
    struct set_info last;
};

static void
note_listed(void *context, const struct set_info *set)
{
    struct listed *l = context;
    l->keys[l->count++] = (char)set->key[0];
    l->last = *set;
}

int
main(void)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = 1000});
    struct listed all = {.count = 0}, some = {.count = 0}, one = {.count = 0};
    is_number(sets_list(s, 0, 5, note_listed, &all), 0, "no sets");
    struct id first = list_add(s, 'x', 1, 3, 1);
    list_add(s, 'y', 5, 0, 2);
    list_add(s, 'z', 1, 2, 1);
    list_add(s, 'z', 2, 2, 1);
    is_number(sets_list(s, 0, 5, note_listed, &all), 3, "open sets");
    is_string(all.keys, "xyz", "oldest first");
    ok_named(all.last.reassembling, "also one that is complete");
    const struct set_reassembly *join = sets_next_reassembly(s);
    ok(join != NULL);
    sets_reassembled(s, join, NOW);
    is_number(sets_list(s, 1, 5, note_listed, &some), 1, "but for the first; closed ones are not");
    ok(some.last.have == 1 && some.last.highest == 5 && some.last.total == 0 && some.last.recipients == 2);
    is_number(sets_list(s, 0, 1, note_listed, &one), 1, "at most so many");
    ok(id_compare(one.last.first, first) == 0 && one.last.until_ms == NOW + DUE_MS && one.last.bytes == 100);
    is_text(one.last.recipient, TEXT("a@x"), "its recipient");
    sets_free(&s);
    return done();
}
