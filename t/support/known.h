/* States of a simulation that have been judged, by a digest. */
#ifndef T_SUPPORT_KNOWN_H
#define T_SUPPORT_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

struct known; /* NULL: none */

uint64_t known_mix(uint64_t a, uint64_t b);

/* Whether it was not known before. */
bool known_is_news(struct known **all, uint64_t key);

void known_forget(struct known **all);

#endif
