/* Reads and writes the descriptions that the hosts of a group give. */
#include "queue/group/group_siblings.h"

#include "base/memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
group_siblings_write(const struct group_self *self, const char *run,
                     char out[GROUP_INFO_MAX])
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "version", self->version, "run", run,
                  "address", self->address, "spool", self->spool, "state", self->state,
                  "waiting", (json_int_t)self->waiting);
    char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
    snprintf(out, GROUP_INFO_MAX, "%s",
             text != NULL && strlen(text) < GROUP_INFO_MAX ? text : "{}");
    json_decref(object);
    free(text);
}

/* Printable, without spaces and characters with a meaning for a terminal or a line of a
 * log. */
static void
group_siblings_take(const json_t *object, const char *key, char *to, size_t size)
{
    const json_t *member = json_object_get(object, key);
    struct text value = text_of(json_string_value(member), json_string_length(member));
    to[0] = '\0';
    if (value.length >= size)
        return;
    for (size_t i = 0; i < value.length; i++)
        if (value.at[i] <= ' ' || value.at[i] > '~' || strchr("\"\\<>", value.at[i]))
            return;
    text_copy(to, size, value);
}

static void
group_siblings_read_one(struct group_siblings *s, struct text line)
{
    struct text name;
    struct group_sibling *sibling = &s->all[s->count];
    *sibling = (struct group_sibling){.self.waiting = 0};
    if (!text_cut(&line, ' ', &name) || line.length == 0 ||
        line.length >= GROUP_INFO_MAX ||
        !group_name_read(name, sibling->host, sizeof(sibling->host)))
        return;
    json_t *object = json_loadb(line.at, line.length, JSON_REJECT_DUPLICATES, NULL);
    struct group_self *self = &sibling->self;
    group_siblings_take(object, "address", self->address, sizeof(self->address));
    group_siblings_take(object, "spool", self->spool, sizeof(self->spool));
    group_siblings_take(object, "state", self->state, sizeof(self->state));
    group_siblings_take(object, "version", self->version, sizeof(self->version));
    json_int_t waiting = json_integer_value(json_object_get(object, "waiting"));
    self->waiting = waiting > 0 ? (size_t)waiting : 0;
    json_decref(object);
    s->count++;
}

void
group_siblings_read(struct group_siblings *s, struct text lines)
{
    struct text line;
    group_siblings_free(s);
    while (lines.length > 0 && s->count < GROUP_HOSTS_MAX &&
           text_cut(&lines, '\n', &line)) {
        s->all = memory_resize(s->all, (s->count + 1) * sizeof(*s->all));
        group_siblings_read_one(s, line);
    }
}

const struct group_self *
group_siblings_find(const struct group_siblings *s, const char *host)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->all[i].host, host) == 0)
            return &s->all[i].self;
    return NULL;
}

void
group_siblings_free(struct group_siblings *s)
{
    free(s->all);
    *s = (struct group_siblings){.all = NULL};
}
