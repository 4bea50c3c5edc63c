/* Fuzz target: a caller at the peer door. Replies are lines, and in order; a message is
 * whole or dropped; nobody is called back who is not there any more. */
#include "smtp/peer/peer_server.h"

#include "base/memory.h"
#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

enum { PENDING = 256, PIECES = 7 };

struct run {
    struct peer_server server;
    bool has_taking, refuses, is_prompt, asks, is_unwelcome;
    uint64_t left; /* bytes of the message that is being taken */
    uint64_t ids, said; /* given to messages; the last in a reply */
    struct {
        sibling_taken *taken;
        void *context;
        uint64_t id;
    } pending[PENDING];
    size_t pending_count;
    struct sibling_asker asker;
    bool has_asking, has_ended;
    unsigned chance;
};

struct taking {
    struct run *run;
};
struct asking {
    struct run *run;
};
static struct run *the_run;
static char long_line[SIBLING_LINE_MAX]; /* of an answer */

static unsigned
chance(struct run *r, unsigned of)
{
    r->chance = r->chance * 1103515245 + 12345;
    return (r->chance >> 16) % of;
}

static void
hello(void *context, struct sibling_hello *out)
{
    (void)context;
    *out = (struct sibling_hello){.host = "relay1", .group = "mail", .spool = "00", .run_ms = 1, .version = "1", .state = "running"};
}

static bool
greet(void *context, const struct sibling_hello *caller, struct outcome *refusal)
{
    struct run *r = context;
    must(caller->host[0] != '\0' && strlen(caller->host) <= GROUP_HOST_MAX && strpbrk(caller->host, "\r\n \"") == NULL);
    must(strlen(caller->spool) <= SIBLING_SPOOL_MAX && strpbrk(caller->state, "\r\n \"") == NULL);
    return !r->is_unwelcome || outcome_refuse(refusal, 554, "5.7.1", "no");
}

static struct taking *
take(void *context, const struct sibling_hello *from, const struct sibling_message *m, struct outcome *refusal)
{
    struct run *r = context;
    must(from->host[0] != '\0' && !r->has_taking && m->sections > 0 && m->sections <= SIBLING_SECTIONS_MAX);
    must(m->content >= 0 && m->content <= r->server.content_max);
    if (r->refuses && chance(r, 2) == 0) {
        outcome_refuse(refusal, 421 + (int)chance(r, 133), "4.0.0", "no\r\n250 yes");
        return NULL;
    }
    struct taking *taking = memory_new(sizeof(*taking));
    taking->run = r;
    r->has_taking = true;
    r->left = m->sections + (uint64_t)m->content;
    return taking;
}

static void
take_bytes(struct taking *taking, struct text bytes)
{
    must(taking->run->has_taking && bytes.length > 0 && bytes.length <= taking->run->left);
    taking->run->left -= bytes.length;
}

static void
answer(struct run *r, size_t index)
{
    struct outcome refusal;
    sibling_taken *taken = r->pending[index].taken;
    void *context = r->pending[index].context;
    struct id own = {.time_ms = r->pending[index].id};
    r->pending[index] = r->pending[--r->pending_count];
    outcome_refuse(&refusal, 452, "4.3.1", "no space");
    taken(context, own, r->refuses && chance(r, 2) ? &refusal : NULL);
}

static void
take_end(struct taking **taking, sibling_taken *taken, void *context)
{
    struct run *r = (*taking)->run;
    must(r->has_taking && r->left == 0 && r->pending_count < PENDING);
    r->has_taking = false;
    free(*taking);
    *taking = NULL;
    r->pending[r->pending_count].taken = taken;
    r->pending[r->pending_count].id = ++r->ids;
    r->pending[r->pending_count++].context = context;
    must(r->pending_count <= SIBLING_UNANSWERED);
    if (r->is_prompt)
        answer(r, r->pending_count - 1);
}

static void
take_drop(struct taking **taking)
{
    must((*taking)->run->has_taking);
    (*taking)->run->has_taking = false;
    free(*taking);
    *taking = NULL;
}

static void
take_ignore(void *context, void *taken_context)
{
    struct run *r = context;
    for (size_t i = 0; i < r->pending_count; i++) {
        if (r->pending[i].context != taken_context)
            continue;
        r->pending[i] = r->pending[--r->pending_count];
        return;
    }
    must(false);
}

