/* A compact table of suppressed addresses. Pure.
 *
 * 100,000 entries of usual length need less than 8 MB: their bytes lie in one block, and
 * the texts of reasons, which repeat, are kept once. An address may have entries for some
 * domains of senders, and one for all. */
#ifndef QUEUE_SUPPRESSION_SUPPRESSION_LIST_H
#define QUEUE_SUPPRESSION_SUPPRESSION_LIST_H

#include "base/text.h"

enum suppression_class {
    SUPPRESSION_NONE,     /* not on the list (any more) */
    SUPPRESSION_DOUBTFUL, /* its bounces in a row count: see strikes */
    SUPPRESSION_HARD,
    SUPPRESSION_COMPLAINT,
    SUPPRESSION_MANUAL, /* by the operator */
    SUPPRESSION_REMOVED, /* by the operator: outlasts what other hosts have known before */
    SUPPRESSION_CLASSES
};
/* "none", "doubtful", "hard", "complaint", "manual"; "none" of what was removed, too. */
const char *suppression_class_name(enum suppression_class class);
/* False: no such class. */
bool suppression_class_read(struct text name, enum suppression_class *class)
    __attribute__((warn_unused_result));

enum {
    SUPPRESSION_ADDRESS_MAX = 320,
    SUPPRESSION_DOMAIN_MAX = 255,
    SUPPRESSION_REASON_MAX = 100,
    SUPPRESSION_REASONS_MAX = 250, /* different ones; of more only the codes stay */
    SUPPRESSION_STRIKES = 3,       /* of a doubtful address: then it is suppressed */
    SUPPRESSION_REMOVED_STRIKES = 255, /* in lines, of class "none": it was removed */
    SUPPRESSION_SCOPES_MAX = 32 /* entries of one address; then one for all senders */
};

struct suppression_entry {
    struct text address; /* in lower case, the domain in normal form */
    struct text domain;  /* of the sender; empty: of all */
    struct text reason;  /* printable ASCII; or empty */
    int64_t at_s;        /* since 1970 */
    enum suppression_class class;
    unsigned strikes;
    bool is_news; /* the other hosts of the group may not know it */
};

/* Places that move with the entries. */
enum suppression_mark {
    SUPPRESSION_MARK_PAGE, /* where a walk in several turns goes on */
    SUPPRESSION_MARK_NEWS, /* no news are before it */
    SUPPRESSION_MARKS
};

struct suppression_list {
    char *bytes; /* packed entries, one behind the other */
    size_t used, capacity;
    uint32_t *slots; /* where in bytes, by the hash of the address */
    size_t slot_count;
    size_t count, dead;   /* entries; those that have gone, and are still in bytes */
    size_t removed, news; /* of the entries */
    uint64_t seed;
    size_t marks[SUPPRESSION_MARKS];
    uint64_t walked; /* entries that suppression_list_next() has met, for tests */
    bool pinned; /* entries must not move: somebody walks over them in several turns */
    char *reasons[SUPPRESSION_REASONS_MAX];
    size_t reason_count;
};

void suppression_list_init(struct suppression_list *list, uint64_t seed);
void suppression_list_free(struct suppression_list *list);
/* That address with exactly that domain. False: not on the list. What *out has is
 * borrowed until the list changes. */
bool suppression_list_get(const struct suppression_list *list, struct text address,
                          struct text domain, struct suppression_entry *out)
    __attribute__((warn_unused_result));
/* Calls each with all entries of the address, until it returns true; then true. */
bool suppression_list_find(const struct suppression_list *list, struct text address,
                           bool (*each)(void *context,
                                        const struct suppression_entry *entry),
                           void *context);
/* Adds or replaces it; class NONE: removes it. Its texts are not those of another entry of
 * the list. False: one is too long. */
bool suppression_list_put(struct suppression_list *list,
                          const struct suppression_entry *entry)
    __attribute__((warn_unused_result));
/* Walks over all: begin with *at 0. False at the end. */
bool suppression_list_next(struct suppression_list *list, size_t *at,
                           struct suppression_entry *out);
/* Allocated bytes. */
size_t suppression_list_memory(const struct suppression_list *list);

#endif
