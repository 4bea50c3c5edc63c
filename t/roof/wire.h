/* A wire between two hosts: it carries their SMTP, and sees what the first one hands to
 * the second, so that the model knows which replies were lost. */
#ifndef T_ROOF_WIRE_H
#define T_ROOF_WIRE_H

#include "t/roof/network.h"

/* Connections to at go on to to, from the address from. */
void wire_new(const char *name, const struct net_address *at,
              const struct net_address *from, const struct net_address *to);
/* In a thousand, of ends of messages: the connection is cut in place of the reply. */
void wire_set_cuts(unsigned permille);

#endif
