/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
/* Two hosts, each with a disk of its own, lose power at every change of either while one
 * gives its queue to the other, and again while they recover: nothing is lost, nothing is
 * held no longer, and what is there twice is what the table of doc/dev/queue.md "Given away"
 * allows.
 *
 * give_crash [rounds [seed]]: so many seeds, from that one on. */
#include "t/support/give_kit.h"

#include "queue/queue_operator.h"
#include "t/sim/sim_disk.h"
#include "t/support/manager_world.h"
#include "t/support/must.h"
#include "t/support/known.h"

#include <errno.h>
#include <inttypes.h>

enum {
    SLOW = TAP_ADDRESS_SANITIZER,
    HOSTS = 2,
    MAILS_MAX = 6,
    ALONE_MAX = 6,          /* pending items cut alone, at a point */
    AGAIN = SLOW ? 97 : 31, /* one of so many states is cut in its recovery, too */
    STEP_MS = 20,
    LARGE = 30000,
    FIXED_ROUNDS = SLOW ? 1 : 3
};

#define ROUTE "* smtp://smtp.b.test"

static const char *const names[HOSTS] = {"relay1", "relay2"};

/* The plan of a run, by its seed. */
struct plan {
    int64_t journal[HOSTS];
    int64_t message_max;
    bool background;
    bool there_and_back; /* what B has taken goes back */
    unsigned mails;
    bool held[MAILS_MAX], large[MAILS_MAX], fresh[MAILS_MAX], marked[MAILS_MAX];
};

/* Both disks after a change of one. */
struct moment {
    struct world *disks[HOSTS];
    bool back; /* B was giving */
};
struct moments {
    struct moment *rows;
    size_t count;
};

struct run {
    struct plan plan;
    struct world hosts[HOSTS];
    struct world *disks[HOSTS];   /* NULL: the present one */
    struct kit_wire wires[HOSTS]; /* of each, to the other */
    struct give *give;
    bool back, is_over;
    struct moments *moments;
    struct known *known;
    uint64_t seed, point, second, cuts, states, wrong, twice;
    char how[100];
};

static void
go_to(struct run *r, unsigned host)
{
    if (r->disks[host] == NULL)
        return;
    struct world *before = sim_disk_exchange(r->disks[host]);
    r->disks[!host] = before;
    r->disks[host] = NULL;
}

static unsigned
present(const struct run *r)
{
    return r->disks[0] == NULL ? 0 : 1;
}

/* --- Events ----------------------------------------------------------------------- */

static void
on_change(void *context)
{
    struct run *r = context;
    unsigned host = present(r);
    struct moments *m = r->moments;
    struct moment now = {.back = r->back};
    now.disks[host] = sim_disk_copy();
    go_to(r, !host);
    now.disks[!host] = sim_disk_copy();
    go_to(r, host);
    m->rows = memory_resize(m->rows, (m->count + 1) * sizeof(*m->rows));
    m->rows[m->count++] = now;
}

static void
watch(struct run *r, struct moments *moments)
{
    unsigned host = present(r);
    r->moments = moments;
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        sim_disk_on_change(moments != NULL ? on_change : NULL, r);
    }
    go_to(r, host);
}

static void
moments_free(struct moments *m)
{
    for (size_t i = 0; i < m->count; i++)
        for (unsigned host = 0; host < HOSTS; host++)
            sim_disk_free(&m->rows[i].disks[host]);
    free(m->rows);
}

static uint64_t
digest(struct run *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        sum = known_mix(sum, sim_disk_digest() + i);
    }
    return sum;
}

static bool
is_news(struct run *r, uint64_t salt)
{
    return known_is_news(&r->known, known_mix(digest(r), salt));
}

/* --- The hosts -------------------------------------------------------------------- */

static void
on_drained(void *context)
{
    (void)context;
}

static void
on_over(void *context)
{
    struct run *r = context;
    r->is_over = true;
}

