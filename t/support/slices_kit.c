/* Daemons of slices on one simulated disk, and the mail of one that died. */
#include "t/support/slices_kit.h"
#include "queue/queue_operator.h"

bool
slices_start(struct kit *k, unsigned slices, unsigned slice, int64_t journal_size)
{
    struct queue_settings settings = {.spool = "/spool",
                                      .slices = slices,
                                      .slice = slice,
                                      .journal_size = journal_size,
                                      .journal_segment = SEGMENT,
                                      .journal_message_max = 8192};
    if (kit_open_with(k, &settings) != 0)
        return false;
    sim_loop_advance(k->loop, 10);
    return true;
}

struct text
dead_content(unsigned message)
{
    static char bytes[LARGE];
    memset(bytes, 'a' + (int)message, sizeof(bytes));
    return text_of(bytes, message == 1 ? LARGE : 500);
}

static void
dead_work(struct dead *d, struct kit *k)
{
    static const char *const three[] = {"a@x", "b@x", "c@x", NULL};
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct envelope *e = queue_kit_accept(k, kit_envelope("s@x", three), dead_content(i));
        d->ids[i] = e->id;
        struct failure failure = {
            .recipient = 1,
            .expired = false,
            .outcome = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no")};
        if (i == 2) {
            queue_settle(k->queue, e, 0, NULL);
            queue_settle(k->queue, e, 1, &failure);
        }
        if (i == 3)
            (void)queue_hold(k->queue, e, "for a test", true);
        if (i == 4)
            queue_retire(k->queue, &e);
        else
            envelope_free(&e);
        sim_loop_advance(k->loop, 200);
    }
}

void
dead_make(struct dead *d, unsigned slices, unsigned slice)
{
    struct kit k;
    sim_disk_reset();
    if (!slices_start(&k, slices, slice, 4 * SEGMENT))
        abort();
    dead_work(d, &k);
    sim_disk_restart();
    kit_close(&k);
}

unsigned
dead_check(const struct dead *d, struct kit *k, unsigned slices, unsigned slice)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        bool ours = id_slice(d->ids[i], slices) == slice;
        bool wanted = ours && i != 3 && i != 4;
        if ((kit_entry(k, d->ids[i]) != NULL) != wanted) {
            printf("# message %u: %s found\n%.*s", i, wanted ? "not" : "wrongly",
                   TEXT_ARGS(buffer_text(&k->lines)));
            wrong++;
        }
        if (!wanted)
            continue;
        struct envelope *e = queue_load(k->queue, d->ids[i]);
        wrong += e == NULL || !kit_content_is(k, e, dead_content(i));
        if (e != NULL && i == 2)
            wrong += e->delivery.done != 2 || e->delivery.failure_count != 1 || e->recipients[2].done;
        envelope_free(&e);
    }
    return wrong;
}

void
on_adopted(void *context, const char *error, unsigned messages)
{
    struct answer *a = context;
    a->count++;
    a->messages = messages;
    snprintf(a->error, sizeof(a->error), "%s", error ? error : "");
}

void
slices_begin(struct kit *k, struct dead *d)
{
    dead_make(d, 2, 1);
    if (!slices_start(k, 2, 0, 4 * SEGMENT))
        abort();
}
