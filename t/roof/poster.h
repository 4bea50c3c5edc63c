/* Programs that post mail by HTTP, each message until it is accepted or refused, with its
 * number as its idempotency key; their connections are cut at any byte, and some do not
 * wait for the answer. A message that is sent twice breaks the law "once". */
#ifndef T_ROOF_POSTER_H
#define T_ROOF_POSTER_H

#include "t/roof/model.h"

/* The file of keys is there before the host starts. */
#define POSTER_KEYS "/etc/petrel/post_keys"
void posters_begin(void);
/* Whether the messages that begin with this one are to be posted. */
bool posters_take(const struct model_message *m);
void poster_begin(struct model_message *m);
/* That are not over. */
unsigned posters_open(void);
/* Messages. */
unsigned posters_count(void);
/* From now on nothing is cut. */
void posters_become_good(void);

#endif
