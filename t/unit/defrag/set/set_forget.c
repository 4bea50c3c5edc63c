/* defrag/set/set.c: what a set knows after one of its messages was taken out of it. */
#include "defrag/set/set.h"

#include "t/support/tap.h"

#include <string.h>

#define NOW INT64_C(1700000000000)

enum { DUE_MS = 1000000, MEMORY_MS = 500000 };

static const struct text forget_names[] = {TEXT("a@x"), TEXT("b@x")};
static uint64_t forget_serial;

/* who: 0 is a@x, 1 is b@x, 2 are both. */
static struct id
forget_add(struct sets *s, uint32_t number, uint32_t total, unsigned who, char body,
           struct set_answer *answer)
{
    static unsigned absorbed[2];
    struct fragment f = {
        .id = {(uint64_t)NOW, ++forget_serial},
        .number = number,
        .total = total,
        .size = 100,
        .until_ms = NOW + DUE_MS,
        .memory_ms = MEMORY_MS,
        .recipients = &forget_names[who % 2],
        .count = who == 2 ? 2 : 1
    };
    memset(f.key, 'K', sizeof(f.key));
    memset(f.digest, body, sizeof(f.digest));
    answer->absorbed = absorbed;
    sets_add(s, &f, NOW, answer);
    return f.id;
}

static bool
is_closed_once(struct sets *s, int64_t memory_ms)
{
    struct set_closed closed;
    return sets_next_closed(s, &closed) && closed.key[0] == 'K' &&
           closed.memory_ms == memory_ms && !sets_next_closed(s, &closed);
}

/* A total, or a number above it, of a message that is gone is no contradiction. */
TEST(numbers)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = 1000});
    struct set_answer answer;
    struct set_view view;
    struct id stays = forget_add(s, 1, 0, 0, 'A', &answer);
    struct id gone = forget_add(s, 5, 7, 0, 'E', &answer);
    ok(sets_find(s, stays, &view) && view.total == 7 && view.highest == 5);
    ok(sets_forget(s, gone));
    ok_named(sets_find(s, stays, &view) && view.total == 0 && view.highest == 1,
             "nobody states a total any more");
    forget_add(s, 2, 2, 0, 'B', &answer);
    ok_named(answer.verdict == SET_HOLDS, "another total is no conflict");
    const struct set_reassembly *join = sets_next_reassembly(s);
    ok_named(join != NULL && join->count == 2, "it is complete");
    sets_free(&s);

    s = sets_new(&(struct set_limits){.parts = 1000});
    stays = forget_add(s, 1, 3, 0, 'A', &answer);
    gone = forget_add(s, 2, 3, 0, 'B', &answer);
    ok(sets_forget(s, gone));
    ok_named(sets_find(s, stays, &view) && view.total == 3, "another one states it");
    sets_free(&s);
}

TEST(emptied)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = 1000});
    struct set_answer answer;
    struct id gone = forget_add(s, 1, 2, 0, 'A', &answer);
    ok(sets_forget(s, gone));
    ok_named(is_closed_once(s, 0), "its claim ends with it");
    is_number((long long)sets_count(s).open, 0, "it is not open");
    is_number((long long)sets_count(s).closed, 0, "nor remembered");
    forget_add(s, 1, 2, 0, 'A', &answer);
    ok_named(answer.verdict == SET_HOLDS, "the fragment may come again");
    ok(sets_forget(s, (struct id){(uint64_t)NOW, forget_serial}));
    forget_add(s, 1, 2, 0, 'A', &answer);
    struct set_closed closed;
    ok_named(!sets_next_closed(s, &closed), "a set that begins anew keeps its claim");
    sets_free(&s);
}

/* a@x has got the message, and b@x lacks number 2. */
static struct id
serve_one(struct sets *s, struct set_answer *answer)
{
    struct id first = forget_add(s, 1, 2, 2, 'A', answer);
    forget_add(s, 2, 2, 0, 'B', answer);
    const struct set_reassembly *join = sets_next_reassembly(s);
    ok(join != NULL && join->recipient_count == 1);
    sets_reassembled(s, join, NOW);
    return first;
}

TEST(reassembled_for_another)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = 1000});
    struct set_answer answer;
    ok(sets_forget(s, serve_one(s, &answer)));
    ok_named(sets_count(s).open == 1 && sets_count(s).messages == 0, "it is open");
    forget_add(s, 1, 2, 0, 'A', &answer);
    ok_named(answer.verdict == SET_ABSORBS, "a repetition is absorbed");
    forget_add(s, 2, 2, 1, 'B', &answer);
    ok_named(answer.verdict == SET_HOLDS, "what the other recipient lacks may come");
    forget_add(s, 1, 2, 1, 'A', &answer);
    const struct set_reassembly *join = sets_next_reassembly(s);
    ok_named(join != NULL && join->recipient_count == 1, "it is complete with that");
    sets_reassembled(s, join, NOW);
    ok_named(is_closed_once(s, MEMORY_MS), "then it ends");
    sets_free(&s);

    s = sets_new(&(struct set_limits){.parts = 1000});
    ok(sets_forget(s, serve_one(s, &answer)));
    sets_tick(s, NOW + DUE_MS);
    ok_named(is_closed_once(s, MEMORY_MS), "or when its time is over");
    is_number((long long)sets_count(s).closed, 1, "it is remembered");
    forget_add(s, 1, 2, 0, 'A', &answer);
    ok_named(answer.verdict == SET_ABSORBS, "a repetition is absorbed");
    forget_add(s, 1, 2, 1, 'A', &answer);
    ok_named(answer.verdict == SET_PASSES, "the other recipient gets what comes");
    sets_tick(s, NOW + DUE_MS + MEMORY_MS);
    is_number((long long)sets_count(s).closed, 0, "for a time");
    sets_free(&s);
}

/* Other content for a number that a recipient has is no repetition: it is not lost. */
TEST(digest_stays)
{
    struct sets *s = sets_new(&(struct set_limits){.parts = 1000});
    struct set_answer answer;
    forget_add(s, 1, 3, 0, 'A', &answer);
    forget_add(s, 2, 3, 0, 'B', &answer);
    forget_add(s, 3, 3, 0, 'C', &answer);
    const struct set_reassembly *join = sets_next_reassembly(s);
    ok(join != NULL);
    struct id gone = forget_add(s, 1, 3, 1, 'A', &answer);
    forget_add(s, 2, 3, 1, 'B', &answer);
    sets_reassembled(s, join, NOW);
    ok(sets_forget(s, gone));
    forget_add(s, 1, 3, 0, 'A', &answer);
    ok_named(answer.verdict == SET_ABSORBS, "a repetition is absorbed");
    forget_add(s, 1, 3, 0, 'z', &answer);
    ok_named(answer.verdict == SET_PASSES && answer.reason == SET_CONFLICT,
             "other content passes");
    sets_free(&s);
}
