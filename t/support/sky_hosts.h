/* The hosts of t/sim/sky.h: each has a channel upon a queue manager, and sessions to the
 * others and to a next hop. Arrivals are written down. */
#ifndef T_SUPPORT_SKY_HOSTS_H
#define T_SUPPORT_SKY_HOSTS_H

#include "t/sim/sky.h"

/* --- Arrivals --------------------------------------------------------------------- */

unsigned person(struct text address);

void part_body(const struct fate_of_set *set, unsigned which, unsigned number, struct buffer *out);

struct fate_of_part * part_of(struct sky *w, struct text content, unsigned *set);

/* --- Sessions --------------------------------------------------------------------- */

struct outcome delivered(void);

struct outcome never(void);

void sky_transport_end(struct transport *c, const struct outcome *why);

void answered(void *context);

void speak(void *context);

/* --- Hosts ------------------------------------------------------------------------ */

void sky_host_start(struct host *h);

void sky_host_stop(struct host *h);

void host_begin(struct sky *w, unsigned which);

void host_end(struct host *h);

void host_reload(struct host *h);

#endif
