/* No content of a message makes its journal look damaged. */
/* link: t/sim/disk*.c */
/* link: t/sim/loop.c */
#include "queue/journal/journal.h"

#include "t/support/slices_kit.h"

static struct kit kit;

static void
test_bytes(void)
{
    static const char *const one[] = {"a@x", NULL};
    static char bytes[2 * JOURNAL_BLOCK];
    unsigned damaged = 0, lost = 0;
    for (int byte = 0; byte < 256; byte++) {
        memset(bytes, byte, sizeof(bytes));
        sim_disk_reset();
        if (!slices_start(&kit, 1, 0, 16 * SEGMENT))
            abort();
        struct envelope *e =
            queue_kit_accept(&kit, kit_envelope("s@x", one), text_of(bytes, sizeof(bytes)));
        struct id id = e->id;
        envelope_free(&e);
        sim_disk_power_cut();
        kit_close(&kit);
        if (!slices_start(&kit, 1, 0, 16 * SEGMENT))
            abort();
        damaged += kit_logged(&kit, "damaged") || sim_disk_count("/spool/corrupt") > 0;
        e = queue_load(kit.queue, id);
        lost += e == NULL || !kit_content_is(&kit, e, text_of(bytes, sizeof(bytes)));
        envelope_free(&e);
        kit_close(&kit);
    }
    is_number(damaged, 0, "whole blocks of the same byte are no damage");
    is_number(lost, 0, "and come back");
}

int
main(void)
{
    test_bytes();
    sim_disk_reset();
    return done();
}
