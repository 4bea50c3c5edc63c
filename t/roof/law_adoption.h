/* Adoption between hosts of a group: what may come twice, and how often (doc/cluster.md "A host
 * is lost").
 *
 * When the engine hands the copies of one host to another, each recipient whose end is not in
 * its copy, and who has got the message, may get it once more. From then on the message is the
 * new owner's: what another host stores still, as it has not heard of that, may come twice, too.
 * A host that ends while it adopts, or whose own mail is adopted meanwhile, may have up to
 * ADOPTION_SLOTS messages that the next one takes again.
 *
 * Law "fenced": from the moment when a host has heard that its mail is another's it says no 250,
 * and begins no delivery but those that its sessions have, until its copies are its own again. */
#ifndef T_ROOF_LAW_ADOPTION_H
#define T_ROOF_LAW_ADOPTION_H

#include "base/net_address.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct model_message;
struct model_rcpt;

/* The number of the host of a group that has the address, or 10.0.3.N, the way to it; -1: none. */
int law_adoption_host(const struct net_address *a);
/* Said by the engine, before it is done. owners: "HOST RUN"; key: of the hash. */
void law_adoption_claimed(struct text was, struct text is, struct text key);
/* A line of the log of that host; it has ended. Without a group: of host 0, which may adopt its
 * own mail when its disk was lost. */
void law_adoption_line(unsigned number, struct text line);
void law_adoption_ended(unsigned number);
/* It has heard that its mail is another's, and not yet that it is its own again. */
bool law_adoption_is_fenced(unsigned number);
/* The host has lost its disk. */
void law_adoption_lost(unsigned number);
/* By hops, before the model hears of it: what the host with that number does; -1: none. */
void law_adoption_mail(int number, struct text sender);
/* Or refusing it. */
void law_adoption_storing(int number, struct model_rcpt *r);
void law_adoption_reporting(int number, struct model_message *m);
/* By clients: host has said 250. */
void law_adoption_acked(unsigned number);
/* By the model, of a message that came more often than it may: it is one of the few of an adopter
 * that ended. */
bool law_adoption_excuses(const struct model_message *m);
/* How often the copies of one host became those of another. */
unsigned law_adoption_claims(void);

#endif
