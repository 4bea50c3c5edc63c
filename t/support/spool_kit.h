/* A spool on the simulated disk, and the message that tests put into it. */
#ifndef T_SUPPORT_SPOOL_KIT_H
#define T_SUPPORT_SPOOL_KIT_H

#include "queue/envelope/envelope.h"
#include "queue/spool/spool.h"

extern const struct text spool_kit_content;

void spool_kit_open(struct spool *s, struct log *log);

/* Every second recipient, from the first on. */
bool spool_kit_is_local(void *context, const struct envelope *e, const struct recipient *r);

struct id spool_kit_id(unsigned char n);

/* From s@x to a@x and b@x, with that content. */
struct envelope *spool_kit_envelope(unsigned char n);

#endif
