/* AUTH as a server, as a machine: lines of the client in, challenges and a result out.
 *
 *   AUTH mechanism [initial]   sasl_server_start()
 *   UNFINISHED                 a password is there: sasl_server_work(), when it suits
 *   CHALLENGE                  send "334 " + sasl_server_challenge(), then feed the
 *                              client's next line
 *   DONE                       235; sasl_server_user() is the user
 *   FAILED                     535 5.7.8, whatever it was
 *   MALFORMED                  501 5.5.2 (not Base64, no such message), or "*": 501
 *
 * Only sasl_server_work() takes long, up to 5 ms. Its owner limits how often it is
 * called, and delays the reply to a failure. */
#ifndef SMTP_SERVER_SASL_SERVER_H
#define SMTP_SERVER_SASL_SERVER_H

#include "smtp/sasl.h"
#include "smtp/server/users.h"

enum sasl_result {
    SASL_CHALLENGE,
    SASL_DONE,
    SASL_FAILED,
    SASL_MALFORMED,
    SASL_CANCELLED,
    SASL_UNFINISHED /* there is something, or more, to compute */
};

enum sasl_server_stage {
    SASL_SERVER_FIRST, /* of the mechanism: message, or user name */
    SASL_SERVER_NEXT,  /* LOGIN: the password; SCRAM: the proof */
    SASL_SERVER_LAST,  /* SCRAM: the client has seen our signature */
    SASL_SERVER_CHECK, /* of a password, unfinished */
    SASL_SERVER_OVER
};

enum { SASL_SERVER_OUT_MAX = 2048 };

/* One attempt; plain data with secrets: end it with sasl_server_end(). */
struct sasl_server {
    enum sasl_mechanism mechanism;
    enum sasl_server_stage stage;
    const struct users *users;
    bool known; /* SCRAM: the keys are a user's */
    struct verifier keys;
    struct users_check check;
    bool allowed; /* PLAIN: acts for itself */
    char nonce[SASL_NONCE_MAX + 1];
    char user[SASL_NAME_MAX + 1];
    struct buffer header; /* SCRAM: the client's, in Base64 */
    struct buffer auth;   /* SCRAM: AuthMessage so far */
    struct buffer out;
};

/* PLAIN, LOGIN or SCRAM_SHA_256. users is borrowed until the end; nonce is from
 * sasl_nonce(), fresh. initial: the argument behind the mechanism, at == NULL when
 * there is none; "=" is the empty one (RFC 4954 §4). */
enum sasl_result sasl_server_start(struct sasl_server *s, enum sasl_mechanism mechanism,
                                   const struct users *users, const char *nonce,
                                   struct text initial)
    __attribute__((warn_unused_result));
/* After UNFINISHED: the first or next slice of a check. */
enum sasl_result sasl_server_work(struct sasl_server *s)
    __attribute__((warn_unused_result));
/* A line of the client, without CRLF; after CHALLENGE only. */
enum sasl_result sasl_server_feed(struct sasl_server *s, struct text line)
    __attribute__((warn_unused_result));
/* Base64, perhaps empty. Until the next call. */
struct text sasl_server_challenge(const struct sasl_server *s);
/* Who says to be; proven after DONE alone. "" before it was said. For an authorization
 * identity other than the user the attempt fails: nobody acts for another. */
const char *sasl_server_user(const struct sasl_server *s);
void sasl_server_end(struct sasl_server *s);

#endif
