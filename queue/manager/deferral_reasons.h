/* Why messages wait: a bounded map from id to the outcome of the last attempt.
 *
 * A dead site gives one outcome to thousands of messages. Equal outcomes are kept once,
 * and a message costs 16 bytes in a table that is at most seven eighths full. */
#ifndef QUEUE_MANAGER_DEFERRAL_REASONS_H
#define QUEUE_MANAGER_DEFERRAL_REASONS_H

#include "base/id.h"
#include "base/outcome.h"
#include "base/disk/disk.h"
#include "sched/sched.h"

enum {
    /* For all outcomes; those unused for longest are forgotten first. */
    DEFERRAL_REASONS_BYTES_MAX = 8 << 20
};

struct deferral_reasons;

/* limit: of messages, less than 2^24; beyond it an arbitrary other one is forgotten. */
struct deferral_reasons *deferral_reasons_new(unsigned limit);
void deferral_reasons_free(struct deferral_reasons **r);
/* Replaces the reason of id. Copies code, enhanced, text and remote of the outcome. */
void deferral_reasons_keep(struct deferral_reasons *r, struct id id,
                           const struct outcome *outcome);
void deferral_reasons_forget(struct deferral_reasons *r,
                             struct id id); /* may be unknown */
/* The outcome's text; "" if unknown; borrowed until the next change. */
const char *deferral_reasons_find(const struct deferral_reasons *r, struct id id);

/* The SMTP code of the reply that deferred it; 0: there was no reply, or it is unknown. */
int deferral_reasons_code(const struct deferral_reasons *r, struct id id);

/* Why a message waits whose sender wants it to be delivered at that time, by the wall
 * clock. Begins with DEFERRAL_RELEASE. Returns out. */
#define DEFERRAL_RELEASE "released at "
enum { DEFERRAL_RELEASE_MAX = 100 };
const char *deferral_reasons_release(int64_t release_ms,
                                     char out[DEFERRAL_RELEASE_MAX]);

/* The number of messages, including those whose outcome was forgotten. */
unsigned deferral_reasons_count(const struct deferral_reasons *r);
/* Grows with each change. */
uint64_t deferral_reasons_changes(const struct deferral_reasons *r);
/* All numbers of outcomes are less than this until the next change. */
unsigned deferral_reasons_numbers(const struct deferral_reasons *r);
/* In no order; each must not change anything. number names the outcome. */
void deferral_reasons_each(const struct deferral_reasons *r,
                           void (*each)(void *context, struct id id, unsigned number),
                           void *context);
/* False: it was forgotten. verdict is DEFERRED. */
bool deferral_reasons_read(const struct deferral_reasons *r, unsigned number,
                           struct outcome *outcome);

/* The reasons of deferred mail, kept over a restart: the last outcome of each message.
 *
 * lock/reasons: a title, the outcomes (each once), the messages (an id and the number
 * of an outcome), the CRC32C of all that. Written to a draft and renamed, without a
 * sync, since it is only a hint. A file that is not exactly as written is ignored. */

/* Limits of the file. Beyond them it has the messages due soonest, and its title says
 * how many were omitted. */
enum { REASONS_COUNT_MAX = 100000, REASONS_SIZE_MAX = 8 << 20 };

/* Forgets messages that sched does not know, if it knows all. Without a reason there is
 * no file. Returns 0 or a negative errno value. */
int reasons_write(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                  struct sched *sched, bool knows_all);
/* Adds the reasons of the file for the messages that `wants` accepts. 0, a negative
 * errno value, or -EILSEQ: damaged or not ours, and nothing was added. */
int reasons_read(struct disk *disk, const char *path, struct deferral_reasons *reasons,
                 bool (*wants)(void *context, struct id id), void *context);
/* Without a daemon: the reasons that all slices have left in lock/. Unreadable files
 * are ignored. The caller frees the result. */
struct deferral_reasons *reasons_read_all(struct disk *disk);

/* Bytes allocated, for its tests. */
size_t deferral_reasons_memory(const struct deferral_reasons *r);

#endif
