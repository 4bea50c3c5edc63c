/* A message of recipients that are all there. */
#include "t/support/message_now.h"

struct sched_message *
message_new(struct destinations *set, const struct sched_mail *mail,
            const struct sched_recipient *recipients, size_t count, int64_t now_ms)
{
    struct sched_loading *l = message_loading(count);
    for (size_t i = 0; i < count; i++)
        message_find(set, l, &recipients[i], now_ms);
    struct sched_message *m = message_make(mail, l);
    free(l);
    return m;
}
