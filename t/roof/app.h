/* A web application that gets mail by POST, as it is or as JSON: it is up, slow, away,
 * broken, rude or sends mail back. What it has taken goes to the model. */
#ifndef T_ROOF_APP_H
#define T_ROOF_APP_H

#include <stdbool.h>

/* is_plain: what was sent a round ago has come. Returns its target. */
const char *app_begin(bool is_plain);
/* It is away for six hours of the day. */
void app_begin_day(void);
/* Another mood, until the next one. */
void app_act(void);
void app_become_good(void);

#endif
