/* Two hosts of a group in one process, without a network. */
#include "t/support/give_kit.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/support/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { PIECE = 700, SECTIONS_MAX = 80 * 1024 * 1024 };

struct kit_gift {
    struct kit_wire *wire;
    struct kit_host *host;
    struct sibling_gift gift;
    struct buffer sections;
    bool is_over, is_there; /* over: the other has it, and owes the answer; or there */
    enum sibling_answer answer;
    struct id there;
    struct outcome outcome;
    bool is_ignored;
    struct kit_gift *prev, *next;
};

static void
kit_enter(const struct kit_wire *wire, const struct kit_host *host)
{
    if (wire->enter != NULL)
        wire->enter(wire->context, host);
}

static struct kit_host *
kit_find(struct kit_wire *wire, const char *name)
{
    for (size_t i = 0; i < wire->host_count; i++)
        if (strcmp(wire->hosts[i].name, name) == 0)
            return &wire->hosts[i];
    return NULL;
}

static size_t
kit_sent(const struct kit_wire *wire, const struct kit_host *host)
{
    const struct kit_gift *x;
    size_t sent = 0;
    DL_FOREACH (wire->gifts, x)
        sent += host == NULL || x->host == host;
    return sent;
}

static bool
kit_has_room(void *context, const char *name, int64_t bytes)
{
    struct kit_wire *wire = context;
    const struct kit_host *host = kit_find(wire, name);
    return host != NULL && kit_sent(wire, host) < host->most &&
           (host->bytes_max == 0 || bytes <= host->bytes_max);
}

static void
kit_give(void *context, const char *name, const struct sibling_gift *gift)
{
    struct kit_wire *wire = context;
    struct kit_gift *x = memory_new(sizeof(*x));
    x->wire = wire;
    x->host = kit_find(wire, name);
    must(x->host != NULL);
    x->gift = *gift;
    buffer_init(&x->sections, SECTIONS_MAX);
    must(buffer_add(&x->sections, gift->sections));
    must(gift->message.sections == gift->sections.length);
    DL_APPEND(wire->gifts, x);
    size_t sent = kit_sent(wire, NULL);
    wire->sent_most = sent > wire->sent_most ? sent : wire->sent_most;
}

static void
kit_gift_free(struct kit_gift *x)
{
    if (x->is_over && x->host->take != NULL) {
        kit_enter(x->wire, x->host);
        x->host->service.take_ignore(x->host->service.context, x);
        kit_enter(x->wire, NULL);
    }
    DL_DELETE(x->wire->gifts, x);
    buffer_free(&x->sections);
    free(x);
}

/* Unsent bytes go: nobody can read them any more. */
static void
kit_ignore(void *context, void *callback_context)
{
    struct kit_wire *wire = context;
    struct kit_gift *x, *next;
    DL_FOREACH_SAFE (wire->gifts, x, next) {
        if (x->gift.context != callback_context)
            continue;
        x->is_ignored = true;
        if (!x->is_over)
            kit_gift_free(x);
    }
}

void
kit_wire_begin(struct kit_wire *wire, const char *own, struct loop *loop)
{
    *wire = (struct kit_wire){
        .own = own,
        .loop = loop,
        .calls = {.context = wire,
                  .has_room = kit_has_room,
                  .give = kit_give,
                  .ignore = kit_ignore}
    };
}

void
kit_wire_end(struct kit_wire *wire)
{
    while (wire->gifts != NULL)
        kit_gift_free(wire->gifts);
}

struct kit_host *
kit_wire_add(struct kit_wire *wire, const char *name)
{
    must(wire->host_count < GIVE_KIT_HOSTS);
    struct kit_host *host = &wire->hosts[wire->host_count++];
    *host =
        (struct kit_host){.name = name, .state = "running", .most = SIBLING_UNANSWERED};
    return host;
}

static const char *
kit_closed(void *context)
{
    const struct kit_host *host = context;
    return host->closed;
}

void
kit_host_start(struct kit_host *host, struct loop *loop, struct event_hub *events,
               struct manager *manager)
{
    host->loop = loop;
    host->manager = manager;
    host->take = take_new(&(struct take_setup){.loop = loop,
                                               .events = events,
                                               .manager = manager,
                                               .message_size_limit = 10 * 1024 * 1024,
                                               .closed = kit_closed,
                                               .context = host});
    take_serve(host->take, &host->service);
}

/* Those that wait for an answer get none: the connection breaks. */
void
kit_host_stop(struct kit_host *host)
{
    host->loop = NULL;
    take_free(&host->take);
}

void
kit_wire_siblings(void *context, bool (*each)(void *context, const struct sibling *s),
                  void *each_context)
{
    struct kit_wire *wire = context;
    for (size_t i = 0; i < wire->host_count; i++) {
        const struct kit_host *host = &wire->hosts[i];
        if (!each(each_context, &(struct sibling){.host = host->name,
                                                  .address = "",
                                                  .state = host->state,
                                                  .version = "",
                                                  .spool = "",
                                                  .is_lost = host->is_lost}))
            return;
    }
}

