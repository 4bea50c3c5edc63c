/* Does the work of the bank's script by the bank of this process. Pure. */
#ifndef QUEUE_GROUP_GROUP_ANSWER_H
#define QUEUE_GROUP_GROUP_ANSWER_H

#include "base/buffer.h"
#include "sched/limits/bank.h"

/* words: the number of keys, keys, arguments, as bank_script.h has them; the time must be
 * left to us: it is now_us. Another process may have sent them, so each is checked. NULL:
 * the answer is added to out, five numbers for each key; else why there is none, and the
 * bank is as it was. */
const char *group_answer_grant(struct bank *bank, int64_t now_us,
                               const char *const *words, size_t count,
                               struct buffer *out);

#endif
