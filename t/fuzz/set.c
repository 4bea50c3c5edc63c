/* Fuzz target: sets of fragments. For any input, in any order: every message that
 * entered is held, absorbed, released, or served by joins to its last recipient, each
 * exactly once; joins are whole; no limit is exceeded; counts are true. */
#include "defrag/set/set.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MESSAGES_MAX = 512,
    KEYS = 4,
    NUMBERS = 4,
    NAMES = 4,
    SENDERS = 3, /* the first is SET_NOBODY */
    CLIENT = 7,
    JOINS_MAX = 16
};

static const struct text names[NAMES] = {TEXT("a@x"), TEXT("b@x"), TEXT("c@x"),
                                         TEXT("d@x")};

enum where { NOWHERE, HELD, GONE };

struct message {
    enum where where;
    unsigned key, number, digest;
    unsigned needs; /* bits: recipients that have not got it in a whole */
    unsigned busy;  /* of these: a join is under way */
    size_t count;   /* recipients it was kept for */
    int64_t size;
};

struct world {
    struct sets *sets;
    struct set_limits limits;
    struct message messages[MESSAGES_MAX];
    size_t count;
    int64_t now_ms;
    uint64_t sender_of[KEYS]; /* of an open set */
    const struct set_reassembly *joins[JOINS_MAX];
    size_t join_count;
    struct text script;
};

/* --- The script */

static unsigned
next(struct world *w)
{
    if (w->script.length == 0)
        return 0;
    unsigned byte = (unsigned char)w->script.at[0];
    w->script = text_after(w->script, 1);
    return byte;
}

static struct message *
message_of(struct world *w, struct id id)
{
    must(id.hash < w->count);
    return &w->messages[id.hash];
}

static struct id
id_of(size_t index)
{
    return (struct id){.time_ms = 1000 + index / 3, .hash = index};
}

static unsigned
name_of(struct text t)
{
    for (unsigned i = 0; i < NAMES; i++)
        if (text_equal(t, names[i]))
            return i;
    abort();
}

/* --- Invariants */

static size_t
held_of(const struct world *w, unsigned key)
{
    size_t held = 0;
    for (size_t i = 0; i < w->count; i++)
        held += w->messages[i].where == HELD && w->messages[i].key == key;
    return held;
}

struct count {
    const struct world *world;
    unsigned key;
    size_t parts;
};

static void
count_part(void *context, struct id id)
{
    struct count *c = context;
    must(id.hash < c->world->count && c->world->messages[id.hash].where == HELD);
    must(c->world->messages[id.hash].key == c->key);
    c->parts++;
}

static bool
is_joining(const struct world *w)
{
    struct set_view view;
    for (size_t i = 0; i < w->count; i++)
        if (w->messages[i].where == HELD) {
            must(sets_find(w->sets, id_of(i), &view));
            if (view.reassembling)
                return true;
        }
    return false;
}

static void
check_numbers(const struct world *w, unsigned key, const struct set_view *view)
{
    struct count count = {.world = w, .key = key};
    uint32_t have = 0;
    sets_each_part(w->sets, view->key, count_part, &count);
    must(count.parts == held_of(w, key));
    for (uint32_t n = 1; n <= NUMBERS + 1; n++)
        have += sets_has(w->sets, view->key, n);
    must(view->key[0] == key && have == view->have && view->highest <= NUMBERS);
}

static void
check_counts(const struct world *w)
{
    struct sets_count count = sets_count(w->sets);
    struct set_view view;
    size_t held = 0, open = 0, recipients = 0, senders[SENDERS] = {0};
    unsigned seen = 0; /* keys */
    int64_t bytes = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct message *m = &w->messages[i];
        bool found = sets_find(w->sets, id_of(i), &view);
        must(found == (m->where == HELD));
        if (!found)
            continue;
        if ((seen & 1u << m->key) == 0)
            check_numbers(w, m->key, &view);
        seen |= 1u << m->key;
        must(sets_has(w->sets, view.key, m->number) && m->needs != 0);
        must(view.reassembling || m->busy == 0);
        held++;
        recipients += m->count;
        bytes += m->size;
    }
    for (unsigned key = 0; key < KEYS; key++)
        if (held_of(w, key) > 0) {
            open++;
            senders[w->sender_of[key]]++;
        }
    must(count.messages == held && count.bytes == bytes && count.open == open);
    must((count.oldest_ms > 0) == (open > 0));
    must(w->limits.sets == 0 || count.closed <= w->limits.sets);
    must(w->limits.recipients == 0 || recipients <= w->limits.recipients);
    for (unsigned i = SET_NOBODY + 1; i < SENDERS; i++)
        must(w->limits.sender_sets == 0 || senders[i] <= w->limits.sender_sets);
    must(w->limits.client_sets == 0 || open <= w->limits.client_sets);
}

