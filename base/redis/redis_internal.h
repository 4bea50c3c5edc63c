/* The members of a connection, for tests. Internal to base/redis/. */
#ifndef BASE_REDIS_REDIS_INTERNAL_H
#define BASE_REDIS_REDIS_INTERNAL_H

#include "base/breaker.h"
#include "base/loop/loop.h"
#include "base/net_address.h"
#include "base/redis/redis.h"

struct dns_query;
struct net_connection;
struct redisReader;

enum { REDIS_ADDRESSES_MAX = 8 /* tried */, REDIS_PAIR_MAX = 1024 /* bytes */ };

enum redis_stage {
    REDIS_REST,
    REDIS_RESOLVING,
    REDIS_CONNECTING,
    REDIS_REFUSED,
    REDIS_SECURING,
    REDIS_GREETING,
    REDIS_READY
};

/* A command whose reply has not come. */
struct redis_request {
    struct redis_question question;
    char *command; /* by EVALSHA; NULL: no script */
    size_t size;
    const char *script; /* its text; NULL: it is not sent */
    bool is_pair;       /* the reply is a list of two */
    struct redis_request *prev, *next;
};

struct redis {
    struct redis_setup setup;
    struct redis_place places[REDIS_PLACES_MAX];
    size_t place; /* the one that is used, or tried */
    char probe[16];
    struct breaker breaker;
    int64_t patience_ms; /* REDIS_ANSWER_MS; a test may have more */
    struct redis_client *clients;
    enum redis_stage stage;
    struct loop_timer step; /* the stage has taken too long; REST and REFUSED end */
    struct dns_query *query;
    struct net_address addresses[REDIS_ADDRESSES_MAX];
    size_t address_count, address; /* the one that is tried */
    struct net_connection *connection;
    struct redisReader *reader;
    struct redis_request *requests; /* oldest first */
    int64_t ready_ms;               /* monotonic: READY since */
    unsigned flaps;            /* connections in a row that did not live for FLAP_MS */
    bool is_old;               /* before 7: SET NX GET goes by a script */
    char why[REDIS_ERROR_MAX]; /* the last address did not answer */
};

#endif
