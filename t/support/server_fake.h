/* A server machine with a pretended policy and queue around it. */
#ifndef T_SUPPORT_SERVER_FAKE_H
#define T_SUPPORT_SERVER_FAKE_H

#include "base/buffer.h"
#include "base/memory.h"
#include "mime/address.h"
#include "smtp/server/server.h"
#include "base/event/event.h"
#include "t/support/dialog.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct fake_message {
    struct envelope *envelope;
    struct buffer content;
};

#define FAKE_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
enum { FAKE_MESSAGES_MAX = 64, FAKE_BYTES_MAX = 128 * 1024 * 1024 };

struct fake {
    struct server server;
    struct buffer out;  /* all replies so far */
    struct buffer held; /* input that the machine has not taken */
    struct buffer draft;
    bool draft_open, closed;
    bool late;    /* questions are answered after the machine was asked to go on */
    bool forget;  /* stored messages are not kept */
    int64_t space; /* a larger message is refused at MAIL; 0: none is */
    struct fake_message messages[FAKE_MESSAGES_MAX];
    size_t count;
    unsigned stored, drafts;
    unsigned checks, failures; /* of AUTH */
    /* The next answer of the queue, for BEGIN or STORE; NULL or a NULL answer: fine. */
    const struct outcome *(*answer)(void *context, bool begin);
    void *context;
};

void fake_start(struct fake *f, const struct server_rules *rules, struct event_hub *events, bool lmtp, bool may_relay);

void server_fake_end(struct fake *f);

/* Bytes of the client. */
void fake_feed(struct fake *f, struct text bytes);

#endif
