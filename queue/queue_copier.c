/* Reads messages for the copier. */
#include "queue/queue_copier.h"

#include "queue/queue_internal.h"

void
queue_set_copier(struct queue *q, const struct queue_copier *copier)
{
    q->copier = copier != NULL ? *copier : (struct queue_copier){0};
}

void
queue_copied(struct queue *q, struct commit *waiter, const struct outcome *refusal)
{
    commits_copied(&q->commits, waiter, refusal);
}

/* One that waits for its copy is no message to others yet. */
static struct envelope *
queue_copy_load(struct queue *q, struct id id)
{
    struct journaled_message *m = journaled_find(&q->journaled, id);
    struct envelope *e = NULL;
    char reason[LOAD_REASON_MAX];
    bool later;
    if (m != NULL && m->is_new)
        return journaled_load(&q->journaled, m, &later, reason, sizeof(reason));
    if (m != NULL || !commits_wait_for_copy(&q->commits, id))
        return queue_load_envelope(q, id);
    if (load_envelope(&q->spool, id, &e, reason) == LOAD_DONE)
        load_places(&q->spool, e);
    return e;
}

static bool
queue_copy_is_there(struct queue *q, struct id id)
{
    unsigned dirs = 0;
    return (commits_wait_for_copy(&q->commits, id) || !queue_is_no_message(q, id)) &&
           (journaled_find(&q->journaled, id) != NULL ||
            (spool_dirs_of(&q->spool, id, &dirs) == 0 && dirs != 0));
}

enum queue_copying
queue_copy_open(struct queue *q, struct id id, bool without_content,
                struct queue_copy *copy)
{
    char note[QUEUE_NOTE_MAX];
    struct envelope *e = queue_copy_load(q, id);
    if (e == NULL)
        return queue_copy_is_there(q, id) ? QUEUE_COPY_LATER : QUEUE_COPY_GONE;
    *copy = (struct queue_copy){.content = -1, .content_size = e->content_size};
    buffer_init(&copy->form, SPOOL_FILE_MAX);
    e->moved.hold = TEXT("");
    if (e->delivery.held)
        e->moved.hold = queue_note(q, id, QUEUE_HOLD, note) == 0 && note[0] != '\0'
                            ? envelope_text(e, text_from(note))
                            : TEXT("0 held\n");
    bool good = envelope_write_given(e, &copy->form);
    if (good && !without_content)
        copy->content = queue_content_open(q, e);
    envelope_free(&e);
    if (good && (without_content || copy->content >= 0))
        return QUEUE_COPY_OPEN;
    buffer_free(&copy->form);
    return QUEUE_COPY_LATER;
}

void
queue_copy_close(struct queue *q, struct queue_copy *copy)
{
    if (copy->content >= 0)
        queue_content_close(q, copy->content);
    buffer_free(&copy->form);
}

uint64_t
queue_batch(const struct queue *q)
{
    const struct journal *j = q->journaled.journal;
    return j != NULL ? journal_number(j) : 0;
}

uint64_t
queue_batch_durable(const struct queue *q)
{
    return q->durable_batch;
}
