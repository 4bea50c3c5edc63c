/* A queue manager in a temporary spool and in virtual time. */
#include "base/log/log_internal.h"
#include "t/support/manager_world.h"

struct outcome
fake_outcome(const struct world *w, struct text address)
{
    if (w->all_good || text_starts(address, TEXT("good")) ||
        text_starts(address, TEXT("ann")))
        return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "Ok");
    if (text_starts(address, TEXT("later")))
        return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.2.0",
                            "come again");
    if (text_starts(address, TEXT("site")))
        return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 421, "4.4.2", "site is down");
    return outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.1.1", "no such user");
}

void
manager_fake_end(struct fake *f)
{
    struct world *w = f->world;
    DL_DELETE(w->fakes, f);
    loop_unpost(w->loop, &f->task);
    manager_session_ended(w->manager, f->session, &outcome_no_trouble);
    loop_release(w->loop, free, f);
}

void
fake_settle(struct fake *f, const struct delivery_request *request)
{
    struct world *w = f->world;
    for (size_t i = 0; i < request->count; i++) {
        const struct recipient *r = &request->envelope->recipients[request->indexes[i]];
        struct text to = r->address, from = envelope_sender_of(request->envelope, r);
        struct outcome outcome = fake_outcome(w, to);
        outcome.notifies = w->notifies;
        struct timing timing = {.connect_ms = 10, .transmit_ms = 20};
        w->attempts++;
        if (!buffer_format(&w->seen, "%.*s>%.*s ", TEXT_ARGS(from), TEXT_ARGS(to)))
            w->seen.length = 0;
        manager_settled(w->manager, request, i, &outcome, &timing);
    }
}

static void
fake_work(void *context)
{
    struct fake *f = context;
    struct delivery_request request;
    if (f->world->stalled)
        return;
    if (!manager_take(f->world->manager, f->session, &request)) {
        manager_fake_end(f);
        return;
    }
    fake_settle(f, &request);
    loop_post(f->world->loop, &f->task, fake_work, f);
}

void
fake_open(void *context, struct sched_session *session, const struct target *target,
          const char *domain)
{
    struct fake *f = memory_new(sizeof(*f));
    f->world = context;
    f->session = session;
    f->world->opened++;
    if ((domain[0] == '\0') != (target->kind != TARGET_MX))
        abort();
    DL_APPEND(f->world->fakes, f);
    loop_post(f->world->loop, &f->task, fake_work, f);
}

void
world_unstall(struct world *w)
{
    struct fake *f;
    w->stalled = false;
    DL_FOREACH (w->fakes, f)
        loop_post(w->loop, &f->task, fake_work, f);
}

void
world_turns(struct world *w)
{
    sim_loop_advance(w->loop, 500);
}

struct route_table *
world_routes(struct world *w)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 1000);
    w->routes_text.smtp_port = 25;
    transport_params_default(&w->routes_text.base);
    if (w->routes_text.passwords.at == NULL)
        w->routes_text.passwords = TEXT("smtp.b.test joe secret");
    struct route_table *routes = route_new(&w->routes_text, &mistakes);
    if (routes == NULL) {
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&mistakes)));
        abort();
    }
    buffer_free(&mistakes);
    return routes;
}

void
manager_world_start(struct world *w)
{
    char error[300];
    w->settings.hostname = "h.test";
    w->settings.queue.spool = w->folder;
    if (w->settings.queue.slices == 0)
        w->settings.queue.slices = 1;
    /* The simulated loop knows no descriptors, the simulated disk needs none. */
    w->settings.queue.sync_blocks = !w->background;
    if (w->settings.sched.active_limit == 0)
        w->settings.sched.active_limit = 1000;
    w->settings.sched.session_limit = 100;
    w->settings.sched.seed = 1;
    w->settings.bounce_size_limit = 50000;
    /* Only the daemon has routes. */
    int code = manager_new(&w->manager, w->loop, w->events, &w->settings,
                           w->settings.offline ? NULL : w->routes, error, sizeof(error));
    if (code != 0) {
        printf("# %s\n", error);
        abort();
    }
    manager_set_channel(w->manager, TARGET_SMTP, fake_open, w);
    manager_set_channel(w->manager, TARGET_MX, fake_open, w);
    if (w->plug)
        w->plug(w);
    world_turns(w);
}

