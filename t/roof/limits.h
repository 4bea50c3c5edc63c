/* Quotas, rates and providers as settings, and what they permit. */
#ifndef T_ROOF_LIMITS_H
#define T_ROOF_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* Adds lines and options to those of the editor (editor.h). count: of its routes. */
void limits_begin(unsigned count);
/* Other values, for the next file. */
void limits_edit(void);
/* "quota=100/h" for this route, or "". */
const char *limits_option(unsigned route);
/* The most time that one more recipient may need, by values so far. */
int64_t limits_pace_ms(void);
/* A hop has heard a recipient of this route. True: its quota counts it. */
bool limits_heard(unsigned route);
/* The last ones of these were not sent. */
void limits_unheard(unsigned route, unsigned count);
/* Other things than limits decide when a hop hears of recipients, or the count of them is
 * lost. */
void limits_forgive(void);

#endif
