/* Deadlines of a slow peer: a machine without a clock.
 *
 * The time-outs of base/net/net.h begin again with each byte. These do not: a command
 * must be complete within the time-out after the reply to the one before, and a message
 * must come at a minimum rate, measured over spans that a pause within the time-out does
 * not spoil. Times are monotonic milliseconds. */
#ifndef SMTP_DEADLINE_H
#define SMTP_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline_rules {
    int64_t command_ms; /* for a command; 0: for ever */
    int64_t data_ms;    /* the time-out within content: a span is twice that */
    int64_t data_rate;  /* bytes in a second; 0: any */
};

struct deadline {     /* zeroed = new */
    int64_t since_ms; /* the span's, or the command's beginning */
    int64_t bytes;    /* of content, in the span */
    bool content;     /* the last that was seen */
};

/* Something was taken from the client, or it is waited for from now on: content says
 * what comes next, size how much of content it was that came; answered, that a command
 * was. */
void deadline_noted(struct deadline *p, bool content, int64_t size, bool answered,
                    int64_t now_ms);

/* When to look again; INT64_MAX: never. */
int64_t deadline_due_ms(const struct deadline *p, const struct deadline_rules *rules);

/* At that time: false when the client is too slow; else a new span may have begun. */
bool deadline_lasts(struct deadline *p, const struct deadline_rules *rules,
                    int64_t now_ms) __attribute__((warn_unused_result));

#endif
