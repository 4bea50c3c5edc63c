/* AUTH as a client, as a machine: challenges of the server in, lines out.
 *
 *   sasl_client_start()   send "AUTH " + mechanism + " " + sasl_client_line()
 *   334 challenge         sasl_client_feed(). SEND: send sasl_client_line(); WORK: call
 *                         sasl_client_work() while it returns WORK; STOP: send "*" and
 *                         give this host up
 *   235                   sasl_client_accepted(): false = the server has not proven
 *                         that it knows the password, as SCRAM demands
 *   4yz, 5yz              refused
 */
#ifndef SMTP_CLIENT_SASL_CLIENT_H
#define SMTP_CLIENT_SASL_CLIENT_H

#include "base/crypto/digest.h"
#include "smtp/sasl.h"

enum {
    SASL_PASSWORD_MAX = 1024,
    SASL_TOKEN_MAX = 8192,
    SASL_STRETCH_MAX = 1000000, /* iterations a server may ask for: 400 ms, in pieces */
    SASL_STRETCH_MIN = 4096,    /* against guessing by an eavesdropper: RFC 7677 */
    SASL_STRETCH_PIECE = 4096,  /* 1.6 ms */
    SASL_DETAIL_MAX = 256
};

/* Borrowed until the client's end. A token, in place of a password, is for XOAUTH2. */
struct sasl_credentials {
    struct text user, password, token;
};

enum sasl_client_result {
    SASL_SEND,
    SASL_WORK, /* there is more to compute, in another turn */
    SASL_STOP
};

enum sasl_client_stage {
    SASL_CLIENT_BEGUN,
    SASL_CLIENT_WORKING,
    SASL_CLIENT_ANSWERED, /* LOGIN: the name; SCRAM: the proof */
    SASL_CLIENT_COMPLETE, /* 235 may come now */
    SASL_CLIENT_STOPPED
};

/* One attempt; holds secrets: end it with sasl_client_end(). */
struct sasl_client {
    enum sasl_mechanism mechanism;
    enum sasl_client_stage stage;
    struct sasl_credentials credentials;
    const char *problem; /* STOP: why, for the log; else NULL */
    char nonce[SASL_NONCE_MAX + 1];
    char detail[SASL_DETAIL_MAX]; /* why the server refused a token, or "" */
    struct digest_stretch stretch;
    unsigned char signature[DIGEST_SIZE]; /* SCRAM: expected of the server */
    struct buffer auth;                   /* SCRAM: AuthMessage */
    struct buffer out;
};

/* NULL, or why these cannot be used (they hold control characters, are too long...). */
const char *sasl_client_check(const struct sasl_credentials *credentials);

/* The best mechanism that the server offers ("PLAIN LOGIN ..." after AUTH in its EHLO
 * reply): SCRAM, then PLAIN, then LOGIN; XOAUTH2 with a token. The owner
 * has found that password and token may be shown: the session is under TLS, or the user
 * allows it. tried: bits (1 << mechanism) that are not tried again. NONE: none is
 * left. */
enum sasl_mechanism sasl_client_choose(struct text offered, bool token, unsigned tried);

/* The credentials are valid; nonce: from sasl_nonce(), fresh. Every mechanism except
 * LOGIN has an initial line. */
void sasl_client_start(struct sasl_client *c, enum sasl_mechanism mechanism,
                       const struct sasl_credentials *credentials, const char *nonce);
/* The line to send, in Base64. After start, at == NULL: no initial response. */
struct text sasl_client_line(const struct sasl_client *c);
/* challenge: the text after "334 ". */
enum sasl_client_result sasl_client_feed(struct sasl_client *c, struct text challenge)
    __attribute__((warn_unused_result));
/* After WORK: at most 2 ms more. */
enum sasl_client_result sasl_client_work(struct sasl_client *c)
    __attribute__((warn_unused_result));
/* To be called at 235. */
bool sasl_client_accepted(const struct sasl_client *c);
void sasl_client_end(struct sasl_client *c);

#endif
