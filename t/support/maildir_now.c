/* A delivery into a Maildir in one go. */
#include "t/support/maildir_now.h"

struct outcome
maildir_deliver(struct queue *queue, struct loop *loop, const struct target *target,
                const char *hostname, const struct envelope *e, unsigned recipient)
{
    struct outcome outcome;
    struct maildir_delivery *d =
        maildir_start(queue, loop, target, hostname, e, recipient);
    if (!maildir_go(&d, INT64_MAX, &outcome))
        abort();
    return outcome;
}
