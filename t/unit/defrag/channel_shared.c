/* The channel with other hosts: fragments go to the host that has their set, and come
 * from the others (doc/defragment.md "Hosts"). */
/* link: t/sim/registry_stand_in.c */
/* link: t/sim/loop.c */
#include "defrag/reassembly/fragment.h"
#include "t/support/channel_shared_world.h"

#define ROUTES "* smtp://h?defragment=yes&notices=2h"
#define ONE    "Subject: whole\r\nContent-Type: text/plain\r\n\r\none\r\n"
#define TWO    "two\r\n"
#define THREE  "three\r\n"
#define WHOLE                                                                          \
    "From: a@x\r\nSubject: whole\r\nContent-Type: text/plain\r\n\r\none\r\ntwo\r\n"    \
    "three\r\n"

static void
restart(struct shared *h)
{
    stage_stop(&h->s);
    shared_start(h);
}

static void
part(struct shared *h, const char *id, unsigned number)
{
    static const char *const bodies[] = {ONE, TWO, THREE};
    stage_part(&h->s, id, number, 3, bodies[number - 1]);
}

static bool
explains(const struct shared *h, const char *words)
{
    bool found = strstr(stage_why(&h->s), words) != NULL;
    if (!found)
        printf("# %s\n", stage_why(&h->s));
    return found;
}

static void
key_hex(const unsigned char key[DIGEST_SIZE], char out[2 * DIGEST_SIZE + 1])
{
    for (size_t i = 0; i < DIGEST_SIZE; i++)
        snprintf(out + 2 * i, 3, "%02x", key[i]);
}

/* Also where its target asks nothing of TLS, as for a notification or a mailbox here: the way to another host would, and
 * XDEFRAG knows no REQUIRETLS. */
TEST(required)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.tls = ENVELOPE_TLS_REQUIRED;
    stage_part_to(&h.s, "", "b@y", "i", 1, 3, ONE);
    is_number(h.registry.asked_ever, 0, "a fragment with REQUIRETLS is no other host's");
    is_number(h.s.count, 1, "it is delivered as it is");
    is_string(shared_peer(&h, 0), "", "to its next hop");
}

/* --- Ours ------------------------------------------------------------------------- */

TEST(ours)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 2);
    is_number(h.registry.count, 1, "a set begins: it is claimed");
    is_number(h.registry.asked[0]->ttl_ms, STAGE_HALF_MS + 3600 * 1000,
              "for longer than it can wait");
    ok(explains(&h, "owner not known yet; "));
    shared_tell(&h, REGISTRY_OWN, "");
    ok(explains(&h, "owner this host; "));
    part(&h, "i", 1);
    part(&h, "i", 3);
    is_number(h.registry.asked_ever, 1, "once");
    is_number(h.s.count, 1, "joined here");
    stage_arrived(&h.s, 0, "b@y", WHOLE, "the whole");
    is_string(shared_peer(&h, 0), "", "goes where it was to go");
    is_number(h.registry.closed, 1, "and the set is closed there");
    is_number(h.registry.closed_ms, STAGE_HALF_MS, "for as long as it is remembered");
    part(&h, "j", 1);
    shared_tell(&h, REGISTRY_OWN, "");
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS + 1000);
    is_number(h.s.count, 2, "given up");
    is_number(h.registry.closed, 2, "is closed, too");
    stage_part(&h.s, "alone", 1, 1, ONE);
    is_number(h.s.count, 3, "one part alone waits for nobody's answer");
    shared_tell(&h, REGISTRY_OWN, "");
    is_number(h.registry.closed, 3, "closed when it comes");
    ok(world_is_empty(&h.s.w));
    ok_named(stage_figures(&h.s).is_shared && !stage_figures(&h.s).is_down, "status");
}

/* --- Another's -------------------------------------------------------------------- */

