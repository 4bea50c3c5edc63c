/* The use of quotas, for the operator. */
#ifndef ADMIN_VIEW_QUOTA_LIST_H
#define ADMIN_VIEW_QUOTA_LIST_H

#include <jansson.h>

#include <stddef.h>
#include <stdint.h>

enum {
    QUOTA_LIST_TOP = 20,  /* in the status */
    QUOTA_LIST_ALL = 1000 /* when asked for */
};

struct manager;

/* The names that have used most of their quotas, at most `most` of them; the caller frees
 * it. An array of
 *   who      as in `quotas` ("user:alice"), or a next hop ("smtp:[192.0.2.1]:587")
 *   relay    it is a next hop
 *   limits   period ("second", "minute", "hour", "day"), limit, used, next_ms (when the
 *            next recipient may pass, since 1970; 0: now)
 * count: of all. */
json_t *quota_list_make(struct manager *manager, size_t most, size_t *count);
/* Answers of the daemon: {ok, count, quotas}, and of a request {who} {ok, reset: whether
 * anything was counted}. */
json_t *quota_list_answer(struct manager *manager);
json_t *quota_list_reset(struct manager *manager, const json_t *request);

/* A table for people; nothing without quotas. */
void quota_list_print(const json_t *quotas, int64_t now_ms);

#endif
