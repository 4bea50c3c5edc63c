/* Redis: one server or two, the second of which is a replica until the first one fails.
 * They speak RESP on the network, and come and go: they refuse connections, are silent or
 * slow, cut replies, say errors, lose their data or the last seconds of them; their clock
 * is set; and a host may be cut off from them. */
#ifndef T_ROOF_REDIS_H
#define T_ROOF_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REDISES_MAX = 2 };
/* "redis://10.0.4.1, redis://10.0.4.2", and "" or the password that they want. */
#define REDISES_PASSWORD "open sesame"

/* All that may be cut off: addresses 10.0.0.N. */
void redises_begin(bool has_faults);
/* "": there are none, or they want none. */
const char *redises_urls(void);
const char *redises_first_url(void);
const char *redises_password(void);
/* Something happens to them. */
void redises_act(void);
/* They work; or they stay away for good, which nobody's mail waits for. */
void redises_become_good(void);
/* They refuse scripts, and answer all else; or do no longer. */
void redises_forbid_scripts(bool are_forbidden);
/* When anything was wrong with them last, for any host: now, if it is; INT64_MIN: never. */
int64_t redises_trouble_ms(void);
/* All hosts can use the first or the second now. */
bool redises_are_good(void);

#endif
