/* The shadow: the properties that every message must have after any event of the
 * machine. The workload writes it down as it goes; judges compare. */
#ifndef T_CRASH_SHADOW_H
#define T_CRASH_SHADOW_H

#include "base/id.h"
#include "queue/envelope/envelope.h"

enum { MESSAGES_MAX = 96, RECIPIENTS_MAX = 6 };

/* MAYBE: asked for, and perhaps not yet durable. */
enum certainty { NO, MAYBE, SURE };
/* OFFERED: commit was asked, no answer came. */
enum message_index { ABSENT, OFFERED, STORED, REFUSED };

struct message {
    enum message_index known;
    struct id id;
    unsigned recipients;
    bool is_alias; /* the one recipient of its todo, which stands for them */
    char *content;
    size_t size;
    enum certainty marks[RECIPIENTS_MAX];
    bool failed[RECIPIENTS_MAX]; /* settled with what is to be told */
    enum certainty retired, held, removed;
    enum certainty warned; /* its sender, by a notice that is stored */
    enum certainty notified[RECIPIENTS_MAX]; /* likewise, of a recipient that failed */
    bool gone;   /* refused, and what a failed write left of it is undone, durably */
    bool unseen; /* since its process was killed: its marks may have been lost */
    int told_of; /* a notice: the message whose failures or delay it tells; else -1 */
    bool tells[RECIPIENTS_MAX]; /* whose failures */
};

struct shadow {
    struct message messages[MESSAGES_MAX];
    unsigned count;
    /* With a journal an end is durable within 100 ms, else when the disk pleases. */
    bool strict;
    /* The disk has refused something: what was refused may come back. */
    bool troubled;
    bool injected; /* an injector was at work: its files stay for 36 hours */
};

void shadow_init(struct shadow *s, bool strict);
void shadow_free(struct shadow *s);
/* A new message of about so many bytes; -1 when there is directory for no more. */
int shadow_add(struct shadow *s, unsigned recipients, size_t size, int told_of);
struct text shadow_content(const struct shadow *s, unsigned message);
const char *shadow_address(unsigned recipient);
/* By its delivery: over LMTP and into Maildirs, or over SMTP; several of each. */
bool shadow_is_local(void *context, const struct envelope *e, const struct recipient *r);
/* The recipient of a message with is_alias, and what the manager does when it loads it. */
const char *shadow_alias(void);
void shadow_expand(const struct message *m, struct envelope *e);
/* The outcome of a recipient that fails; its text names both. */
/* Or, of every other, a success that the sender asked to hear of. */
struct failure shadow_failure(unsigned message, unsigned recipient);
/* -1: nobody sent it. */
int shadow_find(const struct shadow *s, struct id id);
bool shadow_is_settled(const struct message *m);
/* Time has passed, and nothing went wrong: what was asked for is durable. */
void shadow_harden(struct shadow *s);
/* The same number for the same promises. */
uint64_t shadow_digest(const struct shadow *s);

#endif
