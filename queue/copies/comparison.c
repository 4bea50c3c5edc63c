/* Our own copies, when we have found them again: what others have adopted ends here; what is
 * there and not here is removed or taken back. The keeper stores again what is here and not there.
 *
 * Whether our disk has forgotten a message, or it has ended, says a number. Batches rise by
 * one, each copy has that of its batch, and lock/copies has one up to which the messages of
 * all batches were durable on our disk. It is written behind them, so it is never too high,
 * also on a disk that was restored from a snapshot, after a power cut, or without a journal.
 * Where it is too low a message may be taken back that had ended in the moments before. A copy
 * up to that number whose message is not here has ended. */
#include "queue/copies/adoption_internal.h"

#include "base/log/log.h"
#include "queue/manager/manager.h"
#include "queue/queue_operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX = 1 << 20 };
enum { READ_A_TURN = 1 << 20, READ_MS = 10 };

static const char comparison_file[] = "copies";

/* --- The number ---------------------------------------------------------------------- */

/* Copies that were made under another name of the group: nobody there has our mail. */
static void
comparison_judge_group(const struct adoption *a, struct text group)
{
    if (!text_equal(group, copies_key_group(a->setup.settings)))
        log_say(
            a->setup.log, LOG_LEVEL_WARNING, "copies", NULL,
            "the group of the copies was %.*s: those that are left there, of %s, are "
            "for you to remove (doc/cluster.md)",
            TEXT_ARGS(group), a->name);
}

static bool
comparison_write_bound(const struct adoption *a, uint64_t bound)
{
    char lines[24 + GROUP_HOST_MAX + 1];
    snprintf(lines, sizeof(lines), "%" PRIu64 "\n%.*s\n", bound,
             TEXT_ARGS(copies_key_group(a->setup.settings)));
    return manager_hint_write(a->setup.manager, comparison_file, text_from(lines)) == 0;
}

void
comparison_read_bound(struct adoption *a)
{
    struct buffer text;
    struct text line;
    uint64_t bound = 0;
    buffer_init(&text, FILE_MAX);
    if (manager_hint_read(a->setup.manager, comparison_file, &text) >= 0) {
        struct text rest = buffer_text(&text);
        /* A line without an end was cut off. */
        if (text_find(rest, '\n') != TEXT_NONE && text_cut(&rest, '\n', &line) &&
            text_number(line, UINT64_MAX, &bound)) {
            a->bound = bound;
            if (text_cut(&rest, '\n', &line))
                comparison_judge_group(a, line);
        }
    }
    buffer_free(&text);
    if (queue_health(manager_queue(a->setup.manager)).damages == 0)
        return;
    /* The journal has lost something, and the next run would not know it. */
    a->bound = 0;
    if (comparison_write_bound(a, 0))
        (void)!manager_hint_sync(a->setup.manager, comparison_file);
}

/* Not before what the disk has forgotten is taken back, unless its number says that it has
 * forgotten nothing; also while the engine is away. When it has lost something both are compared
 * anew. */
void
comparison_note(struct adoption *a)
{
    struct copies_state keeper = copies_keeper_state(a->setup.keeper);
    uint64_t durable = copies_keeper_durable(a->setup.keeper),
             losses = keeper.losses + keeper.gaps;
    if ((a->has_compared || a->number <= a->bound) && durable > a->bound &&
        comparison_write_bound(a, durable)) {
        a->bound = durable;
        a->is_bound_synced = false;
    }
    /* While the engine hears of ends an old number does no harm. */
    if (a->stage == ADOPTION_AWAY && !a->is_bound_synced) {
        a->is_bound_synced = true;
        (void)!manager_hint_sync(a->setup.manager, comparison_file);
    }
    if (a->stage != ADOPTION_OPEN || losses == a->losses)
        return;
    a->losses = losses;
    a->number = UINT64_MAX; /* whatever comes meanwhile */
    adoption_walk_end(a);   /* of a lost host */
    a->stage = ADOPTION_COMPARING;
}

/* --- There and not here -------------------------------------------------------------- */

static enum adoption_met
comparison_met_copy(struct adoption *a, const struct adoption_entry *entry)
{
    uint64_t batch = 0;
    /* With another number of slices our name was that of another part of this disk. */
    bool is_ours = manager_handles(a->setup.manager, entry->id);
    bool is_numbered = text_number(text_from(entry->word), UINT64_MAX, &batch);
    bool may_be_forgotten = is_ours && !a->has_compared &&
                            (!is_numbered || batch > a->bound) &&
                            !copies_keeper_is_ending(a->setup.keeper, entry->id);
    if ((is_numbered && batch > a->number) ||
        (is_ours && adoption_is_here(a, entry->id)))
        return ENTRY_DONE;
    if (may_be_forgotten)
        return adoption_take_entry(a, entry);
    copies_keeper_remove(a->setup.keeper, entry->id);
    return ENTRY_DONE;
}

