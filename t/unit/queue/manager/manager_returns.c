/* link: t/sim/loop.c */
/* Reports that come back are read as they are routed: events of our message, and the end of the report. Forged ones are
 * counted; what cannot be read yet waits. Their forms: t/unit/mime/report/reading.c. */
#include "mime/verp.h"
#include "t/support/manager_world.h"

static const struct id ours = {.time_ms = 1000, .hash = 7};
/* Reports that were believed. */
static unsigned
heard(const struct world *w)
{
    const struct manager_returns *n = manager_returns(w->manager);
    return (unsigned)(n->bounced + n->delayed + n->complained);
}

static struct verp *
keys(const char *secret)
{
    struct text t = text_from(secret != NULL ? secret : "");
    return verp_new(TEXT("bounce@shop.test"), srs_new(TEXT(""), &t, secret != NULL));
}

static void
give(struct world *w, const char *to, const char *content)
{
    struct outcome refusal;
    struct envelope *e = envelope_new();
    if (!envelope_add(e, text_from(to), 0, TEXT("")))
        abort();
    struct queue_draft *draft = queue_begin(manager_queue(w->manager), 0, &refusal);
    (void)!queue_write(draft, text_from(content));
    queue_name(draft, e);
    w->id = e->id;
    queue_commit(&draft, &e, world_stored, w);
    world_turns(w);
}

static const char *
report_of(const char *recipient, const char *action, const char *status, const char *reply)
{
    static char out[2000];
    snprintf(out, sizeof(out),
             "From: MAILER-DAEMON@b.test\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=f\r\n\r\n"
             "--f\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.b.test\r\n\r\n"
             "Final-Recipient: rfc822; %s\r\nAction: %s\r\nStatus: %s\r\nDiagnostic-Code: smtp; %s\r\n--f--\r\n",
             recipient, action, status, reply);
    return out;
}

static const char *
report(const char *recipient, const char *action)
{
    return report_of(recipient, action, "5.2.2", "552 5.2.2 mailbox full");
}

TEST(reports)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct verp *v = keys("0123456789abcdef");
    char tagged[ADDRESS_MAX + 1];
    manager_set_verp(w.manager, v);
    ok(verp_make(v, ours, TEXT("joe@b.test"), loop_now_ms(w.loop), tagged));
    give(&w, tagged, report("joe@b.test", "failed"));
    is_number(heard(&w), 1, "it is heard of");
    ok(manager_returns(w.manager)->bounced == 1);
    ok(world_is_empty(&w) && w.opened == 0);
    ok(world_logged(&w, ": to=<joe@b.test>, returned=failed, class=full, dsn=5.2.2, reporter=mx.b.test, other="));
    ok(world_logged(&w, "status=sent (a report, read; about "));
    give(&w, tagged, report("joe@b.test", "delayed"));
    ok(heard(&w) == 2 && manager_returns(w.manager)->delayed == 1);
    give(&w, tagged, report("joe@b.test", "delivered"));
    is_number(heard(&w), 2, "a success is none");
    const struct manager_returns *n = manager_returns(w.manager);
    ok(n->bounced == 1 && n->delayed == 1 && n->positive == 1 && n->complained == 0);
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
}

TEST(forged)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct verp *v = keys("0123456789abcdef"), *other = keys("another-secret-of-ours");
    char tagged[ADDRESS_MAX + 1], forged[ADDRESS_MAX + 1];
    manager_set_verp(w.manager, v);
    ok(verp_make(v, ours, TEXT("joe@b.test"), loop_now_ms(w.loop), tagged));
    ok(verp_make(other, ours, TEXT("joe@b.test"), loop_now_ms(w.loop), forged));
    give(&w, "bounce@shop.test", report("joe@b.test", "failed"));
    give(&w, forged, report("joe@b.test", "failed"));
    give(&w, tagged, report("ann@b.test", "failed"));
    const struct manager_returns *n = manager_returns(w.manager);
    for (unsigned i = 0; i < MANAGER_FORGED_REASONS; i++)
        is_number(n->forged[i], 1, manager_forged_words[i]);
    ok(heard(&w) == 0 && n->bounced == 0 && world_is_empty(&w) && w.opened == 0);
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
    verp_free(&other);
}

/* Without a secret, and while the disk fails, nothing is decided. */
TEST(later)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct verp *v = keys("0123456789abcdef"), *blind = keys(NULL);
    char tagged[ADDRESS_MAX + 1];
    ok(verp_make(v, ours, TEXT("joe@b.test"), loop_now_ms(w.loop), tagged));
    manager_set_verp(w.manager, blind);
    give(&w, tagged, report("joe@b.test", "failed"));
    ok(heard(&w) == 0 && !world_is_empty(&w));
    world_restart(&w);
    manager_set_verp(w.manager, v);
    sim_loop_advance(w.loop, 120000);
    is_number(heard(&w), 1, "it is read later");
    ok(world_is_empty(&w));
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
    verp_free(&blind);
}

