/* The operator: commands over the control socket, and what they answer. */
#ifndef T_ROOF_OPERATOR_H
#define T_ROOF_OPERATOR_H

#include "base/text.h"
#include "t/roof/host.h"
#include "t/roof/model.h"

#include <stdbool.h>

/* A command about a message at random, or a question. */
void operator_act(void);
/* Releases what was held. */
void operator_release_all(void);
/* Asks over the control socket. heard() comes once, with the lines of the answer; whole:
 * its last line has come. */
typedef void operator_heard(void *context, struct text answer, bool whole);
void operator_ask(const char *line, operator_heard *heard, void *context);
void operator_ask_of(const struct host *h, const char *line, operator_heard *heard,
                     void *context);
/* One command on one message: hold, release, rm, bounce, retry. */
void operator_order(const char *command, const struct model_message *m);
/* Asks for the list, and compares it with the model when it comes. */
void operator_compare(void);
unsigned operator_commands(void);
/* Orders that may have taken a message out of the line in which it waited. */
unsigned operator_takings(void);
/* A command of any host, in JSON. */
void operator_tell(const struct host *h, const char *line);

#endif
