/* Connects the accounts of `oauth` with delivery and scheduler: sessions that log in ask
 * for tokens, and mail waits while there is none. */
#ifndef ADMIN_STARTUP_TOKEN_KEEPER_H
#define ADMIN_STARTUP_TOKEN_KEEPER_H

#include "admin/settings/accounts.h"
#include "smtp/oauth/tokens.h"
#include "smtp/delivery/delivery.h"

/* Zeroed without an account: then it costs nothing. The first five are the owner's. */
struct token_keeper {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct dns *dns;
    struct manager *manager;
    struct delivery *delivery;
    struct http_caller *http;
    struct tokens *tokens; /* NULL: no account so far */
};

/* At startup and reload. */
void token_keeper_use(struct token_keeper *keeper, const struct accounts *accounts);
/* Requests under way may end within grace_ms. False: there is none, and done will not be
 * called. */
bool token_keeper_drain(struct token_keeper *keeper, int64_t grace_ms,
                        void (*done)(void *context), void *context)
    __attribute__((warn_unused_result));
/* After delivery_free(). */
void token_keeper_stop(struct token_keeper *keeper);

#endif
