/* The commands of the peer door, and the order of replies. */
#include "smtp/peer/peer_server.h"

#include "smtp/line.h"
#include "smtp/peer/peer_hello.h"
#include "smtp/reply.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Replies ------------------------------------------------------------------------ */

static struct peer_slot *
peer_server_slot(struct peer_server *s)
{
    assert(s->count < PEER_SLOTS); /* peer_server_wants() */
    struct peer_slot *slot = &s->slots[(s->first + s->count++) % PEER_SLOTS];
    *slot = (struct peer_slot){.server = s};
    return slot;
}

static void
peer_server_drop_slot(struct peer_server *s)
{
    struct peer_slot *slot = &s->slots[s->first];
    free(slot->reply);
    *slot = (struct peer_slot){.server = NULL};
    s->first = (s->first + 1) % PEER_SLOTS;
    s->count--;
}

static void
peer_server_put(struct peer_server *s, struct text bytes)
{
    if (!buffer_add(&s->out, bytes))
        s->stage = PEER_OVER; /* peer_server_wants() and is_full() keep it from that */
}

static void
peer_server_flush(struct peer_server *s)
{
    while (s->count > 0 && s->slots[s->first].reply != NULL) {
        peer_server_put(s, text_from(s->slots[s->first].reply));
        peer_server_drop_slot(s);
    }
    if (s->stage == PEER_QUIT && s->count == 0)
        s->stage = PEER_OVER;
}

static void
peer_server_answer(struct peer_slot *slot, int code, const char *enhanced,
                   const char *text)
{
    struct buffer line;
    struct peer_server *s = slot->server;
    assert(slot->reply == NULL);
    buffer_init(&line, PEER_LINE_MAX);
    reply_write(&line, code, enhanced, "%s", text);
    slot->reply = text_string(buffer_text(&line));
    buffer_free(&line);
    if (slot->is_message) {
        s->messages--;
        s->message_bytes -= slot->bytes;
    }
}

static void
peer_server_say(struct peer_server *s, int code, const char *enhanced, const char *text)
{
    peer_server_answer(peer_server_slot(s), code, enhanced, text);
}

void
peer_server_close(struct peer_server *s, const char *enhanced, const char *why)
{
    if (s->stage == PEER_OVER)
        return;
    reply_write(&s->out, 421, enhanced, "%s", why);
    s->stage = PEER_OVER;
}

/* 421 is about the connection, never about a message. */
static void
peer_server_refuse(struct peer_slot *slot, const struct outcome *refusal)
{
    bool is_reply =
        refusal->code >= 400 && refusal->code <= 599 && refusal->code != 421;
    slot->server->refused++;
    peer_server_answer(slot, is_reply ? refusal->code : 451,
                       is_reply ? refusal->enhanced : "4.3.0", refusal->text);
}

/* --- Commands ----------------------------------------------------------------------- */

static void
peer_server_blame(struct peer_server *s, int code, const char *enhanced,
                  const char *text)
{
    if (++s->errors > PEER_ERRORS_MAX)
        peer_server_close(s, "4.7.0", "too many errors");
    else
        peer_server_say(s, code, enhanced, text);
}

static void
on_peer_hello(struct peer_server *s, struct text arguments)
{
    struct sibling_hello caller, own = {.run_ms = 0};
    struct outcome refusal = {.code = 0};
    struct buffer json;
    struct text version;
    if (!text_word(&arguments, " ", &version) || !text_equal(version, TEXT("1"))) {
        peer_server_say(s, 554, "5.5.4", "this version of the protocol is not known");
        s->stage = PEER_QUIT;
        return;
    }
    if (!peer_hello_read(text_trim(arguments), &caller)) {
        peer_server_say(s, 501, "5.5.4", "who are you?");
        s->stage = PEER_QUIT;
        return;
    }
    if (!s->service->greet(s->service->context, &caller, &refusal)) {
        s->refused++;
        peer_server_say(s, refusal.code >= 400 ? refusal.code : 554,
                        refusal.code >= 400 ? refusal.enhanced : "5.7.1", refusal.text);
        s->stage = PEER_QUIT;
        return;
    }
    s->service->hello(s->service->context, &own);
    s->caller = caller;
    s->caller.heard_ms = own.heard_ms;
    s->stage = PEER_READY;
    buffer_init(&json, PEER_HELLO_MAX + 1);
    if (peer_hello_write(&own, &json) && buffer_add_byte(&json, '\0'))
        peer_server_say(s, 250, NULL, json.at);
    else
        peer_server_close(s, "4.3.0", "cannot say who I am");
    buffer_free(&json);
}

