/* Fuzz target: MTA-STS records, policies, and lines of lock/sts. A policy that is taken reads the same when it is
 * written again. */
#include "smtp/trust/sts.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char again[STS_POLICY_MAX];
    struct text input = text_of(data, size), rest, pattern;
    struct sts_policy policy, second;
    struct sts_line line;
    const char *why;
    char id[STS_ID_MAX + 1] = "";
    if (sts_read_record(&input, 1, id))
        must(id[0] != '\0' && size > strlen(id));
    if (sts_line_read(input, &line)) {
        must((line.policy.patterns[0] != '\0') == (line.policy.mode != STS_MODE_NONE));
        must(sts_is_id(text_from(line.id)) && line.domain.length > 0);
        sts_policy_free(&line.policy);
    }
    if (!sts_policy_read(input, &policy, &why)) {
        must(why != NULL && policy.patterns == NULL);
        return 0;
    }
    must(size <= STS_POLICY_MAX && strlen(policy.patterns) <= STS_PATTERNS_MAX);
    must(policy.max_age_s <= STS_AGE_MAX_S);
    must((policy.patterns[0] != '\0') == (policy.mode != STS_MODE_NONE));
    int length = snprintf(again, sizeof(again), "version: STSv1\nmode: %s\nmax_age: %u\n",
                          sts_mode_word(policy.mode), policy.max_age_s);
    rest = text_from(policy.patterns);
    while (text_word(&rest, " ", &pattern)) {
        must(sts_is_pattern(pattern));
        must(pattern.at[0] == '*' || sts_matches(policy.patterns, pattern));
        length += snprintf(again + length, sizeof(again) - (size_t)length, "mx: %.*s\n",
                           TEXT_ARGS(pattern));
    }
    must(sts_policy_read(text_of(again, (size_t)length), &second, &why));
    must(strcmp(second.patterns, policy.patterns) == 0);
    sts_policy_free(&policy);
    sts_policy_free(&second);
    return 0;
}
