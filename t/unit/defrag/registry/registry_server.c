/* defrag/registry/registry_redis.c with a real Redis: one owner for a key with any number of
 * claims, expiry, closing, passwords, databases, and a server that goes and comes back. */
#include "t/support/registry_kit_redis.h"

static const char *
setting_of(const struct server *s, const char *login, const char *database)
{
    static char setting[256];
    snprintf(setting, sizeof(setting), "redis://%s127.0.0.1:%u%s", login, s->port,
             database);
    return setting;
}

static void
test_two(const struct server *s)
{
    struct world a, b;
    registry_world_start(&a, "a.example", setting_of(s, "", ""));
    registry_world_start(&b, "b.example", setting_of(s, "", ""));
    is_string(sure(&a, 1), "own", "the first has it");
    is_string(sure(&b, 1), "a.example", "the second is told so");
    is_string(sure(&a, 1), "own", "the first, once more");
    is_string(sure_for(&a, 2, 30), "own", "a claim for 30 ms");
    pass_ms(&a, 60);
    is_string(sure(&b, 2), "own", "is another's afterwards");
    close_key(&b, 1, 0);
    is_string(sure(&b, 1), "a.example", "only the owner closes a set");
    close_key(&a, 1, 0);
    is_string(sure(&a, 3), "own", "which he has done when later claims are answered");
    is_string(sure(&b, 1), "own", "and then it is free");
    close_key(&b, 1, 3600000);
    is_string(sure(&b, 4), "own", "closed but remembered");
    is_string(sure(&a, 1), "b.example", "it is still his");
    close_key(&b, 1, 60);
    is_string(sure(&b, 5), "own", "once more, not for long");
    pass_ms(&a, 100);
    is_string(sure(&a, 1), "own", "for as long as he said");
    ok_named(a.said.length == 0 && b.said.length == 0, "nothing to complain of");
    registry_world_end(&b);
    registry_world_start(&b, "b.example", setting_of(s, "", "/1"));
    is_string(sure(&b, 1), "own", "another database is another registry");
    registry_world_end(&b);
    registry_world_start(&b, "b.example", setting_of(s, "", "/99"));
    is_string(claim(&b, 1), "unavailable", "one that does not exist");
    until(&b, !registry_is_up(b.registry));
    ok_named(has_said(&b, "SELECT: ERR DB index is out of range"), "is told");
    registry_world_end(&b);
    registry_world_end(&a);
}

/* As if it had been there for so long. */
static void
look_after_ms(struct world *w, int64_t ms)
{
    w->registry->name.seen_ms -= ms;
    registry_redis_check_name(w->registry->redis);
    sure(w, 90); /* replies come in order */
}

static void
test_namesake(const struct server *s)
{
    struct world a, b, other;
    registry_world_start(&a, "same.example", setting_of(s, "", ""));
    sure(&a, 90);
    registry_world_start(&other, "other.example", setting_of(s, "", ""));
    registry_world_start(&b, "SAME.example", setting_of(s, "", ""));
    sure(&other, 90);
    sure(&b, 90);
    is_string(b.registry->name.other, a.registry->name.instance, "it sees the other's");
    is_number(registry_counts(b.registry).namesakes, 0, "who may be dead");
    look_after_ms(&b, NAME_TTL_MS + NAME_SLACK_MS - 5000);
    is_number(registry_counts(b.registry).namesakes, 0, "still");
    look_after_ms(&a, 0);
    look_after_ms(&b, 6000);
    is_number(registry_counts(b.registry).namesakes, 1, "but not for so long");
    ok_named(has_said(&b, "has the name SAME.example:"), "which is told");
    buffer_clear(&b.said);
    look_after_ms(&b, 100000);
    is_number(registry_counts(b.registry).namesakes, 1, "once");
    is_number(b.said.length, 0, "here too");
    is_string(sure(&b, 95), "own", "all goes on");
    registry_free(&a.registry);
    pass_ms(&a, 50);
    until(&b, *b.registry->name.other == '\0' || (look_after_ms(&b, 0), false));
    is_string(b.registry->name.other, "",
              "who ends leaves the name, which is ours now");
    look_after_ms(&b, 0);
    is_string(b.registry->name.other, "", "and stays it");
    ok_named(a.said.length == 0 && other.said.length == 0, "the others saw nothing");
    registry_world_end(&a);
    registry_world_end(&b);
    registry_world_end(&other);
}

