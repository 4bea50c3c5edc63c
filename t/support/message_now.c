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

struct sched_message *
sched_loaded_now(struct sched *s, struct id id, const struct sched_mail *mail, const struct sched_recipient *recipients,
                 size_t count)
{
    struct sched_loading *l = sched_loading_new(count);
    for (size_t i = 0; i < count; i++)
        sched_loading_add(s, l, &recipients[i]);
    return sched_loaded(s, id, mail, &l);
}
