/* Messages that one host of a group has taken, and whose giver has not heard so: both may
 * have them when either ends, or when there is no way between them for long. */
#ifndef T_ROOF_GROUP_MOVES_H
#define T_ROOF_GROUP_MOVES_H

#include "base/text.h"

#include <stdbool.h>

/* A line of the log of the host of that name. */
void group_moves_line(const char *host, struct text line);
/* It has ended, in order: each message that is unanswered may come twice. */
void group_moves_ended(const char *host);
/* The same of messages that it has taken: nobody can ask it. */
void group_moves_unheard(const char *taker);
/* The same of those that it has taken or given: it is cut off from the others. */
void group_moves_cut(const char *host);

#endif
