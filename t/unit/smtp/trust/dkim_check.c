/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* Records of keys in use: asked for in time and not more often, reported in one line. */
#include "smtp/trust/dkim_keys.h"

#include "base/log/log_internal.h"
#include "t/sim/clock.h"
#include "t/sim/sim_dns.h"
#include "t/support/dkim_kit.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <string.h>

#define NAME "s._domainkey.a.test"

struct world {
    struct loop *loop;
    struct dns *dns;
    struct log *log;
    struct buffer lines;
    struct dkim_keys *keys;
    struct dkim_keys_check *check;
    char record[SIGN_PUBLIC_MAX];
};

static void
world_begin(struct world *w)
{
    char error[200];
    clock_stop();
    w->loop = loop_new();
    w->dns = dns_new(w->loop, TEXT(""), error, sizeof(error));
    w->log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    buffer_init(&w->lines, 100000);
    log_capture(w->log, &w->lines);
    w->keys = dkim_kit_keys("a.test", "s", 1);
    w->check = dkim_keys_check_new(w->loop, w->log, w->dns);
    FIXTURE(buffer, public, buffer_init, buffer_free, SIGN_PUBLIC_MAX);
    must(sign_key_public(w->keys->list[0].key, &public));
    snprintf(w->record, sizeof(w->record), "v=DKIM1; k=rsa; p=%.*s",
             TEXT_ARGS(buffer_text(&public)));
}

static void
world_end(struct world *w)
{
    dkim_keys_check_free(&w->check);
    dkim_keys_free(&w->keys);
    dns_free(&w->dns);
    log_free(&w->log);
    buffer_free(&w->lines);
    loop_free(&w->loop);
}

/* The key signs three times, and the answer comes. */
static void
use(struct world *w)
{
    clock_turn(w->loop);
    for (int i = 0; i < 3; i++)
        dkim_keys_check_used(w->check, &w->keys->list[0]);
    clock_turns(w->loop, 100);
}

static bool
says(const struct world *w, const char *what)
{
    return w->lines.length > 0 &&
           memmem(w->lines.at, w->lines.length, what, strlen(what)) != NULL;
}

static void
test_fits(void)
{
    FIXTURE(world, w, world_begin, world_end);
    sim_dns_text(w.dns, NAME, w.record);
    use(&w);
    use(&w);
    is_number(sim_dns_questions(w.dns), 1, "asked for once");
    is_number(w.lines.length, 0, "nothing to say");
    clock_pass(DKIM_KEYS_CHECK_GOOD_MS);
    is_number(sim_dns_questions(w.dns), 1, "a key that does not sign is not asked for");
    use(&w);
    is_number(sim_dns_questions(w.dns), 2, "the next day once more");
}

static void
test_unfit(const char *record, const char *words)
{
    FIXTURE(world, w, world_begin, world_end);
    if (record != NULL)
        sim_dns_text(w.dns, NAME, record);
    if (record != NULL && record[0] == '2')
        sim_dns_text(w.dns, NAME, "v=DKIM1; p=");
    use(&w);
    char want[SIGN_PUBLIC_MAX + 300];
    snprintf(want, sizeof(want),
             "smtp: warning: dkim_keys: " NAME " %s: receivers cannot verify mail "
             "signed for a.test; publish this TXT record there, and no other: %s\n",
             words, w.record);
    is_text(buffer_text(&w.lines), text_from(want), words);
    use(&w);
    is_number(sim_dns_questions(w.dns), 1, "not asked for at once");
    clock_pass(DKIM_KEYS_CHECK_BAD_MS);
    use(&w);
    is_number(w.lines.length, 2 * strlen(want), "said again after an hour");
}

/* Not known is not wrong; and what was wrong is said to be right. */
TEST(unknown)
{
    FIXTURE(world, w, world_begin, world_end);
    sim_dns_status(w.dns, NAME, DNS_TRY_AGAIN);
    use(&w);
    is_number(w.lines.length, 0, "no answer is no reason for a warning");
    sim_dns_status(w.dns, NAME, DNS_NO_DATA);
    clock_pass(DKIM_KEYS_CHECK_BAD_MS);
    use(&w);
    ok_named(says(&w, NAME " has no TXT record"), "a name without a TXT record");
    sim_dns_status(w.dns, NAME, DNS_TRY_AGAIN);
    clock_pass(DKIM_KEYS_CHECK_BAD_MS);
    buffer_clear(&w.lines);
    use(&w);
    is_number(w.lines.length, 0, "unknown again");
    sim_dns_status(w.dns, NAME, DNS_FOUND);
    sim_dns_text(w.dns, NAME, w.record);
    clock_pass(DKIM_KEYS_CHECK_BAD_MS);
    use(&w);
    is_text(buffer_text(&w.lines),
            TEXT("smtp: dkim_keys: " NAME " now has the record of its key\n"),
            "published");
    clock_pass(DKIM_KEYS_CHECK_BAD_MS);
    use(&w);
    is_number(sim_dns_questions(w.dns), 4, "then it is good for a day");
}

/* Keys go while their questions are out; and no more are out than the limit. */
TEST(limits)
{
    struct dkim_keys *many = dkim_kit_keys("b.test", "t", DKIM_KEYS_CHECK_MAX + 1);
    FIXTURE(world, w, world_begin, world_end);
    for (size_t i = 0; i <= DKIM_KEYS_CHECK_MAX; i++)
        dkim_keys_check_used(w.check, &many->list[i]);
    is_number(sim_dns_questions(w.dns), DKIM_KEYS_CHECK_MAX, "questions at a time");
    dkim_keys_check_stop(w.check);
    struct dkim_key *last = &many->list[DKIM_KEYS_CHECK_MAX];
    dkim_keys_check_used(w.check, last);
    clock_turns(w.loop, 100);
    is_number(sim_dns_questions(w.dns), DKIM_KEYS_CHECK_MAX + 1, "the last one later");
    ok(says(&w, "t._domainkey.b.test has no TXT record"));
    dkim_keys_check_used(w.check, &many->list[0]);
    dkim_keys_check_stop(w.check);
    dkim_keys_free(&many);
    clock_turns(w.loop, 100);
}

int
main(void)
{
    test_fits();
    test_unfit(NULL, "has no TXT record");
    test_unfit("2", "has more than one TXT record");
    test_unfit("v=DKIM1; k=rsa; p=", "has a revoked key (p= is empty)");
    test_unfit("v=DKIM1; k=rsa; p=MIIB", "has another key (p=)");
    test_unfit("v=DKIM1; k=ed25519; p=MIIB", "has a key of another kind (k=)");
    test_unfit("v=spf1 -all", "has a TXT record that is not one of DKIM");
    tap_tests("");
    return done();
}
