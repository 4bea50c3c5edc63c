/* The insides of a group, for its tests. Internal to queue/group/. */
#ifndef QUEUE_GROUP_GROUP_INTERNAL_H
#define QUEUE_GROUP_GROUP_INTERNAL_H

#include "base/loop/loop.h"
#include "queue/group/group.h"
#include "queue/group/group_engine.h"

enum {
    GROUP_KEY_BYTES = 16, /* of a digest */
    GROUP_KEY_SIZE = sizeof("ps:") + 2 * GROUP_KEY_BYTES,
    GROUP_NUMBERS = 12, /* of a question */
    GROUP_WORDS_MAX = 1 + 4 + GROUP_ASK_MAX * (1 + GROUP_NUMBERS),
    GROUP_WORD_VERB = 3, /* of a heartbeat: group_script.h */
    GROUP_NUMBER_SIZE = 32
};

/* A site in a question. */
struct group_ask {
    char *site;
    char key[GROUP_KEY_SIZE];
    char numbers[GROUP_NUMBERS][GROUP_NUMBER_SIZE];
};

/* A host of cluster_peers. */
struct group_configured {
    char host[GROUP_HOST_MAX + 1];
    char address[GROUP_ADDRESS_MAX + 1];
};

struct group {
    struct group_setup setup;
    char name[GROUP_NAME_MAX + 1], egress[GROUP_NAME_MAX + 1];
    char host[GROUP_HOST_MAX + 1];
    bool shares_addresses;
    char run[16 + 1]; /* the number of this run */
    char members_key[GROUP_NAME_MAX + 4], info_key[GROUP_NAME_MAX + 4];
    char info[GROUP_INFO_MAX];
    group_described *describe; /* NULL: nobody can call us */
    void *describe_context;
    struct group_siblings siblings;      /* descriptions of the others */
    struct group_configured *configured; /* uses of cluster_peers */
    size_t configured_count;
    int64_t patience_ms; /* REDIS_ANSWER_MS; a test may have more */

    struct group_members members;
    bool has_changed;
    bool has_news; /* a list is due */

    struct redis_client client;
    struct group_engine engine;
    struct loop_timer beat, beat_late, ask_late;
    unsigned beats;
    bool is_beating, is_asking, is_forgetting;
    unsigned unanswered;                  /* questions in a row */
    struct group_ask asks[GROUP_ASK_MAX]; /* of the question under way */
    size_t ask_count;

    bool has_bank;      /* as the scheduler knows it */
    bool is_away;       /* which was logged */
    int64_t refused_ms; /* the last question was an error; 0: it was not */
    bool is_on_trial;   /* then: any question is wanted */
    int64_t away_since_ms;
    char why[REDIS_ERROR_MAX];
    char server[REDIS_URL_MAX];
    uint64_t asked, asked_sites, failures, namesakes;
};

#endif
