/* Dovecot's authentication server as the source of users: one connection to its Unix
 * socket for all logins (`auth = dovecot:PATH`).
 *
 * The connection is made when the path is set, and made again when it is lost, with pauses
 * that grow up to a minute. Requests wait while it is being made; without one they fail at
 * once. Every request has its one answer within DOVECOT_REQUEST_MS, until it is freed. */
#ifndef SMTP_SESSION_DOVECOT_AUTH_H
#define SMTP_SESSION_DOVECOT_AUTH_H

#include "base/net/net.h"
#include "smtp/sasl.h"

struct log;

enum {
    DOVECOT_REQUESTS_MAX = 100, /* without an answer; more get TEMPORARY */
    DOVECOT_REQUEST_MS = 60 * 1000,
    DOVECOT_HANDSHAKE_MS = 10 * 1000,
    DOVECOT_HANDSHAKE_LINES = 100,
    DOVECOT_RETRY_MS = 1000,
    DOVECOT_RETRY_MAX_MS = 60 * 1000
};

struct dovecot_auth;
struct dovecot_auth *dovecot_auth_new(struct loop *loop, struct net *net,
                                      struct log *log);
/* All requests are freed. */
void dovecot_auth_free(struct dovecot_auth **auth);
/* "": no connection. Another path than before: another connection. */
void dovecot_auth_use(struct dovecot_auth *auth, const char *path);
/* The mechanisms that it offers and that we pass on, as bits; those before the first
 * connection are PLAIN alone. The place stays until the end. */
const unsigned *dovecot_auth_mechanisms(const struct dovecot_auth *auth);
/* Why logins fail now; NULL: they do not. */
const char *dovecot_auth_trouble(const struct dovecot_auth *auth);

enum dovecot_answer {
    DOVECOT_ANSWER_OK,       /* text: the name of the user */
    DOVECOT_ANSWER_CONTINUE, /* text: a challenge in Base64; dovecot_request_go_on() */
    DOVECOT_ANSWER_FAILED,
    DOVECOT_ANSWER_TEMPORARY
};
typedef void dovecot_answered(void *context, enum dovecot_answer answer,
                              struct text text);

/* The client, for Dovecot's rules and log; either may be a Unix socket. */
struct dovecot_client {
    const struct net_address *remote, *local;
    bool secured;
};

struct dovecot_request;
/* response: in Base64. NULL: too many, or it is too long for Dovecot. The answer comes in
 * a later turn. */
struct dovecot_request *dovecot_request_new(struct dovecot_auth *auth,
                                            enum sasl_mechanism mechanism,
                                            const struct dovecot_client *client,
                                            struct text response,
                                            dovecot_answered *answered, void *context);
/* After CONTINUE: the next response, in Base64. False: it is too long. */
bool dovecot_request_go_on(struct dovecot_request *request, struct text response)
    __attribute__((warn_unused_result));
/* Also before its answer, and within it. */
void dovecot_request_free(struct dovecot_request **request);

#endif
