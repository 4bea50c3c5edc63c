/* The rules of doc/scheduler.md "Jobs and preemption" as they are told. */
#include "t/support/job_reference.h"

#include "sched/limits/limits_internal.h"

void
reference_add(struct reference *r, unsigned number, unsigned size, int64_t now_s)
{
    struct ref *j = memory_new(sizeof(*j));
    *j = (struct ref){.number = number, .size = size, .loaded_s = now_s};
    DL_APPEND(r->order, j);
}

static struct ref *
reference_scan(struct reference *r, const struct ref *current, int64_t now_s,
               bool by_class)
{
    int64_t cap =
        (current->size - current->selected + current->available) / r->t.slot_cost;
    bool seen[JOB_CLASSES] = {false};
    struct ref *best = NULL;
    for (struct ref *j = current->next; j; j = j->next) {
        unsigned class = job_class((unsigned)j->size);
        int64_t need = j->size - j->selected, age = now_s - j->loaded_s + 1;
        if (j->children > 0 || (by_class && seen[class]))
            continue;
        seen[class] = true;
        if (need > 0 && need <= cap &&
            (!best || age * best->size > (now_s - best->loaded_s + 1) * j->size))
            best = j;
    }
    return best;
}

static struct ref *
reference_preempt(struct reference *r, struct ref *current, int64_t now_s)
{
    int64_t cost = r->t.slot_cost;
    if (current->available <= 0 || current->size < r->t.minimum_slots * cost)
        return current;
    struct ref *best = reference_scan(r, current, now_s, true);
    r->hidden += best != reference_scan(r, current, now_s, false);
    if (!best)
        return current;
    int64_t need = best->size - best->selected;
    if (100 * (current->available / cost + r->t.slot_loan) <
        need * (100 - r->t.slot_discount))
        return current;
    DL_DELETE(r->order, best);
    DL_PREPEND_ELEM(r->order, current, best);
    best->parent = current;
    best->level = current->level + 1;
    current->children++;
    current->available -= need * cost;
    best->used = -need;
    r->preemptions++;
    if ((unsigned)best->level > r->depth)
        r->depth = (unsigned)best->level;
    return best;
}

unsigned
reference_serve(struct reference *r, int64_t now_s)
{
    struct ref *j = r->order;
    if (r->t.slot_cost >= 2)
        j = reference_preempt(r, j, now_s);
    unsigned number = j->number;
    j->selected++;
    j->available++;
    j->used++;
    if (j->selected < j->size)
        return number;
    if (j->parent) {
        r->exact_use &= j->used == 0;
        j->parent->available -= j->used * r->t.slot_cost;
        j->parent->children--;
    }
    DL_DELETE(r->order, j);
    free(j);
    return number;
}

void
reference_end(struct reference *r)
{
    struct ref *j, *next;
    DL_FOREACH_SAFE (r->order, j, next)
        free(j);
}
