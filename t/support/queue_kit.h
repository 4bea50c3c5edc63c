/* Common parts of the tests of the queue: a queue with its loop and log, messages, and
 * those found. */
#ifndef T_SUPPORT_QUEUE_KIT_H
#define T_SUPPORT_QUEUE_KIT_H

#include "base/loop/loop.h"
#include "queue/queue.h"
#include "base/event/event.h"
#include "t/support/tap.h"

enum { KIT_FOUND_MAX = 2000 };

struct kit {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct buffer lines; /* of the log */
    struct queue *queue;
    char error[300];
    struct queue_entry found[KIT_FOUND_MAX];
    size_t found_count;
    /* of the last commit */
    unsigned answers;
    struct envelope *stored;
    struct outcome refusal;
    bool refused;
};

void kit_found(void *context, const struct queue_entry *entry);

void kit_stored(void *context, struct envelope *e, const struct outcome *refusal);

/* The exit code of queue_open. */
int kit_open_with(struct kit *k, const struct queue_settings *settings);

int queue_kit_open(struct kit *k, const char *path);

int kit_open_injector(struct kit *k, const char *path);

void kit_close(struct kit *k);

void kit_turns(struct kit *k, unsigned turns);

bool kit_logged(const struct kit *k, const char *words);

/* recipients: NULL-terminated list of addresses. */
struct envelope * kit_envelope(const char *sender, const char *const *recipients);

/* Begins, writes and commits; the answer is in the kit after a turn. False: refused at
 * begin. */
bool kit_commit(struct kit *k, struct envelope *e, struct text content);

/* NULL: refused. The envelope is the caller's. */
struct envelope * queue_kit_accept(struct kit *k, struct envelope *e, struct text content);

/* Whether the content of e is these bytes. */
bool kit_content_is(struct kit *k, const struct envelope *e, struct text want);

const struct queue_entry * kit_entry(const struct kit *k, struct id id);

#endif
