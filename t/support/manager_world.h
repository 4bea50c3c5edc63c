/* A queue manager in a temporary spool and in virtual time, with a channel that does
 * what addresses say: good@, bad@, later@ and site@ are delivered, failed, deferred,
 * and deferred by the site. */
#ifndef T_MANAGER_WORLD_H
#define T_MANAGER_WORLD_H

#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/manager/manager.h"
#include "t/support/folder.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

#include <dirent.h>
#include <unistd.h>
#include <utlist.h>

struct fake {
    struct fake *prev, *next;
    struct world *world;
    struct sched_session *session;
    struct loop_task task;
};

struct world {
    char folder[40];
    struct loop *loop;
    struct log *log;
    struct buffer lines; /* of the log */
    struct route_settings routes_text;
    struct route_table *routes;
    struct manager_settings settings;
    struct manager *manager;
    struct fake *fakes;
    bool stalled;       /* sessions take nothing */
    bool all_good;      /* whatever addresses say */
    bool background;    /* the disk syncs so; with t/sim/disk.c, from the next start */
    struct buffer seen; /* "SENDER>RECIPIENT " of each attempt */
    unsigned attempts, opened, drained;
    void (*plug)(struct world *w); /* more channels, at each start */
    void *channel;                 /* its */
    struct id id;                  /* accepted last */
    int priority;                  /* of what is sent */
    unsigned notify;               /* of its recipients */
    bool notifies;                 /* the peer does, of its successes */
    bool accepted;
};

static inline struct outcome
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

static inline void
fake_end(struct fake *f)
{
    struct world *w = f->world;
    DL_DELETE(w->fakes, f);
    loop_unpost(w->loop, &f->task);
    manager_session_ended(w->manager, f->session, NULL);
    loop_release(w->loop, free, f);
}

static inline void
fake_settle(struct fake *f, const struct delivery_request *request)
{
    struct world *w = f->world;
    for (size_t i = 0; i < request->count; i++) {
        struct text to = request->envelope->recipients[request->indexes[i]].address;
        struct outcome outcome = fake_outcome(w, to);
        outcome.notifies = w->notifies;
        struct timing timing = {.connect_ms = 10, .transmit_ms = 20};
        w->attempts++;
        if (!buffer_format(&w->seen, "%.*s>%.*s ", TEXT_ARGS(request->envelope->sender),
                           TEXT_ARGS(to)))
            w->seen.length = 0;
        manager_settled(w->manager, request, i, &outcome, &timing);
    }
}

static inline void
fake_work(void *context)
{
    struct fake *f = context;
    struct delivery_request request;
    if (f->world->stalled)
        return;
    if (!manager_take(f->world->manager, f->session, &request)) {
        fake_end(f);
        return;
    }
    fake_settle(f, &request);
    loop_post(f->world->loop, &f->task, fake_work, f);
}

static inline void
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

/* Stalled sessions go on. */
static inline void
world_unstall(struct world *w)
{
    struct fake *f;
    w->stalled = false;
    DL_FOREACH (w->fakes, f)
        loop_post(w->loop, &f->task, fake_work, f);
}

static inline void
world_turns(struct world *w)
{
    sim_loop_advance(w->loop, 500);
}

static inline struct route_table *
world_routes(struct world *w)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 1000);
    w->routes_text.smtp_port = 25;
    transport_params_default(&w->routes_text.base);
    struct route_table *routes = route_new(&w->routes_text, &mistakes);
    if (routes == NULL) {
        printf("# %.*s\n", TEXT_ARGS(buffer_text(&mistakes)));
        abort();
    }
    buffer_free(&mistakes);
    return routes;
}

static inline void
world_start(struct world *w)
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
    int code = manager_new(&w->manager, w->loop, w->log, &w->settings, w->routes, error,
                           sizeof(error));
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

static inline void
world_begin(struct world *w, const char *routes)
{
    *w = (struct world){
        .routes_text = {.routes = text_from(routes), .local_domains = TEXT("h.test")}
    };
    folder_make(w->folder, sizeof(w->folder), "manager");
    w->loop = sim_loop_new(7);
    w->log = log_new(w->loop, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&w->lines, 16 * 1024 * 1024);
    buffer_init(&w->seen, 1024 * 1024);
    log_capture(w->log, &w->lines);
    w->routes = world_routes(w);
    world_start(w);
}

static inline void
world_stop(struct world *w)
{
    struct fake *f, *next;
    DL_FOREACH_SAFE (w->fakes, f, next)
        fake_end(f);
    manager_free(&w->manager);
}

static inline void
world_end(struct world *w)
{
    char command[100];
    world_stop(w);
    route_free(&w->routes);
    log_free(&w->log);
    loop_free(&w->loop);
    buffer_free(&w->lines);
    buffer_free(&w->seen);
    snprintf(command, sizeof(command), "rm -rf %s", w->folder);
    if (system(command) != 0)
        abort();
}

static inline void
world_restart(struct world *w)
{
    world_stop(w);
    world_start(w);
}

static inline void
world_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct world *w = context;
    w->accepted = refusal == NULL;
    if (e)
        manager_accept(w->manager, &e);
}

/* recipients: separated by spaces. */
static inline void
world_send(struct world *w, const char *sender, const char *recipients)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    struct text rest = text_from(recipients), one;
    e->sender = envelope_text(e, text_from(sender));
    e->priority = w->priority;
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
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
}

/* ... and what comes of it at once. */
static inline void
world_deliver(struct world *w, const char *sender, const char *recipients)
{
    world_send(w, sender, recipients);
    world_turns(w);
}

/* Files in a directory of the spool. */
static inline unsigned
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

static inline bool
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

static inline bool
world_logged(const struct world *w, const char *words)
{
    return w->lines.length > 0 &&
           memmem(w->lines.at, w->lines.length, words, strlen(words)) != NULL;
}

/* The attempts since the last call, "SENDER>RECIPIENT " each. */
static inline void
world_saw(struct world *w, const char *want, const char *name)
{
    is_text(buffer_text(&w->seen), text_from(want), name);
    buffer_clear(&w->seen);
}

/* An operator's command about the message that was accepted last. */
static inline enum manager_result
world_operate(const struct world *w, enum manager_verb verb)
{
    char why[MANAGER_WHY_MAX];
    return manager_operate(w->manager, verb, w->id, why);
}

static inline enum sched_place
world_place(const struct world *w)
{
    return sched_find(manager_sched(w->manager), w->id).place;
}

#endif
