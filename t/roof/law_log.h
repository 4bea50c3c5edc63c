/* The log is a legal life of each message at each host, and true: it is accepted before all
 * else, each recipient has one fate, `sent` means that a hop has stored it, and no line
 * follows `removed`, which comes in the end (the law "truth").
 *
 * A kill or power cut takes lines of the last moment and brings back mail whose end was
 * not durable, and a bad disk has lines of its own: what was logged before is excused. */
#ifndef T_ROOF_LAW_LOG_H
#define T_ROOF_LAW_LOG_H

#include "t/roof/model.h"

/* A line of the log of a host, without time. log: the number of its spool; 0 is that of
 * the first host, and of the slices on it. */
void law_log_line(unsigned log, struct text line);
void law_log_start(unsigned log); /* of one of its hosts */
/* One has been killed, or the disk fails. */
void law_log_excuse(unsigned log);
/* When nothing can happen any more. */
void law_log_judge(void);

/* --- For other laws: of the first log --- */

/* Lines about messages so far: the same number means that nothing has happened. */
uint64_t law_log_lines(void);
/* Ends and bad disks of the first host, so far. */
unsigned law_log_excuses(void);
int64_t law_log_last_ms(void); /* when the last of them was said */
/* The life of a message, NULL: no line has its id. */
struct life;
/* Nothing has happened since that takes back the fate that was logged last. */
bool law_log_is_certain(const struct model_rcpt *r);
const struct life *law_log_find(struct text id);
/* Accepted and not removed, by lines that nothing excuses. */
bool life_is_open(const struct life *l);
bool life_has_ended(const struct life *l);
bool life_is_held(const struct life *l);
/* Nothing may be missing of its lines. */
bool life_is_whole(const struct life *l);
uint64_t life_lines(const struct life *l);
int64_t life_last_ms(const struct life *l);
/* Calls for each life that is open and whole. */
void law_log_each_open(void (*each)(void *context, const char *id,
                                    const struct life *l),
                       void *context);

#endif
