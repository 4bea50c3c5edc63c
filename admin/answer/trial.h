/* Test messages that the daemon sends for a client of the control socket or of HTTP, and
 * follows.
 *
 *   {"to": "NAME@DOMAIN", "from": "NAME@DOMAIN"}   without from: postmaster of this host;
 *                                                  "" or "<>": the null sender
 *
 * Answered by lines: `id` alone, once the message is durable; its events (life.h), each
 * with `message`, its id; at last ok, end, id and state (life.h). That comes when nothing
 * is left of the message, when it is held, or when TRIAL_FOR_MS are over. One that was not
 * accepted has a single line, with ok (false) and error. A client that goes does not stop
 * its message. */
#ifndef ADMIN_ANSWER_TRIAL_H
#define ADMIN_ANSWER_TRIAL_H

#include "admin/answer/answer.h"
#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/event/event.h"
#include "queue/manager/manager.h"

#include <jansson.h>

enum {
    TRIALS_MAX = 8,              /* at a time, over all clients */
    TRIAL_FOR_MS = 60 * 1000,    /* as `petrel test` follows */
    TRIAL_LINES_MAX = 32 * 1024, /* bytes of events; the next one ends the following */
    TRIAL_TO_MAX = 320           /* bytes of an address */
};

struct trials;
struct trial;

struct trials_setup {
    struct loop *loop;
    struct event_hub *events;
    struct manager *manager;
    const char *(*hostname)(void *context);
    const char *(*leaves)(void *context); /* why no mail is accepted; NULL: it is */
    void *context;
};
struct trials *trials_new(const struct trials_setup *setup);
/* Clients have ended theirs; the manager is still there. */
void trials_free(struct trials **trials);

/* Why there is none. */
struct trial_refusal {
    bool is_later; /* it may be possible later; else the request is wrong */
    const char *why;
};

/* No callback before it returns. NULL: refusal says why; its text lives until the next
 * call. Other members of the request are ignored: see trial_is_known(). */
struct trial *trial_ask(struct trials *trials, const json_t *request,
                        const struct answer_events *events,
                        struct trial_refusal *refusal);
void trial_leave(struct trial **trial);
/* Whether a request may have that member. */
bool trial_is_known(const char *member);

enum { TRIAL_MESSAGE_MAX = 4096 };
/* The message of `petrel test`, too: short, and about nobody. Adds it with CRLF line ends:
 * header with sender and recipient, and a body that names host and time. Addresses are
 * qualified and without control characters. False: it does not fit. */
bool trial_write_message(struct buffer *out, const char *hostname, struct text sender,
                         struct text recipient, int64_t now_ms)
    __attribute__((warn_unused_result));

#endif
