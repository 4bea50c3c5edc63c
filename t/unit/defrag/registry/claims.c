/* defrag/registry/claims.c over a registry that answers what the test wants, when it wants. */
/* link: t/sim/registry_stand_in.c */
/* link: t/sim/loop.c */
#include "defrag/registry/claims.h"

#include "base/loop/loop.h"
#include "base/memory.h"
#include "t/sim/registry_stand_in.h"
#include "t/sim/sim.h"
#include "t/support/tap.h"

enum { HOUR_MS = 3600 * 1000 };

/* --- The world -------------------------------------------------------------------- */

struct scene {
    struct loop *loop;
    struct registry registry;
    struct claims *claims;
    unsigned others;
    char host[64];
    unsigned char key[REGISTRY_KEY_SIZE];
};

static void
on_other(void *context, const unsigned char key[REGISTRY_KEY_SIZE], const char *host)
{
    struct scene *s = context;
    s->others++;
    memcpy(s->key, key, REGISTRY_KEY_SIZE);
    snprintf(s->host, sizeof(s->host), "%s", host);
}

static void
begin(struct scene *s)
{
    *s = (struct scene){.loop = loop_new()};
    struct claims_setup setup = {
        .loop = s->loop, .registry = &s->registry, .other = on_other, .context = s};
    s->claims = claims_new(&setup);
}

static void
end(struct scene *s)
{
    claims_free(&s->claims);
    is_number(s->registry.count, 0, "no claim is left behind");
    loop_free(&s->loop);
}

static const unsigned char *
key_of(unsigned number)
{
    static unsigned char key[REGISTRY_KEY_SIZE];
    memset(key, 0, sizeof(key));
    memcpy(key, &number, sizeof(number));
    return key;
}

static enum owner
claim(struct scene *s, unsigned number)
{
    return claims_claim(s->claims, key_of(number), HOUR_MS).owner;
}

static enum owner
found(struct scene *s, unsigned number)
{
    return claims_find(s->claims, key_of(number)).owner;
}

/* --- Tests ------------------------------------------------------------------------ */

TEST(ours)
{
    FIXTURE(scene, s, begin, end);
    is_number(found(&s, 1), OWNER_UNKNOWN, "nothing is known");
    is_number(claim(&s, 1), OWNER_ASKED, "a first part: the registry is asked");
    is_number(claim(&s, 1), OWNER_ASKED, "a second one");
    is_number(s.registry.asked_ever, 1, "once");
    is_number(s.registry.asked[0]->ttl_ms, HOUR_MS, "for its time");
    answer(&s.registry, REGISTRY_OWN, "");
    is_number(claim(&s, 1), OWNER_US, "ours");
    is_number(s.registry.asked_ever, 1, "and not asked again");
    is_number(s.others, 0, "nobody else has it");
    claims_close(s.claims, key_of(1), 777);
    is_number(s.registry.closed, 1, "closed");
    is_number(s.registry.closed_ms, 777, "with its memory");
    is_number(found(&s, 1), OWNER_UNKNOWN, "and forgotten");
    claims_close(s.claims, key_of(1), 777);
    is_number(s.registry.closed, 1, "only once");
}

TEST(other)
{
    FIXTURE(scene, s, begin, end);
    claim(&s, 1);
    claim(&s, 2);
    answer(&s.registry, REGISTRY_OTHER, "b.example");
    is_number(s.others, 1, "it is told");
    is_string(s.host, "b.example", "who");
    ok_named(memcmp(s.key, key_of(1), REGISTRY_KEY_SIZE) == 0, "and what");
    struct owner_view view = claims_claim(s.claims, key_of(1), HOUR_MS);
    is_number(view.owner, OWNER_OTHER, "what comes later goes there, too");
    is_string(view.host, "b.example", "at once");
    claims_close(s.claims, key_of(1), 1);
    is_number(found(&s, 1), OWNER_OTHER, "a set of ours does not change that");
    is_number(s.registry.closed, 0, "nor is it ours to close");
    is_number(found(&s, 2), OWNER_ASKED, "the other key has its own answer");
}

TEST(closed_before)
{
    FIXTURE(scene, s, begin, end);
    for (unsigned i = 1; i <= 4; i++) {
        claim(&s, i);
        claims_close(s.claims, key_of(i), i);
    }
    is_number(s.registry.closed, 0, "complete before the answer");
    answer(&s.registry, REGISTRY_OWN, "");
    is_number(s.registry.closed_ms, 1, "closed with it");
    answer(&s.registry, REGISTRY_OTHER, "b.example");
    is_number(s.others, 0, "nothing is left to be sent to another");
    answer(&s.registry, REGISTRY_UNAVAILABLE, "");
    is_number(claims_count(s.claims).known, 1, "all is forgotten");
    claim(&s, 4);
    answer(&s.registry, REGISTRY_OWN, "");
    is_number(found(&s, 4), OWNER_US, "a set that begins again is not closed");
    is_number(s.registry.closed, 1, "so far");
}

