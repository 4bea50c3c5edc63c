/* The engine of copies: a server of Redis, perhaps with a replica, which keeps a copy of each
 * message of the first host, or of all hosts of its group. It refuses connections, is silent or slow, cuts replies, is full,
 * takes no writes, loses its replica, fails over, is emptied, and forgets scripts.
 *
 * Law "copied": a client hears 250 only when the copy is there; and while all is well for a
 * while, each open message has a copy that knows who has got it, and nothing else is there. */
#ifndef T_ROOF_ENGINE_H
#define T_ROOF_ENGINE_H

#include "base/text.h"

#include <stdbool.h>

/* Adds its settings to those of the first host. */
void engine_begin(void);
void engine_act(void);
void engine_become_good(void);
/* Said by clients of SMTP, before the model: the message has this id. One that is posted again may have
 * been delivered long ago. */
void engine_acked(struct text id);
/* The message was refused by this reply when it was durable already: a host that dies before its
 * end is durable has it still. */
bool engine_may_return(struct text reply);
/* The first host has ended: what it delivered in a run in which nothing of it came here may come
 * twice (doc/cluster.md "What is there, and what is here"). */
void engine_host_ended(void);
/* It has a copy of each message that was acknowledged and is open, of which there are some, and
 * did well for a while. */
bool engine_has_all(void);
/* The messages that are copied under that name of a host, whatever its spool is. */
size_t engine_copies_of(const char *host_name);
/* Each copy that can be read. */
struct envelope;
struct engine_copy {
    const char *key, *id;
    const struct envelope *envelope;
};
void engine_each_copy(void (*met)(void *context, const struct engine_copy *copy),
                      void *context);
/* The spool is empty: copies have other names from now on. */
void engine_lost_disk(void);
/* Nothing is left to do. */
void engine_judge(void);
/* Exact questions, at the end of a run: mail that waits has a copy that knows who has got it, also
 * when the engine was full as it came, and when it was emptied since. */
void engine_audit(void);

#endif
