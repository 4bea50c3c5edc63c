/* Deadlines for a slow peer: a machine without a clock.
 *
 * The time-outs of base/net/net.h begin again with each byte. These deadlines do not: a
 * command must be complete within the time-out after the previous reply, and content must
 * arrive at a minimum rate. The spans of its measurement are longer than the time-out, so
 * one pause within the time-out does not fail them. Times are monotonic milliseconds. */
#ifndef SMTP_DEADLINE_H
#define SMTP_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

struct deadline_rules {
    int64_t command_ms; /* for a command; 0: for ever */
    int64_t data_ms;    /* the time-out within content; a span is twice as long */
    int64_t data_rate;  /* bytes in a second; 0: any */
};

struct deadline {     /* zeroed: new */
    int64_t since_ms; /* the beginning of the span or the command */
    int64_t bytes;    /* of content, in the span */
    bool content;     /* the client sends content, not a command */
};

/* Notes progress of the client. content: content is expected next, not a command; size:
 * bytes of content received since the last call; answered: a reply was sent. */
void deadline_noted(struct deadline *p, bool content, int64_t size, bool answered,
                    int64_t now_ms);

/* The time of the next deadline_lasts(); INT64_MAX: none. */
int64_t deadline_due_ms(const struct deadline *p, const struct deadline_rules *rules);

/* False: the client is too slow. True: a new span may have begun. */
bool deadline_lasts(struct deadline *p, const struct deadline_rules *rules,
                    int64_t now_ms) __attribute__((warn_unused_result));

#endif
