/* Commands of the operator. */
#include "t/roof/operator.h"

#include "base/memory.h"
#include "t/roof/host.h"
#include "t/roof/model.h"
#include "t/roof/peer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_SIZE = 512, PATIENCE_MS = 60 * 1000 };

enum wish {
    WISH_RETRY,
    WISH_HOLD,
    WISH_RELEASE,
    WISH_REMOVE,
    WISH_BOUNCE,
    WISH_QUESTION
};

struct question {
    struct peer peer;
    struct roof_timer timer;
    enum wish wish;
    struct model_message *message;
    char line[LINE_SIZE];
    struct buffer answer; /* all its lines */
    unsigned lines;
    bool whole;
    operator_heard *heard;
    void *context;
};

static unsigned commands, takings;

unsigned
operator_takings(void)
{
    return takings;
}

unsigned
operator_commands(void)
{
    return commands;
}

/* True: it is the last line. Of a long list some are read: each is much work. */
static bool
read_answer(struct question *q, struct text line)
{
    bool is_read = q->lines++ < 20 || q->lines % 16 == 0 ||
                   memmem(line.at, line.length, "\"ok\":", 5) != NULL;
    if (!is_read)
        return false;
    json_t *answer = json_loadb(line.at, line.length, 0, NULL);
    if (answer == NULL)
        roof_break("truth", NULL, "an answer that is not JSON: %.*s", TEXT_ARGS(line));
    /* with "id": of one message, and more follow; one that leaves ends the operation */
    bool is_last =
        json_object_get(answer, "ok") != NULL && json_object_get(answer, "id") == NULL;
    json_decref(answer);
    return is_last;
}

static bool
question_on_line(void *context, struct text line)
{
    struct question *q = context;
    roof_note("operator: %s -> %.*s", q->line,
              (int)(line.length < 200 ? line.length : 200), line.at);
    bool is_last = read_answer(q, line);
    if (!buffer_add(&q->answer, line) || !buffer_add_byte(&q->answer, '\n'))
        abort();
    if (!is_last)
        return true;
    q->whole = true;
    peer_close(&q->peer);
    return true;
}

static void
question_on_over(void *context)
{
    struct question *q = context;
    if (q->heard != NULL)
        q->heard(q->context, buffer_text(&q->answer), q->whole);
    buffer_free(&q->answer);
    roof_timer_start(&q->timer, 0, free, q);
}

static void
question_on_connected(void *context)
{
    struct question *q = context;
    peer_say(&q->peer, text_from(q->line));
    peer_say(&q->peer, TEXT("\n"));
}

static void
question_on_impatience(void *context)
{
    struct question *q = context;
    peer_cut(&q->peer, PEER_FIN);
}

static struct question *
ask(const struct host *h, const char *line)
{
    struct question *q = memory_new(sizeof(*q));
    struct net_address from = {.family = NET_UNIX}, to = {.family = NET_UNIX};
    text_copy(to.path, sizeof(to.path), text_from(h->control));
    snprintf(q->line, sizeof(q->line), "%s", line);
    q->peer = (struct peer){.connected = question_on_connected,
                            .line = question_on_line,
                            .over = question_on_over,
                            .context = q};
    buffer_init(&q->answer, 1 << 26);
    roof_timer_start(&q->timer, PATIENCE_MS, question_on_impatience, q);
    commands++;
    peer_connect(&q->peer, &from, &to);
    return q;
}

/* The slice of the message, if it runs. */
static const struct host *
host_with(const struct model_message *m)
{
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running && h->machine == &host && model_is_of(m, h->slices, h->slice))
            return h;
    return &host;
}

void
operator_tell(const struct host *h, const char *line)
{
    ask(h, line);
}

void
operator_act(void)
{
    static const char *const words[] = {"retry", "hold", "release", "rm", "bounce"};
    static const char *const questions[] = {
        "{\"command\":\"status\"}", "{\"command\":\"sites\"}",
        "{\"command\":\"health\"}", "{\"command\":\"list\"}"};
    char line[LINE_SIZE];
    struct model_message *m = model_at(roof_below(model_count()));
    if (!host.running)
        return;
    /* mail that is returned before its name is expanded names no member */
    if (m->state != MODEL_ACKED || m->id[0] == '\0' || m->is_aliased ||
        roof_chance(300)) {
        ask(&host, questions[roof_below(4)]);
        return;
    }
    unsigned kind = roof_below(20);
    enum wish wish = kind < 9    ? WISH_RETRY
                     : kind < 13 ? WISH_HOLD
                     : kind < 17 ? WISH_RELEASE
                     : kind < 18 ? WISH_REMOVE
                                 : WISH_BOUNCE;
    if (kind == 19) {
        snprintf(line, sizeof(line), "{\"command\":\"why\",\"id\":\"%s\"}", m->id);
        ask(host_with(m), line);
        return;
    }
    /* From now on, and whether or not it is done: the answer may be lost. */
    for (unsigned i = 0; i <= m->rcpt_count; i++) { /* one for its copy */
        m->rcpts[i].deferred_ms = 0;
        m->rcpts[i].is_hurried |= wish == WISH_RETRY || wish == WISH_RELEASE;
        if (wish == WISH_BOUNCE)
            model_refused(&m->rcpts[i]);
        m->rcpts[i].may_vanish = m->rcpts[i].may_vanish || wish == WISH_REMOVE;
    }
    if (wish == WISH_RELEASE)
        m->release_ms = 0;
    snprintf(line, sizeof(line), "{\"command\":\"%s\",\"ids\":[\"%s\"]}", words[wish],
             m->id);
    takings += wish == WISH_REMOVE || wish == WISH_BOUNCE || wish == WISH_HOLD;
    ask(host_with(m), line);
}

void
operator_order(const char *command, const struct model_message *m)
{
    char line[LINE_SIZE];
    snprintf(line, sizeof(line), "{\"command\":\"%s\",\"ids\":[\"%s\"]}", command,
             m->id);
    takings++;
    ask(&host, line);
}

void
operator_release_all(void)
{
    model_released();
    for (const struct host *h = NULL; (h = host_next(h)) != NULL;)
        if (h->running)
            ask(h, "{\"command\":\"release\",\"all\":true}");
}

void
operator_ask_of(const struct host *h, const char *line, operator_heard *heard,
                void *context)
{
    struct question *q = ask(h, line);
    q->heard = heard;
    q->context = context;
}

void
operator_ask(const char *line, operator_heard *heard, void *context)
{
    operator_ask_of(&host, line, heard, context);
}
