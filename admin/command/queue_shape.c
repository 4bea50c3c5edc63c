/* Puts messages into the shape of the queue. */
#include "admin/command/queue_shape.h"

#include "admin/control/json_field.h"
#include "admin/settings/complaint.h"

#include <string.h>
#include <sysexits.h>

static const char *const queue_shape_words[] = {"recipient", "sender", "site"};

static bool
queue_shape_choose(const char *word, enum queue_shape_by *by)
{
    for (size_t i = 0; i < sizeof(queue_shape_words) / sizeof(*queue_shape_words); i++)
        if (strcmp(word, queue_shape_words[i]) == 0) {
            *by = (enum queue_shape_by)i;
            return true;
        }
    complaint_say("petrel queue", EX_USAGE, "--by needs recipient, sender or site",
                  word);
    return false;
}

const char *
queue_shape_word(enum queue_shape_by by)
{
    return queue_shape_words[by];
}

bool
queue_shape_parse(int *count, char **arguments, enum queue_shape_by *by)
{
    int kept = 0;
    for (int i = 0; i < *count; i++) {
        const char *word = NULL;
        if (strncmp(arguments[i], "--by=", strlen("--by=")) == 0)
            word = arguments[i] + strlen("--by=");
        else if (strcmp(arguments[i], "--by") == 0)
            word = i + 1 < *count ? arguments[++i] : "";
        else
            arguments[kept++] = arguments[i];
        if (word != NULL && !queue_shape_choose(word, by))
            return false;
    }
    *count = kept;
    return true;
}

/* For a local name: itself. */
static struct text
queue_shape_domain(struct text address)
{
    size_t at = text_find_last(address, '@');
    if (address.length == 0)
        return TEXT("<>");
    return at == TEXT_NONE ? address : text_after(address, at + 1);
}

static void
queue_shape_recipients(struct shape *s, const struct envelope *e, int64_t age_ms)
{
    for (unsigned i = 0; i < e->count; i++)
        if (!e->recipients[i].done)
            shape_add(s, queue_shape_domain(e->recipients[i].address), age_ms, 1);
}

/* Held mail, and mail just found, has no site yet. */
static void
queue_shape_sites(struct shape *s, const struct envelope *e, const json_t *why,
                  int64_t age_ms)
{
    const json_t *hops = json_object_get(why, "hops"), *hop;
    uint64_t open = 0, known = 0;
    size_t index;
    for (unsigned i = 0; i < e->count; i++)
        open += !e->recipients[i].done;
    json_array_foreach (hops, index, hop) {
        const char *site = json_field_string(json_object_get(hop, "site"), "site");
        const char *name = site[0] ? site : json_field_string(hop, "destination");
        uint64_t waiting = (uint64_t)json_field_number(hop, "open");
        shape_add(s, text_from(name), age_ms, waiting);
        known += waiting;
    }
    if (known < open)
        shape_add(s, TEXT("no site"), age_ms, open - known);
}

void
queue_shape_add(struct shape *s, enum queue_shape_by by, const struct envelope *e,
                const json_t *why, int64_t now_ms)
{
    int64_t age_ms = now_ms - e->birth_ms;
    switch (by) {
    case SHAPE_BY_RECIPIENT:
        queue_shape_recipients(s, e, age_ms);
        return;
    case SHAPE_BY_SENDER:
        shape_add(s, queue_shape_domain(e->sender), age_ms, 1);
        return;
    case SHAPE_BY_SITE:
        queue_shape_sites(s, e, why, age_ms);
        return;
    }
}
