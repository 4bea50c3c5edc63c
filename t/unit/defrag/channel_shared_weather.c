/* Random weather for hosts that share sets of fragments: parts come at any of them, in
 * any order; peers refuse, are away or slow, registries answer late, wrong, or not at
 * all, hosts stop and start, settings change, operators meddle. In the end every part
 * has arrived, joined or as it was, once, but where a lost reply made a second one; and
 * nothing is left, in memory or on disk.
 *
 *   channel_shared_weather.t [FIRST COUNT]   so many seeds; without, what a test may
 *                                            cost
 *
 * With VERBOSE in the environment the hosts' logs are printed. */
/* link: t/sim/sky.c */
/* link: t/sim/loop.c */
/* link: t/sim/disk*.c */
#include "t/support/sky_hosts.h"

enum { SEEDS = TAP_ADDRESS_SANITIZER ? 40 : 120, ACTS_MAX = 60 };

/* --- Acts ------------------------------------------------------------------------- */

static struct host *
any_host(struct sky *w)
{
    for (;;) {
        unsigned start = draw(w, w->host_count);
        for (unsigned i = 0; i < w->host_count; i++) {
            struct host *h = &w->hosts[(start + i) % w->host_count];
            if (h->is_up)
                return h;
        }
        sky_host_start(&w->hosts[start]);
    }
}

static void
send_part(struct sky *w, unsigned which, unsigned number, unsigned to)
{
    struct fate_of_set *set = &w->sets[which];
    struct fate_of_part *part = &set->part[number - 1];
    struct host *h = any_host(w);
    char id[20], rcpts[60] = "";
    struct buffer body;
    if (part->sent == SENT_MAX)
        return;
    for (unsigned i = 0; i < PEOPLE; i++)
        if ((to & 1U << i) != 0)
            snprintf(rcpts + strlen(rcpts), sizeof(rcpts) - strlen(rcpts), "%s ",
                     people[i]);
    snprintf(id, sizeof(id), "s%u", which);
    buffer_init(&body, 16 * 1024 * 1024);
    part_body(set, which, number, &body);
    (void)!buffer_add(&body, text_of("", 1)); /* ends it */
    bool says = !set->late_total || number == set->parts;
    h->s.w.accepted = false;
    stage_put(&h->s, "a@x", rcpts, id, number, says ? set->parts : 0, body.at);
    buffer_free(&body);
    sim_loop_advance(w->loop, 1 + draw(w, 20));
    if (!h->s.w.accepted)
        return;
    part->to[part->sent] = to;
    part->ids[part->sent] = h->s.w.id;
    part->at[part->sent] = h->which;
    part->sent++;
}

static void
send_any(struct sky *w)
{
    unsigned which = draw(w, w->set_count);
    struct fate_of_set *set = &w->sets[which];
    unsigned number = 1 + draw(w, set->parts), to = 1 + draw(w, (1U << PEOPLE) - 1);
    if (w->is_calm || !one_in(w, 3))
        to = 1;
    if (set->part[number - 1].sent == 0 || trouble(w, 4))
        send_part(w, which, number, to);
}

static void
operate(struct sky *w)
{
    char why[MANAGER_WHY_MAX];
    static const enum manager_verb verbs[] = {
        MANAGER_HOLD, MANAGER_RELEASE, MANAGER_RETRY, MANAGER_BOUNCE, MANAGER_REMOVE};
    unsigned set = draw(w, w->set_count);
    unsigned number = draw(w, w->sets[set].parts);
    struct fate_of_part *part = &w->sets[set].part[number];
    enum manager_verb verb = verbs[draw(w, one_in(w, 5) ? 5 : 3)];
    if (part->sent == 0)
        return;
    struct host *h = &w->hosts[part->at[part->sent - 1]];
    if (!h->is_up)
        return;
    (void)manager_operate(h->s.w.manager, verb, part->ids[part->sent - 1], why);
    if (verb == MANAGER_BOUNCE || verb == MANAGER_REMOVE)
        for (unsigned i = 0; i < PEOPLE; i++)
            part->is_odd[i] = w->sets[set].is_odd = true;
}

static void
change_settings(struct sky *w)
{
    static const char *const routes[] = {
        "z smtp://h\n* smtp://h?defragment=yes&notices=2h",
        "z smtp://h\n* smtp://h?defragment=yes&notices=1h",
        "* smtp://h",
        "z smtp://h\ny smtp://h?defragment=yes&notices=2h\n* smtp://h2",
    };
    struct host *h = any_host(w);
    if (one_in(w, 2) && !w->short_life)
        h->s.w.routes_text.routes = text_from(routes[draw(w, 4)]);
    h->s.w.routes_text.defrag_peers =
        one_in(w, 3) ? TEXT("b.test=127.0.0.2, c.test=127.0.0.9:26")
                     : buffer_text(&w->peers);
    host_reload(h);
}