static bool
peer_server_crc(struct text word, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < word.length; i++) {
        int digit = text_hex_digit(word.at[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    return word.length == 8;
}

/* False: where the bytes of the message end is not known. */
static bool
peer_server_read_give(struct text *arguments, struct sibling_message *out)
{
    struct text id, sections, content, crc;
    uint64_t size, length;
    if (!text_word(arguments, " ", &id) || !text_word(arguments, " ", &sections) ||
        !text_word(arguments, " ", &content) || !text_word(arguments, " ", &crc) ||
        !id_parse(id, &out->id) || !peer_server_crc(crc, &out->crc) ||
        !text_number(sections, SIBLING_SECTIONS_MAX, &size) ||
        !text_number(content, INT64_MAX / 2, &length))
        return false;
    out->sections = (size_t)size;
    out->content = (int64_t)length;
    return size > 0;
}

static struct taking *
peer_server_take(struct peer_server *s, const struct sibling_message *message,
                 bool has_more, struct outcome *refusal)
{
    struct taking *taking = NULL;
    if (has_more)
        outcome_refuse(refusal, 554, "5.5.4", "a parameter is not known here");
    else if (message->content > s->content_max)
        outcome_refuse(refusal, 552, "5.3.4",
                       "the message is larger than this host "
                       "takes (message_size_limit)");
    else if (s->service->take == NULL)
        outcome_refuse(refusal, 451, "4.3.2", "this host takes no mail of others");
    else
        taking = s->service->take(s->service->context, &s->caller, message, refusal);
    return taking;
}

static void
on_peer_give(struct peer_server *s, struct text arguments)
{
    struct sibling_message message;
    struct outcome refusal = {.code = 0};
    if (!peer_server_read_give(&arguments, &message)) {
        peer_server_close(s, "4.5.4", "XGIVE ID SECTIONS CONTENT CRC32C");
        return;
    }
    uint64_t bytes = message.sections + (uint64_t)message.content;
    if (s->messages == SIBLING_UNANSWERED ||
        (s->messages > 0 && s->message_bytes + bytes > SIBLING_UNANSWERED_BYTES)) {
        peer_server_close(s, "4.7.0", "too much is unanswered");
        return;
    }
    s->slot = peer_server_slot(s);
    s->slot->is_message = true;
    s->slot->bytes = bytes;
    s->messages++;
    s->message_bytes += bytes;
    s->left = bytes;
    s->stage = PEER_TAKING;
    s->taking =
        peer_server_take(s, &message, text_trim(arguments).length > 0, &refusal);
    if (s->taking != NULL)
        return;
    peer_server_refuse(s->slot, &refusal);
    s->slot = NULL;
}

static void
on_peer_ask(struct peer_server *s, struct text arguments)
{
    uint64_t bytes;
    struct text word;
    if (!text_word(&arguments, " ", &word) || arguments.length > 0 ||
        !text_number(word, SIBLING_LINE_MAX, &bytes) || bytes == 0) {
        peer_server_close(s, "4.5.4", "XASK BYTES");
        return;
    }
    s->left = bytes;
    s->stage = PEER_LINE;
}

static void
on_peer_noop(struct peer_server *s, struct text arguments)
{
    (void)arguments;
    peer_server_say(s, 250, "2.0.0", "here");
}

static void
on_peer_quit(struct peer_server *s, struct text arguments)
{
    (void)arguments;
    peer_server_say(s, 221, "2.0.0", "goodbye");
    s->stage = PEER_QUIT;
}

static const struct peer_command {
    struct text verb;
    unsigned legal; /* stages in which it may come; otherwise 503 */
    bool has_bytes; /* behind its line */
    void (*run)(struct peer_server *s, struct text arguments);
} peer_commands[] = {
    {TEXT("XPEER"), PEER_NEW,              false, on_peer_hello},
    {TEXT("XGIVE"), PEER_READY,            true,  on_peer_give },
    {TEXT("XASK"),  PEER_READY,            true,  on_peer_ask  },
    {TEXT("NOOP"),  PEER_READY,            false, on_peer_noop },
    {TEXT("QUIT"),  PEER_NEW | PEER_READY, false, on_peer_quit },
};

/* The next input may be its bytes, as of a later version's verb: they are no
 * commands. */
static void
peer_server_refuse_bytes(struct peer_server *s, int code, const char *text)
{
    peer_server_say(s, code, "5.5.1", text);
    s->stage = PEER_QUIT;
}

static void
peer_server_command(struct peer_server *s, struct text line)
{
    static const char early[] = "not now: XPEER comes first, and once",
                      unknown[] = "not known at this door";
    struct text verb = TEXT("");
    (void)!text_cut(&line, ' ', &verb);
    for (size_t i = 0; i < sizeof(peer_commands) / sizeof(peer_commands[0]); i++) {
        const struct peer_command *command = &peer_commands[i];
        if (!text_equal_nocase(verb, command->verb))
            continue;
        if ((command->legal & s->stage) != 0)
            command->run(s, line);
        else if (command->has_bytes)
            peer_server_refuse_bytes(s, 503, early);
        else
            peer_server_blame(s, 503, "5.5.1", early);
        return;
    }
    if (verb.length > 0 && (verb.at[0] == 'X' || verb.at[0] == 'x'))
        peer_server_refuse_bytes(s, 500, unknown);
    else
        peer_server_blame(s, 500, "5.5.1", unknown);
}

static bool
peer_server_read_line(struct peer_server *s, struct text *input)
{
    struct text line;
    enum line_fault fault;
    switch (line_next(input, PEER_LINE_MAX, &line, &fault)) {
    case PROGRESS_MORE:
        return false;
    case PROGRESS_BAD:
        peer_server_close(s, "4.5.2", "this is no line of a command");
        return false;
    case PROGRESS_DONE:
        peer_server_command(s, line);
        return true;
    }
    return false;
}

/* --- Messages ----------------------------------------------------------------------- */

static void
on_peer_taken(void *context, struct id own, const struct outcome *refusal)
{
    struct peer_slot *slot = context;
    struct peer_server *s = slot->server;
    if (refusal != NULL) {
        peer_server_refuse(slot, refusal);
    } else {
        s->taken++;
        peer_server_answer(slot, 250, "2.0.0", ID_TEXT(own));
    }
    peer_server_flush(s);
    s->wake(s->context);
}

/* The slot stays where it is in the ring until it is answered. */
static bool
peer_server_read_message(struct peer_server *s, struct text *input)
{
    struct text bytes =
        text_before(*input, s->left < SIZE_MAX ? (size_t)s->left : SIZE_MAX);
    *input = text_after(*input, bytes.length);
    s->left -= bytes.length;
    if (s->taking != NULL && bytes.length > 0)
        s->service->take_bytes(s->taking, bytes);
    if (s->left > 0)
        return false;
    struct peer_slot *slot = s->slot;
    s->slot = NULL;
    s->stage = PEER_READY;
    if (s->taking != NULL)
        s->service->take_end(&s->taking, on_peer_taken, slot);
    return true;
}

/* --- Questions ---------------------------------------------------------------------- */

static void
on_peer_answer_line(void *context, struct text json)
{
    struct peer_server *s = context;
    if (s->stage != PEER_ASKING || s->is_long)
        return;
    s->answered += json.length;
    if (json.length > SIBLING_LINE_MAX || s->answered > SIBLING_ANSWER_MAX ||
        s->out.length + json.length + PEER_LINE_MAX > PEER_OUTPUT_MAX ||
        line_run(json) < json.length) {
        s->is_long = true;
        return;
    }
    peer_server_put(s, TEXT("250-"));
    peer_server_put(s, json);
    peer_server_put(s, TEXT("\r\n"));
    s->wake(s->context);
}

static void
on_peer_answer_end(void *context)
{
    struct peer_server *s = context;
    s->has_ended = true;
    s->wake(s->context);
}

static bool
peer_server_is_full(const struct peer_server *s)
{
    return s->is_crowded || s->out.length > PEER_OUTPUT_MAX / 2;
}

static bool
on_peer_answer_is_full(void *context)
{
    struct peer_server *s = context;
    if (!peer_server_is_full(s))
        return false;
    s->has_paused = true;
    return true;
}

static void
peer_server_ask(struct peer_server *s)
{
    const struct sibling_asker asker = {on_peer_answer_line, on_peer_answer_end,
                                        on_peer_answer_is_full, s};
    s->asked++;
    s->has_asked = true;
    s->has_ended = s->is_long = s->has_paused = false;
    s->answered = 0;
    s->asking = s->service->ask(s->service->context, buffer_text(&s->line), &asker);
    assert(s->asking != NULL);
}

/* Its lines may be many, so they are not kept: all before it is answered first. True: the
 * next command may come. */
static bool
peer_server_go_on_asking(struct peer_server *s)
{
    if (s->count > 0)
        return false;
    if (!s->has_asked && s->service->ask != NULL) {
        peer_server_ask(s);
        return false;
    }
    if (s->has_asked && !s->has_ended) {
        if (s->has_paused && !peer_server_is_full(s)) {
            s->has_paused = false;
            s->service->ask_resume(s->asking);
        }
        return false;
    }
    if (s->has_asked)
        s->service->ask_drop(&s->asking);
    buffer_free(&s->line);
    s->stage = PEER_READY;
    if (!s->has_asked)
        peer_server_say(s, 502, "5.5.1", "this host answers no questions");
    else if (s->is_long)
        peer_server_say(s, 451, "4.5.3", "the answer is too long");
    else
        peer_server_say(s, 250, NULL, "end");
    s->has_asked = s->has_ended = false;
    return true;
}

static bool
peer_server_read_question(struct peer_server *s, struct text *input)
{
    struct text bytes = text_before(*input, (size_t)s->left);
    bool added = buffer_add(&s->line, bytes);
    assert(added); /* on_peer_ask() */
    *input = text_after(*input, bytes.length);
    s->left -= bytes.length;
    if (s->left > 0)
        return false;
    s->stage = PEER_ASKING;
    return true;
}

/* --- The whole ---------------------------------------------------------------------- */

void
peer_server_start(struct peer_server *s)
{
    s->stage = PEER_NEW;
    buffer_init(&s->out, PEER_OUTPUT_MAX + 2 * PEER_LINE_MAX);
    buffer_init(&s->line, SIBLING_LINE_MAX);
}

bool
peer_server_wants(const struct peer_server *s)
{
    return (s->stage & (PEER_NEW | PEER_READY | PEER_TAKING | PEER_LINE)) != 0 &&
           !peer_server_is_full(s) && s->count < PEER_SLOTS;
}

/* True: something has changed, and there may be more to do. */
static bool
peer_server_step(struct peer_server *s, struct text *input)
{
    switch (s->stage) {
    case PEER_NEW:
    case PEER_READY:
        return peer_server_wants(s) && peer_server_read_line(s, input);
    case PEER_TAKING:
        return peer_server_wants(s) && peer_server_read_message(s, input);
    case PEER_LINE:
        return peer_server_wants(s) && peer_server_read_question(s, input);
    case PEER_ASKING:
        return peer_server_go_on_asking(s);
    case PEER_QUIT:
    case PEER_OVER:
        return false;
    }
    return false;
}

void
peer_server_go(struct peer_server *s, struct text *input)
{
    do
        peer_server_flush(s);
    while (peer_server_step(s, input));
    peer_server_flush(s);
}

void
peer_server_stop(struct peer_server *s)
{
    if (s->taking != NULL)
        s->service->take_drop(&s->taking);
    if (s->asking != NULL)
        s->service->ask_drop(&s->asking);
    for (; s->count > 0; peer_server_drop_slot(s)) {
        struct peer_slot *slot = &s->slots[s->first];
        /* That of s->slot has not been given to the service. */
        if (slot->reply == NULL && slot != s->slot)
            s->service->take_ignore(s->service->context, slot);
    }
    s->slot = NULL;
    buffer_free(&s->out);
    buffer_free(&s->line);
    s->stage = PEER_OVER;
}