/* --- At the other host ------------------------------------------------------------ */

static void
kit_on_taken(void *context, struct id own, const struct outcome *refusal)
{
    struct kit_gift *x = context;
    x->there = own;
    x->is_there = true;
    x->answer = SIBLING_TAKEN;
    x->host->taken += refusal == NULL;
    if (refusal == NULL)
        return;
    x->outcome = *refusal;
    x->answer = refusal->verdict == VERDICT_DEFERRED ? SIBLING_LATER : SIBLING_REFUSED;
}

static void
kit_in_pieces(struct kit_host *host, struct taking *taking, struct text bytes)
{
    for (; bytes.length > 0; bytes = text_after(bytes, PIECE))
        host->service.take_bytes(taking, text_before(bytes, PIECE));
}

struct outcome
kit_offer(struct kit_host *host, const char *from,
          const struct sibling_message *message, struct text sections,
          struct text content, sibling_taken *taken, void *context)
{
    struct sibling_hello hello = {0};
    struct outcome refusal = {0};
    (void)text_copy(hello.host, sizeof(hello.host), text_from(from));
    struct taking *taking =
        host->service.take(host->service.context, &hello, message, &refusal);
    if (taking == NULL)
        return refusal;
    kit_in_pieces(host, taking, sections);
    kit_in_pieces(host, taking, content);
    if (taken != NULL)
        host->service.take_end(&taking, taken, context);
    else
        host->service.take_drop(&taking);
    return (struct outcome){0};
}

static struct buffer
kit_content(const struct kit_gift *x)
{
    struct buffer content;
    char piece[PIECE];
    int64_t at = 0, got = 0;
    buffer_init(&content, SECTIONS_MAX);
    while (at < x->gift.message.content &&
           (got = x->gift.read(x->gift.context, at, piece, sizeof(piece))) > 0) {
        must(buffer_add(&content, text_of(piece, (size_t)got)));
        at += got;
    }
    return content; /* shorter: the disk refuses it, and the connection breaks */
}

static void
kit_answer(struct kit_gift *x, enum sibling_answer answer)
{
    x->answer = answer;
    x->is_there = true;
}

static void
kit_transfer(struct kit_gift *x)
{
    struct kit_host *host = x->host;
    struct buffer content = kit_content(x);
    bool is_cut =
        host->weather == KIT_CUT || (int64_t)content.length < x->gift.message.content;
    kit_enter(x->wire, host);
    struct outcome refusal =
        kit_offer(host, x->wire->own, &x->gift.message, buffer_text(&x->sections),
                  buffer_text(&content), is_cut ? NULL : kit_on_taken, x);
    kit_enter(x->wire, NULL);
    x->outcome = refusal;
    if (is_cut)
        kit_answer(x, SIBLING_LOST);
    else if (refusal.code != 0)
        kit_answer(x, refusal.verdict == VERDICT_DEFERRED ? SIBLING_LATER
                                                          : SIBLING_REFUSED);
    buffer_free(&content);
}

static void
kit_refuse(struct kit_gift *x, const char *enhanced)
{
    x->outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 554, enhanced, "not here");
    kit_answer(x, SIBLING_REFUSED);
}

static void
kit_carry_one(struct kit_gift *x)
{
    struct kit_host *host = x->host;
    host->asked++;
    x->is_over = true;
    if (host->weather == KIT_CLOSED)
        kit_answer(x, SIBLING_LATER);
    else if (host->weather == KIT_REFUSING || host->weather == KIT_OLDER)
        kit_refuse(x, host->weather == KIT_OLDER ? "5.5.4" : "5.3.0");
    else if (host->loop == NULL)
        kit_answer(x, SIBLING_LOST);
    else
        kit_transfer(x);
}

static void
kit_tell(struct kit_gift *x)
{
    struct sibling_gift gift = x->gift;
    enum sibling_answer answer = x->answer;
    struct outcome outcome = x->outcome;
    struct id there = x->there;
    bool is_ignored = x->is_ignored;
    x->is_over = false;
    if (x->host->weather == KIT_SILENT)
        answer = SIBLING_LOST;
    kit_gift_free(x);
    if (!is_ignored)
        gift.given(gift.context, answer, there, &outcome);
}

bool
kit_wire_carry(struct kit_wire *wire)
{
    struct kit_gift *x, *next;
    bool some = false;
    DL_FOREACH_SAFE (wire->gifts, x, next) {
        if (x->host->weather == KIT_STUCK)
            continue;
        if (!x->is_over) {
            kit_carry_one(x);
            some = true;
        } else if (x->is_there || x->host->loop == NULL) {
            if (!x->is_there)
                x->answer = SIBLING_LOST;
            kit_tell(x);
            some = true;
        }
    }
    return some;
}