static void
act(struct sky *w)
{
    struct host *h = any_host(w);
    unsigned what = draw(w, w->is_calm ? 8 : 20);
    if (w->is_calm)
        what = 0;
    switch (what) {
    case 8:
        h->refuses = !h->refuses;
        break;
    case 9:
        h->hop_is_down = !h->hop_is_down && !w->short_life;
        break;
    case 10:
    case 11:
        h->registry.is_down = !h->registry.is_down;
        if (!h->registry.is_down)
            loop_timer_start(w->loop, &h->registry.recover, 5000, recovered,
                             &h->registry);
        break;
    case 12:
        sky_host_stop(h);
        break;
    case 13:
        sky_host_stop(h);
        sky_host_start(h);
        break;
    case 14:
        for (unsigned i = 0; i < w->host_count; i++)
            if (!w->hosts[i].is_up && one_in(w, 2))
                sky_host_start(&w->hosts[i]);
        break;
    case 15:
        change_settings(w);
        break;
    case 16:
    case 17:
        operate(w);
        break;
    case 19:
        sim_loop_step_wall(w->loop, (int64_t)draw(w, 1200 * 1000) - 600 * 1000);
        break;
    case 18:
        sim_loop_advance(w->loop, draw(w, 3600 * 1000));
        break;
    default:
        send_any(w);
        break;
    }
    bool long_time = !w->is_calm && one_in(w, 5);
    sim_loop_advance(w->loop, draw(w, long_time ? 600 * 1000 : 500));
}

/* --- In the end ------------------------------------------------------------------- */

enum { HELD_MAX = 1000 };

struct held_ids {
    struct id ids[HELD_MAX];
    size_t count;
};

static bool
add_held(void *context, const char *name)
{
    struct held_ids *held = context;
    held->count += id_parse(text_from(name), &held->ids[held->count]);
    return held->count < HELD_MAX;
}

static void
let_held_go(struct host *h)
{
    static struct held_ids held;
    char why[MANAGER_WHY_MAX];
    held.count = 0;
    if (disk_list(queue_disk(manager_queue(h->s.w.manager)), "hold", add_held, &held) <
        0)
        complain(h->sky, "%s: hold cannot be listed", h->name);
    for (size_t i = 0; i < held.count; i++)
        (void)manager_operate(h->s.w.manager, MANAGER_RELEASE, held.ids[i], why);
}

static void
become_good(struct sky *w)
{
    w->is_good = true;
    for (unsigned i = 0; i < w->host_count; i++) {
        struct host *h = &w->hosts[i];
        h->refuses = h->hop_is_down = h->registry.is_down = false;
        if (!h->is_up)
            sky_host_start(h);
        h->s.w.routes_text.routes = TEXT("z smtp://h\n* smtp://h?defragment=yes&"
                                         "notices=2h");
        h->s.w.routes_text.defrag_peers = buffer_text(&w->peers);
        host_reload(h);
        loop_timer_start(w->loop, &h->registry.recover, 5000, recovered, &h->registry);
    }
    sim_loop_advance(w->loop, 3 * STAGE_HALF_MS);
    for (unsigned i = 0; i < w->host_count; i++)
        let_held_go(&w->hosts[i]);
    sim_loop_advance(w->loop, 6 * STAGE_HALF_MS);
}

static void
judge_person(struct sky *w, unsigned s, unsigned n, unsigned who)
{
    const struct fate_of_set *set = &w->sets[s];
    const struct fate_of_part *part = &set->part[n];
    unsigned sent = 0;
    for (unsigned i = 0; i < part->sent; i++)
        sent += (part->to[i] & 1U << who) != 0;
    unsigned came = part->arrived[who] + part->returned[who] + set->wholes[who];
    if (sent > 0 && came == 0 && !part->is_odd[who])
        complain(w, "set %u, part %u is lost for %s", s, n + 1, people[who]);
    if (came > sent && !set->is_odd)
        complain(w,
                 "set %u, part %u: sent %u times to %s, there as it was %u, returned "
                 "%u, whole %u",
                 s, n + 1, sent, people[who], part->arrived[who], part->returned[who],
                 set->wholes[who]);
    if (w->is_calm && who == 0 && sent > 0 && part->arrived[who] > 0) {
        bool all = true;
        for (unsigned i = 0; i < set->parts; i++)
            all = all && set->part[i].sent > 0;
        if (all)
            complain(w, "set %u is not joined, though all is well", s);
    }
}

