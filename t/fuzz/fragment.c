/* Fuzz target: the recognition of fragments. The result keeps the rules, does not
 * depend on the body, and is the same once more. */
#include "defrag/reassembly/fragment.h"

#include "base/buffer.h"
#include "mime/header.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_good(struct text message, const struct fragment_envelope *envelope,
           const struct fragment_reading *r)
{
    struct header_scan scan;
    must(r->number >= 1 && r->number <= envelope->parts_max);
    must(r->total == 0 || (r->total >= r->number && r->total <= envelope->parts_max));
    must(r->id_length >= 1 && r->id_length <= FRAGMENT_ID_MAX);
    must(envelope->sender.length > 0 && !envelope->binary && r->body <= message.length);
    /* A scan of the stream sees the same header. */
    header_scan_start(&scan);
    header_scan_add(&scan, message);
    must(!scan.headless && scan.composite && scan.length <= r->body);
    must(r->body - scan.length <= 2);
}

/* The first byte: bits of the envelope. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct fragment_envelope envelope = {
        .sender = (data[0] & 3) != 0 ? TEXT("s@o.example") : TEXT(""),
        .binary = (data[0] & 12) == 12,
        .parts_max = (data[0] & 16) != 0 ? 100000 : 10};
    struct text message = text_of(data + 1, size - 1);
    struct fragment_reading r, again;
    fragment_read(message, &envelope, &r);
    must(r.kind != FRAGMENT_MALFORMED || r.why != NULL);
    must(r.kind == FRAGMENT_GOOD || (r.number == 0 && r.id_length == 0));
    if (r.kind != FRAGMENT_GOOD)
        return 0;
    check_good(message, &envelope, &r);
    fragment_read(text_before(message, r.body), &envelope, &again);
    must(again.kind == r.kind && again.body == r.body && again.number == r.number);
    must(again.total == r.total && text_equal(fragment_id(&again), fragment_id(&r)));
    return 0;
}