/* A wire of `own` asks its host, which is the other one, or goes back. */
static void
on_enter(void *context, const struct kit_host *host)
{
    struct run *r = context;
    for (unsigned i = 0; i < HOSTS; i++)
        if (host == &r->wires[i].hosts[0]) {
            go_to(r, !i);
            return;
        }
    go_to(r, r->back ? 1 : 0);
}

static void
start_hosts(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *w = &r->hosts[i];
        go_to(r, i);
        w->stalled = true;
        w->all_good = false;
        buffer_clear(&w->lines);
        buffer_clear(&w->seen);
        manager_world_start(w);
        kit_wire_begin(&r->wires[i], names[i], w->loop);
        r->wires[i].enter = on_enter;
        r->wires[i].context = r;
        (void)kit_wire_add(&r->wires[i], names[!i]);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *other = &r->hosts[!i];
        go_to(r, !i);
        kit_host_start(&r->wires[i].hosts[0], other->loop, other->events,
                       other->manager);
    }
}

static void
stop_hosts(struct run *r)
{
    go_to(r, r->back ? 1 : 0);
    give_free(&r->give);
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, !i);
        kit_host_stop(&r->wires[i].hosts[0]);
    }
    for (unsigned i = 0; i < HOSTS; i++) {
        kit_wire_end(&r->wires[i]);
        go_to(r, i);
        world_stop(&r->hosts[i]);
    }
}

static void
end_sessions(struct world *w)
{
    while (w->fakes != NULL)
        manager_fake_end(w->fakes);
}

static void
pass(struct run *r, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += STEP_MS)
        for (unsigned i = 0; i < HOSTS; i++) {
            go_to(r, i);
            if (r->give != NULL && i == (r->back ? 1U : 0U))
                while (kit_wire_carry(&r->wires[i]))
                    ;
            sim_loop_advance(r->hosts[i].loop, STEP_MS);
        }
}

/* The host that `back` says gives away what it has. */
static void
give_all(struct run *r, bool back)
{
    unsigned host = back ? 1 : 0;
    struct world *w = &r->hosts[host];
    r->back = back;
    r->is_over = false;
    go_to(r, host);
    manager_drain(w->manager, 0, on_drained, NULL);
    end_sessions(w);
    r->give = give_new(&(struct give_setup){.loop = w->loop,
                                            .events = w->events,
                                            .manager = w->manager,
                                            .calls = &r->wires[host].calls,
                                            .host = names[host],
                                            .siblings = kit_wire_siblings,
                                            .context = &r->wires[host]},
                       TEXT(""), on_over, r);
    for (int i = 0; i < 100 && !r->is_over; i++)
        pass(r, STEP_MS);
}

static void
stop_giving(struct run *r)
{
    unsigned host = r->back ? 1 : 0;
    go_to(r, host);
    give_free(&r->give);
    kit_wire_end(&r->wires[host]);
    manager_cancel_drain(r->hosts[host].manager);
}

/* --- The mail --------------------------------------------------------------------- */

static void
send_mail(struct run *r, unsigned number)
{
    struct world *w = &r->hosts[0];
    const struct plan *p = &r->plan;
    struct outcome refusal;
    struct envelope *e = envelope_new();
    char to[60];
    e->sender = envelope_text(e, TEXT("me@a.test"));
    snprintf(to, sizeof(to), "later%u@b.test", number);
    must(envelope_add(e, text_from(to), 0, TEXT("")));
    snprintf(to, sizeof(to), "good%u@b.test", number);
    if (p->marked[number])
        must(envelope_add(e, text_from(to), 0, TEXT("")));
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    for (int i = 0; i < (p->large[number] ? LARGE : 40); i += 20)
        (void)!queue_write(draft, TEXT("a line of eighteen\r\n"));
    queue_name(draft, e);
    w->id = e->id;
    w->stalled = p->fresh[number];
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
    if (p->held[number] && !p->fresh[number])
        must(world_operate(w, MANAGER_HOLD) == MANAGER_DONE);
}

static bool
is_held(const struct plan *p, unsigned number)
{
    return p->held[number] && !p->fresh[number];
}