enum { KEYS = 1000 };

/* Once more, when the machine was too busy for an answer in time. */
static void
insist(struct world *w, struct told *t, unsigned key)
{
    for (int i = 0; i < 10 && t->answer == REGISTRY_UNAVAILABLE; i++) {
        until(w, registry_is_up(w->registry));
        claim_start(w, t, key, 60000);
        until(w, t->times > 0);
    }
}

/* How many of the keys have one owner, whom both know. */
static unsigned
race_of(struct world *a, struct world *b, unsigned first)
{
    struct told *t = memory_array(2 * KEYS, sizeof(*t));
    unsigned agreed = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        claim_start(i % 2 ? a : b, &t[i], first + i, 60000);
        claim_start(i % 2 ? b : a, &t[KEYS + i], first + i, 60000);
        if (i % 50 == 49) {
            loop_turn(a->loop, 0);
            loop_turn(b->loop, 0);
        }
    }
    for (unsigned i = 0; i < KEYS; i++) {
        struct told *one = &t[i], *two = &t[KEYS + i];
        for (int wait = 0; wait < 5000 && (!one->times || !two->times); wait++) {
            loop_turn(a->loop, 1);
            loop_turn(b->loop, 1);
        }
        insist(i % 2 ? a : b, one, first + i);
        insist(i % 2 ? b : a, two, first + i);
        const char *owner = i % 2 ? "b.example" : "a.example";
        const char *other = i % 2 ? "a.example" : "b.example";
        agreed += (one->answer == REGISTRY_OWN && strcmp(two->host, other) == 0) ||
                  (two->answer == REGISTRY_OWN && strcmp(one->host, owner) == 0);
    }
    free(t);
    return agreed;
}

static void
test_race(const struct server *s)
{
    struct world a, b;
    registry_world_start(&a, "a.example", setting_of(s, "", ""));
    registry_world_start(&b, "b.example", setting_of(s, "", ""));
    sure(&a, 1);
    sure(&b, 1);
    is_number(race_of(&a, &b, 1000), KEYS, "each key has one owner, whom both know");
    registry_redis_connection(a.registry->redis)->is_old = true;
    is_number(race_of(&a, &b, 10000), KEYS, "one asks as Redis 6 would have it");
    registry_redis_connection(b.registry->redis)->is_old = true;
    is_number(race_of(&a, &b, 20000), KEYS, "both do");
    is_string(sure_for(&a, 40000, 30), "own", "a claim for 30 ms, as of old");
    pass_ms(&a, 60);
    is_string(sure(&b, 40000), "own", "expires as well");
    printf("# %" PRIu64 " and %" PRIu64 " are owned\n", registry_counts(a.registry).own,
           registry_counts(b.registry).own);
    registry_world_end(&a);
    registry_world_end(&b);
}

/* Killed and started again in the middle: claims are answered all the time, unavailable
 * ones are told to come back, and only the owners are lost. */
static void
test_restart(struct server *s)
{
    enum { MANY = 200 };
    struct told *t = memory_array(MANY, sizeof(*t));
    struct world w;
    registry_world_start(&w, "a.example", setting_of(s, "", ""));
    breaker_of(w.registry)->pause_ms = breaker_of(w.registry)->pause_max_ms = 100;
    is_string(sure(&w, 1), "own", "before");
    for (unsigned i = 0; i < MANY; i++) {
        claim_start(&w, &t[i], 5000 + i, 60000);
        if (i == MANY / 2)
            server_stop(s);
        loop_turn(w.loop, 1);
    }
    until(&w, t[MANY - 1].times > 0);
    unsigned answered = 0, own = 0, unknown = 0;
    for (unsigned i = 0; i < MANY; i++) {
        answered += t[i].times == 1;
        own += t[i].answer == REGISTRY_OWN;
        unknown += t[i].answer == REGISTRY_UNAVAILABLE;
    }
    is_number(answered, MANY, "all are answered");
    is_number(own + unknown, MANY, "own or unavailable");
    ok_named(unknown > 0, "those that came too late");
    until(&w, !registry_is_up(w.registry));
    is_number(w.recovered, 0, "it is down");
    if (!registry_redis_server_start(s, ""))
        abort();
    until(&w, w.recovered > 0);
    is_number(w.recovered, 1, "it is back, and who asked is told");
    is_string(sure(&w, 1), "own", "an empty one, where we claim again");
    is_string(sure(&w, 2), "own", "and go on");
    registry_world_end(&w);
    free(t);
}

