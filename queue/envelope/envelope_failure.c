/* Failures of recipients, in memory and on disk. They are appended to bounce/ID, each with
 * a checksum of its own. */
#include "queue/envelope/envelope.h"

#include "base/crc.h"
#include "base/memory.h"
#include "queue/envelope/envelope_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char failure_title[] = "\nfailure ";

enum {
    CIRCUMSTANCE_EXPIRED = 1,
    CIRCUMSTANCE_RELAYED = 2,
    CIRCUMSTANCE_NOTIFIED = 4,
    CIRCUMSTANCES = 7
};

/* The second record of a recipient replaces the first: it says that the failure was
 * reported. */
void
envelope_fail(struct envelope *e, const struct failure *failure)
{
    assert(failure->recipient < e->count);
    unsigned n = e->delivery.failure_count;
    if (n > 0 && e->delivery.failures[n - 1].recipient == failure->recipient) {
        e->delivery.failures[n - 1] = *failure;
        return;
    }
    if ((n & (n - 1)) == 0) /* full at each power of two */
        e->delivery.failures = memory_resize(
            e->delivery.failures, (n > 0 ? 2 * n : 1) * sizeof(*e->delivery.failures));
    e->delivery.failures[n] = *failure;
    e->delivery.failure_count++;
}

static unsigned
circumstances_of(const struct failure *f)
{
    return (f->expired ? CIRCUMSTANCE_EXPIRED : 0U) |
           (f->relayed ? CIRCUMSTANCE_RELAYED : 0U) |
           (f->notified ? CIRCUMSTANCE_NOTIFIED : 0U);
}

void
envelope_write_failure(const struct envelope *e, const struct failure *f,
                       struct buffer *out)
{
    const struct outcome *o = &f->outcome;
    struct buffer payload;
    buffer_init(&payload, 4096);
    bool fits = buffer_format(&payload, "%u %u %u %u %u %zu %zu %zu:%s%s%s",
                              f->recipient, circumstances_of(f), (unsigned)o->verdict,
                              (unsigned)o->blame, (unsigned)(o->code > 0 ? o->code : 0),
                              strlen(o->enhanced), strlen(o->text), strlen(o->remote),
                              o->enhanced, o->text, o->remote);
    assert(fits);
    uint32_t crc = crc_add(envelope_crc_of_name(e->id), payload.at, payload.length);
    fits = buffer_format(out, "%s%zu %" PRIu32 ":", failure_title, payload.length, crc);
    assert(fits);
    fits = buffer_add(out, buffer_text(&payload)) && buffer_add_byte(out, '\n');
    assert(fits);
    buffer_free(&payload);
}

static bool
parse_failure(struct text payload, unsigned recipients, struct failure *f)
{
    struct reading r = {.all = payload, .end = payload.length};
    *f = (struct failure){0};
    f->recipient = (unsigned)envelope_take_number(&r, ' ', ENVELOPE_RECIPIENTS_MAX);
    uint64_t circumstances = envelope_take_number(&r, ' ', CIRCUMSTANCES);
    f->expired = (circumstances & CIRCUMSTANCE_EXPIRED) != 0;
    f->relayed = (circumstances & CIRCUMSTANCE_RELAYED) != 0;
    f->notified = (circumstances & CIRCUMSTANCE_NOTIFIED) != 0;
    f->outcome.verdict = (enum verdict)envelope_take_number(&r, ' ', VERDICT_FAILED);
    f->outcome.blame = (enum blame)envelope_take_number(&r, ' ', BLAME_DEMAND);
    f->outcome.code = (int)envelope_take_number(&r, ' ', 999);
    size_t enhanced =
        (size_t)envelope_take_number(&r, ' ', sizeof(f->outcome.enhanced) - 1);
    size_t text = (size_t)envelope_take_number(&r, ' ', sizeof(f->outcome.text) - 1);
    size_t remote =
        (size_t)envelope_take_number(&r, ':', sizeof(f->outcome.remote) - 1);
    text_copy(f->outcome.enhanced, sizeof(f->outcome.enhanced),
              envelope_take(&r, enhanced));
    text_copy(f->outcome.text, sizeof(f->outcome.text), envelope_take(&r, text));
    text_copy(f->outcome.remote, sizeof(f->outcome.remote), envelope_take(&r, remote));
    return !r.bad && r.at == r.end && f->recipient < recipients;
}

/* The size of the complete failure at the start of rest, or 0. */
static size_t
read_failure(struct text rest, const struct envelope *e, struct failure *f)
{
    struct reading r = {.all = rest, .end = rest.length};
    (void)envelope_take(&r, sizeof(failure_title) - 1);
    size_t length = (size_t)envelope_take_number(&r, ' ', 4096);
    uint64_t crc = envelope_take_number(&r, ':', UINT32_MAX);
    struct text payload = envelope_take(&r, length);
    if (!text_equal(envelope_take(&r, 1), TEXT("\n")) || r.bad ||
        crc_add(envelope_crc_of_name(e->id), payload.at, payload.length) != crc ||
        !parse_failure(payload, e->count, f))
        return 0;
    return r.at;
}

/* The text is durable no later than the D mark, which may be missing after a crash. */
static void
take_failure(struct envelope *e, const struct failure *f)
{
    envelope_fail(e, f);
    if (!e->recipients[f->recipient].done) {
        e->recipients[f->recipient].done = true;
        e->delivery.done++;
    }
}

/* An append that a crash cuts off leaves a part of a record, and later ones follow it.
 * So a damaged record is skipped, and the next title is searched. */
void
envelope_read_failures(struct text bytes, struct envelope *e)
{
    /* By recipient: where its failure stands, from 1. */
    unsigned *known = memory_array(e->count > 0 ? e->count : 1, sizeof(*known));
    for (unsigned i = 0; i < e->delivery.failure_count; i++)
        known[e->delivery.failures[i].recipient] = i + 1;
    for (;;) {
        struct failure f;
        const char *at = bytes.length == 0
                             ? NULL
                             : memmem(bytes.at, bytes.length, failure_title,
                                      sizeof(failure_title) - 1);
        if (at == NULL)
            break;
        bytes = text_after(bytes, (size_t)(at - bytes.at));
        size_t size = read_failure(bytes, e, &f);
        bytes = text_after(bytes, size > 0 ? size : 1);
        if (size == 0)
            continue;
        if (known[f.recipient] == 0) {
            take_failure(e, &f);
            known[f.recipient] = e->delivery.failure_count;
        } else if (f.notified) {
            e->delivery.failures[known[f.recipient] - 1].notified = true;
        }
    }
    free(known);
}
