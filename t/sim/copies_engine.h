/* An engine of copies for tests: t/sim/copies_engine.c in the place of copies_engine.c. Several
 * have one database, as hosts have one server; nothing is done before sim_engine_carry(). */
#ifndef T_SIM_COPIES_ENGINE_H
#define T_SIM_COPIES_ENGINE_H

#include "queue/copies/copies_engine.h"
#include "t/sim/copies_database.h"

struct copies_engine *sim_engine_new(struct copies_database *database);
void sim_engine_free(struct copies_engine **engine);
void sim_engine_up(struct copies_engine *engine);
/* Calls under way have no answer; done: but the server has done them. */
void sim_engine_down(struct copies_engine *engine, bool done);
/* The next call of that script is answered so, and not done. */
void sim_engine_lie(struct copies_engine *engine, const char *script, const char *answer);
/* From now on calls of that script are answered by that error, and not done, except batches that
 * begin with an end: as by a server that is full. why NULL: no more. */
void sim_engine_refuse(struct copies_engine *engine, const char *script, const char *why);
/* Calls that were answered since it began. */
unsigned sim_engine_calls(const struct copies_engine *engine);
/* Does what was asked; calls back. False: nothing was. */
bool sim_engine_carry(struct copies_engine *engine);

#endif
