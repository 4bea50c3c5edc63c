/* Makes JSON of the sets of fragments that wait. */
#include "admin/control/fragment_list.h"

#include "base/log/log.h"
#include "queue/queue_operator.h"

#include <string.h>

enum { SHOWN_MAX = 4096 };

struct fragment_list {
    struct manager *manager;
    json_t *list;
};

static json_t *
fragment_list_text(struct text t)
{
    struct buffer clean;
    buffer_init(&clean, SHOWN_MAX);
    (void)!log_escape(t, &clean);
    json_t *value = json_stringn(clean.length > 0 ? clean.at : "", clean.length);
    buffer_free(&clean);
    return value != NULL ? value : json_null();
}

static json_t *
fragment_list_sender(struct manager *m, struct id id)
{
    if (id.time_ms == 0)
        return json_null();
    const struct envelope *active = manager_active(m, id);
    struct envelope *loaded =
        active == NULL ? queue_load_envelope(manager_queue(m), id) : NULL;
    const struct envelope *e = active != NULL ? active : loaded;
    json_t *sender = e != NULL ? fragment_list_text(e->sender) : json_null();
    envelope_free(&loaded);
    return sender;
}

static json_t *
fragment_list_numbers(const uint32_t *numbers, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_integer((json_int_t)numbers[i]));
    return list;
}

static void
fragment_list_add(void *context, const struct manager_set *set)
{
    struct fragment_list *l = context;
    json_array_append_new(
        l->list,
        json_pack("{s:s,s:o,s:o,s:I,s:I,s:I,s:o,s:o,s:I,s:o,s:I,s:I,s:s,s:b}", "set",
                  set->name, "sender", fragment_list_sender(l->manager, set->first),
                  "recipient", fragment_list_text(set->recipient), "recipients",
                  (json_int_t)set->recipients, "messages", (json_int_t)set->messages,
                  "bytes", (json_int_t)set->bytes, "have",
                  fragment_list_numbers(set->there, set->there_count), "missing",
                  fragment_list_numbers(set->missing, set->missing_count), "have_count",
                  (json_int_t)set->have, "total",
                  set->total > 0 ? json_integer((json_int_t)set->total) : json_null(),
                  "since_ms", (json_int_t)set->since_ms, "until_ms",
                  (json_int_t)set->until_ms, "owner", set->owner, "reassembling",
                  set->is_reassembling));
}

json_t *
fragment_list_page(struct manager *manager, size_t from, size_t count)
{
    struct fragment_list l = {manager, json_array()};
    (void)manager_list_sets(manager, from, count, fragment_list_add, &l);
    return l.list;
}