/* A set that is being reassembled cannot be given up to make space. */
static void
check_room(const struct world *w)
{
    struct sets_count count = sets_count(w->sets);
    if (is_joining(w))
        return;
    must(w->limits.sets == 0 || count.open <= w->limits.sets);
    must(w->limits.bytes == 0 || count.bytes <= w->limits.bytes);
}

/* --- Events */

/* Those of a set come in the order of their numbers. */
static void
take_released(struct world *w)
{
    struct set_released released;
    struct set_closed closed;
    unsigned key = KEYS, number = 0;
    while (sets_next_released(w->sets, &released)) {
        struct message *m = message_of(w, released.id);
        must(m->where == HELD && m->busy == 0 && released.key[0] == m->key);
        must(m->key != key || m->number >= number);
        m->where = GONE;
        key = m->key;
        number = m->number;
    }
    while (sets_next_closed(w->sets, &closed))
        must(closed.key[0] < KEYS && held_of(w, closed.key[0]) == 0);
}

/* Every recipient gets every number, from messages that are theirs and the same. */
static void
check_join(struct world *w, const struct set_reassembly *join)
{
    unsigned wanted = 0, got[NUMBERS + 1] = {0}, digest[NUMBERS + 1] = {0};
    must(join->count >= 1 && join->count <= NUMBERS && join->recipient_count > 0);
    for (size_t i = 0; i < join->recipient_count; i++) {
        must((wanted & 1u << name_of(join->recipients[i])) == 0);
        wanted |= 1u << name_of(join->recipients[i]);
    }
    for (uint32_t n = 1; n <= join->count; n++) {
        const struct message *m = message_of(w, join->parts[n - 1]);
        must(m->where == HELD && m->number == n && m->key == join->key[0]);
        must(join->sizes[n - 1] == m->size);
        digest[n] = m->digest;
    }
    for (size_t i = 0; i < join->served_count; i++) {
        struct message *m = message_of(w, join->served[i].id);
        unsigned who = 1u << name_of(join->served[i].recipient);
        must(m->where == HELD && m->key == join->key[0] && m->number <= join->count);
        must((m->needs & who) != 0 && (m->busy & who) == 0 && (wanted & who) != 0);
        must((got[m->number] & who) == 0 && m->digest == digest[m->number]);
        got[m->number] |= who;
        m->busy |= who;
    }
    for (uint32_t n = 1; n <= join->count; n++)
        must(got[n] == wanted);
}

static void
take_join(struct world *w)
{
    if (w->join_count == JOINS_MAX)
        return;
    const struct set_reassembly *join = sets_next_reassembly(w->sets);
    if (join == NULL)
        return;
    check_join(w, join);
    w->joins[w->join_count++] = join;
}

static void
end_join(struct world *w, unsigned which, bool good)
{
    if (w->join_count == 0)
        return;
    which %= (unsigned)w->join_count;
    const struct set_reassembly *join = w->joins[which];
    for (size_t i = 0; i < join->served_count; i++) {
        struct message *m = message_of(w, join->served[i].id);
        unsigned who = 1u << name_of(join->served[i].recipient);
        m->busy &= ~who;
        m->needs &= good ? ~who : ~0u;
        if (m->needs == 0)
            m->where = GONE;
    }
    w->joins[which] = w->joins[--w->join_count];
    if (good)
        sets_reassembled(w->sets, join, w->now_ms);
    else
        sets_failed(w->sets, join, w->now_ms);
}

static void
note_answer(struct message *m, const struct fragment *f,
            const struct set_answer *answer)
{
    unsigned before = 0;
    m->where = answer->verdict == SET_HOLDS ? HELD : GONE;
    must(answer->verdict != SET_ABSORBS || answer->absorbed_count == f->count);
    must(answer->verdict != SET_PASSES || answer->absorbed_count == 0);
    must(answer->verdict != SET_HOLDS || answer->absorbed_count < f->count);
    for (size_t i = 0; i < answer->absorbed_count; i++) {
        must(answer->absorbed[i] < f->count && (i == 0 || answer->absorbed[i] > before));
        before = answer->absorbed[i];
        m->needs &= ~(1u << name_of(f->recipients[before]));
        m->count--;
    }
}

