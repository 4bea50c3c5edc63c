/* Questions to the bank of this process. */
#include "queue/group/group_answer.h"

#include "queue/group/group_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define INTERVAL_MAX_US 1e15

static bool
group_read_real(const char *word, double min, double max, double *out)
{
    char *end;
    if ((*word < '0' || *word > '9') && *word != '-')
        return false;
    *out = strtod(word, &end);
    return *end == '\0' && *out >= min && *out <= max;
}

static bool
group_read_whole(const char *word, int min, int max, int *out)
{
    double value;
    if (!group_read_real(word, min, max, &value))
        return false;
    *out = (int)value;
    return *out == value;
}

static bool
group_read_question(const char *const *words, int hosts, struct bank_question *q)
{
    enum { MAX = BANK_COUNT_MAX };
    int again;
    *q = (struct bank_question){.hosts = hosts};
    if (!group_read_real(words[0], 0, INTERVAL_MAX_US, &q->interval_us) ||
        (q->interval_us > 0 && q->interval_us < 1) ||
        !group_read_whole(words[1], 1, MAX, &q->burst) ||
        !group_read_whole(words[2], 0, MAX, &q->limit) ||
        !group_read_whole(words[3], 0, MAX, &q->want) ||
        !group_read_whole(words[4], 1, BANK_WEIGHT_MAX, &q->weight) ||
        !group_read_whole(words[5], 0, 1, &again) ||
        !group_read_whole(words[6], 0, MAX, &q->back) ||
        !group_read_whole(words[7], 0, MAX, &q->before) ||
        !group_read_whole(words[8], -1, MAX, &q->had) ||
        !group_read_whole(words[9], 0, MAX, &q->open) ||
        !group_read_whole(words[10], 0, MAX, &q->need) ||
        !group_read_real(words[11], 0, 1, &q->chance))
        return false;
    q->again = again != 0;
    return true;
}

/* The group's keys are hexadecimal; their prefix is for Redis. */
static bool
group_read_key(const char *word, struct text *key)
{
    struct text whole = text_from(word), prefix = TEXT(GROUP_PROBE);
    *key = text_after(whole, prefix.length);
    return text_starts(whole, prefix) && key->length > 0 && key->length <= BANK_KEY_MAX;
}

/* Those that hold for all keys. */
static bool
group_read_frame(const char *const *words, int *hosts)
{
    int period, forget, now;
    return group_read_whole(words[0], BANK_PERIOD_US, BANK_PERIOD_US, &period) &&
           group_read_whole(words[1], BANK_FORGET_US / 1000, BANK_FORGET_US / 1000,
                            &forget) &&
           group_read_whole(words[2], 1, GROUP_HOSTS_MAX, hosts) &&
           group_read_whole(words[3], 0, 0, &now);
}

const char *
group_answer_grant(struct bank *bank, int64_t now_us, const char *const *words,
                   size_t count, struct buffer *out)
{
    enum { FRAME = 4 };
    struct bank_question questions[GROUP_ASK_MAX];
    struct text keys[GROUP_ASK_MAX];
    int sites, hosts;
    if (count == 0 || !group_read_whole(words[0], 1, GROUP_ASK_MAX, &sites) ||
        count != 1 + FRAME + (size_t)sites * (1 + GROUP_NUMBERS))
        return "an odd number of words";
    const char *const *frame = &words[1 + sites];
    if (!group_read_frame(frame, &hosts))
        return "other periods, or an odd number of hosts";
    for (int i = 0; i < sites; i++)
        if (!group_read_key(words[1 + i], &keys[i]) ||
            !group_read_question(&frame[FRAME + i * GROUP_NUMBERS], hosts,
                                 &questions[i]))
            return "an odd question";
    for (int i = 0; i < sites; i++) {
        struct bank_grant g = bank_ask(bank, keys[i], now_us, &questions[i]);
        if (!buffer_format(out, "%s%d %d %d %d %" PRId64, i > 0 ? " " : "", g.tokens,
                           g.sessions, g.counted, g.unmet, g.left_us))
            return "a long answer";
    }
    return NULL;
}
