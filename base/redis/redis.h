/* One connection to Redis or Valkey, for all parts of this process that ask it.
 *
 * Only the protocol of hiredis is used, to write commands and to read replies; the bytes
 * are carried by base/net/net.h, so that time-outs, names and TLS are the same as
 * elsewhere, and no call blocks. The connection stays open and is pipelined. It is fit for
 * use once it has answered a write of its own: the first server of the list that takes it
 * is used, so a replica is passed over. Every error ends the connection, and the list is
 * tried again from its first server. After three failures in a row the pause before that
 * is 5 s.
 *
 * This room never keeps a question: a connection that ends answers nothing, and the asking
 * module decides whether to ask again. */
#ifndef BASE_REDIS_REDIS_H
#define BASE_REDIS_REDIS_H

#include "base/text.h"

struct dns;
struct loop;
struct net;
struct redis;
struct tls_client;

enum {
    REDIS_ANSWER_MS = 250, /* a question has; the asker ends it by redis_fail() */
    REDIS_HOST_MAX = 255,
    REDIS_SECRET_MAX = 256, /* bytes of user, of password */
    REDIS_URL_MAX = 1024,
    REDIS_PLACES_MAX = 8,
    REDIS_REPLY_MAX = 96 * 1024, /* bytes */
    REDIS_WORDS_MAX = 3000,      /* of a command */
    REDIS_ERROR_MAX = 256
};

/* --- Where it is ------------------------------------------------------------------ */

struct redis_place {
    char host[REDIS_HOST_MAX + 1]; /* or an address */
    uint16_t port;
    unsigned database;
    char user[REDIS_SECRET_MAX + 1], password[REDIS_SECRET_MAX + 1];
    bool tls;
};

/* Whether the text has the scheme of such a URL, valid or not. */
bool redis_is_url(struct text url);
/* redis://[[user]:password@]host[:port][/database]; rediss:// is the same by TLS. %XX is
 * decoded in user and password. NULL: good; else one line, without the password. */
const char *redis_place_parse(struct text url, struct redis_place *place);
/* "host", "host:port" or "[::1]:port": sets host and port. NULL: good; else one line. */
const char *redis_server_parse(struct text server, struct redis_place *place);
/* The URL without user and password, for the log. */
void redis_place_text(const struct redis_place *place, char out[REDIS_URL_MAX]);
/* Letters, digits, "-", "_" and "."; 1 to REDIS_HOST_MAX. */
bool redis_is_name(struct text name);

/* --- The connection --------------------------------------------------------------- */

struct redis_setup {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    struct tls_client *tls; /* for rediss; with anchors, since it is verified */
    const struct redis_place *places;
    size_t count;      /* 1 to REDIS_PLACES_MAX */
    const char *probe; /* the prefix of keys that the user may write; or NULL, and: */
    /* Judges the server by its reply to INFO. NULL: it is used; else why it is not. */
    const char *(*judge)(void *context, struct text info);
    void *context;
    int64_t patience_ms; /* for each step of the greeting; 0: REDIS_ANSWER_MS */
};

/* The data that setup points to outlive it, but for places and probe. NULL with one
 * line in error only if it can never work: a server that is down is no error. */
struct redis *redis_new(const struct redis_setup *setup, char *error,
                        size_t error_size);
/* Sends the waiting bytes first. */
void redis_free(struct redis **redis);

/* A module that asks. Embedded in its owner, zeroed before first use. */
struct redis_client {
    struct redis_client *prev, *next; /* the connection's own */
    void (*ready)(void *context);     /* it is fit for use */
    /* No connection was possible, or it has ended: questions have no
     * answer. redis_is_up() says whether to wait for the next one. */
    void (*failed)(void *context, const char *why);
    void *context;
};
void redis_join(struct redis *redis, struct redis_client *client);
/* Questions with the client's context get no answer any more. */
void redis_leave(struct redis *redis, struct redis_client *client);

/* Commands may be sent. */
bool redis_is_ready(const struct redis *redis);
/* False: it has failed several times in a row; do not wait for it. */
bool redis_is_up(const struct redis *redis);
/* The server that is used, or tried. */
const struct redis_place *redis_server(const struct redis *redis);
/* No answer in time, or one that cannot be used: the connection ends. */
void redis_fail(struct redis *redis, const char *why);

/* --- Commands --------------------------------------------------------------------- */

/* No command may have a list as its reply, but for a pair that was asked for: a server could
 * claim any length. */
enum redis_kind {
    REDIS_NIL,
    REDIS_STATUS,
    REDIS_TEXT,
    REDIS_NUMBER,
    REDIS_PAIR,
    REDIS_ERROR
};
struct redis_reply {
    enum redis_kind kind;
    struct text text; /* of TEXT, STATUS, ERROR; of the second of a PAIR; borrowed */
    int64_t number;   /* likewise */
    int64_t first;    /* the first of a PAIR of numbers */
};
/* subject NULL: redis_forget() was called. */
typedef void redis_replied(void *context, void *subject,
                           const struct redis_reply *reply);
struct redis_question {
    redis_replied *done;
    void *context, *subject; /* subject: for redis_forget(); may be NULL */
};

/* Sends a command, only while redis_is_ready(). Replies come in the order of the
 * commands. */
void redis_send(struct redis *redis, const char *const *words, size_t count,
                const struct redis_question *question);
/* The same with words of any bytes. is_pair: the reply is a list of two. */
void redis_send_bytes(struct redis *redis, const struct text *words, size_t count,
                      bool is_pair, const struct redis_question *question);
/* SET key value NX GET PX ttl, which needs Redis 7; an older one runs a script that does
 * the same. The reply is nil if our value was set, else the other one's value. */
void redis_set_new(struct redis *redis, const char *key, const char *value,
                   int64_t ttl_ms, const struct redis_question *question);
/* By EVALSHA, and by EVAL when the server does not know it. words: the number of keys,
 * keys, arguments. The script stays until the answer, or redis_leave(). */
struct redis_script {
    const char *text;
    char sha[41]; /* "": not computed yet */
};
void redis_eval(struct redis *redis, struct redis_script *script,
                const char *const *words, size_t count,
                const struct redis_question *question);
/* Answers about the subject are no longer wanted. */
void redis_forget(struct redis *redis, const void *subject);
/* Ends the connection because of this reply to that command. */
void redis_refuse(struct redis *redis, const char *command,
                  const struct redis_reply *reply);
/* Says in a line why a reply is no answer to that command: the error, with the bytes of
 * the server as they came, or that the reply is odd. */
void redis_reply_explain(const struct redis_reply *reply, const char *command,
                         char out[REDIS_ERROR_MAX]);
/* An error of a server that is not the one to write to: another primary, loading. */
bool redis_is_misplaced(const struct redis_reply *reply);

/* "hiredis 0.14.1"; "" when built without: then redis_new() refuses. */
const char *redis_version(void);

#endif
