/* Measures how fast a client speaks. */
#include "smtp/patience.h"

#include <assert.h>

enum { SPAN_TIMEOUTS = 2 };

static int64_t
patience_span_ms(const struct patience *p, const struct patience_rules *rules)
{
    if (!p->content)
        return rules->command_ms;
    return rules->data_rate > 0 ? rules->data_ms * SPAN_TIMEOUTS : 0;
}

void
patience_noted(struct patience *p, bool content, int64_t size, bool answered,
               int64_t now_ms)
{
    assert(size >= 0);
    if (answered || content != p->content) {
        p->since_ms = now_ms;
        p->bytes = 0;
    }
    p->content = content;
    if (content)
        p->bytes += size;
}

int64_t
patience_due_ms(const struct patience *p, const struct patience_rules *rules)
{
    int64_t span = patience_span_ms(p, rules);
    return span > 0 ? p->since_ms + span : INT64_MAX;
}

bool
patience_lasts(struct patience *p, const struct patience_rules *rules, int64_t now_ms)
{
    if (now_ms < patience_due_ms(p, rules))
        return true;
    if (!p->content || p->bytes * 1000 < rules->data_rate * patience_span_ms(p, rules))
        return false;
    p->since_ms = now_ms;
    p->bytes = 0;
    return true;
}
