/* Content of which a bit has rotted. */
#include "t/roof/audit.h"

#include "t/roof/audit_internal.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/operator.h"
#include "t/roof/roof.h"
#include "t/roof/world.h"
#include "t/sim/sim_disk.h"

#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 512, SLOW_REPLY_MS = 5000, SETTLED_MS = 10 * 1000 };

static struct {
    const struct model_message *message;
    bool has_journal; /* it was damaged on purpose */
    unsigned files;
} rotten;

/* A bit of the message's content rots in every file that has it. */
static void
rot(void)
{
    const struct model_message *m = rotten.message;
    char path[LINE_SIZE], mark[LINE_SIZE];
    unsigned count = 0;
    snprintf(mark, sizeof(mark), "X-Roof: m%u\r\n", m->number);
    snprintf(path, sizeof(path), HOST_SPOOL "/mess/%s", m->id);
    for (int i = -1; i < 64; i++) {
        if (i >= 0)
            snprintf(path, sizeof(path), HOST_SPOOL "/journal/0000-%04u/%04d",
                     ID_SLICES_MAX - 1, i);
        struct text bytes = sim_disk_content(path);
        const char *at = bytes.length > 0
                             ? memmem(bytes.at, bytes.length, mark, strlen(mark))
                             : NULL;
        if (at == NULL)
            continue;
        count += sim_disk_damage(path, (size_t)(at - bytes.at) + strlen(mark) + 8);
        rotten.has_journal = rotten.has_journal || i >= 0;
    }
    rotten.files = count;
    roof_note("disk: the content of m%u rots in %u files", m->number, count);
}

bool
audit_has_damaged(void)
{
    return rotten.has_journal;
}

/* Damaged mail is never delivered: it is set aside, and the operator removes it. */
void
audit_rot(void)
{
    struct hop_mood good = {0}, refusing = {.rcpt = 1000},
                    slow = {.reply_ms = SLOW_REPLY_MS};
    bool young = roof_chance(500); /* still in the journal, if there is one */
    world_set_moods(young ? &slow : &refusing);
    audit_give_to_first(1);
    struct model_message *m = model_at(model_count() - 1);
    rotten.message = m;
    if (world_is_dense()) /* the last batch of a journal may be torn, with no word */
        audit_give_to_first(1);
    (void)world_run_for(young ? 1000 : SETTLED_MS, NULL);
    m->rcpts[0].may_vanish = true;
    rotten.files = 0;
    size_t before = sim_disk_count(HOST_SPOOL "/corrupt");
    world_restart_with(young, rot);
    world_set_moods(&good);
    (void)world_run_for(audit_longest_ms(), NULL);
    if (world_is_dense() && rotten.files > 0 &&
        sim_disk_count(HOST_SPOOL "/corrupt") == before)
        roof_break("truth", m->id, "m%u has rotted, and nothing of it is in corrupt/",
                   m->number);
    operator_order("rm", m);
    (void)world_run_for(SETTLED_MS, NULL);
}
