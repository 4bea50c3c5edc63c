/* Fuzz target: answers of the called side of the peer door. Each message and each question
 * has one end, and none is said to be taken that was not sent.
 *
 * Bytes 1 to 9 of the input are events; all others are what the other side says. */
#include "smtp/peer/peer_client.h"

#include "base/memory.h"
#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

enum { GIFTS_MAX = 72, ASKS_MAX = 72 }; /* more than there is room for */

struct gift {
    struct run *run;
    int64_t content, read;
    bool fails, has_end, is_ignored;
};
struct question {
    struct run *run;
    bool has_end, is_ignored;
    size_t bytes;
};

struct run {
    struct peer_client client;
    struct sibling_service service;
    struct gift gifts[GIFTS_MAX];
    size_t gift_count;
    struct question asks[ASKS_MAX];
    size_t ask_count;
    bool is_fresh; /* a connection on which nothing was said yet */
    int64_t now_ms;
    bool is_calling;
};

static void
hello(void *context, struct sibling_hello *out)
{
    (void)context;
    *out = (struct sibling_hello){.host = "relay1", .group = "mail", .spool = "00", .run_ms = 1, .version = "1", .state = "running"};
}

static int64_t
gift_read(void *context, int64_t offset, char *to, size_t size)
{
    struct gift *g = context;
    must(!g->has_end && !g->is_ignored && offset == g->read && size > 0 && offset + (int64_t)size <= g->content);
    if (g->fails && offset > 0)
        return -5;
    size = size > 1000 ? 1000 : size;
    memset(to, 'c', size);
    g->read += (int64_t)size;
    return (int64_t)size;
}

static void give(struct run *r, int64_t content, bool fails);

static void
gift_given(void *context, enum sibling_answer answer, struct id there, const struct outcome *outcome)
{
    struct gift *g = context;
    (void)there;
    must(!g->has_end && !g->is_ignored && g->run->is_calling);
    must(answer != SIBLING_TAKEN || (g->read == g->content && outcome->code / 100 == 2));
    must(answer != SIBLING_REFUSED || outcome->code / 100 == 5 || (g->fails && outcome->code == 0));
    must(answer != SIBLING_LATER || outcome->code / 100 == 4 || outcome->code == 0);
    must(outcome->enhanced[0] != '\0');
    g->has_end = true;
    if (g->run->gift_count % 5 == 4)
        give(g->run, 10, false);
}

static void
give(struct run *r, int64_t content, bool fails)
{
    if (r->gift_count == GIFTS_MAX)
        return;
    struct gift *g = &r->gifts[r->gift_count];
    *g = (struct gift){.run = r, .content = content, .fails = fails};
    struct sibling_gift gift = {.message = {.id = {1, 2}, .sections = 3, .content = content}, .sections = TEXT("abc"), .read = gift_read, .context = g, .given = gift_given};
    peer_client_give(&r->client, &gift);
    r->gift_count++;
}

static void
ask_line(void *context, const char *host, struct text json)
{
    struct question *q = context;
    must(!q->has_end && !q->is_ignored && strcmp(host, "relay2") == 0 && json.length <= SIBLING_LINE_MAX + 16);
    q->bytes += json.length;
    must(q->bytes <= SIBLING_ANSWER_MAX);
}

static void
ask_end(void *context, const char *host, const char *trouble)
{
    struct question *q = context;
    (void)trouble;
    must(!q->has_end && !q->is_ignored && strcmp(host, "relay2") == 0 && q->run->is_calling);
    q->has_end = true;
}

static void
ask(struct run *r)
{
    if (r->ask_count == ASKS_MAX)
        return;
    struct question *q = &r->asks[r->ask_count];
    const struct sibling_listener listener = {ask_line, ask_end, q};
    *q = (struct question){.run = r};
    r->ask_count++;
    peer_client_ask(&r->client, TEXT("{}"), r->now_ms + 3, &listener);
}

