/* Fuzz target: reports. Whatever comes, in any pieces: the result is the same, within its
 * limits, printable. */
#include "mime/report/reading.h"

#include "t/support/must.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct report_reader *
read_all(struct text t, size_t piece, const struct reading **out)
{
    struct report_reader *r = reading_new(TEXT("bounce+"), TEXT("X-Petrel-Return"));
    for (; t.length > 0; t = text_after(t, piece))
        reading_add(r, text_before(t, piece));
    *out = reading_end(r);
    return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct reading *whole, *parts;
    struct text t = text_of(data, size);
    struct report_reader *a = read_all(t, size + 1, &whole);
    struct report_reader *b = read_all(t, 7, &parts);
    must(whole->kind == parts->kind && whole->count == parts->count);
    must(whole->mark_count == parts->mark_count);
    must(strcmp(whole->stamp, parts->stamp) == 0);
    must(whole->count <= READING_RECIPIENTS_MAX &&
         whole->mark_count <= READING_MARKS_MAX);
    for (size_t i = 0; i < whole->count; i++) {
        const struct reading_recipient *r = &whole->recipients[i];
        must(!text_has_control(text_from(r->text)) && text_is_utf8(text_from(r->text)));
        must(!text_has_control(text_from(r->address)));
        must(memcmp(r, &parts->recipients[i], sizeof(*r)) == 0);
        must(whole->kind == READING_COMPLAINT || r->status[0] != '\0');
    }
    must(!text_has_control(text_from(whole->reporter)));
    reading_free(&a);
    reading_free(&b);
    return 0;
}