TEST(theirs)
{
    char key[2 * DIGEST_SIZE + 1], mark[SET_MARK_SIZE + 16];
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 2);
    key_hex(h.registry.asked[0]->key, key);
    int64_t birth_s = loop_now_ms(h.s.w.loop) / 1000;
    part(&h, "i", 1);
    is_number(h.s.count, 0, "both wait here");
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.count, 2, "until it is known whose they are");
    is_string(shared_peer(&h, 0), "b.test", "then they go there");
    is_string(shared_peer(&h, 1), "b.test", "both");
    snprintf(mark, sizeof(mark), "%s;0;%lld", key, (long long)birth_s);
    is_string(h.s.delivered[0].mark, mark, "with their key, depth and time");
    ok(world_logged(&h.s.w, "host=b.test, status=redirected"));
    char line[80];
    snprintf(line, sizeof(line), "set=%.12s, partial=i, from=<a@x>, number=2", key);
    ok_named(world_logged(&h.s.w, line), "all hosts' logs have the set's name");
    ok(world_is_empty(&h.s.w));
    part(&h, "i", 3);
    is_string(shared_peer(&h, 2), "b.test", "a third one at once");
    ok(h.s.delivered[2].content.length > 60 &&
       memcmp(h.s.delivered[2].content.at, "From: a@x\r\nSubject: part 3\r\n", 28) ==
           0);
    is_number(h.registry.asked_ever, 1, "nobody is asked again");
    is_number(stage_figures(&h.s).redirected, 3, "are counted");
    is_number(stage_figures(&h.s).sets, 0, "nothing waits");
    ok(world_is_empty(&h.s.w));
}

/* A set that is complete before the answer is reassembled, with any owner. */
TEST(complete)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    for (unsigned i = 1; i <= 3; i++)
        part(&h, "i", i);
    is_number(h.s.count, 1, "all were here");
    stage_arrived(&h.s, 0, "b@y", WHOLE, "the whole");
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.count, 1, "another's claim comes late");
    is_number(h.registry.closed, 0, "it is his to close");
}

TEST(some_recipients)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    stage_clear(&h.s);
    stage_part_to(&h.s, "a@x", "b@y c@y", "i", 2, 3, TWO);
    is_number(h.s.count, 2, "all recipients go there");
    ok(strcmp(shared_peer(&h, 0), "b.test") == 0 &&
       strcmp(shared_peer(&h, 1), "b.test") == 0);
    ok(world_is_empty(&h.s.w));
}

TEST(not_taken)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.w.notify = NOTIFY_FAILURE | NOTIFY_DELAY | NOTIFY_SUCCESS;
    h.s.peers = PEERS_REFUSE;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.asked, 1, "that host was asked, once");
    is_number(h.s.count > 0, 1, "a refusal");
    is_string(shared_peer(&h, 0), "", "lets it go on as it is");
    is_string(h.s.delivered[0].to, "b@y", "to whom it was for");
    is_number(stage_figures(&h.s).returned, 1, "is counted");
    ok(world_logged(&h.s.w, "dsn=5.7.1, status=deferred (not from us)"));
    ok_named(!world_logged(&h.s.w, "status=bounced"), "and never told to the sender");
    ok(world_is_empty(&h.s.w));
}

TEST(not_there)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    h.s.w.routes_text.base.delay_warning_ms = 60 * 1000;
    restart(&h);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    ok(h.s.count == 0 && h.s.asked == 1);
    ok(explains(&h, "goes to b.test, which reassembles it; released at "));
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS / 2);
    ok_named(h.s.asked > 2 && h.s.count == 0, "it is tried again");
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS / 2 - 10 * 1000);
    is_number(h.s.count, 0, "for all its time");
    sim_loop_advance(h.s.w.loop, 10 * 1000);
    is_number(h.s.count, 1, "and then at once");
    is_string(shared_peer(&h, 0), "", "goes on as it is");
    is_number(stage_figures(&h.s).timed_out, 1, "is counted");
    ok_named(!world_logged(&h.s.w, "delayed"), "no sender was warned");
    ok(world_is_empty(&h.s.w));
}