static void
comparison_on_compared(struct adoption *a, const char *name)
{
    const struct adoption_row *row = adoption_find(a, text_from(name));
    /* Else the next comparison would think that it has ended. */
    a->has_compared |= row == NULL || row->unreadable == 0;
    a->stage = ADOPTION_OPEN;
    adoption_stir(a);
}

/* Mail that is here goes on meanwhile: what ends is_ending(), until its copy is gone. */
static void
comparison_open(struct adoption *a)
{
    a->is_fenced = false;
    copies_keeper_open(a->setup.keeper, a->number, a->bound);
    a->stage = a->has_compared ? ADOPTION_OPEN : ADOPTION_COMPARING;
    adoption_release(a);
    adoption_stir(a);
}

/* --- Mail that others have adopted -------------------------------------------------------- */

static void
comparison_on_time(void *context)
{
    adoption_stir(context);
}

static enum adoption_met
comparison_met_adopted(struct adoption *a, const struct adoption_entry *entry)
{
    struct manager *m = a->setup.manager;
    char host[ADOPTION_ENTRY_MAX], why[MANAGER_WHY_MAX];
    struct text rest = text_from(entry->word), name;
    struct id there = {0};
    struct manager_loan loan;
    int64_t budget = READ_A_TURN;
    (void)!text_cut(&rest, '/', &name);
    (void)!id_parse(rest, &there);
    (void)text_copy(host, sizeof(host), name);
    /* Nobody took it: its copies had another name for a while, on this disk. */
    if (id_compare(there, entry->id) == 0)
        return ENTRY_DONE;
    switch (manager_lend(m, entry->id, &budget, &loan)) {
    case MANAGER_LENT:
        a->state.given_up++;
        manager_give_away(m, entry->id, host, there);
        return ENTRY_DONE;
    case MANAGER_LEND_MORE: /* a call for another one would begin its check anew */
        loop_timer_start(a->setup.loop, &a->read, READ_MS, comparison_on_time, a);
        return ENTRY_WAITS;
    case MANAGER_LEND_BUSY:
        return ENTRY_LATER;
    case MANAGER_LEND_STAYS:
    case MANAGER_LEND_DAMAGED:
        a->state.given_up++;
        (void)manager_operate(m, MANAGER_REMOVE, entry->id, why);
        break;
    case MANAGER_LEND_GONE:
        break;
    }
    return ENTRY_DONE;
}

static void
comparison_hear_forgotten(struct adoption *a, struct adoption_slot *slot,
                          const struct redis_reply *reply, const char *why)
{
    (void)slot;
    a->is_checking = false;
    if (reply != NULL && a->stage == ADOPTION_GIVING_UP)
        comparison_open(a);
    else if (reply == NULL)
        adoption_refused(a, a->name, why);
}

/* That they have ended here is durable: nothing else knows it. */
static void
comparison_on_durable(void *context)
{
    struct adoption *a = context;
    char known[16];
    snprintf(known, sizeof(known), "%d", ADOPTION_KNOWN_S);
    if (copies_engine_is_ready(a->setup.engine))
        adoption_ask(a, comparison_hear_forgotten, NULL, &adoption_script_forget,
                     a->name, ADOPTION_WORDS(known));
}

static void
comparison_on_given_up(struct adoption *a, const char *name)
{
    (void)name;
    a->is_checking = true;
    log_say(a->setup.log, LOG_LEVEL_INFO, "copies", NULL,
            "%" PRIu64
            " messages ended here since startup, as other hosts have adopted "
            "them",
            a->state.given_up);
    queue_barrier(manager_queue(a->setup.manager), &a->barrier, comparison_on_durable,
                  a);
    queue_hurry(manager_queue(a->setup.manager));
}

/* ------------------------------------------------------------------------------------- */

void
comparison_begin(struct adoption *a, uint64_t number, uint64_t adopted)
{
    comparison_stop(a);
    a->number = number;
    if (adopted == 0) {
        comparison_open(a);
        return;
    }
    a->stage = ADOPTION_GIVING_UP;
    a->is_fenced = true; /* whoever goes meanwhile */
    snprintf(a->why, sizeof(a->why), "mail that other hosts have adopted ends here");
    copies_keeper_close(a->setup.keeper, a->why);
    manager_pause(a->setup.manager, true);
    manager_rest_loads(a->setup.manager); /* they would wait for the end of the pause */
}

/* Until startup has found all messages nobody can say what is here. */
void
comparison_go(struct adoption *a)
{
    if (a->stage < ADOPTION_GIVING_UP || a->stage == ADOPTION_OPEN || a->is_checking ||
        !queue_has_found_all(manager_queue(a->setup.manager)))
        return;
    if (a->walk.name[0] != '\0')
        return;
    if (a->stage == ADOPTION_GIVING_UP)
        adoption_walk_begin(a, a->name, true, comparison_met_adopted,
                            comparison_on_given_up);
    else
        adoption_walk_begin(a, a->name, false, comparison_met_copy,
                            comparison_on_compared);
}

void
comparison_stop(struct adoption *a)
{
    queue_barrier_cancel(&a->barrier);
    loop_timer_stop(a->setup.loop, &a->read);
    a->is_checking = false;
    adoption_walk_end(a);
}
