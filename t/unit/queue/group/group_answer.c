/* queue/group/group_answer.c: what the words of a question make of the bank, and that no
 * odd ones change it. */
#include "queue/group/group_answer.h"

#include "base/memory.h"
#include "queue/group/group_internal.h"
#include "t/support/tap.h"

#define PERIOD "5000000", "60000"
#define KEY_A  "ps:0123456789abcdef0123456789abcdef"

enum { START_US = 1000 * 1000 };

static const char *
asks(struct bank *bank, int64_t now_us, const char *const *words, size_t count,
     char out[200])
{
    struct buffer answer;
    buffer_init(&answer, 16384);
    const char *why = group_answer_grant(bank, now_us, words, count, &answer);
    (void)!text_copy(out, 200, text_before(buffer_text(&answer), 199));
    buffer_free(&answer);
    return why;
}

static void
test_same(void)
{
    static const char *const words[] = {"2",   KEY_A, "ps:b", PERIOD, "3",  "0",
                                        "50000", "1", "20", "10", "2", "0", "0", "0",
                                        "-1", "1", "4", "0.25",
                                        "0",   "1",   "0",    "0",    "1000", "1", "0",
                                        "0",  "0", "0", "0", "0"};
    struct bank *bank = bank_new(), *other = bank_new();
    struct bank_question a = {.interval_us = 50000, .burst = 1, .limit = 20, .want = 10,
                              .weight = 2, .had = -1, .open = 1, .need = 4,
                              .chance = 0.25, .hosts = 3},
                         b = {.burst = 1, .weight = 1000, .again = true, .hosts = 3};
    char got[200], want[200];
    for (int i = 0; i < 20; i++) {
        int64_t now_us = START_US + i * 700000;
        struct bank_grant g = bank_ask(other, TEXT("0123456789abcdef0123456789abcdef"),
                                       now_us, &a),
                          h = bank_ask(other, TEXT("b"), now_us, &b);
        const char *why =
            asks(bank, now_us, words, sizeof(words) / sizeof(*words), got);
        snprintf(want, sizeof(want), "%d %d %d %d %" PRId64 " %d %d %d %d %" PRId64,
                 g.tokens, g.sessions, g.counted, g.unmet, g.left_us, h.tokens,
                 h.sessions, h.counted, h.unmet, h.left_us);
        ok(why == NULL);
        is_string(got, want, "the answer of the bank itself");
    }
    bank_free(&bank);
    bank_free(&other);
}

static void
test_odd(void)
{
    static const struct {
        size_t word;
        const char *value, *why;
    } rows[] = {
        {0,  "0",                                   "number of words"},
        {0,  "2",                                   "number of words"},
        {0,  "201",                                 "number of words"},
        {0,  "x",                                   "number of words"},
        {0,  "",                                    "number of words"},
        {1,  "",                                    "odd question"   },
        {1,  "ps:",                                 "odd question"   },
        {1,  "pm:a",                                "odd question"   },
        {1,  "ps:0123456789abcdef0123456789abcdef0", "odd question"  },
        {2,  "4000000",                             "other periods"  },
        {3,  "1",                                   "other periods"  },
        {4,  "0",                                   "number of hosts"},
        {4,  "257",                                 "number of hosts"},
        {4,  "1.5",                                 "number of hosts"},
        {5,  "1",                                   "other periods"  },
        {6,  "0.5",                                 "odd question"   },
        {6,  "-1",                                  "odd question"   },
        {6,  "1e300",                               "odd question"   },
        {6,  "nan",                                 "odd question"   },
        {6,  "inf",                                 "odd question"   },
        {6,  " 1",                                  "odd question"   },
        {6,  "1 ",                                  "odd question"   },
        {7,  "0",                                   "odd question"   },
        {8,  "1000001",                             "odd question"   },
        {9,  "-1",                                  "odd question"   },
        {10, "0",                                   "odd question"   },
        {10, "1001",                                "odd question"   },
        {11, "2",                                   "odd question"   },
        {12, "99999999999999999999",                "odd question"   },
        {13, "1.25",                                "odd question"   },
        {14, "-2",                                  "odd question"   },
        {15, "--1",                                 "odd question"   },
        {16, "",                                    "odd question"   },
        {17, "1.1",                                 "odd question"   },
        {17, "-0.1",                                "odd question"   },
    };
    struct bank *bank = bank_new();
    char got[200];
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *words[] = {"1", "ps:a", PERIOD, "2", "0", "100000", "1", "2",  "1",
                               "1", "0",    "0",    "0", "-1", "0",     "1", "0.5"};
        words[rows[i].word] = rows[i].value;
        const char *why =
            asks(bank, START_US, words, sizeof(words) / sizeof(*words), got);
        ok_named(why != NULL && strstr(why, rows[i].why) != NULL, rows[i].value);
    }
    ok_named(asks(bank, START_US, NULL, 0, got) != NULL, "no words");
    is_number(bank_sites(bank), 0, "the bank has heard of none");
    bank_free(&bank);
}

/* A host that asks for more sites than there can be gets answers. */
static void
test_full(void)
{
    enum { BATCHES = BANK_SITES_MAX / GROUP_ASK_MAX + 5 };
    static const char *const frame[] = {PERIOD, "2", "0"},
                             *const numbers[] = {"100000", "1", "2", "1", "1", "0", "0",
                                                 "0", "-1", "0", "1", "0.5"};
    static char keys[GROUP_ASK_MAX][GROUP_KEY_SIZE];
    const char *words[GROUP_WORDS_MAX];
    struct bank *bank = bank_new();
    unsigned answers = 0;
    char got[200];
    for (int batch = 0; batch < BATCHES; batch++) {
        size_t used = 0;
        words[used++] = "200";
        for (int i = 0; i < GROUP_ASK_MAX; i++) {
            snprintf(keys[i], sizeof(keys[i]), "ps:%d", batch * GROUP_ASK_MAX + i);
            words[used++] = keys[i];
        }
        memcpy(&words[used], frame, sizeof(frame));
        used += 4;
        for (int i = 0; i < GROUP_ASK_MAX; i++, used += GROUP_NUMBERS)
            memcpy(&words[used], numbers, sizeof(numbers));
        answers += asks(bank, START_US, words, used, got) == NULL;
    }
    is_number(answers, BATCHES, "full batches are answered");
    is_number(bank_sites(bank), BANK_SITES_MAX, "and the table has its limit");
    bank_free(&bank);
}

int
main(void)
{
    test_same();
    test_odd();
    test_full();
    return done();
}