/* Mail that must not pass in pieces does not pass by another host's absence. */
TEST(not_there_hold)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    h.s.settings.on_timeout = CHANNEL_HOLD;
    restart(&h);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    sim_loop_advance(h.s.w.loop, 2 * STAGE_HALF_MS);
    is_number(h.s.count, 0, "it does not go on");
    ok(world_operate(&h.s.w, MANAGER_HOLD) == MANAGER_ALREADY);
    ok(world_operate(&h.s.w, MANAGER_RELEASE) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, 1000);
    is_string(shared_peer(&h, 0), "", "until the operator says so");
    h.s.settings.on_timeout = CHANNEL_BOUNCE;
    restart(&h);
    part(&h, "j", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    sim_loop_advance(h.s.w.loop, 2 * STAGE_HALF_MS);
    ok(world_logged(&h.s.w, "dsn=5.4.7, status=bounced"));
}

TEST(back_in_time)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    restart(&h);
    is_number(h.registry.count, 0, "over a restart");
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS / 4);
    is_number(h.registry.count, 1, "the next attempt claims again");
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.count, 0, "is told the same");
    h.s.peers = PEERS_TAKE;
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS / 2);
    is_string(shared_peer(&h, 0), "b.test", "and goes there when he is back");
    is_number(h.s.count, 1, "once");
    ok(world_is_empty(&h.s.w));
}

TEST(operators)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    ok(world_operate(&h.s.w, MANAGER_HOLD) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS + 1000);
    is_number(h.s.count, 0, "what is held is held");
    ok(world_operate(&h.s.w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&h.s.w);
    is_string(shared_peer(&h, 0), "", "let go: as it is");
    stage_clear(&h.s);
    part(&h, "j", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    ok(world_operate(&h.s.w, MANAGER_RELEASE) == MANAGER_DONE);
    world_turns(&h.s.w);
    is_number(h.s.count, 1, "without a hold, too");
    is_string(shared_peer(&h, 0), "", "as it is");
    part(&h, "l", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    ok(world_operate(&h.s.w, MANAGER_BOUNCE) == MANAGER_DONE);
    world_turns(&h.s.w);
    ok_named(world_logged(&h.s.w, "status=bounced"), "returned, as he said");
    part(&h, "k", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    ok(world_operate(&h.s.w, MANAGER_REMOVE) == MANAGER_DONE);
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS * 2);
    ok(world_is_empty(&h.s.w));
}

TEST(unknown_host)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "z.test");
    ok(world_logged(&h.s.w, "host 'z.test' owns a set of fragments but is not in defrag_peers"));
    part(&h, "i", 2);
    part(&h, "i", 3);
    stage_arrived(&h.s, 0, "b@y", WHOLE, "each for himself");
}

TEST(moved_away)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.peers = PEERS_DEFER;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    h.s.w.routes_text.defrag_peers = TEXT("c.test=127.0.0.3");
    struct route_table *old = h.s.w.routes;
    h.s.w.routes = world_routes(&h.s.w);
    h.s.settings.peers = route_peers(h.s.w.routes);
    manager_reload(h.s.w.manager, &h.s.w.settings, h.s.w.routes);
    channel_reload(h.s.channel, &h.s.settings);
    route_free(&old);
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS / 2);
    is_number(h.s.count, 1, "a peer that is none any more");
    is_string(shared_peer(&h, 0), "", "gets nothing");
}

/* --- From others ------------------------------------------------------------------ */

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

TEST(from_peer)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.mark = KEY ";0;1750000000";
    part(&h, "i", 1);
    unsigned char key[DIGEST_SIZE];
    struct set_mark mark;
    ok(set_mark_read(TEXT(KEY ";0;1750000000"), &mark));
    memcpy(key, mark.key, sizeof(key));
    is_number(h.registry.count, 1, "what a peer sends is claimed, too");
    ok_named(memcmp(h.registry.asked[0]->key, key, sizeof(key)) == 0, "by its own key");
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.asked, 0, "but never sent on, whatever is said");
    restart(&h);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.asked, 0, "nor after a start");
    part(&h, "i", 2);
    part(&h, "other words in it, the same key", 3);
    stage_arrived(&h.s, 0, "b@y", WHOLE, "it is joined here");
    is_number(h.s.asked, 0, "nobody else was asked");
    ok(world_is_empty(&h.s.w));
}