static void
add(struct world *w)
{
    struct text recipients[NAMES];
    unsigned absorbed[NAMES], what = next(w), who = next(w), more = next(w);
    struct set_answer answer = {.absorbed = absorbed};
    if (w->count == MESSAGES_MAX)
        return;
    struct message *m = &w->messages[w->count];
    *m = (struct message){.key = what % KEYS, .number = what / KEYS % NUMBERS + 1};
    m->digest = more % 8 == 0;
    m->size = more / 8 * 10;
    struct fragment f = {.id = id_of(w->count++), .number = m->number, .size = m->size};
    uint32_t total = what / KEYS / NUMBERS % (NUMBERS + 1);
    f.total = total >= f.number ? total : 0;
    memset(f.key, (int)m->key, sizeof(f.key));
    memset(f.digest, (int)(m->number * 2 + m->digest), sizeof(f.digest));
    f.until_ms = w->now_ms + 100 + who / 16 * 10;
    f.memory_ms = 200;
    f.sender = (who / 16) % SENDERS;
    f.client = CLIENT;
    f.recipients = recipients;
    m->needs = who % 16 == 0 ? 1 : who % 16;
    for (unsigned i = 0; i < NAMES; i++)
        if ((m->needs & 1u << i) != 0)
            recipients[f.count++] = names[i];
    m->count = f.count;
    bool was_open = held_of(w, m->key) > 0;
    sets_add(w->sets, &f, w->now_ms, &answer);
    note_answer(m, &f, &answer);
    if (m->where == HELD && !was_open)
        w->sender_of[m->key] = f.sender;
    take_released(w);
    if (answer.verdict == SET_HOLDS)
        check_room(w);
}

static void
forget(struct world *w, unsigned which)
{
    struct set_view view;
    if (w->count == 0)
        return;
    which %= (unsigned)w->count;
    struct message *m = &w->messages[which];
    bool found = sets_find(w->sets, id_of(which), &view);
    bool may = found && !view.reassembling;
    must(sets_forget(w->sets, id_of(which)) == may);
    if (may)
        m->where = GONE;
}

static void
pass_time(struct world *w, unsigned ms)
{
    w->now_ms += ms;
    sets_tick(w->sets, w->now_ms);
    must(sets_wake_ms(w->sets) > w->now_ms);
    take_released(w);
    for (size_t i = 0; i < w->count; i++) {
        struct set_view view;
        if (w->messages[i].where == HELD && sets_find(w->sets, id_of(i), &view))
            must(view.reassembling || view.until_ms > w->now_ms);
    }
}

static void
step(struct world *w)
{
    unsigned what = next(w);
    switch (what % 8) {
    case 0:
    case 1:
    case 2:
        add(w);
        break;
    case 3:
        take_join(w);
        break;
    case 4:
        end_join(w, what / 8, true);
        break;
    case 5:
        end_join(w, what / 8, false);
        break;
    case 6:
        forget(w, next(w));
        break;
    default:
        pass_time(w, what);
        break;
    }
    take_released(w);
    check_counts(w);
}

/* In the end all joins end, time passes, and nothing is held any more. */
static void
finish(struct world *w)
{
    for (bool more = true; more;) {
        while (w->join_count > 0)
            end_join(w, 0, true);
        take_join(w);
        more = w->join_count > 0;
    }
    take_released(w);
    pass_time(w, 100000);
    for (size_t i = 0; i < w->count; i++)
        must(w->messages[i].where == GONE);
    check_counts(w);
    pass_time(w, 100000);
    must(sets_count(w->sets).closed == 0 && sets_wake_ms(w->sets) == INT64_MAX);
}

/* The first six bytes are limits, the seventh: freed in the midst of it. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 8)
        return 0;
    struct world *w = calloc(1, sizeof(*w));
    must(w != NULL);
    w->now_ms = 5000;
    w->script = text_of(data, size);
    w->limits = (struct set_limits){.parts = NUMBERS, .set_bytes = next(w) * 8};
    w->limits.sets = next(w) % 6;
    w->limits.sender_sets = next(w) % 4;
    w->limits.client_sets = next(w) % 5;
    w->limits.bytes = next(w) * 16;
    w->limits.recipients = next(w) % 64;
    bool sudden = next(w) % 4 == 0;
    w->sets = sets_new(&w->limits);
    while (w->script.length > 0)
        step(w);
    if (!sudden)
        finish(w);
    sets_free(&w->sets);
    free(w);
    return 0;
}
