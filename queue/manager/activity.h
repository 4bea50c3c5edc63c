/* What a session of a channel does at the moment, for those who ask why mail waits. */
#ifndef QUEUE_ACTIVITY_H
#define QUEUE_ACTIVITY_H

#include "base/outcome.h"

#include <stdbool.h>
#include <stdint.h>

enum activity_kind {
    ACTIVITY_NONE,      /* nothing that takes time */
    ACTIVITY_LOOK_UP,   /* what: "MX of example.org" */
    ACTIVITY_CONNECT,   /* to remote, as are all that follow */
    ACTIVITY_GREETING,  /* connected; none has come */
    ACTIVITY_HANDSHAKE, /* of TLS */
    ACTIVITY_REPLY,     /* is waited for; what: to "RCPT TO" */
    ACTIVITY_CONTENT,   /* is sent */
    ACTIVITY_PREPARE,   /* we compute: content is examined, or a login */
    ACTIVITY_IDLE,      /* kept for more mail */
    ACTIVITY_STORE,     /* mail is written to Maildirs; what: the directory above */
    ACTIVITY_KINDS
};
enum { ACTIVITY_WHAT_MAX = 320 };

struct activity {
    enum activity_kind kind;
    int64_t since_ms;                /* since the epoch */
    bool has_message;                /* it carries the message that was asked about */
    char what[ACTIVITY_WHAT_MAX];    /* or "" */
    char remote[OUTCOME_REMOTE_MAX]; /* "host[ip]:port", or "" */
    const char *scheme; /* a URL with that one may be meant: "smtps"; mostly NULL */
};

#endif
