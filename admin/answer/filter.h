/* Which messages an operator means: ids, or conditions that must all hold. */
#ifndef ADMIN_ANSWER_FILTER_H
#define ADMIN_ANSWER_FILTER_H

#include "queue/envelope/envelope.h"

enum { FILTER_IDS_MAX = 1000 };

struct filter {
    bool json;             /* --json: how to print, not which */
    bool everything;       /* --all */
    bool cluster;          /* --cluster: on which hosts */
    const char *to, *from; /* address, or domain; NULL = any, from "" = null sender */
    int64_t older_ms;      /* -1 = any age */
    const char *place;     /* "deferred", ...; NULL = any */
    struct id first;       /* the id at its birth, wherever it is now; all 0 = any */
    /* A program's own condition, asked last; NULL = none. */
    bool (*wants)(void *context, const struct envelope *e);
    void *context;
    struct filter_id {
        struct id id;
        bool met;
    } ids[FILTER_IDS_MAX];
    size_t id_count;
};

/* Reads the arguments behind the verb: ids, --json, --all, --to X or --to=X, and so on.
 * The strings are borrowed and may be changed. False: one line was written to standard
 * error. */
bool filter_parse(struct filter *f, int count, char **arguments)
    __attribute__((warn_unused_result));
/* Ids are given, and no condition. */
bool filter_is_ids(const struct filter *f);
/* Every message, for now. */
void filter_clear(struct filter *f);
/* False: FILTER_IDS_MAX are there. */
bool filter_add_id(struct filter *f, struct id id) __attribute__((warn_unused_result));
bool filter_is_place(const char *word);
/* Nothing was said about which messages. */
bool filter_is_open(const struct filter *f);
/* --all without any condition. */
bool filter_is_all(const struct filter *f);
/* Whether it is one of the ids, when there are any; those that came are remembered. */
bool filter_wants_id(struct filter *f, struct id id);
/* It had not come after all. */
void filter_lose_id(struct filter *f, struct id id);
/* An id that has not come, or NULL. */
const struct id *filter_missing(const struct filter *f);
/* The conditions but for the ids. place: where the message is now. */
bool filter_matches(const struct filter *f, const struct envelope *e, const char *place,
                    int64_t now_ms);
/* Whether the envelope matters, not the place alone. */
bool filter_needs_envelope(const struct filter *f);
/* The same for a message whose envelope cannot be read. */
bool filter_matches_place(const struct filter *f, const char *place);

#endif