TEST(alone)
{
    FIXTURE(scene, s, begin, end);
    for (unsigned i = 1; i <= 250; i++) {
        claim(&s, i);
        answer(&s.registry, REGISTRY_UNAVAILABLE, "");
    }
    is_number(found(&s, 7), OWNER_ALONE, "each for itself");
    is_number(claim(&s, 7), OWNER_ALONE, "a second part asks nobody");
    is_number(claims_count(s.claims).alone, 250, "are counted");
    is_number(s.registry.asked_ever, 250, "each once");
    claims_close(s.claims, key_of(250), 1);
    is_number(claims_count(s.claims).alone, 249, "what ends meanwhile is not claimed");
    claims_recover(s.claims, false);
    sim_loop_advance(s.loop, 1);
    is_number(s.registry.count, CLAIMS_RECOVER_SIZE, "a hundred at once");
    is_number(s.registry.asked[0]->ttl_ms, HOUR_MS, "for what is left of their time");
    answer(&s.registry, REGISTRY_OTHER, "b.example");
    is_number(s.others, 1, "another had it");
    while (s.registry.count > 0)
        answer(&s.registry, REGISTRY_OWN, "");
    sim_loop_advance(s.loop, CLAIMS_RECOVER_MS);
    is_number(s.registry.count, CLAIMS_RECOVER_SIZE, "a second later the next");
    s.registry.is_down = true;
    answer(&s.registry, REGISTRY_UNAVAILABLE, "");
    sim_loop_advance(s.loop, CLAIMS_RECOVER_MS);
    is_number(s.registry.count, CLAIMS_RECOVER_SIZE, "down again: only one asks");
    sim_loop_advance(s.loop, CLAIMS_RECOVER_MS);
    is_number(s.registry.count, CLAIMS_RECOVER_SIZE, "so that we hear when it is up");
    s.registry.is_down = false;
    claims_recover(s.claims, false);
    sim_loop_advance(s.loop, 1);
    is_number(claims_count(s.claims).alone, 0, "and in the end all are claimed");
}

TEST(emptied)
{
    FIXTURE(scene, s, begin, end);
    for (unsigned i = 1; i <= 4; i++)
        claim(&s, i);
    answer(&s.registry, REGISTRY_OWN, "");
    answer(&s.registry, REGISTRY_OWN, "");
    answer(&s.registry, REGISTRY_OTHER, "b.example");
    claims_recover(s.claims, false);
    sim_loop_advance(s.loop, 1);
    is_number(s.registry.asked_ever, 4, "what was granted stays");
    claims_recover(s.claims, true);
    is_number(found(&s, 1), OWNER_ALONE, "unless the registry is empty");
    sim_loop_advance(s.loop, 1);
    is_number(s.registry.asked_ever, 6, "then it is claimed again, nothing else");
    ok(found(&s, 3) == OWNER_OTHER && found(&s, 4) == OWNER_ASKED);
    answer(&s.registry, REGISTRY_OWN, ""); /* of 4 */
    answer(&s.registry, REGISTRY_OTHER, "c.example");
    is_number(s.others, 2, "another was faster");
    answer(&s.registry, REGISTRY_OWN, "");
    is_number(found(&s, 2), OWNER_US, "or we were");
}

TEST(time)
{
    FIXTURE(scene, s, begin, end);
    claim(&s, 1);
    answer(&s.registry, REGISTRY_OTHER, "b.example");
    claims_claim(s.claims, key_of(2), 3 * HOUR_MS);
    sim_loop_advance(s.loop, HOUR_MS - 1);
    is_number(found(&s, 1), OWNER_OTHER, "as long as the claim stands");
    sim_loop_advance(s.loop, 2 * 60 * 1000);
    is_number(found(&s, 1), OWNER_UNKNOWN, "and not much longer");
    is_number(found(&s, 2), OWNER_ASKED, "each for its own time");
    sim_loop_advance(s.loop, 3 * HOUR_MS);
    is_number(claims_count(s.claims).known, 0, "also what was never answered");
    is_number(s.registry.count, 0, "whose claim is withdrawn");
    is_number(claim(&s, 1), OWNER_ASKED, "later it is asked again");
}

TEST(many)
{
    FIXTURE(scene, s, begin, end);
    for (unsigned i = 1; i <= CLAIMS_MAX; i++) {
        claim(&s, i);
        answer(&s.registry, REGISTRY_OWN, "");
    }
    is_number(claim(&s, CLAIMS_MAX + 1), OWNER_UNKNOWN, "more are not claimed");
    is_number(s.registry.asked_ever, CLAIMS_MAX, "nor asked");
    claims_close(s.claims, key_of(1), 1);
    is_number(claim(&s, CLAIMS_MAX + 1), OWNER_ASKED, "until there is room");
}