/* Stopped, not killed: it accepts, since the kernel does, and says nothing. */
static void
test_stopped(struct server *s)
{
    FIXTURE(world, w, registry_world_start, registry_world_end, "a.example", setting_of(s, "", ""));
    breaker_of(w.registry)->pause_ms = breaker_of(w.registry)->pause_max_ms = IMPATIENT_MS;
    is_string(sure(&w, 10), "own", "before");
    kill(s->pid, SIGSTOP);
    registry_be_patient(w.registry, IMPATIENT_MS);
    is_string(claim(&w, 11), "unavailable", "a server that hangs");
    until(&w, !registry_is_up(w.registry));
    ok_named(!registry_is_up(w.registry), "is down");
    registry_be_patient(w.registry, PATIENCE_MS);
    kill(s->pid, SIGCONT);
    until(&w, w.recovered > 0);
    ok_named(registry_is_up(w.registry), "and up once it goes on");
    is_string(sure(&w, 11), "own", "what it did not answer is ours in the end");
}

static void
test_password(void)
{
    struct server s = {.port = free_port()};
    struct world w;
    registry_make_home(s.home);
    if (!registry_redis_server_start(&s, "requirepass \"s3 cr%t\"\n"
                          "user mta on >pw ~df:* +set +get\n"
                          /* The rights in man/petrel.conf.5. */
                          "user full on >pw ~df:* ~dfhost:* +set +get +del +pexpire "
                          "+eval +select\n"))
        abort();
    registry_world_start(&w, "a.example", setting_of(&s, ":s3%20cr%25t@", ""));
    is_string(sure(&w, 1), "own", "with the password");
    registry_world_end(&w);
    registry_world_start(&w, "b.example", setting_of(&s, "mta:pw@", ""));
    is_string(sure(&w, 1), "a.example", "a user with few rights is enough");
    is_string(sure(&w, 2), "own", "for claims");
    close_key(&w, 2, 0);
    until(&w, has_said(&w, "cannot close sets in registry"));
    ok_named(has_said(&w, "for another host of this name: NOPERM"),
             "who may not look for names is told");
    ok_named(has_said(&w, "cannot close sets in registry") && registry_is_up(w.registry),
             "without that to close sets they expire");
    registry_world_end(&w);
    registry_world_start(&w, "c.example", setting_of(&s, "full:pw@", "/2"));
    is_string(sure(&w, 3), "own", "the rights that the manual names");
    close_key(&w, 3, 60000);
    look_after_ms(&w, 0);
    registry_redis_connection(w.registry->redis)->is_old = true;
    is_string(sure(&w, 4), "own", "are enough");
    close_key(&w, 4, 0);
    is_string(sure(&w, 4), "own", "for all that is asked");
    is_number(w.said.length, 0, "and nothing to complain of");
    registry_world_end(&w);
    registry_world_start(&w, "a.example", setting_of(&s, ":wr0ng@", ""));
    is_string(claim(&w, 1), "unavailable", "a wrong password");
    until(&w, !registry_is_up(w.registry));
    ok_named(has_said(&w, "AUTH: WRONGPASS") && !has_said(&w, "wr0ng"),
             "is told, but not which");
    registry_world_end(&w);
    registry_world_start(&w, "a.example", setting_of(&s, "", ""));
    is_string(claim(&w, 1), "unavailable", "no password");
    until(&w, !registry_is_up(w.registry));
    ok_named(has_said(&w, "NOAUTH"), "is told too");
    registry_world_end(&w);
    server_stop(&s);
    remove_tree(s.home);
}

int
main(void)
{
    struct server s = {.port = free_port()};
    registry_make_home(s.home);
    if (*redis_version() == '\0' || !registry_redis_server_start(&s, "")) {
        printf("1..0 # SKIP %s\n", *redis_version() == '\0'
                                       ? "built without hiredis"
                                       : "no redis-server here (Debian: redis-tools)");
        remove_tree(s.home);
        return 0;
    }
    test_two(&s);
    test_namesake(&s);
    test_race(&s);
    test_restart(&s);
    test_stopped(&s);
    server_stop(&s);
    remove_tree(s.home);
    test_password();
    return done();
}
