/* The properties that every message must have, and the form of messages. */
#include "t/crash/shadow.h"

#include "base/memory.h"
#include "queue/manager/expansion.h"
#include "sched/route/route.h"
#include "t/support/aliases_whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
shadow_init(struct shadow *s, bool strict)
{
    *s = (struct shadow){.strict = strict};
}

void
shadow_free(struct shadow *s)
{
    for (unsigned m = 0; m < s->count; m++)
        free(s->messages[m].content);
    *s = (struct shadow){0};
}

int
shadow_add(struct shadow *s, unsigned recipients, size_t size, int told_of)
{
    if (s->count == MESSAGES_MAX)
        return -1;
    unsigned number = s->count++;
    struct message *m = &s->messages[number];
    *m = (struct message){.recipients = recipients, .told_of = told_of};
    m->content = memory_new(size + 100);
    int head = snprintf(m->content, 100, "Subject: %u\r\n\r\nnotice of %d\r\n", number,
                        told_of);
    m->size = (size_t)head > size ? (size_t)head : size;
    uint32_t state = number * 2654435761u + 1;
    for (size_t i = (size_t)head; i < m->size; i++) {
        state = state * 1664525u + 1013904223u;
        m->content[i] = (char)('a' + (state >> 24) % 26);
    }
    return (int)number;
}

struct text
shadow_content(const struct shadow *s, unsigned message)
{
    return text_of(s->messages[message].content, s->messages[message].size);
}

const char *
shadow_address(unsigned recipient)
{
    static const char *const addresses[RECIPIENTS_MAX] = {
        "a@example.org", "b@example.net", "c@example.com",
        "d@example.edu", "e@example.net", "f@example.com"};
    return addresses[recipient];
}

bool
shadow_is_local(void *context, const struct envelope *e, const struct recipient *r)
{
    (void)context;
    return (r - e->recipients) % 3 != 2;
}

const char *
shadow_alias(void)
{
    return "all@example.org";
}

void
shadow_expand(const struct message *m, struct envelope *e)
{
    static const char table[] = "all: a@example.org, b@example.net, c@example.com, "
                                "d@example.edu, e@example.net, f@example.com\n"
                                "owner-all: a@example.org\n";
    struct aliases_file file = {"aliases", text_from(table)};
    if (!m->is_alias || !e->storage.in_todo || e->storage.preprocessed)
        return;
    struct route_table *routes =
        route_new(&(struct route_settings){.local_domains = TEXT("example.org")}, NULL);
    struct aliases *aliases = aliases_whole(
        &(struct aliases_settings){.files = &file, .file_count = 1, .routes = routes},
        NULL);
    struct expansion_rules rules = {.routes = routes, .aliases = aliases};
    (void)expansion_apply(e, &rules, 0, NULL, NULL);
    aliases_free(&aliases);
    route_free(&routes);
}

struct failure
shadow_failure(unsigned message, unsigned recipient)
{
    struct failure f = {.recipient = recipient};
    f.relayed = (message + recipient) % 2 == 1;
    f.outcome = f.relayed ? outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0",
                                         "success %u.%u", message, recipient)
                          : outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1",
                                         "failure %u.%u", message, recipient);
    return f;
}

int
shadow_find(const struct shadow *s, struct id id)
{
    for (unsigned m = 0; m < s->count; m++)
        if (s->messages[m].known != ABSENT && id_compare(s->messages[m].id, id) == 0)
            return (int)m;
    return -1;
}

bool
shadow_is_settled(const struct message *m)
{
    for (unsigned r = 0; r < m->recipients; r++)
        if (m->marks[r] == NO)
            return false;
    return true;
}

static void
sure(enum certainty *c)
{
    if (*c == MAYBE)
        *c = SURE;
}

void
shadow_harden(struct shadow *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        struct message *m = &s->messages[i];
        /* Marks of what was retired were perhaps never written. */
        bool written = !m->unseen && (s->strict || m->retired == NO);
        for (unsigned r = 0; r < m->recipients && written; r++)
            sure(&m->marks[r]);
        for (unsigned r = 0; r < m->recipients && written; r++)
            sure(&m->notified[r]);
        if (written)
            sure(&m->warned);
        if (s->strict)
            sure(&m->retired);
        m->gone = m->gone || (s->strict && m->known == REFUSED && !m->unseen);
    }
}

static uint64_t
mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 31;
}

uint64_t
shadow_digest(const struct shadow *s)
{
    uint64_t hash = mix(s->strict + 2u * s->troubled, s->count);
    for (unsigned i = 0; i < s->count; i++) {
        const struct message *m = &s->messages[i];
        uint64_t bits = (uint64_t)m->known | (uint64_t)m->retired << 2 |
                        (uint64_t)m->held << 4 | (uint64_t)m->removed << 6 |
                        (uint64_t)m->warned << 8 | (uint64_t)m->gone << 10;
        for (unsigned r = 0; r < m->recipients; r++)
            bits = bits << 5 | (uint64_t)m->notified[r] << 3 |
                   (uint64_t)m->marks[r] << 1 | m->failed[r];
        hash = mix(mix(hash, bits), m->id.hash);
    }
    return hash;
}