TEST(lying_registry)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.mark = KEY ";0;1750000000";
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    h.s.mark = NULL;
    part(&h, "i", 2);
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.count, 1, "our own goes there");
    is_string(shared_peer(&h, 0), "b.test", "and what came from there stays");
    sim_loop_advance(h.s.w.loop, STAGE_HALF_MS + 1000);
    is_number(h.s.count, 2, "until its time is over");
    is_string(shared_peer(&h, 1), "", "then it goes on as it is");
    ok(world_is_empty(&h.s.w));
}

TEST(depth)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.s.mark = KEY ";3;1750000000";
    part(&h, "i", 1);
    is_number(h.s.count, 1, "joined three times before: passes");
    h.s.mark = KEY ";2;1750000000";
    stage_part(&h.s, "j", 1, 1,
               "Content-Type: message/partial; id=n; number=1; total=2\r\n\r\n"
               "Subject: in\r\n\r\nx\r\n");
    is_number(h.s.count, 2, "what its join makes is the third");
}

/* The key of the next layer hangs on how far its sender was believed. */
TEST(trust_of_whole)
{
    static const char inner[] =
        "Content-Type: message/partial; id=n; number=1; total=2\r\n\r\nx\r\n";
    unsigned char key[DIGEST_SIZE], given[DIGEST_SIZE];
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    fragment_key(FRAGMENT_LOGIN, TEXT("kim"), TEXT("a@x"), TEXT("o"), given);
    char hex[2 * DIGEST_SIZE + 1], mark[SET_MARK_SIZE];
    key_hex(given, hex);
    snprintf(mark, sizeof(mark), "%s;0;1750000000", hex);
    h.s.mark = mark;
    stage_part(&h.s, "o", 1, 2, inner);
    shared_tell(&h, REGISTRY_OWN, "");
    h.s.mark = NULL;
    h.s.trust = "auth:kim";
    stage_part(&h.s, "o", 2, 2, "y\r\n");
    is_number(h.registry.count, 1, "the whole is a fragment again");
    fragment_key(FRAGMENT_LOGIN, TEXT("kim"), TEXT("a@x"), TEXT("n"), key);
    ok_named(memcmp(h.registry.asked[0]->key, key, sizeof(key)) == 0,
             "believed as those that were received here");
    char hop[2 * DIGEST_SIZE + 1];
    key_hex(key, hop);
    int64_t birth_s = loop_now_ms(h.s.w.loop) / 1000;
    (void)birth_s;
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_string(shared_peer(&h, 0), "b.test", "and goes to another host");
    ok_named(strncmp(h.s.delivered[0].mark, hop, 64) == 0 &&
                 strncmp(h.s.delivered[0].mark + 64, ";1;", 3) == 0,
             "which is told that it was joined once");
}

/* --- The registry ----------------------------------------------------------------- */

TEST(alone)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    h.registry.is_down = true;
    part(&h, "i", 1);
    shared_tell(&h, REGISTRY_UNAVAILABLE, "");
    ok(explains(&h, "owner none (this host works alone); "));
    is_number(stage_figures(&h.s).alone, 1, "is counted");
    ok(stage_figures(&h.s).is_down);
    h.registry.counts.namesakes = 2;
    is_number(stage_figures(&h.s).namesakes, 2, "who else has our name, too");
    part(&h, "j", 1);
    shared_tell(&h, REGISTRY_UNAVAILABLE, "");
    part(&h, "j", 2);
    part(&h, "j", 3);
    is_number(h.s.count, 1, "what is all here is joined");
    h.registry.is_down = false;
    channel_recover(h.s.channel, false);
    world_turns(&h.s.w);
    is_number(h.registry.count, 1, "the other is claimed when it is back");
    shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_string(shared_peer(&h, 1), "b.test", "and goes where it belongs");
    ok(world_is_empty(&h.s.w));
}

TEST(many_starts)
{
    FIXTURE(shared, h, shared_begin, shared_end, ROUTES);
    for (unsigned i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "s%u", i);
        part(&h, id, 1);
        part(&h, id, 2);
    }
    is_number(h.registry.count, 50, "a claim for each set");
    restart(&h);
    is_number(h.registry.count, 50, "after a start, too");
    while (h.registry.count > 0)
        shared_tell(&h, REGISTRY_OTHER, "b.test");
    is_number(h.s.count, 100, "all go there");
    ok(world_is_empty(&h.s.w));
}
