#include "t/sim/copies_engine.h"

#include "base/memory.h"
#include "queue/copies/copies_scripts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct call {
    struct call *prev, *next;
    const char *script;
    struct text *words;
    size_t count;
    copies_answered *done;
    void *context;
};

struct copies_engine {
    struct copies_database *database;
    struct copies_client *clients;
    struct call *calls;
    bool is_ready;
    const char *lie_script, *lie; /* NULL: none */
    const char *refused, *refusal; /* NULL: none */
    unsigned answered;
};

struct copies_engine *
sim_engine_new(struct copies_database *database)
{
    struct copies_engine *e = memory_new(sizeof(*e));
    e->database = database;
    return e;
}

static void
call_free(struct copies_engine *e, struct call *c)
{
    DL_DELETE(e->calls, c);
    for (size_t i = 0; i < c->count; i++)
        free((char *)(uintptr_t)c->words[i].at);
    free(c->words);
    free(c);
}

void
sim_engine_free(struct copies_engine **engine)
{
    while ((*engine)->calls != NULL)
        call_free(*engine, (*engine)->calls);
    free(*engine);
    *engine = NULL;
}

void
copies_engine_join(struct copies_engine *e, struct copies_client *client)
{
    DL_APPEND(e->clients, client);
}

void
copies_engine_leave(struct copies_engine *e, struct copies_client *client)
{
    struct call *c;
    DL_DELETE(e->clients, client);
    DL_FOREACH (e->calls, c)
        if (c->context == client->context)
            c->done = NULL;
}

bool
copies_engine_is_ready(const struct copies_engine *e)
{
    return e->is_ready;
}

const char *
copies_engine_why(const struct copies_engine *e)
{
    return e->is_ready ? "" : "it is gone";
}

void
copies_engine_fail(struct copies_engine *e, const char *why)
{
    (void)why;
    sim_engine_down(e, true);
}

void
copies_engine_run(struct copies_engine *e, const char *script, const struct text *words,
                  size_t count, bool acknowledged, copies_answered *done, void *context)
{
    struct call *c = memory_new(sizeof(*c));
    (void)acknowledged;
    assert(e->is_ready);
    *c = (struct call){.script = script, .count = count, .done = done, .context = context};
    c->words = memory_array(count, sizeof(*c->words));
    for (size_t i = 0; i < count; i++) {
        char *at = memory_new(words[i].length + 1);
        memcpy(at, words[i].at, words[i].length);
        c->words[i] = text_of(at, words[i].length);
    }
    DL_APPEND(e->calls, c);
}

bool
copies_is_fenced(const char *why, struct text *owner)
{
    bool is_fenced = text_starts(text_from(why), TEXT(COPIES_FENCED));
    *owner = text_after(text_from(why), is_fenced ? strlen(COPIES_FENCED) : 0);
    return is_fenced;
}

void
sim_engine_up(struct copies_engine *e)
{
    struct copies_client *c;
    e->is_ready = true;
    DL_FOREACH (e->clients, c)
        c->ready(c->context);
}

static bool
is_refused(const struct copies_engine *e, const struct call *c)
{
    enum { FRAME = 6 };
    return e->refusal != NULL && c->script == e->refused &&
           (c->script != copies_script_store || !text_equal(c->words[FRAME], TEXT("E")));
}

static void
run_first(struct copies_engine *e, bool is_lost, bool is_done)
{
    struct call *c = e->calls;
    struct buffer reply;
    copies_answered *done = c->done;
    void *context = c->context;
    bool good = true;
    buffer_init(&reply, SIZE_MAX / 2);
    e->answered++;
    if (is_refused(e, c))
        good = !buffer_add(&reply, text_from(e->refusal));
    else if (c->script == e->lie_script && buffer_add(&reply, text_from(e->lie)))
        e->lie_script = NULL;
    else if (is_done)
        good = copies_database_run(e->database, c->script, c->words, c->count, &reply);
    bool fits = buffer_add_byte(&reply, '\0');
    assert(fits);
    call_free(e, c);
    struct redis_reply answer = {.kind = REDIS_TEXT,
                                 .text = text_of(reply.at, reply.length - 1)};
    if (done != NULL)
        done(context, is_lost || !good ? NULL : &answer,
             is_lost ? "it is gone" : good ? NULL : reply.at);
    buffer_free(&reply);
}

void
sim_engine_lie(struct copies_engine *e, const char *script, const char *answer)
{
    e->lie_script = script;
    e->lie = answer;
}

void
sim_engine_refuse(struct copies_engine *e, const char *script, const char *why)
{
    e->refused = script;
    e->refusal = why;
}

unsigned
sim_engine_calls(const struct copies_engine *e)
{
    return e->answered;
}

void
sim_engine_down(struct copies_engine *e, bool is_done)
{
    struct copies_client *c;
    e->is_ready = false;
    while (e->calls != NULL)
        run_first(e, true, is_done);
    DL_FOREACH (e->clients, c)
        c->lost(c->context);
}

bool
sim_engine_carry(struct copies_engine *e)
{
    if (e->calls == NULL)
        return false;
    run_first(e, false, true);
    return true;
}