static unsigned
count_seen(const struct run *r, const char *kind, unsigned number)
{
    char want[60];
    unsigned count = 0;
    snprintf(want, sizeof(want), ">%s%u@b.test ", kind, number);
    for (unsigned i = 0; i < HOSTS; i++) {
        struct text rest = buffer_text(&r->hosts[i].seen);
        const char *at;
        while (rest.length > 0 &&
               (at = memmem(rest.at, rest.length, want, strlen(want))) != NULL) {
            count++;
            rest = text_after(rest, (size_t)(at - rest.at) + 1);
        }
    }
    return count;
}

/* --- The judge -------------------------------------------------------------------- */

static void
complain(struct run *r, const char *what, unsigned number)
{
    if (r->wrong++ >= 3)
        return;
    printf("# seed %" PRIu64 ", point %" PRIu64 ", again at %" PRIu64
           "%s, %s: %s (%u)\n",
           r->seed, r->point, r->second, r->back ? ", back" : "", r->how, what, number);
    for (unsigned i = 0; i < HOSTS; i++)
        printf("# --- %s\n%.*s\n", names[i],
               TEXT_ARGS(buffer_text(&r->hosts[i].lines)));
}

static bool
release_one(void *context, struct id id, enum queue_place place)
{
    struct world *w = context;
    char why[MANAGER_WHY_MAX];
    if (place == QUEUE_HOLD)
        must(manager_operate(w->manager, MANAGER_RELEASE, id, why) == MANAGER_DONE);
    return true;
}

static void
deliver_all(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *w = &r->hosts[i];
        go_to(r, i);
        w->all_good = true;
        world_unstall(w);
        manager_retry_all(w->manager);
        sim_loop_advance(w->loop, 1000);
        manager_retry_all(w->manager);
        sim_loop_advance(w->loop, 1000);
    }
}

static void
release_all(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        must(queue_each(manager_queue(r->hosts[i].manager), release_one,
                        &r->hosts[i]) == 0);
    }
}

static size_t
left_in(const struct run *r, const char *room)
{
    char path[80];
    snprintf(path, sizeof(path), "%s/%s", r->hosts[present(r)].folder, room);
    return sim_disk_count(path);
}

static void
judge_hosts(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        struct sched_counts c = sched_count(manager_sched(r->hosts[i].manager));
        if (c.incoming + c.active + c.deferred > 0 ||
            left_in(r, "info") + left_in(r, "todo") + left_in(r, "hold") > 0)
            complain(r, "something stays behind", i);
        /* Without a journal a name of a finished message may survive alone. */
        if (left_in(r, "corrupt") > 0 && r->plan.journal[i] > 0)
            complain(r, "something is quarantined", i);
    }
}

/* once: the giver asks the taker again, which has a journal. */
static void
judge(struct run *r, bool once)
{
    const struct plan *p = &r->plan;
    deliver_all(r);
    for (unsigned i = 0; i < p->mails; i++)
        if (is_held(p, i) && count_seen(r, "later", i) > 0)
            complain(r, "a held message was delivered", i);
    release_all(r);
    deliver_all(r);
    for (unsigned i = 0; i < p->mails; i++) {
        unsigned count = count_seen(r, "later", i);
        /* A taker without a journal forgets with each crash. */
        unsigned most = once ? 1 : r->second > 0 ? 3 : 2;
        r->twice += count > 1;
        if (count == 0)
            complain(r, "a message is lost", i);
        if (count > most)
            complain(r, "a message was delivered too often", i);
        /* Likewise todo/ID of one that is over, without its marks. */
        if (count_seen(r, "good", i) > 0 && p->journal[0] > 0 && p->journal[1] > 0)
            complain(r, "who has it gets it again", i);
    }
    judge_hosts(r);
    r->states++;
}

/* --- Power cuts ------------------------------------------------------------------- */

struct pair {
    struct sim_cut cuts[HOSTS];
};