static void
judge_host(struct sky *w, struct host *h)
{
    static const char *const rooms[] = {"mess",   "intd",   "todo",   "info",
                                        "local",  "hold",   "defrag", "remote",
                                        "bounce", "corrupt"};
    struct sched_counts counts = sched_count(manager_sched(h->s.w.manager));
    struct defragmenter *c = h->s.channel;
    if (counts.incoming + counts.active + counts.deferred > 0)
        complain(w, "%s: %zu messages are left", h->name,
                 counts.incoming + counts.active + counts.deferred);
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) {
        char path[60];
        snprintf(path, sizeof(path), "%s/%s", h->s.w.folder, rooms[i]);
        if (sim_disk_count(path) > 0)
            complain(w, "%s: %s is not empty", h->name, rooms[i]);
    }
    if (c->held != NULL)
        complain(w, "%s: %u fragments are remembered that are gone", h->name,
                 HASH_COUNT(c->held));
    if (heap_first(&c->redirects) != NULL)
        complain(w, "%s: a journey without end", h->name);
    struct sets_count sets = sets_count(c->sets);
    if (sets.open + sets.messages > 0)
        complain(w, "%s: a set stays open", h->name);
    if (claims_count(c->claims).known > 0 || h->registry.questions != NULL)
        complain(w, "%s: %zu owners are remembered", h->name,
                 claims_count(c->claims).known);
}

static void
judge(struct sky *w)
{
    for (unsigned s = 0; s < w->set_count; s++)
        for (unsigned n = 0; n < w->sets[s].parts; n++)
            for (unsigned who = 0; who < PEOPLE; who++)
                judge_person(w, s, n, who);
    for (unsigned i = 0; i < w->host_count; i++)
        judge_host(w, &w->hosts[i]);
}

/* --- A seed ----------------------------------------------------------------------- */

static void
begin_all(struct sky *w)
{
    w->loop = sim_loop_new(w->seed + 1);
    sim_disk_reset();
    w->is_calm = one_in(w, 5);
    w->lies = one_in(w, 3);
    w->loses = one_in(w, 2);
    w->is_narrow = !w->is_calm && one_in(w, 4);
    w->short_life = !w->is_calm && one_in(w, 8);
    w->loses = w->loses && !w->short_life; /* what gets lost must have time */
    w->on_timeout =
        w->is_calm || one_in(w, 2) ? CHANNEL_RELEASE : (enum channel_timeout)draw(w, 3);
    w->host_count = 2 + draw(w, HOSTS_MAX - 1);
    w->set_count = 1 + draw(w, SETS_MAX);
    buffer_init(&w->peers, 1000);
    for (unsigned i = 0; i < w->host_count; i++)
        if (!buffer_format(&w->peers, "%s=127.0.0.%u ", names[i], i + 1))
            abort();
    for (unsigned i = 0; i < w->set_count; i++) {
        w->sets[i].parts = 1 + draw(w, PARTS_MAX);
        w->sets[i].late_total = one_in(w, 2);
        if (one_in(w, 40))
            w->sets[i].lines = 300 + draw(w, 600);
    }
    for (unsigned i = 0; i < w->host_count; i++)
        host_begin(w, i);
}

static void
end_all(struct sky *w)
{
    struct owned_set *o, *next;
    for (unsigned i = 0; i < w->host_count; i++) {
        if (getenv("VERBOSE") != NULL)
            printf("# --- %s\n%.*s\n", w->hosts[i].name,
                   TEXT_ARGS(buffer_text(&w->hosts[i].s.w.lines)));
        host_end(&w->hosts[i]);
    }
    HASH_ITER (hh, w->owned, o, next) {
        HASH_DEL(w->owned, o);
        free(o);
    }
    buffer_free(&w->peers);
    loop_free(&w->loop);
}

static bool
run(uint64_t seed)
{
    static struct sky w;
    w = (struct sky){.seed = seed, .random = seed * 7919 + 1};
    begin_all(&w);
    unsigned acts = 10 + draw(&w, ACTS_MAX);
    for (unsigned i = 0; i < acts; i++)
        act(&w);
    /* The rest of the sets, mostly. */
    for (unsigned s = 0; s < w.set_count; s++)
        for (unsigned n = 1; n <= w.sets[s].parts; n++)
            if (w.sets[s].part[n - 1].sent == 0 && !one_in(&w, 8))
                send_part(&w, s, n, 1);
    become_good(&w);
    judge(&w);
    end_all(&w);
    return w.wrong == 0;
}

int
main(int count, char **arguments)
{
    uint64_t first = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t seeds = count > 2 ? strtoull(arguments[2], NULL, 10) : SEEDS;
    uint64_t wrong = 0;
    char words[80];
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        if (getenv("VERBOSE") != NULL)
            fprintf(stderr, "seed %" PRIu64 "\n", seed);
        wrong += !run(seed);
    }
    snprintf(words, sizeof(words), "%" PRIu64 " seeds: every part arrives", seeds);
    ok_named(wrong == 0, words);
    return done();
}