void
manager_world_begin(struct world *w, const char *routes)
{
    *w = (struct world){
        .routes_text = {.routes = text_from(routes), .local_domains = TEXT("h.test")}
    };
    folder_make(w->folder, sizeof(w->folder), "manager");
    w->loop = sim_loop_new(7);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    w->events = event_hub_new(w->log);
    buffer_init(&w->lines, 16 * 1024 * 1024);
    buffer_init(&w->seen, 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->routes = world_routes(w);
    manager_world_start(w);
}

void
world_stop(struct world *w)
{
    struct fake *f, *next;
    DL_FOREACH_SAFE (w->fakes, f, next)
        manager_fake_end(f);
    manager_free(&w->manager);
}

void
manager_world_end(struct world *w)
{
    char command[100];
    world_stop(w);
    route_free(&w->routes);
    event_hub_free(&w->events);
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->lines);
    buffer_free(&w->seen);
    snprintf(command, sizeof(command), "rm -rf %s", w->folder);
    if (system(command) != 0)
        abort();
}

void
world_restart(struct world *w)
{
    world_stop(w);
    manager_world_start(w);
}

void
world_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    w->accepted = refusal == NULL;
    if (e)
        manager_accept(w->manager, &e);
}

void
world_send(struct world *w, const char *sender, const char *recipients)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    struct text rest = text_from(recipients), one;
    e->sender = envelope_text(e, text_from(sender));
    e->priority = w->priority;
    e->tls = w->tls;
    while (text_word(&rest, " ", &one))
        if (!envelope_add(e, one, w->notify, TEXT("")))
            abort();
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    w->accepted = false;
    if (draft == NULL) {
        envelope_free(&e);
        return;
    }
    (void)!queue_write(draft, TEXT("Subject: x\r\n\r\nbody\r\n"));
    queue_name(draft, e);
    manager_copy(w->manager, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
}

void
world_deliver(struct world *w, const char *sender, const char *recipients)
{
    world_send(w, sender, recipients);
    world_turns(w);
}

unsigned
world_files(const struct world *w, const char *dir)
{
    char path[300];
    unsigned count = 0;
    snprintf(path, sizeof(path), "%s/%s", w->folder, dir);
    DIR *directory = opendir(path);
    if (directory == NULL)
        abort();
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

bool
world_is_empty(const struct world *w)
{
    static const char *const dirs[] = {"pid",  "mess",   "intd",   "todo",
                                        "info", "local",  "remote", "bounce",
                                        "hold", "defrag", "corrupt"};
    for (size_t i = 0; i < sizeof(dirs) / sizeof(*dirs); i++)
        if (world_files(w, dirs[i]) != 0)
            return false;
    return true;
}

bool
world_logged(const struct world *w, const char *words)
{
    return w->lines.length > 0 &&
           memmem(w->lines.at, w->lines.length, words, strlen(words)) != NULL;
}

void
world_saw(struct world *w, const char *want, const char *name)
{
    is_text(buffer_text(&w->seen), text_from(want), name);
    buffer_clear(&w->seen);
}

enum manager_result
world_operate(const struct world *w, enum manager_verb verb)
{
    char why[MANAGER_WHY_MAX];
    return manager_operate(w->manager, verb, w->id, why);
}

enum sched_place
world_place(const struct world *w)
{
    return sched_find(manager_sched(w->manager), w->id).place;
}

void
world_drained(void *context)
{
    struct world *w = context;
    w->drained++;
}

struct world_refusal world_refusal;

static struct outcome
refusal_outcome(void)
{
    const struct world_refusal *r = &world_refusal;
    bool fails = r->reply != NULL && r->reply[0] == '5';
    struct outcome o =
        r->reply == NULL
            ? outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "taken")
            : outcome_make(fails ? VERDICT_FAILED : VERDICT_DEFERRED, r->blame,
                           fails ? 550 : 450, fails ? "5.7.1" : "4.7.1",
                           "host %s[192.0.2.1] said: %s", r->host, r->reply);
    (void)!text_copy(o.remote, sizeof(o.remote),
                     text_before(text_from(r->host), sizeof(o.remote) - 1));
    return o;
}

static struct world *refusing;

static void
refuse_soon(void *context)
{
    struct sched_session *session = context;
    struct delivery_request request;
    while (manager_take(refusing->manager, session, &request))
        for (size_t i = 0; i < request.count; i++) {
            struct outcome o = refusal_outcome();
            manager_settled(refusing->manager, &request, i, &o, NULL);
        }
    manager_session_ended(refusing->manager, session, &outcome_no_trouble);
}

void
world_open_refusing(void *context, struct sched_session *session,
                    const struct target *target, const char *domain)
{
    static struct loop_task task;
    (void)target, (void)domain;
    refusing = context;
    loop_post(refusing->loop, &task, refuse_soon, session);
}

unsigned
world_log_count(const struct world *w, const char *words)
{
    unsigned count = 0;
    struct text rest = buffer_text(&w->lines);
    const char *at;
    while ((at = memmem(rest.at, rest.length, words, strlen(words))) != NULL) {
        count++;
        rest = text_after(rest, (size_t)(at - rest.at) + 1);
    }
    return count;
}
