/* Fuzz target: replies of the next hop. The same reply however it was cut, within its
 * limits, with no control byte; and what the server composes can be parsed. */
#include "smtp/reply.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Parses one reply of t, given in pieces; *used is what it took. */
static enum progress
parse(struct text t, size_t piece, struct reply *reply, size_t *used)
{
    enum progress progress = PROGRESS_MORE;
    struct text input = text_before(t, 0);
    reply_start(reply);
    while (progress == PROGRESS_MORE && input.at + input.length < t.at + t.length) {
        size_t left = (size_t)(t.at + t.length - (input.at + input.length));
        input.length += piece < left ? piece : left;
        progress = reply_parse(&input, reply);
    }
    *used = (size_t)(input.at - t.at);
    return progress;
}

static void
check_reply(const struct reply *r)
{
    struct text line, all = reply_text(r), parameters;
    unsigned at = 0, lines = 0;
    must(r->code >= 200 && r->code <= 599 && r->length <= REPLY_TEXT_MAX);
    must(strlen(r->text) == r->length && !text_has_control(all));
    must(strlen(r->enhanced) < REPLY_ENHANCED_MAX);
    must(r->enhanced[0] == '\0' || r->enhanced[0] == '0' + r->code / 100);
    while (reply_next_line(r, &at, &line)) {
        must(line.at >= all.at && line.at + line.length <= all.at + all.length);
        lines++;
    }
    must(lines == r->lines && lines > 0 && lines <= REPLY_LINES_MAX);
    if (reply_keyword(r, TEXT("SIZE"), &parameters))
        must(parameters.length <= all.length);
}

static void
check_composed(struct text t)
{
    struct buffer out;
    struct reply reply;
    size_t used;
    buffer_init(&out, 4096);
    reply_write_more(&out, 250, "2.0.0", "%.*s", TEXT_ARGS(t));
    reply_write(&out, 250, NULL, "%.*s", TEXT_ARGS(t));
    must(parse(buffer_text(&out), out.length, &reply, &used) == PROGRESS_DONE);
    must(used == out.length && reply.lines == 2 && reply.code == 250);
    buffer_free(&out);
}

/* The first byte is the size of the pieces. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct text t = text_of(data + 1, size - 1);
    check_composed(t);
    for (;;) {
        static struct reply whole, cut;
        size_t used, used_cut;
        enum progress progress = parse(t, t.length, &whole, &used);
        must(parse(t, (size_t)data[0] + 1, &cut, &used_cut) == progress);
        if (progress != PROGRESS_DONE)
            return 0;
        must(used == used_cut && used > 0);
        check_reply(&whole);
        must(whole.code == cut.code && strcmp(whole.text, cut.text) == 0 &&
             strcmp(whole.enhanced, cut.enhanced) == 0);
        t = text_after(t, used);
        if (t.length == 0)
            return 0;
    }
}
