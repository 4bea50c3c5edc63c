/* The current activity of a session, for operators who ask why mail waits. */
#ifndef QUEUE_MANAGER_ACTIVITY_H
#define QUEUE_MANAGER_ACTIVITY_H

#include "base/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum activity_kind {
    ACTIVITY_NONE,      /* nothing that takes time */
    ACTIVITY_LOOK_UP,   /* what: "MX of example.org" */
    ACTIVITY_CONNECT,   /* to remote, as in all that follow */
    ACTIVITY_GREETING,  /* connected; the greeting has not come */
    ACTIVITY_HANDSHAKE, /* TLS */
    ACTIVITY_REPLY,     /* awaited; what: to "RCPT TO" */
    ACTIVITY_CONTENT,   /* being sent */
    ACTIVITY_PREPARE,   /* we compute: examine content, or log in */
    ACTIVITY_IDLE,      /* kept for more mail */
    ACTIVITY_STORE,     /* mail is written to Maildirs; what: their parent directory */
    ACTIVITY_KINDS
};
enum { ACTIVITY_WHAT_MAX = 320 };

struct activity {
    enum activity_kind kind;
    int64_t since_ms;                /* since the epoch */
    bool has_message;                /* it carries the message in question */
    char what[ACTIVITY_WHAT_MAX];    /* or "" */
    char remote[OUTCOME_REMOTE_MAX]; /* "host[ip]:port", or "" */
    const char *scheme; /* a URL scheme that may be meant instead: "smtps"; mostly
                         * NULL */
};

#endif
