/* A webhook: a program that hears of the events of mail by HTTP, and is up, slow, away,
 * broken or rude. What it has taken goes to the model. */
#ifndef T_ROOF_HOOK_H
#define T_ROOF_HOOK_H

#include <stdbool.h>

#define HOOK_URL "http://10.0.3.1:8080/events"

/* is_ordered: nobody sets the clock, and one daemon tells of all mail, so that the times
 * of events rise. */
void hook_begin(bool is_ordered);
/* Another mood, until the next one. */
void hook_act(void);
void hook_become_good(void);
/* It has said 410: nothing comes before a reload. */
bool hook_has_stopped(void);
unsigned hook_batches(void);

#endif
