/* The history, as `petrel trace` reads it. */
#include "t/roof/law_history.h"

#include "base/json_field.h"
#include "admin/history/trace.h"
#include "t/roof/host.h"
#include "t/roof/law_log.h"
#include "t/roof/roof.h"

#include <assert.h>
#include <string.h>

enum {
    EACH = 2,         /* lives each time */
    WRITTEN_MS = 1000 /* under load lines wait a little (history.h) */
};

static struct {
    unsigned next, compared;
    bool is_forgiven;
} law;

static bool
is_end(const char *type)
{
    static const char *const ends[] = {"delivered", "bounced", "expired", "discarded"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (strcmp(type, ends[i]) == 0)
            return true;
    return false;
}

static void
judge_rcpt(const struct model_rcpt *r, const json_t *events)
{
    char address[MODEL_ADDRESS_MAX];
    size_t index;
    unsigned ends = 0;
    const json_t *event;
    model_rcpt_address(r, address);
    json_array_foreach (events, index, event)
        ends += is_end(json_field_string(event, "type")) &&
                strcmp(json_field_string(event, "recipient"), address) == 0;
    if (ends != r->has_fate)
        roof_break("truth", r->message->id,
                   "the history has %u ends of m%ur%u, and the log %u", ends,
                   r->message->number, r->index, r->has_fate);
}

static void
judge_life(const struct model_message *m, const struct life *l, const json_t *life)
{
    const json_t *events = json_object_get(life, "events");
    if (life == NULL || roof_breaks("history"))
        roof_break("truth", m->id, "the history has nothing of m%u", m->number);
    if (json_field_is_true(life, "ended") != life_has_ended(l))
        roof_break("truth", m->id, "m%u has%s ended by the log, but not by the history",
                   m->number, life_has_ended(l) ? "" : " not");
    if (json_object_get(life, "more") != NULL)
        return;
    for (unsigned i = 0; i < m->rcpt_count; i++)
        if (m->rcpts[i].accepted && law_log_is_certain(&m->rcpts[i]))
            judge_rcpt(&m->rcpts[i], events);
}

static void
compare(const struct model_message *m)
{
    struct disk *spool;
    struct id id;
    const struct life *l = law_log_find(text_from(m->id));
    if (m->state != MODEL_ACKED || m->split != NULL || l == NULL || !life_is_whole(l) ||
        roof_now_ms() - life_last_ms(l) < WRITTEN_MS)
        return;
    law.compared++;
    bool is_id = id_parse(text_from(m->id), &id);
    assert(is_id);
    host_enter(&host);
    int result = disk_open(&spool, HOST_SPOOL, false);
    assert(result == 0);
    json_t *life = trace_life(spool, id);
    disk_close(&spool);
    host_leave();
    judge_life(m, l, life);
    json_decref(life);
}

void
law_history_compare(void)
{
    struct history_state state = history_state(host.daemon.history);
    bool may_be_full = state.bytes > state.size / 2; /* the oldest lines go */
    if (law.is_forgiven || may_be_full || state.paused || state.lost > 0)
        return;
    for (unsigned i = 0; i < EACH; i++)
        compare(model_at(law.next++ % model_count()));
}

void
law_history_forgive(void)
{
    law.is_forgiven = true;
}

unsigned
law_history_compared(void)
{
    return law.compared;
}
