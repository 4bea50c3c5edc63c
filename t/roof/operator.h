/* The operator: commands over the control socket, and what they answer. */
#ifndef T_ROOF_OPERATOR_H
#define T_ROOF_OPERATOR_H

#include <stdbool.h>

/* A command about a message at random, or a question. */
void operator_act(void);
/* Releases what was held. */
void operator_release_all(void);
/* Asks for the list, and compares it with the model when it comes. */
void operator_compare(void);
unsigned operator_commands(void);

#endif
