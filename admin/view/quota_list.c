/* Tells of quotas. */
#include "admin/view/quota_list.h"

#include "admin/view/listing.h"
#include "admin/view/words.h"
#include "base/memory.h"
#include "queue/manager/manager.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct quota_list {
    struct quota_list_one {
        struct manager_quota quota; /* by value: valid as long as nothing changes */
        struct quota limits;
        double ratio;
    } * list;
    size_t count, capacity;
};

static double
quota_ratio(const struct manager_quota *q)
{
    double most = 0;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        if (q->quota->amounts[p] == 0)
            continue;
        double ratio = (double)quota_used(q->use, p, q->now_ms) / q->quota->amounts[p];
        most = ratio > most ? ratio : most;
    }
    return most;
}

static void
quota_list_note(void *context, const struct manager_quota *quota)
{
    struct quota_list *all = context;
    if (all->count == all->capacity) {
        all->capacity = all->capacity == 0 ? 64 : 2 * all->capacity;
        all->list = memory_resize(all->list, all->capacity * sizeof(*all->list));
    }
    all->list[all->count++] =
        (struct quota_list_one){*quota, *quota->quota, quota_ratio(quota)};
}

/* Those with most of it first, then by name. */
static int
by_ratio(const void *a, const void *b)
{
    const struct quota_list_one *x = a, *y = b;
    if (x->ratio < y->ratio || x->ratio > y->ratio)
        return x->ratio < y->ratio ? 1 : -1;
    return strcmp(x->quota.who, y->quota.who);
}

static json_t *
quota_list_limits(const struct quota_list_one *one)
{
    json_t *limits = json_array();
    const struct manager_quota *q = &one->quota;
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++) {
        struct quota alone = {.first = 0};
        enum quota_period decides;
        alone.amounts[p] = one->limits.amounts[p];
        if (alone.amounts[p] == 0)
            continue;
        int64_t next_ms = quota_ready_ms(q->use, &alone, 1, q->now_ms, &decides);
        json_array_append_new(
            limits,
            json_pack("{s:s,s:I,s:I,s:I}", "period", quota_period_word(p), "limit",
                      (json_int_t)alone.amounts[p], "used",
                      (json_int_t)quota_used(q->use, p, q->now_ms), "next_ms",
                      next_ms <= q->now_ms ? (json_int_t)0
                                           : (json_int_t)(next_ms + q->ahead_ms)));
    }
    return limits;
}

json_t *
quota_list_make(struct manager *manager, size_t most, size_t *count)
{
    struct quota_list all = {NULL, 0, 0};
    json_t *quotas = json_array();
    manager_each_quota(manager, quota_list_note, &all);
    if (all.count > 0)
        qsort(all.list, all.count, sizeof(*all.list), by_ratio);
    for (size_t i = 0; i < all.count && i < most; i++) {
        const struct manager_quota *q = &all.list[i].quota;
        json_array_append_new(
            quotas,
            json_pack("{s:o,s:b,s:o}", "who",
                      listing_text(text_from(q->who)) /* it may quote a client */,
                      "relay", q->is_relay, "limits", quota_list_limits(&all.list[i])));
    }
    *count = all.count;
    free(all.list);
    return quotas;
}

json_t *
quota_list_answer(struct manager *manager)
{
    size_t count;
    json_t *quotas = quota_list_make(manager, QUOTA_LIST_ALL, &count);
    return json_pack("{s:b,s:I,s:o}", "ok", true, "count", (json_int_t)count, "quotas",
                     quotas);
}

json_t *
quota_list_reset(struct manager *manager, const json_t *request)
{
    const char *who = json_string_value(json_object_get(request, "who"));
    if (who == NULL)
        return json_pack("{s:b,s:s}", "ok", false, "error", "who is missing");
    return json_pack("{s:b,s:b}", "ok", true, "reset",
                     manager_reset_quota(manager, text_from(who)));
}

void
quota_list_print(const json_t *quotas, int64_t now_ms)
{
    size_t i, j;
    const json_t *quota, *limit;
    if (json_array_size(quotas) == 0)
        return;
    puts("quotas     recipients used:");
    json_array_foreach ((json_t *)(uintptr_t)quotas, i, quota)
        json_array_foreach (json_object_get(quota, "limits"), j, limit) {
            words_print("  {who%-40} ", quota, now_ms);
            words_print("{#used%9} of {#limit%9} [period=hour:an|a] {period}"
                        "[next_ms>now:; next {next_ms@until}]\n",
                        limit, now_ms);
        }
}