static struct asking *
ask(void *context, struct text line, const struct sibling_asker *asker)
{
    struct run *r = context;
    must(line.length > 0 && line.length <= SIBLING_LINE_MAX && !r->has_asking && r->pending_count == 0);
    struct asking *asking = memory_new(sizeof(*asking));
    asking->run = r;
    r->asker = *asker;
    r->has_asking = true;
    r->has_ended = false;
    return asking;
}

static void
ask_resume(struct asking *asking)
{
    must(asking->run->has_asking && !asking->run->has_ended);
}

static void
ask_drop(struct asking **asking)
{
    must((*asking)->run->has_asking);
    (*asking)->run->has_asking = false;
    free(*asking);
    *asking = NULL;
}

static void
wake(void *context)
{
    must(context == the_run);
}

/* Lines of replies; ids in the order of the messages. */
static void
take_output(struct run *r)
{
    struct text rest = buffer_text(&r->server.out), line;
    must(rest.length == 0 || rest.at[rest.length - 1] == '\n');
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        struct id id;
        must(line.length >= 5 && line.at[line.length - 1] == '\r' && memchr(line.at, '\0', line.length) == NULL);
        line.length--;
        must(memchr(line.at, '\r', line.length) == NULL);
        must(text_is_digit(line.at[0]) && text_is_digit(line.at[2]) && (line.at[3] == ' ' || line.at[3] == '-'));
        if (text_starts(line, TEXT("250 2.0.0 ")) && id_parse(text_after(line, 10), &id)) {
            must(id.time_ms > r->said && id.time_ms <= r->ids);
            r->said = id.time_ms;
        }
    }
    buffer_clear(&r->server.out);
}

/* Work that goes on meanwhile. */
static void
pass(struct run *r)
{
    if (r->pending_count > 0 && chance(r, 3) == 0)
        answer(r, chance(r, (unsigned)r->pending_count));
    if (r->has_asking && !r->has_ended) {
        if (chance(r, 4) == 0) {
            r->has_ended = true;
            r->asker.end(r->asker.context);
        } else if (!r->asker.is_full(r->asker.context)) {
            r->asker.line(r->asker.context, text_of(long_line, chance(r, 64) == 0 ? sizeof(long_line) : chance(r, 100)));
        }
    }
    if (chance(r, 3) > 0)
        take_output(r);
    r->server.is_crowded = chance(r, 8) == 0;
    must(r->server.count <= PEER_SLOTS && r->server.messages <= SIBLING_UNANSWERED && r->server.out.length <= PEER_OUTPUT_MAX + 2 * PEER_LINE_MAX);
}

static void
say(struct run *r, struct text all)
{
    static const size_t widths[PIECES] = {1, 2, 7, 64, 700, 5000, 65536};
    size_t shown = 0;
    while (r->server.stage != PEER_OVER && (all.length > 0 || chance(r, 20) > 0)) {
        shown += widths[chance(r, PIECES)];
        struct text input = text_before(all, shown);
        size_t before = input.length;
        peer_server_go(&r->server, &input);
        all = text_after(all, before - input.length);
        shown = input.length;
        must(peer_server_wants(&r->server) || r->server.stage != PEER_NEW || r->server.is_crowded);
        pass(r);
        if (shown >= all.length && all.length > 0 && before == input.length && !r->server.is_crowded && r->pending_count == 0 && !r->has_asking)
            return; /* it waits for more */
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct run *r = the_run = memory_new(sizeof(*r));
    struct sibling_service service = {r, hello, greet, take, take_bytes, take_end, take_drop, take_ignore, ask, ask_resume, ask_drop};
    r->chance = data[1];
    r->refuses = data[0] & 1;
    r->is_prompt = data[0] & 2;
    r->is_unwelcome = (data[0] & 0x1c) == 0x1c;
    if ((data[0] & 0xe0) == 0xe0)
        service.take = NULL;
    if ((data[0] & 0xe0) == 0xc0)
        service.ask = NULL;
    if (long_line[0] == '\0')
        memset(long_line, 'j', sizeof(long_line));
    r->server.service = &service;
    r->server.content_max = 1 << 20;
    r->server.wake = wake;
    r->server.context = r;
    peer_server_start(&r->server);
    say(r, text_of(data + 2, size - 2));
    take_output(r);
    peer_server_stop(&r->server);
    must(!r->has_taking && !r->has_asking && r->pending_count == 0);
    free(r);
    return 0;
}
