/* The data of a Redis server, and the commands that the product says to it.
 *
 * Scripts are known by their text, and are done here in C: a script that is not known
 * ends the run, so that a change of the product's is seen. That of the bank is the
 * product's own twin (sched/limits/bank.h); the same tests compare both. */
#ifndef T_ROOF_REDIS_KEYS_H
#define T_ROOF_REDIS_KEYS_H

#include "base/buffer.h"

enum { REDIS_KEYS_WORDS_MAX = 3000 };

struct redis_keys;
struct redis_keys *redis_keys_new(void);
void redis_keys_free(struct redis_keys **keys);
/* As a replica has it, but for scripts. */
struct redis_keys *redis_keys_copy(const struct redis_keys *keys);
/* FLUSHALL, and SCRIPT FLUSH. */
void redis_keys_flush(struct redis_keys *keys);
void redis_keys_flush_scripts(struct redis_keys *keys);
/* A command with this first word writes: a replica refuses it. */
bool redis_keys_writes(const char *command);
/* Adds the reply, in RESP, to out. is_old: a server before version 7. now_us: by its
 * clock. */
void redis_keys_run(struct redis_keys *keys, int64_t now_us, bool is_old,
                    const char *const *words, size_t count, struct buffer *out);
/* Hosts that the server takes for members now. */
size_t redis_keys_members(const struct redis_keys *keys);

#endif