/* Copies of both disks, without power; the caller has those before. */
static void
enter(struct run *r, const struct moment *m, const struct pair *pair,
      struct world *before[HOSTS])
{
    struct world *disks[HOSTS];
    go_to(r, 0);
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *now = sim_disk_exchange(m->disks[i]);
        disks[i] = sim_disk_copy();
        (void)sim_disk_exchange(disks[i]);
        sim_disk_cut(pair->cuts[i]);
        (void)sim_disk_exchange(now);
    }
    before[1] = r->disks[1];
    before[0] = sim_disk_exchange(disks[0]);
    r->disks[0] = NULL;
    r->disks[1] = disks[1];
    r->back = m->back;
    snprintf(r->how, sizeof(r->how), "%s (%zu) and %s (%zu)",
             sim_cut_name(pair->cuts[0].kind), pair->cuts[0].item,
             sim_cut_name(pair->cuts[1].kind), pair->cuts[1].item);
}

static void
leave(struct run *r, struct world *before[HOSTS])
{
    go_to(r, 0);
    struct world *mine = sim_disk_exchange(before[0]);
    sim_disk_free(&mine);
    sim_disk_free(&r->disks[1]);
    r->disks[1] = before[1];
    r->disks[0] = NULL;
}

/* All of a state happens at the same time of day. */
struct times {
    int64_t ms[HOSTS];
};

static struct times
note_times(const struct run *r)
{
    struct times t;
    for (unsigned i = 0; i < HOSTS; i++)
        t.ms[i] = loop_now_ms(r->hosts[i].loop);
    return t;
}

static void
turn_back(struct run *r, const struct times *t)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        struct loop *loop = r->hosts[i].loop;
        go_to(r, i);
        sim_loop_step_wall(loop, t->ms[i] - loop_now_ms(loop));
        loop_turn(loop, 0);
    }
}

static bool
is_known_there(const struct run *r, const struct moment *m)
{
    return r->plan.journal[m->back ? 0 : 1] > 0 && !r->plan.there_and_back;
}

/* They come back, and the giver goes on, or not: then both deliver what they have. */
static void
come_back(struct run *r, const struct moment *m, const struct pair *pair)
{
    struct world *before[HOSTS];
    bool goes_on = (r->point + r->second) % 3 != 0;
    r->cuts++;
    enter(r, m, pair, before);
    if (is_news(r, goes_on)) {
        struct times times = note_times(r);
        start_hosts(r);
        pass(r, STEP_MS);
        if (goes_on) {
            give_all(r, m->back);
            if (!r->is_over)
                complain(r, "it never ends", 0);
            stop_giving(r);
        }
        judge(r, goes_on && is_known_there(r, m));
        stop_hosts(r);
        turn_back(r, &times);
    }
    leave(r, before);
}

static void
break_again(struct run *r, const struct moment *m, const struct pair *pair)
{
    static const enum sim_cut_kind kinds[] = {SIM_CUT_ALL, SIM_CUT_NOTHING};
    struct world *before[HOSTS];
    struct moments second = {0};
    struct times times = note_times(r);
    enter(r, m, pair, before);
    start_hosts(r);
    watch(r, &second);
    pass(r, STEP_MS);
    give_all(r, m->back);
    watch(r, NULL);
    stop_hosts(r);
    turn_back(r, &times);
    leave(r, before);
    for (size_t i = 0; i < second.count && r->wrong == 0; i++) {
        r->second = i + 1;
        second.rows[i].back = m->back;
        for (unsigned k = 0; k < 4; k++)
            come_back(r, &second.rows[i],
                      &(struct pair){
                          {{kinds[k & 1], 0}, {kinds[k >> 1], 0}}
            });
    }
    r->second = 0;
    moments_free(&second);
}

static size_t
count_cuts(const struct moment *m, unsigned host, enum sim_cut_kind kind)
{
    struct world *now = sim_disk_exchange(m->disks[host]);
    size_t count = sim_disk_cuts(kind);
    (void)sim_disk_exchange(now);
    if (kind == SIM_CUT_RANDOM)
        return count > 0 ? 2 : 0;
    return count < ALONE_MAX ? count : ALONE_MAX;
}

