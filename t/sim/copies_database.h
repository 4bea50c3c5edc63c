/* The data of copies in Redis, and what their scripts do there, without Redis: for the roof, and
 * for unit tests of adoption. t/unit/queue/copies/adoption_scripts.c asks both the same. */
#ifndef T_SIM_COPIES_DATABASE_H
#define T_SIM_COPIES_DATABASE_H

#include "base/buffer.h"

struct copies_database;

struct copies_database *copies_database_new(void);
struct copies_database *copies_database_copy(const struct copies_database *d);
/* Everything is lost. */
void copies_database_flush(struct copies_database *d);
void copies_database_free(struct copies_database **d);
/* Whether that is one of the scripts; its text, or NULL. by_sum: its SHA-1 in hex. */
const char *copies_database_script(const char *word, bool by_sum);
/* words: the number of keys, keys, arguments. True: reply has the answer; false: the error. */
bool copies_database_run(struct copies_database *d, const char *script,
                         const struct text *words, size_t count, struct buffer *reply);
/* The messages of all copies there. */
size_t copies_database_count(const struct copies_database *d);
/* A field of a hash; at NULL: there is none. */
struct text copies_database_field(const struct copies_database *d, const char *key,
                                  const char *field);
void copies_database_set(struct copies_database *d, const char *key, const char *field,
                         const char *bytes);
void copies_database_drop(struct copies_database *d, const char *key, const char *field);

/* Each copy: the key of its hash, its id, and its field. */
void copies_database_each(const struct copies_database *d,
                          void (*met)(void *context, const char *key, const char *id,
                                      struct text field),
                          void *context);

#endif
