/* The server side of AUTH as a machine: lines of the client in, challenges and result out.
 *
 *   AUTH mechanism [initial]   sasl_server_start()
 *   UNFINISHED                 check the password: sasl_server_work(), now or later
 *   CHALLENGE                  send "334 " + sasl_server_challenge(), then feed the
 *                              client's next line
 *   DONE                       235; sasl_server_user() is the user
 *   FAILED 535 5.7.8, for any cause
 *   MALFORMED                  501 5.5.2 (not Base64, not a message of the mechanism)
 *   CANCELLED                  501, the client has sent "*"
 *
 * Without users another server checks (smtp/session/dovecot_auth.h): after UNFINISHED it is
 * asked about sasl_server_response(), and sasl_server_decide() takes its answer. It
 * knows XOAUTH2 and OAUTHBEARER, too.
 *
 * Only sasl_server_work() takes long, up to 5 ms. The owner limits its rate and delays
 * the reply to a failure. */
#ifndef SMTP_SERVER_SASL_SERVER_H
#define SMTP_SERVER_SASL_SERVER_H

#include "smtp/sasl.h"
#include "smtp/access/users.h"

enum sasl_result {
    SASL_CHALLENGE,
    SASL_DONE,
    SASL_FAILED,
    SASL_MALFORMED,
    SASL_CANCELLED,
    SASL_UNFINISHED /* call sasl_server_work() */
};

enum sasl_server_stage {
    SASL_SERVER_FIRST, /* of the mechanism: message, or user name */
    SASL_SERVER_NEXT,  /* LOGIN: the password; SCRAM: the proof */
    SASL_SERVER_LAST,  /* SCRAM: our signature is sent */
    SASL_SERVER_CHECK, /* of a password, not complete */
    SASL_SERVER_OVER
};

enum { SASL_SERVER_OUT_MAX = 2048 };

/* One attempt; it holds secrets, which sasl_server_end() overwrites. */
struct sasl_server {
    enum sasl_mechanism mechanism;
    enum sasl_server_stage stage;
    const struct users *users; /* NULL: another server checks */
    bool known;                /* SCRAM: the user exists; false: keys is a decoy */
    struct verifier keys;
    struct users_check check;
    bool allowed; /* PLAIN: no other authorization identity */
    char nonce[SASL_NONCE_MAX + 1];
    char user[SASL_NAME_MAX + 1];
    struct buffer header; /* SCRAM: the client's, in Base64 */
    struct buffer auth;   /* SCRAM: AuthMessage so far */
    struct buffer out;
    struct buffer response; /* for the other server, in Base64 */
};

/* PLAIN, LOGIN or SCRAM_SHA_256, or one of the other server. users is borrowed until the
 * end; nonce is from sasl_nonce(), fresh. initial: the argument after the mechanism,
 * at == NULL without one; "=" is an empty response (RFC 4954 §4). */
enum sasl_result sasl_server_start(struct sasl_server *s, enum sasl_mechanism mechanism,
                                   const struct users *users, const char *nonce,
                                   struct text initial)
    __attribute__((warn_unused_result));
/* After UNFINISHED: the first or next slice of a check. */
enum sasl_result sasl_server_work(struct sasl_server *s)
    __attribute__((warn_unused_result));
/* After UNFINISHED without users. */
struct text sasl_server_response(const struct sasl_server *s);
/* result: DONE, for user, or FAILED, or CHALLENGE, which text is, in Base64. Returns what
 * it means to the client. */
enum sasl_result sasl_server_decide(struct sasl_server *s, enum sasl_result result,
                                    struct text text)
    __attribute__((warn_unused_result));
/* A line of the client, without CRLF; after CHALLENGE only. */
enum sasl_result sasl_server_feed(struct sasl_server *s, struct text line)
    __attribute__((warn_unused_result));
/* Base64, may be empty; valid until the next call. */
struct text sasl_server_challenge(const struct sasl_server *s);
/* The user name that the client has sent, "" before; proven only after DONE. Another
 * authorization identity makes the attempt fail. */
const char *sasl_server_user(const struct sasl_server *s);
void sasl_server_end(struct sasl_server *s);

#endif
