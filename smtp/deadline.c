/* Measures the speed of a client against its deadlines. */
#include "smtp/deadline.h"

#include <assert.h>

enum { SPAN_TIMEOUTS = 2 };

static int64_t
deadline_span_ms(const struct deadline *p, const struct deadline_rules *rules)
{
    if (!p->content)
        return rules->command_ms;
    return rules->data_rate > 0 ? rules->data_ms * SPAN_TIMEOUTS : 0;
}

/* A reply begins a new span: bytes that the client has not read yet must not count
 * against it. */
void
deadline_noted(struct deadline *p, bool content, int64_t size, bool answered,
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
deadline_due_ms(const struct deadline *p, const struct deadline_rules *rules)
{
    int64_t span = deadline_span_ms(p, rules);
    return span > 0 ? p->since_ms + span : INT64_MAX;
}

/* The rate is judged by whole spans, so a fast client may pause within one. */
bool
deadline_lasts(struct deadline *p, const struct deadline_rules *rules, int64_t now_ms)
{
    if (now_ms < deadline_due_ms(p, rules))
        return true;
    if (!p->content || p->bytes * 1000 < rules->data_rate * deadline_span_ms(p, rules))
        return false;
    p->since_ms = now_ms;
    p->bytes = 0;
    return true;
}
