/* The slot of info/ID that is overwritten in place, with an age of the last warning. */
#include "queue/envelope/envelope.h"

#include "t/support/tap.h"

#include <string.h>

TEST(warned)
{
    struct envelope e = {.id = {1000, 77}}, head = {0};
    char start[ENVELOPE_DUE_OFFSET + ENVELOPE_DUE_SIZE] = "petrel-info   1";
    char *slot = start + ENVELOPE_DUE_OFFSET;
    static const int64_t ages[] = {1, 35, 36, 14400, 86401, 60466175, INT64_MAX};
    bool same = true;
    e.delivery.due_ms = 1760000000000;
    for (size_t i = 0; i < 2 * sizeof(ages) / sizeof(*ages); i++) {
        e.delivery.released = i % 2;
        e.delivery.attempts = i % 2 ? 46655 : 70000;
        e.delivery.warned_s = ages[i / 2];
        envelope_write_due(&e, slot);
        envelope_read_due(text_of(start, sizeof(start)), e.id, &head);
        same = same && head.delivery.due_ms == 1760000000000 &&
               head.delivery.attempts == 46655 &&
               head.delivery.released == e.delivery.released &&
               head.delivery.warned_s == (ages[i / 2] < 60466175 ? ages[i / 2] : 60466175) &&
               head.delivery.warned_kept_s == head.delivery.warned_s;
    }
    ok_named(same, "an age of the last warning comes back, with fewer attempts");
    e.delivery.released = false;
    e.delivery.attempts = 35 * 36 + 35;
    e.delivery.warned_s = 14400; /* b40 */
    envelope_write_due(&e, slot);
    is_text(text_of(slot, 23), TEXT("01760000000000-0zz00b40"), "as the manual says");
    slot[20] = 'B';
    envelope_read_due(text_of(start, sizeof(start)), e.id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.warned_s == 0, "nothing else does");
    slot[20] = 'c';
    envelope_read_due(text_of(start, sizeof(start)), e.id, &head);
    ok_named(head.delivery.due_ms == 0 && head.delivery.warned_s == 14400 + 36 * 36,
             "a torn one means now, and that the sender was warned");
}
