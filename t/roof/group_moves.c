/* Messages between two hosts. */
#include "t/roof/group_moves.h"

#include "base/memory.h"
#include "t/roof/model.h"
#include "t/roof/roof.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    NAME_MAX = 16,
    ENDS_MAX = 8,
    UNDER_WAY_MS = 60 * SECOND_MS /* bytes of one that has ended, and a slow disk */
};

struct move {
    struct move *prev, *next;
    char giver[NAME_MAX], taker[NAME_MAX], was[MODEL_ID_MAX], first[MODEL_ID_MAX];
    int64_t given_ms; /* when its giver knew; 0: not yet. Its end is durable later */
};
static struct move *moves;

/* When each has ended last. */
static struct end {
    char host[NAME_MAX];
    int64_t at_ms;
} ends[ENDS_MAX];

static struct end *
end_of(const char *host)
{
    unsigned i = 0;
    while (i + 1 < ENDS_MAX && ends[i].host[0] != '\0' &&
           strcmp(ends[i].host, host) != 0)
        i++;
    if (ends[i].host[0] == '\0')
        ends[i].at_ms = INT64_MIN / 2;
    (void)!text_copy(ends[i].host, NAME_MAX, text_from(host));
    return &ends[i];
}

/* The value of a field, up to the next comma. False: there is none. */
static bool
field_of(struct text line, const char *name, char *out, size_t size)
{
    const char *at = memmem(line.at, line.length, name, strlen(name));
    if (at == NULL)
        return false;
    struct text rest = text_after(line, (size_t)(at - line.at) + strlen(name));
    return text_copy(out, size, text_before(rest, text_find(rest, ',')));
}

static void
move_come_twice(struct move *m)
{
    model_moved_twice(text_from(m->first));
    DL_DELETE(moves, m);
    free(m);
}

static void
move_taken(const char *host, struct text line)
{
    struct move *m = memory_new(sizeof(*m));
    (void)!text_copy(m->taker, sizeof(m->taker), text_from(host));
    if (!field_of(line, ": from=", m->giver, sizeof(m->giver)) ||
        !field_of(line, " was=", m->was, sizeof(m->was)) ||
        !field_of(line, " first=", m->first, sizeof(m->first)))
        abort();
    DL_APPEND(moves, m);
    if (roof_now_ms() - end_of(m->giver)->at_ms < UNDER_WAY_MS)
        move_come_twice(m);
}

/* "queue: ID: to=relay1, as=ID, ..., status=given" */
static void
move_given(const char *host, struct text line)
{
    char id[MODEL_ID_MAX];
    struct text rest = text_after(line, sizeof("queue: ") - 1), word;
    struct move *m;
    text_cut(&rest, ':', &word);
    if (!text_copy(id, sizeof(id), word))
        return;
    DL_FOREACH (moves, m) {
        if (strcmp(m->giver, host) != 0 || strcmp(m->was, id) != 0)
            continue;
        m->given_ms = roof_now_ms();
    }
}

void
group_moves_line(const char *host, struct text line)
{
    static const char given[] = "status=given";
    if (!text_starts(line, TEXT("queue: ")))
        return;
    if (memmem(line.at, line.length, "status=adopted", 14) != NULL)
        return; /* law_adoption.c */
    if (memmem(line.at, line.length, " was=", 5) != NULL)
        move_taken(host, line);
    else if (memmem(line.at, line.length, given, sizeof(given) - 1) != NULL)
        move_given(host, line);
}

static void
forget_old_moves(void)
{
    struct move *m, *next;
    DL_FOREACH_SAFE (moves, m, next) {
        if (m->given_ms == 0 || roof_now_ms() - m->given_ms < UNDER_WAY_MS)
            continue;
        DL_DELETE(moves, m);
        free(m);
    }
}

void
group_moves_ended(const char *host)
{
    struct move *m, *next;
    end_of(host)->at_ms = roof_now_ms();
    forget_old_moves();
    DL_FOREACH_SAFE (moves, m, next)
        if (strcmp(m->giver, host) == 0 ||
            (m->given_ms == 0 && strcmp(m->taker, host) == 0))
            move_come_twice(m);
}

void
group_moves_unheard(const char *taker)
{
    struct move *m, *next;
    DL_FOREACH_SAFE (moves, m, next)
        if (m->given_ms == 0 && strcmp(m->taker, taker) == 0)
            move_come_twice(m);
}

void
group_moves_cut(const char *host)
{
    struct move *m, *next;
    DL_FOREACH_SAFE (moves, m, next)
        if (m->given_ms == 0 &&
            (strcmp(m->taker, host) == 0 || strcmp(m->giver, host) == 0))
            move_come_twice(m);
}
