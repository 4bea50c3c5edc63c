/* Reads a dialogue of t/dialog/ (its README says how they are written). */
#ifndef T_SUPPORT_DIALOG_H
#define T_SUPPORT_DIALOG_H

#include "base/buffer.h"
#include "base/memory.h"
#include "smtp/server/server.h"
#include "t/support/tap.h"

enum { DIALOG_STEPS_MAX = 400, DIALOG_BYTES_MAX = 64 * 1024 * 1024 };

enum dialog_kind {
    DIALOG_SEND,    /* bytes of the client */
    DIALOG_REPLY,   /* prefix of a reply line */
    DIALOG_CLOSED,  /* the server closes */
    DIALOG_EVENT,   /* "timeout", "shutdown" */
    DIALOG_MESSAGE, /* "sender > rcpt, rcpt flags": the next stored message */
    DIALOG_CONTENT, /* ...has exactly this content */
    DIALOG_PREFIX,  /* ...and this in its trace header (folding undone) */
    DIALOG_LACKS,   /* ...and not this */
    DIALOG_NOTHING  /* no message was stored beyond those shown */
};

struct dialog_step {
    enum dialog_kind kind;
    struct buffer bytes;
};

struct dialog_answer {
    bool begin; /* for BEGIN, else for STORE */
    struct outcome refusal;
};

struct dialog {
    struct dialog_step steps[DIALOG_STEPS_MAX];
    size_t count;
    struct dialog_answer answers[16];
    size_t answer_count;
    struct server_rules rules;
    bool lmtp, may_relay, peer;
    bool paced;   /* has events: input cannot be sent in advance */
    int64_t space; /* of the fake queue; 0: endless */
    bool faked;   /* has answers of a fake queue: not for a real one */
};

void dialog_must(bool good, const char *what);

/* For ETRN: requests for sub-domains of .example succeed. */
enum server_flush dialog_flush(void *context, const char *node, const char *client);

/* Whether a stored message is what a DIALOG_MESSAGE, _CONTENT, _PREFIX or _LACKS says;
 * shown gets what it is. */
bool dialog_fits(const struct dialog_step *step, const struct envelope *e, struct text content, struct buffer *shown);

struct dialog * dialog_read(const char *path);

void dialog_free(struct dialog *d);

#endif