static void
cut_one(struct run *r, const struct moment *m, unsigned host, enum sim_cut_kind kind)
{
    size_t count = count_cuts(m, host, kind);
    for (size_t i = 0; i < count && r->wrong == 0; i++) {
        struct pair pair = {0};
        pair.cuts[host] = (struct sim_cut){
            kind, kind == SIM_CUT_RANDOM ? (size_t)known_mix(r->seed + r->point, i) : i};
        pair.cuts[!host] = (struct sim_cut){SIM_CUT_ALL, 0};
        come_back(r, m, &pair);
        if (known_mix(r->seed, r->point * 131 + i + kind) % AGAIN == 0)
            break_again(r, m, &pair);
        pair.cuts[!host] = (struct sim_cut){SIM_CUT_NOTHING, 0};
        come_back(r, m, &pair);
    }
}

static void
cut_everything(struct run *r, const struct moment *m)
{
    static const enum sim_cut_kind kinds[] = {SIM_CUT_ALL,   SIM_CUT_NOTHING,
                                              SIM_CUT_ALONE, SIM_CUT_ALL_BUT,
                                              SIM_CUT_TORN,  SIM_CUT_RANDOM};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
        for (unsigned host = 0; host < HOSTS; host++)
            cut_one(r, m, host, kinds[k]);
}

/* --- A run ------------------------------------------------------------------------ */

static struct plan
make_plan(uint64_t seed)
{
    uint64_t x = known_mix(seed, 77);
    struct plan p = {.message_max = x & 1 ? 10000 : 1,
                     .background = (x & 2) != 0,
                     .there_and_back = seed % 3 == 0,
                     .mails = 1 + (unsigned)(x >> 8) % 4};
    p.journal[0] = (x >> 2) % 4 > 0 ? 1024 * 1024 : 0;
    p.journal[1] = (x >> 4) % 4 > 0 ? 1024 * 1024 : 0;
    for (unsigned i = 0; i < p.mails; i++) {
        uint64_t y = known_mix(x, i + 1);
        p.held[i] = (y & 3) == 0;
        p.large[i] = (y & 12) == 0;
        p.fresh[i] = (y & 48) == 0;
        p.marked[i] = (y & 64) == 0 && !p.fresh[i];
    }
    return p;
}

static void
begin(struct run *r)
{
    sim_disk_reset();
    r->disks[1] = sim_disk_copy();
    for (unsigned i = 0; i < HOSTS; i++) {
        struct world *w = &r->hosts[i];
        go_to(r, i);
        manager_world_begin(w, ROUTE);
        world_stop(w);
        w->settings.queue.journal_size = r->plan.journal[i];
        w->settings.queue.journal_segment = 65536;
        w->settings.queue.journal_message_max = r->plan.message_max;
        w->background = r->plan.background;
        for (unsigned k = 0; k < 5 * i; k++)
            (void)loop_random(w->loop); /* other names */
    }
    start_hosts(r);
    go_to(r, 0);
    for (unsigned fresh = 0; fresh < 2; fresh++) /* these stall the others */
        for (unsigned i = 0; i < r->plan.mails; i++)
            if (r->plan.fresh[i] == fresh)
                send_mail(r, i);
    r->hosts[0].stalled = true;
    pass(r, 1000);
}

/* For its end. */
static void
end(struct run *r)
{
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        manager_world_start(&r->hosts[i]);
        manager_world_end(&r->hosts[i]);
    }
    sim_disk_free(&r->disks[!present(r)]);
    known_forget(&r->known);
}

