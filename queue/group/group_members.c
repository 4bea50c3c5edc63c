/* The hosts of a group. */
#include "queue/group/group_members.h"

#include "base/memory.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SILENT_MS = 5 * 1000 /* without an answer: the bank was away */
};

static const char forgotten[] = "forgotten "; /* no name has a blank */

static struct group_member *
group_find(struct group_members *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->all[i].name, name) == 0)
            return &m->all[i];
    return NULL;
}

static int
group_compare(const void *a, const void *b)
{
    const struct group_member *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static struct group_member *
group_insert(struct group_members *m, const char *name, int64_t seen_ms)
{
    if (m->count == GROUP_HOSTS_MAX)
        return NULL;
    struct group_member *member = &m->all[m->count++];
    *member = (struct group_member){.seen_ms = seen_ms};
    (void)!text_copy(member->name, sizeof(member->name), text_from(name));
    qsort(m->all, m->count, sizeof(m->all[0]), group_compare);
    return group_find(m, name);
}

static void
group_delete(struct group_members *m, size_t index)
{
    memmove(&m->all[index], &m->all[index + 1],
            (m->count - index - 1) * sizeof(m->all[0]));
    m->count--;
}

void
group_members_init(struct group_members *m, const char *own, int64_t now_ms)
{
    *m = (struct group_members){.own = own, .heard_ms = now_ms};
    group_insert(m, own, now_ms);
}

void
group_members_add(struct group_members *m, struct text name, int64_t now_ms)
{
    char lower[GROUP_HOST_MAX + 1];
    if (group_name_read(name, lower, sizeof(lower)) && group_find(m, lower) == NULL)
        group_insert(m, lower, now_ms);
}

static bool
group_is_forgotten(const struct group_members *m, const char *name)
{
    for (size_t i = 0; i < m->forgotten_count; i++)
        if (strcmp(m->forgotten[i], name) == 0)
            return true;
    return false;
}

void
group_members_forgotten(struct group_members *m)
{
    if (m->forgotten_count == 0)
        return;
    m->forgotten_count--;
    memmove(m->forgotten[0], m->forgotten[1],
            m->forgotten_count * sizeof(m->forgotten[0]));
}

static void
group_note_forgotten(struct group_members *m, const char *name)
{
    if (group_is_forgotten(m, name))
        return;
    if (m->forgotten_count == GROUP_FORGOTTEN_MAX)
        group_members_forgotten(m);
    (void)!text_copy(m->forgotten[m->forgotten_count++], sizeof(m->forgotten[0]),
                     text_from(name));
}

bool
group_members_forget(struct group_members *m, struct text name)
{
    char lower[GROUP_HOST_MAX + 1];
    struct group_member *member =
        group_name_read(name, lower, sizeof(lower)) ? group_find(m, lower) : NULL;
    if (member == NULL || strcmp(lower, m->own) == 0)
        return false;
    group_delete(m, (size_t)(member - m->all));
    group_note_forgotten(m, lower);
    return true;
}

/* INT64_MAX: it has left. */
static bool
group_read_one(struct text *list, char name[GROUP_HOST_MAX + 1], int64_t *age_ms)
{
    struct text word, number;
    uint64_t age = INT64_MAX;
    if (!text_word(list, " ", &word) || !text_word(list, " ", &number) ||
        !group_name_read(word, name, GROUP_HOST_MAX + 1) ||
        (!text_equal(number, TEXT("gone")) && !text_number(number, INT64_MAX, &age)))
        return false;
    *age_ms = (int64_t)age;
    return true;
}

/* The bank's answer comes from another machine: it is read as a whole first. */
static bool
group_is_list(struct text list)
{
    char name[GROUP_HOST_MAX + 1];
    int64_t age_ms;
    for (size_t count = 0; text_trim(list).length > 0; count++)
        if (count == GROUP_HOSTS_MAX || !group_read_one(&list, name, &age_ms))
            return false;
    return true;
}

static void
group_see(struct group_members *m, const char *name, int64_t age_ms, int64_t now_ms,
          group_changed *changed, void *context)
{
    struct group_member *member = group_find(m, name);
    if (member != NULL)
        member->is_listed = true;
    if (age_ms == INT64_MAX) {
        if (member != NULL) {
            changed(context, name, GROUP_LEFT);
            group_delete(m, (size_t)(member - m->all));
        }
    } else if (member == NULL && age_ms < GROUP_FORGET_MS &&
               !group_is_forgotten(m, name)) {
        if (group_insert(m, name, now_ms - age_ms) != NULL)
            changed(context, name, GROUP_CAME);
    } else if (member != NULL && member->seen_ms < now_ms - age_ms) {
        member->seen_ms = now_ms - age_ms;
    }
}

/* Ages are judged when a list was read. */
static void
group_judge(struct group_members *m, int64_t now_ms, group_changed *changed,
            void *context)
{
    for (size_t i = m->count; i-- > 0;) {
        struct group_member *member = &m->all[i];
        int64_t age_ms = now_ms - member->seen_ms;
        bool is_own = strcmp(member->name, m->own) == 0;
        bool is_lost = age_ms >= GROUP_LOST_MS && !is_own;
        if (is_lost != member->is_lost)
            changed(context, member->name, is_lost ? GROUP_LOST : GROUP_BACK);
        member->is_lost = is_lost;
        member->is_late = !is_lost && member->is_listed && age_ms >= GROUP_LATE_MS;
        member->is_listed = false;
        if (is_lost && age_ms >= GROUP_FORGET_MS) {
            changed(context, member->name, GROUP_FORGOTTEN);
            group_delete(m, i);
        }
    }
}

void
group_members_hear(struct group_members *m, int64_t now_ms)
{
    int64_t silent_ms = now_ms - m->heard_ms;
    if (silent_ms > SILENT_MS)
        m->silent_ms += silent_ms;
    m->heard_ms = now_ms;
}

/* The list says how old they are with the silence. */
static void
group_excuse(struct group_members *m, int64_t now_ms)
{
    for (size_t i = 0; i < m->count; i++) {
        int64_t seen_ms = m->all[i].seen_ms + m->silent_ms;
        m->all[i].seen_ms = seen_ms < now_ms ? seen_ms : now_ms;
    }
    m->silent_ms = 0;
}

bool
group_members_read(struct group_members *m, struct text list, int64_t now_ms,
                   group_changed *changed, void *context)
{
    char name[GROUP_HOST_MAX + 1];
    int64_t age_ms;
    if (!group_is_list(list))
        return false;
    group_members_hear(m, now_ms);
    m->old = 0;
    while (group_read_one(&list, name, &age_ms)) {
        m->old += age_ms >= GROUP_LATE_MS && age_ms != INT64_MAX;
        if (strcmp(name, m->own) != 0)
            group_see(m, name, age_ms, now_ms, changed, context);
    }
    group_excuse(m, now_ms);
    group_judge(m, now_ms, changed, context);
    return true;
}

size_t
group_members_lost(const struct group_members *m)
{
    size_t lost = 0;
    for (size_t i = 0; i < m->count; i++)
        lost += m->all[i].is_lost;
    return lost;
}

size_t
group_members_late(const struct group_members *m)
{
    size_t late = 0;
    for (size_t i = 0; i < m->count; i++)
        late += m->all[i].is_late;
    return late;
}

size_t
group_members_rank(const struct group_members *m)
{
    size_t rank = 0;
    while (strcmp(m->all[rank].name, m->own) != 0)
        rank++;
    return rank;
}

void
group_members_write(const struct group_members *m, const char *group,
                    struct buffer *out)
{
    (void)!buffer_format(out, "%s\n", group);
    for (size_t i = 0; i < m->count; i++)
        (void)!buffer_format(out, "%s\n", m->all[i].name);
    for (size_t i = 0; i < m->forgotten_count; i++)
        (void)!buffer_format(out, "%s%s\n", forgotten, m->forgotten[i]);
}

void
group_members_recall(struct group_members *m, const char *group, struct text file,
                     int64_t now_ms)
{
    char lower[GROUP_HOST_MAX + 1];
    struct text line;
    if (!text_cut(&file, '\n', &line) || !text_equal(line, text_from(group)))
        return;
    while (text_find(file, '\n') != TEXT_NONE && text_cut(&file, '\n', &line)) {
        bool is_gone =
            text_starts(line, text_from(forgotten)) &&
            group_name_read(text_after(line, strlen(forgotten)), lower, sizeof(lower));
        if (is_gone)
            group_note_forgotten(m, lower);
        else
            group_members_add(m, line, now_ms);
    }
}

/* --- Their descriptions ------------------------------------------------------------ */

void
group_siblings_write(const struct group_self *self, const char *run,
                     char out[GROUP_INFO_MAX])
{
    json_t *object =
        json_pack("{s:s,s:s,s:s,s:s,s:s,s:I}", "version", self->version, "run", run,
                  "address", self->address, "spool", self->spool, "state", self->state,
                  "waiting", (json_int_t)self->waiting);
    if (self->suppress_limit > 0)
        json_object_set_new(object, "suppress_limit",
                            json_integer((json_int_t)self->suppress_limit));
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
    self->suppress_limit =
        json_integer_value(json_object_get(object, "suppress_limit"));
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
