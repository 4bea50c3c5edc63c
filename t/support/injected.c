#include "t/support/injected.h"
#include "t/support/aliases_whole.h"

struct aliases *
injected_aliases(const struct world *w, const char *file)
{
    struct aliases_file one = {"aliases", text_from(file)};
    struct buffer errors;
    buffer_init(&errors, 4096);
    struct aliases *made = aliases_whole(
        &(struct aliases_settings){.files = &one, .file_count = 1, .routes = w->routes},
        &errors);
    is_text(buffer_text(&errors), TEXT(""), "aliases");
    buffer_free(&errors);
    return made;
}

static void
injected_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    if (refusal != NULL)
        abort();
    w->id = e->id;
    envelope_free(&e);
}

void
injected_add_large(struct world *w, const char *sender, const char *recipients, size_t size)
{
    char error[300];
    struct queue *queue;
    struct outcome refusal;
    struct text rest = text_from(recipients), one;
    struct envelope *e = envelope_new();
    e->sender = envelope_text(e, text_from(sender));
    e->prefix =
        envelope_text(e, TEXT("Received: by h.test (Petrel, from userid 7)\r\n"));
    e->ours = true;
    while (text_word(&rest, " ", &one))
        if (!envelope_add(e, one, w->notify, TEXT("")))
            abort();
    if (queue_open_injector(&queue, w->log, &w->settings.queue, error, sizeof(error)) !=
        0)
        abort();
    struct queue_draft *draft = queue_begin(queue, 0, &refusal);
    (void)queue_write(draft, TEXT("Subject: x\r\n\r\n"));
    for (size_t done = 0; done < size; done += 6)
        (void)queue_write(draft, TEXT("body\r\n"));
    queue_name(draft, e);
    queue_commit(&draft, &e, injected_stored, w);
    queue_close(&queue);
}

void
injected_add(struct world *w, const char *sender, const char *recipients)
{
    injected_add_large(w, sender, recipients, 6);
}

void
injected_operate(struct world *w, enum manager_verb verb)
{
    char error[300], why[MANAGER_WHY_MAX];
    struct manager *m = NULL;
    w->settings.offline = true;
    if (manager_new(&m, w->loop, w->events, &w->settings, NULL, error, sizeof(error)) !=
        0)
        abort();
    ok(manager_operate(m, verb, w->id, why) == MANAGER_DONE);
    manager_free(&m);
    w->settings.offline = false;
}

void
injected_held(struct world *w, const char *sender, const char *recipients)
{
    world_stop(w);
    injected_add(w, sender, recipients);
    injected_operate(w, MANAGER_HOLD);
    is_number(world_files(w, "hold"), 1, "held");
}