/* Nobody is told that it cannot be delivered. */
TEST(other_mail)
{
    static const char reply[] = "From: joe@b.test\r\nSubject: Re: x\r\n\r\nhello\r\n";
    FIXTURE(world, w, manager_world_begin, manager_world_end,
            "bounce@shop.test smtp://sink.test\n* smtp://sink.test");
    struct verp *v = keys("0123456789abcdef");
    char tagged[ADDRESS_MAX + 1];
    manager_set_verp(w.manager, v);
    ok(verp_make(v, ours, TEXT("joe@b.test"), loop_now_ms(w.loop), tagged));
    give(&w, "bounce@shop.test", reply);
    is_number(w.attempts, 0, "no domain of ours: it never leaves again");
    ok(world_is_empty(&w));
    ok(world_logged(&w, "status=sent (not a report, and nobody reads this address)"));
    w.routes_text.local_domains = TEXT("shop.test");
    w.routes_text.local = TEXT("discard");
    struct route_table *old = w.routes;
    w.routes = world_routes(&w);
    manager_reload(w.manager, &w.settings, w.routes);
    route_free(&old);
    w.all_good = true;
    give(&w, "bounce@shop.test", reply);
    is_number(w.attempts, 1, "it goes where its route leads");
    is_number(manager_returns(w.manager)->others, 2, "both are counted");
    give(&w, "bounce@shop.test", "From: postmaster@b.test\r\nSubject: your last delivery\r\n\r\nIt could not be delivered: please call.\r\n");
    is_number(w.attempts, 2, "so does what may be by a person, without a tag");
    ok(world_is_empty(&w) && heard(&w) == 0);
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
}

/* A report counts for the list of suppressed addresses as a reply does. */
TEST(suppressed)
{
    FIXTURE(world, w, manager_world_begin, manager_world_end, "* smtp://sink.test");
    struct verp *v = keys("0123456789abcdef"), *other = keys("another-secret-of-ours");
    char tagged[ADDRESS_MAX + 1], forged[ADDRESS_MAX + 1];
    struct outcome refusal;
    const struct text me = TEXT("me@shop.test"), joe = TEXT("joe@b.test"), ann = TEXT("ann@b.test");
    w.settings.suppression = (struct suppression_settings){.is_on = true, .limit = 100};
    manager_reload(w.manager, &w.settings, w.routes);
    manager_set_verp(w.manager, v);
    ok(verp_make(v, ours, joe, loop_now_ms(w.loop), tagged) && verp_make(other, ours, joe, loop_now_ms(w.loop), forged));
    give(&w, tagged, report("joe@b.test", "failed"));
    give(&w, forged, report_of("joe@b.test", "failed", "5.1.1", "550 5.1.1 no such user"));
    give(&w, tagged, report_of("joe@b.test", "delayed", "4.1.1", "450 4.1.1 no such user"));
    give(&w, tagged, report_of("joe@b.test", "failed", "5.7.1", "550 5.7.1 blocked using spamhaus"));
    ok_named(!manager_suppresses(w.manager, me, joe, &refusal), "a full mailbox, a forgery, a delay, our reputation: no");
    give(&w, tagged, report_of("gone@c.test\r\nOriginal-Recipient: rfc822; joe@b.test", "failed", "5.1.1", "550 5.1.1 no such user"));
    is_number(manager_returns(w.manager)->bounced, 3, "a dead member of an alias is heard of");
    ok_named(!manager_suppresses(w.manager, me, joe, &refusal), "and does not suppress the alias");
    give(&w, tagged, report_of("Joe@b.test\r\nOriginal-Recipient: rfc822; joe@b.test", "failed", "5.1.1", "550 5.1.1 no such user"));
    ok_named(manager_suppresses(w.manager, me, joe, &refusal), "no such user: yes");
    ok(verp_make(v, ours, ann, loop_now_ms(w.loop), tagged));
    give(&w, tagged,
         "From: fbl@b.test\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=f\r\n\r\n"
         "--f\r\nContent-Type: message/feedback-report\r\n\r\nFeedback-Type: abuse\r\nOriginal-Rcpt-To: ann@b.test\r\n--f--\r\n");
    ok_named(manager_suppresses(w.manager, me, ann, &refusal), "a complaint: yes");
    manager_set_verp(w.manager, NULL);
    verp_free(&v);
    verp_free(&other);
}
