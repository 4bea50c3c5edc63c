/* A group: the first host and up to three others, each with a disk of its own. Clients give
 * their mail to any of them; they share limits by Redis, if there is one, and each gives
 * its queue to the others when it drains or stops. Hosts come and go. */
#ifndef T_ROOF_GROUP_H
#define T_ROOF_GROUP_H

#include "t/roof/fleet_internal.h"
#include "t/roof/hop.h"
#include "t/roof/world.h"

enum { GROUP_MEMBERS_MAX = 4, GROUP_LINES_MAX = 900 };

/* Its hosts have each a spool, and nothing that is known of the first one's mail alone: some
 * features are omitted in such a run, and half of the runs that have drawn a group have
 * these in its place, unless it is asked for. */
void group_settle(bool with[FEATURES], bool is_asked);
/* How many hosts clients may give their mail to; 0: there is no group. */
unsigned group_count(void);
bool group_has_redis(void);
const struct host *group_host(unsigned index); /* 0: the first */
void group_begin(bool has_faults, bool joins_fragments);
/* Fragments that are all there become one message, in a run with these features: its hosts
 * stay, if there is a group, and Redis says which of them has a set. */
bool group_joins(const bool with[FEATURES]);
/* The hops of the first domains, whose limits are shared. */
void group_begin_sites(struct hop *const *hops, const bool with[FEATURES]);
/* A file of settings was written for the first host: the others get it, too. */
void group_on_settings(struct text content);
/* The first host has ended. */
void group_first_ended(int64_t window_ms);
/* The first host reloads: all do. */
void group_reload_all(void);
/* Drains, commands for all hosts, cuts between them. */
void group_act(void);
/* When the first host gives mail next, its way falls silent within that, and step() comes. */
void group_step_within(void (*step)(void));
void group_become_good(void);
/* The next gifts of the first host, so many, are taken, and the answers are lost. */
void group_lose_answers(unsigned count);
/* The most time that one more transaction may need. */
int64_t group_pace_ms(void);
/* Then: a bank that has refused the questions of the last mail is back without mail. */
void group_refuse_last(void);
/* In good weather, when no mail is left: asks for the status of all hosts. */
void group_ask_status(void);
/* It was answered. */
bool group_has_answered(void);

#endif
