/* Questions that need luck, once more, or in a run of their own, again and again. They come
 * last, and with chance of their own, so that runs that are known keep their course. */
#include "t/roof/audit.h"

#include "t/roof/audit_internal.h"
#include "t/roof/editor.h"
#include "t/roof/plan.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"
#include "t/sim/sim_disk.h"

enum { LEAST_JOURNAL = 1 << 20, NOTES = 3, DRILLS = 16 };

static void
begin_again(void)
{
    editor_set("delay_warning_time", "");
    editor_set_journal(roof_below(4) == 0 ? 0 : LEAST_JOURNAL);
    world_set_route("");
    world_restart(false);
    sim_disk_settle(); /* what was quarantined and removed does not come back */
}

void
audit_again(void)
{
    static void (*const questions[])(void) = {audit_failed_flood,  audit_torn_batches,
                                              audit_refused_moves, audit_removed_files,
                                              audit_failures,      audit_moves,
                                              audit_removals};
    uint64_t outer = roof_exchange_stream(roof_fork("again"));
    begin_again();
    for (unsigned i = 0; i < NOTES; i++)
        audit_note();
    for (unsigned i = 0; i < sizeof(questions) / sizeof(*questions); i++)
        if (roof_chance(500))
            questions[i]();
    (void)roof_exchange_stream(outer);
}

void
audit_drill(void)
{
    static void (*const questions[])(void) = {
        audit_turned_away,   audit_occupied,
        audit_failed_sync,   audit_refused_removals,
        audit_failed_flood,  audit_torn_batches,
        audit_refused_moves, audit_removed_files,
        audit_failures,      audit_moves,
        audit_removals,      audit_note,
        audit_disk,          audit_order,
        audit_results,       audit_sites};
    /* The first ones are asked nowhere else. */
    enum { OWN = 4, QUESTIONS = sizeof(questions) / sizeof(*questions) };
    for (unsigned i = 0; i < DRILLS; i++) {
        if (!plan_takes("drill", i))
            continue;
        plan_enter("drill", i);
        begin_again();
        questions[i < 2 * OWN ? i % OWN : roof_below(QUESTIONS)]();
        plan_leave();
    }
}
