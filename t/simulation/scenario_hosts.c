/* Reads scenarios: hosts that share limits, and their bank. */
#include "t/simulation/scenario_internal.h"

#include "sched/limits/bank.h"

bool
scenario_read_hosts(struct reader *r, struct text word, size_t *first, size_t *count)
{
    uint64_t from, to, most = r->scenario->host_count;
    size_t dot = text_find(word, '.');
    struct text last = word;
    if (dot != TEXT_NONE)
        last = text_starts(text_after(word, dot), TEXT(".."))
                   ? text_after(word, dot + 2)
                   : TEXT("");
    if (!text_number(text_before(word, dot), most, &from) ||
        !text_number(last, most, &to) || from < 1 || to < from) {
        scenario_complain(r, "'%.*s' is not a host such as 1, nor some such as 1..%llu",
                          TEXT_ARGS(scenario_shown(word)), (unsigned long long)most);
        return false;
    }
    *first = (size_t)from - 1;
    *count = (size_t)(to - from + 1);
    return true;
}

/* Others name hosts by number, so their number comes first. */
void
scenario_read_hosts_statement(struct reader *r, struct text rest)
{
    struct scenario *s = r->scenario;
    struct text word;
    uint64_t number;
    if (!scenario_read_one(r, rest, &word) ||
        !scenario_read_number(r, word, 1, SCENARIO_HOSTS_MAX, &number))
        return;
    if (s->arrival_count > 0 || s->change_count > 0) {
        scenario_complain(r, "'hosts' must stand above 'at' and 'arrive'");
        return;
    }
    s->host_count = (size_t)number;
}

void
scenario_read_bank_statement(struct reader *r, struct text rest)
{
    struct text word;
    int64_t period_us;
    if (!scenario_read_one(r, rest, &word))
        return;
    if (!text_starts(word, TEXT("period="))) {
        scenario_complain(r, "'%.*s' is not a part of 'bank': period=5s",
                          TEXT_ARGS(scenario_shown(word)));
        return;
    }
    if (!scenario_read_time(r, text_after(word, 7), &period_us))
        return;
    if (period_us != BANK_PERIOD_US) {
        scenario_complain(r, "the period of a bank is %ds", BANK_PERIOD_US / 1000000);
        return;
    }
    r->scenario->has_bank = true;
}

struct scenario_word {
    struct text word;
    enum scenario_change_kind kind;
};

static const struct scenario_word *
scenario_word_find(const struct scenario_word *words, size_t count, struct text word)
{
    for (size_t i = 0; i < count; i++)
        if (text_equal(words[i].word, word))
            return &words[i];
    return NULL;
}

/* The changes after a kept copy are lost. */
static void
scenario_read_lose(struct reader *r, int64_t at_us, struct text rest)
{
    struct text word;
    int64_t ago_us;
    if (!scenario_read_one(r, rest, &word) || !scenario_read_time(r, word, &ago_us))
        return;
    struct scenario_change change = {.at_us = at_us > ago_us ? at_us - ago_us : 0,
                                     .kind = SCENARIO_BANK_KEEP};
    scenario_add_change(r->scenario, &change);
    change = (struct scenario_change){.at_us = at_us, .kind = SCENARIO_BANK_LOSE};
    scenario_add_change(r->scenario, &change);
}

void
scenario_read_bank_change(struct reader *r, int64_t at_us, struct text rest)
{
    static const struct scenario_word words[] = {
        {TEXT("down"),  SCENARIO_BANK_DOWN },
        {TEXT("up"),    SCENARIO_BANK_UP   },
        {TEXT("empty"), SCENARIO_BANK_EMPTY},
        {TEXT("lose"),  SCENARIO_BANK_LOSE },
    };
    struct text word = TEXT(""), more;
    if (!r->scenario->has_bank) {
        scenario_complain(r, "there is no bank: 'bank period=5s' above makes it");
        return;
    }
    (void)!scenario_next_word(&rest, &word);
    const struct scenario_word *found =
        scenario_word_find(words, sizeof(words) / sizeof(*words), word);
    if (found && found->kind == SCENARIO_BANK_LOSE) {
        scenario_read_lose(r, at_us, rest);
        return;
    }
    if (!found || scenario_next_word(&rest, &more)) {
        scenario_complain(r, "down, up, empty or 'lose TIME' must follow 'bank'");
        return;
    }
    scenario_add_change(r->scenario,
                        &(struct scenario_change){.at_us = at_us, .kind = found->kind});
}

void
scenario_read_host_change(struct reader *r, int64_t at_us, struct text rest)
{
    static const struct scenario_word words[] = {
        {TEXT("cut"),   SCENARIO_HOST_CUT  },
        {TEXT("join"),  SCENARIO_HOST_JOIN },
        {TEXT("die"),   SCENARIO_HOST_DIE  },
        {TEXT("drain"), SCENARIO_HOST_DRAIN},
    };
    struct scenario_change change = {.at_us = at_us};
    struct text hosts, word, more;
    if (!scenario_next_word(&rest, &hosts)) {
        scenario_complain(r, "the number of a host must follow, or some such as 1..3");
        return;
    }
    if (!scenario_read_hosts(r, hosts, &change.first, &change.count))
        return;
    if (!scenario_next_word(&rest, &word))
        word = TEXT("");
    const struct scenario_word *found =
        scenario_word_find(words, sizeof(words) / sizeof(*words), word);
    if (!found || scenario_next_word(&rest, &more)) {
        scenario_complain(r, "cut, join, die or drain must follow the host");
        return;
    }
    change.kind = found->kind;
    scenario_add_change(r->scenario, &change);
}
