/* The insides of a group, for its tests. Internal to queue/group/. */
#ifndef QUEUE_GROUP_GROUP_INTERNAL_H
#define QUEUE_GROUP_GROUP_INTERNAL_H

#include "base/loop/loop.h"
#include "queue/group/group.h"
#include "queue/group/group_engine.h"

/* The head of what slices send each other; then count of struct group_ask, or in the answer of
 * struct bank_grant, as memory has them. None of either: to hear whether anybody answers.
 * Another version has another form. */
struct group_frame {
    uint64_t form, count;
};
enum { GROUP_FRAME_VERSION = 2 /* the first was JSON */ };
#define GROUP_FRAME_FORM                                                               \
    (UINT64_C(0x6b6e614200000000) | sizeof(struct group_ask) << 16 |                   \
     sizeof(struct bank_grant) << 8 | GROUP_FRAME_VERSION)

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

    struct group_asker asker;
    struct group_engine engine;
    struct group_suppression *suppression;       /* NULL: without Redis */
    struct loop_timer beat, ask_late, beat_late; /* beat_late: a heartbeat is out */
    unsigned beats;
    bool is_forgetting;
    bool is_list;                         /* the heartbeat asks for one */
    unsigned unanswered;                  /* questions in a row */
    struct group_ask asks[GROUP_ASK_MAX]; /* of the question under way */
    char *sites[GROUP_ASK_MAX];
    size_t ask_count; /* 0: none is under way */

    bool has_bank;         /* as the scheduler knows it */
    int64_t refused_ms;    /* the last question was an error; 0: it was not */
    bool is_on_trial;      /* then: any question is wanted */
    int64_t away_since_ms; /* as it was logged; 0: it is not away */
    char why[REDIS_ERROR_MAX];
    char server[REDIS_URL_MAX];
    uint64_t asked, asked_sites, failures, namesakes;
};

#endif
