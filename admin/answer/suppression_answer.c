/* Lists and changes suppressed addresses. */
#include "admin/answer/suppression_answer.h"

#include "admin/answer/questions.h"
#include "admin/view/listing.h"
#include "queue/suppression/suppression_record.h"

#include <string.h>

struct suppression_page {
    struct text q;
    json_t *entries;
};

static bool
page_add(void *context, const struct suppression_entry *e, int64_t until_ms)
{
    struct suppression_page *page = context;
    if (memmem(e->address.at, e->address.length, page->q.at, page->q.length) == NULL)
        return false;
    json_array_append_new(
        page->entries,
        json_pack("{s:o,s:o,s:s,s:o,s:i,s:I,s:I}", "address", listing_text(e->address),
                  "sender_domain", listing_text(e->domain), "class",
                  suppression_class_name(e->class), "reason", listing_text(e->reason),
                  "strikes", (int)e->strikes, "at_ms", (json_int_t)(e->at_s * 1000),
                  "until_ms", (json_int_t)until_ms));
    return true;
}

static json_t *
suppression_list_page(struct suppression *s, int64_t now_ms, const json_t *request)
{
    const json_t *q = json_object_get(request, "q");
    int64_t from = json_integer_value(json_object_get(request, "from")),
            limit = json_integer_value(json_object_get(request, "limit"));
    char lower[SUPPRESSION_ADDRESS_MAX + 1];
    (void)now_ms;
    if (from < 0 || limit < 0)
        return questions_refuse("from and limit are no negative numbers");
    if (limit == 0 || limit > SUPPRESSION_PAGE_MAX)
        limit = SUPPRESSION_PAGE_MAX;
    (void)!text_copy(lower, sizeof(lower), text_from(json_string_value(q)));
    text_lower(lower, strlen(lower));
    struct suppression_page page = {text_from(lower), json_array()};
    size_t next = suppression_each(s, (size_t)from, (size_t)limit, page_add, &page);
    return json_pack("{s:b,s:I,s:I,s:o}", "ok", true, "count",
                     (json_int_t)suppression_count(s).entries, "next", (json_int_t)next,
                     "entries", page.entries);
}

static json_t *
suppression_add_lines(struct suppression *s, int64_t now_ms, const json_t *request)
{
    const json_t *lines = json_object_get(request, "lines"), *line;
    json_t *bad = json_array();
    size_t i, added = 0;
    if (!json_is_array(lines) || json_array_size(lines) > SUPPRESSION_LINES_MAX) {
        json_decref(bad);
        return questions_refuse("lines are at most 1,000 of ADDRESS,REASON,DATE");
    }
    json_array_foreach ((json_t *)(uintptr_t)lines, i, line) {
        struct suppression_record record;
        struct text text = text_of(json_string_value(line), json_string_length(line));
        const char *why = suppression_import_line(text, now_ms / 1000, &record);
        if (why[0] == '\0' && record.entry.class == SUPPRESSION_NONE)
            continue;
        if (why[0] == '\0')
            why = suppression_add(s, &record.entry);
        added += why == NULL;
        if (why != NULL)
            json_array_append_new(
                bad, json_pack("{s:I,s:s}", "index", (json_int_t)i, "error", why));
    }
    return json_pack("{s:b,s:I,s:o}", "ok", true, "added", (json_int_t)added, "bad",
                     bad);
}

static json_t *
suppression_remove_all(struct suppression *s, int64_t now_ms, const json_t *request)
{
    const json_t *addresses = json_object_get(request, "addresses"), *address;
    json_t *removed = json_array();
    size_t i;
    (void)now_ms;
    if (!json_is_array(addresses) ||
        json_array_size(addresses) > SUPPRESSION_LINES_MAX) {
        json_decref(removed);
        return questions_refuse("addresses are at most 1,000");
    }
    json_array_foreach ((json_t *)(uintptr_t)addresses, i, address) {
        char normal[SUPPRESSION_ADDRESS_MAX + 1];
        struct text text =
            text_of(json_string_value(address), json_string_length(address));
        size_t count = suppression_normal(text, normal)
                           ? suppression_remove(s, text_from(normal))
                           : 0;
        json_array_append_new(removed, json_integer((json_int_t)count));
    }
    return json_pack("{s:b,s:o}", "ok", true, "removed", removed);
}

json_t *
suppression_answer(struct manager *manager, int64_t now_ms, const json_t *request)
{
    static const struct {
        const char *command;
        json_t *(*answer)(struct suppression *s, int64_t now_ms, const json_t *request);
    } rows[] = {
        {"suppress-list",   suppression_list_page },
        {"suppress-add",    suppression_add_lines },
        {"suppress-remove", suppression_remove_all},
    };
    const char *command = json_string_value(json_object_get(request, "command"));
    struct suppression *s = manager_suppression(manager);
    for (size_t i = 0; command != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(command, rows[i].command) == 0)
            return s != NULL ? rows[i].answer(s, now_ms, request)
                             : questions_refuse("no list is kept: set suppress = yes");
    return NULL;
}
