/* The ways between the peer doors of a group's hosts: bytes pass both ways, and are cut
 * anywhere, so that a message may be there without an answer. */
#ifndef T_ROOF_GROUP_WIRE_H
#define T_ROOF_GROUP_WIRE_H

#include "t/roof/network.h"
#include "t/roof/roof.h"

/* A giver asks for 60 s, and a line may be out for some. */
enum { GROUP_WIRE_AWAY_MS = 40 * SECOND_MS };

struct group_wire;
/* away(): it has been no way to taker until a giver turns to another host. */
struct group_wire *group_wire_new(const char *name, const struct net_address *at,
                                  const struct net_address *to,
                                  void (*away)(const char *taker), const char *taker);
/* From now on it swallows all bytes. */
void group_wire_silence(struct group_wire *w);
/* Another mood. */
void group_wire_act(struct group_wire *w, uint64_t *chance);
void group_wire_become_good(struct group_wire *w);

#endif
