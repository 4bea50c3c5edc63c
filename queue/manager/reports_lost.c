/* Remembers a notification that reached nobody, neither the sender nor postmaster. */
#include "base/memory.h"
#include "queue/manager/manager_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define REPORTS_LOST_MS (INT64_C(24) * 60 * 60 * 1000)

struct reports_lost {
    int64_t last_ms; /* monotonic */
    unsigned count;
    char text[OUTCOME_TEXT_MAX + ID_LENGTH + 16];
};

void
reports_lost_note(struct manager *m, const struct envelope *e, const char *why)
{
    char id[ID_LENGTH + 1];
    if (m->reports_lost == NULL)
        m->reports_lost = memory_new(sizeof(*m->reports_lost));
    struct reports_lost *lost = m->reports_lost;
    lost->last_ms = loop_monotonic_ms(m->loop);
    lost->count++;
    id_format(e->id, id);
    snprintf(lost->text, sizeof(lost->text), "%s, %s", id, why);
}

void
reports_lost_end(struct manager *m, const struct envelope *e)
{
    if (e->sender.length == 0) {
        free(m->reports_lost);
        m->reports_lost = NULL;
    }
}

const char *
manager_report_lost(const struct manager *m, unsigned *count)
{
    const struct reports_lost *lost = m->reports_lost;
    if (lost == NULL || loop_monotonic_ms(m->loop) - lost->last_ms >= REPORTS_LOST_MS)
        return NULL;
    *count = lost->count;
    return lost->text;
}