static void
fill(struct run *r, size_t size)
{
    r->is_calling = true;
    peer_client_fill(&r->client, size, r->now_ms);
    r->is_calling = false;
    struct text out = buffer_text(&r->client.out);
    must(out.length <= size + PEER_PIECE);
    if (r->is_fresh && out.length >= 6)
        must(memcmp(out.at, "XPEER ", 6) == 0);
    if (!r->client.is_ready && !r->client.is_over)
        must(out.length == 0 || r->is_fresh);
    r->is_fresh = r->is_fresh && out.length == 0;
    buffer_clear(&r->client.out);
}

static void
lose(struct run *r)
{
    r->is_calling = true;
    peer_client_lose(&r->client, "it is gone");
    r->is_calling = false;
    peer_client_start(&r->client);
    r->is_fresh = true;
}

static void
ignore(struct run *r, size_t which)
{
    if (r->gift_count == 0)
        return;
    struct gift *g = &r->gifts[which % r->gift_count];
    g->is_ignored = !g->has_end || g->is_ignored;
    if (!peer_client_ignore(&r->client, g))
        must(r->client.is_over);
}

static void
ignore_question(struct run *r, size_t which)
{
    if (r->ask_count == 0)
        return;
    struct question *q = &r->asks[which % r->ask_count];
    q->is_ignored = !q->has_end || q->is_ignored;
    if (!peer_client_ignore(&r->client, q))
        must(r->client.is_over);
}

static void
happen(struct run *r, unsigned event)
{
    switch (event) {
    case 1:
        fill(r, 100000);
        break;
    case 2:
        fill(r, 700);
        break;
    case 3:
        give(r, 5, false);
        break;
    case 4:
        give(r, 40000, false);
        break;
    case 5:
        give(r, 3000, true);
        break;
    case 6:
        ask(r);
        break;
    case 7:
        r->now_ms++;
        r->is_calling = true;
        peer_client_expire(&r->client, r->now_ms);
        r->is_calling = false;
        must(peer_client_next_ms(&r->client) > r->now_ms);
        break;
    case 8:
        ignore(r, r->gift_count / 2);
        ignore_question(r, r->ask_count / 2);
        peer_client_noop(&r->client);
        break;
    default:
        peer_client_quit(&r->client);
        break;
    }
}

static void
hear(struct run *r, struct text *input)
{
    r->is_calling = true;
    peer_client_read(&r->client, input);
    r->is_calling = false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *r = memory_new(sizeof(*r));
    struct buffer in;
    r->service.hello = hello;
    r->client.service = &r->service;
    strcpy(r->client.host, "relay2");
    buffer_init(&in, 1 << 20);
    peer_client_init(&r->client);
    peer_client_start(&r->client);
    r->is_fresh = true;
    for (size_t i = 0; i < size; i++) {
        if (data[i] >= 1 && data[i] <= 9) {
            struct text input = buffer_text(&in);
            size_t before = input.length;
            hear(r, &input);
            buffer_take(&in, before - input.length);
            happen(r, data[i]);
        } else {
            must(buffer_add_byte(&in, (char)data[i]));
        }
        if (r->client.is_over) {
            lose(r);
            buffer_clear(&in);
        }
    }
    struct text input = buffer_text(&in);
    hear(r, &input);
    /* Messages that callbacks have given anew end, too. */
    for (int i = 0; i < 300 && (i < 1 || !peer_client_is_idle(&r->client)); i++) {
        r->is_calling = true;
        peer_client_lose(&r->client, "it is gone");
        r->is_calling = false;
    }
    for (size_t i = 0; i < r->gift_count; i++)
        must(r->gifts[i].has_end || r->gifts[i].is_ignored);
    for (size_t i = 0; i < r->ask_count; i++)
        must(r->asks[i].has_end || r->asks[i].is_ignored);
    peer_client_free(&r->client);
    buffer_free(&in);
    free(r);
    return 0;
}