static void
run_seed(uint64_t seed, struct run *sum)
{
    struct run *r = memory_new(sizeof(*r));
    struct moments first = {0};
    char words[160];
    r->seed = seed;
    r->plan = make_plan(seed);
    begin(r);
    struct times times = note_times(r);
    watch(r, &first);
    give_all(r, false);
    bool is_given = r->is_over;
    if (r->plan.there_and_back) {
        stop_giving(r);
        give_all(r, true);
        is_given = is_given && r->is_over;
    }
    watch(r, NULL);
    stop_hosts(r);
    turn_back(r, &times);
    for (size_t i = 0; i < first.count && r->wrong == 0; i += SLOW ? 5 : 1) {
        r->point = i + 1;
        cut_everything(r, &first.rows[i]);
    }
    snprintf(words, sizeof(words),
             "seed %" PRIu64 ": %u mails%s%s%s: %zu points, %" PRIu64 " cuts, %" PRIu64
             " states, %" PRIu64 " twice",
             seed, r->plan.mails, r->plan.journal[0] > 0 ? "" : ", A in files",
             r->plan.journal[1] > 0 ? "" : ", B in files",
             r->plan.there_and_back ? ", and back" : "", first.count, r->cuts,
             r->states, r->twice);
    ok_named(r->wrong == 0 && is_given && r->cuts > 50, words);
    sum->cuts += r->cuts;
    sum->states += r->states;
    sum->twice += r->twice;
    moments_free(&first);
    end(r);
    free(r);
}

/* Each call of a disk fails once while mail is given; then both processes are killed, or
 * lose power, and the giver goes on. */
static void
judge_error(struct run *r, unsigned host, bool cut)
{
    struct moment now = {.back = r->back};
    struct pair pair = {0};
    struct world *before[HOSTS];
    for (unsigned i = 0; i < HOSTS; i++) {
        go_to(r, i);
        now.disks[i] = sim_disk_copy();
        pair.cuts[i] =
            (struct sim_cut){cut && i == host ? SIM_CUT_NOTHING : SIM_CUT_ALL, 0};
    }
    stop_hosts(r);
    enter(r, &now, &pair, before);
    start_hosts(r);
    pass(r, STEP_MS);
    give_all(r, false);
    stop_giving(r);
    judge(r, is_known_there(r, &now));
    stop_hosts(r);
    leave(r, before);
    for (unsigned i = 0; i < HOSTS; i++)
        sim_disk_free(&now.disks[i]);
}

/* False: there is no such call. */
static bool
fail_at(struct run *r, unsigned host, uint64_t call, int error)
{
    begin(r);
    struct times times = note_times(r);
    go_to(r, host);
    sim_disk_count_anew();
    sim_disk_fail_at(call, error);
    r->point = call;
    snprintf(r->how, sizeof(r->how), "error %d", error);
    give_all(r, false);
    go_to(r, host);
    bool failed = sim_disk_has_failed();
    sim_disk_fail_at(0, 0); /* one that was not reached does not fail what follows */
    judge_error(r, host, call % 2 == 0);
    turn_back(r, &times);
    end(r);
    return failed;
}

static void
run_errors(uint64_t seed)
{
    struct run *r = memory_new(sizeof(*r));
    uint64_t calls = 0;
    char words[120];
    static const int errors[] = {EIO, ENOSPC};
    for (unsigned k = 0; k < 2; k++)
        for (unsigned host = 0; host < HOSTS; host++)
            for (uint64_t call = 1; r->wrong == 0; call += SLOW ? 11 : 1) {
                uint64_t wrong = r->wrong;
                *r =
                    (struct run){.seed = seed, .plan = make_plan(seed), .wrong = wrong};
                r->plan.there_and_back = false;
                calls++;
                if (!fail_at(r, host, call, errors[k]))
                    break;
            }
    snprintf(words, sizeof(words), "seed %" PRIu64 ": errors at %" PRIu64 " calls",
             seed, calls);
    ok_named(r->wrong == 0 && calls > 20, words);
    free(r);
}

int
main(int count, char **given)
{
    static const uint64_t fixed[] = {4, 6, 1}; /* journals; and back; A in files */
    struct run sum = {0};
    uint64_t rounds = count > 1 ? strtoull(given[1], NULL, 10) : FIXED_ROUNDS;
    uint64_t first = count > 2 ? strtoull(given[2], NULL, 10) : 1;
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t seed = count > 1 ? first + i : fixed[i];
        run_seed(seed, &sum);
        if (i % 3 == 0)
            run_errors(seed);
    }
    printf("# %" PRIu64 " cuts, %" PRIu64 " states, %" PRIu64 " messages twice\n",
           sum.cuts, sum.states, sum.twice);
    return done();
}
