/* Messages without a connection: checks, limits and content as for a client of SMTP. */
#include "smtp/session/session_post.h"

#include "smtp/access/senders.h"
#include "t/support/listener_world.h"
#include "t/support/tap.h"

static const struct server_rules plain = {.hostname = "mx.example.org",
                                          .size_limit = 1000000,
                                          .recipient_limit = 3,
                                          .hop_limit = 50,
                                          .error_limit = 2,
                                          .soft_error_limit = 1};

struct answer {
    int count;
    struct id id, stored;
    struct outcome refusal;
    bool refused;
};

static struct world w;
static struct senders *senders;

static void
open_world(void)
{
    struct buffer errors;
    listener_world_start(&w, &plain, false, false);
    buffer_init(&errors, 1000);
    senders = senders_new(TEXT("key:app app@x.example .y.example"), TEXT(""), &errors);
    buffer_free(&errors);
}

static void
close_world(void)
{
    listener_world_end(&w);
    senders_free(&senders);
}

static struct session_post *
begin(void)
{
    struct net_address peer;
    struct outcome refusal;
    if (!net_address_parse_ip(TEXT("192.0.2.7"), &peer))
        abort();
    struct session_post_client client = {.peer = &peer, .user = "key:app", .senders = senders, .secure = true};
    struct session_post *p = session_post_new(listener_host(w.listener), &client, &refusal);
    ok_named(p != NULL, "it begins");
    return p;
}

static void
done_with(void *context, struct id id, const struct outcome *refusal)
{
    struct answer *a = context;
    a->count++;
    a->id = id;
    a->refused = refusal != NULL;
    if (refusal != NULL)
        a->refusal = *refusal;
}

static void
stored_as(void *context, struct id id)
{
    struct answer *a = context;
    ok_named(a->count == 0, "before the answer");
    a->stored = id;
}

static struct answer
finish(struct session_post **p, const char *mark)
{
    struct answer a = {.count = 0};
    session_post_end(*p, text_from(mark), stored_as, done_with, &a);
    ok_named(a.count == 0, "not before it returns");
    for (int i = 0; i < 2000 && a.count == 0; i++)
        loop_turn(w.loop, TURN_MS);
    is_number(a.count, 1, "one answer");
    ok_named(a.refused || id_compare(a.id, a.stored) == 0, "the same message");
    session_post_free(p);
    return a;
}

static struct text
content_of(struct id id, struct envelope **e)
{
    static char bytes[4096];
    struct queue *q = manager_queue(w.manager);
    *e = queue_load(q, id);
    if (*e == NULL)
        return TEXT("");
    int handle = queue_content_open(q, *e);
    int64_t got = queue_content_read(q, handle, 0, bytes, sizeof(bytes));
    queue_content_close(q, handle);
    return text_of(bytes, got > 0 ? (size_t)got : 0);
}

static bool
has(struct text all, const char *part)
{
    return memmem(all.at, all.length, part, strlen(part)) != NULL;
}

TEST(a_message)
{
    struct outcome refusal;
    struct envelope *e;
    open_world();
    struct session_post *p = begin();
    ok(session_post_mail(p, TEXT("app@x.example"), 0, false, 0, &refusal));
    ok(session_post_recipient(p, TEXT("u@example.org"), &refusal));
    ok(session_post_write(p, TEXT("Subject: x\n\n.\nFrom here")));
    struct answer a = finish(&p, "app/k/b");
    ok(!a.refused);
    is_text(content_of(a.id, &e), TEXT("Subject: x\r\n\r\n.\r\nFrom here\r\n"), "line ends are CRLF, the last one, too");
    ok(e != NULL);
    is_text(e->sender, TEXT("app@x.example"), "its sender");
    is_text(e->submitter, TEXT("user:key:app"), "the key has submitted it");
    is_text(e->posted, TEXT("app/k/b"), "its mark");
    ok(has(e->prefix, "with HTTPS") && has(e->prefix, "[192.0.2.7]"));
    ok(has(e->prefix, "\r\nDate: ") && has(e->prefix, "\r\nMessage-ID: "));
    envelope_free(&e);
    close_world();
}

TEST(a_time)
{
    struct outcome refusal;
    struct envelope *e;
    open_world();
    struct session_post *p = begin();
    int64_t then = (loop_now_ms(w.loop) / 1000 + 60) * 1000;
    is_number(session_post_release_max_ms(listener_host(w.listener)), 0, "none is offered");
    ok(!session_post_mail(p, TEXT("app@x.example"), 0, false, then, &refusal));
    is_number(refusal.code, 555, "so none is taken");
    session_post_free(&p);
    listener_host(w.listener)->rules->server.future_release_s = 60;
    is_number(session_post_release_max_ms(listener_host(w.listener)), 60000, "one is offered");
    p = begin();
    ok(session_post_mail(p, TEXT("app@x.example"), 0, false, then, &refusal) && session_post_recipient(p, TEXT("u@example.org"), &refusal));
    struct answer a = finish(&p, "");
    (void)content_of(a.id, &e);
    is_number(e->release_ms, then, "it waits until then");
    envelope_free(&e);
    close_world();
}

TEST(refusals)
{
    struct outcome refusal;
    open_world();
    struct session_post *p = begin();
    ok(!session_post_mail(p, TEXT("other@x.example"), 0, false, 0, &refusal));
    is_number(refusal.code, 553, "a sender of others");
    session_post_free(&p);
    p = begin();
    ok(!session_post_mail(p, TEXT("a> SIZE=1@x.example"), 0, false, 0, &refusal));
    is_number(refusal.code, 501, "parameters cannot be injected");
    ok(!session_post_mail(p, TEXT("app@x.example"), 2000000, false, 0, &refusal));
    is_number(refusal.code, 552, "too large");
    session_post_free(&p);
    p = begin();
    ok(session_post_mail(p, TEXT("a@b.y.example"), 0, false, 0, &refusal));
    static const char *const bad[] = {"x", "a@b> NOTIFY=NEVER", "a@b\r\nRSET", "a@@b", "<a@b.example>", "\xff@b.example", ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!session_post_recipient(p, text_from(bad[i]), &refusal) && refusal.code == 501, "no recipient");
    ok_named(!session_post_recipient(p, TEXT("j\xc3\xb6@b.example"), &refusal), "needs SMTPUTF8");
    for (int i = 0; i < 3; i++)
        ok_named(session_post_recipient(p, i == 0 ? TEXT("a@example.org") : i == 1 ? TEXT("b@example.org") : TEXT("c@example.org"), &refusal),
                 "errors do not end it");
    ok(!session_post_recipient(p, TEXT("d@example.org"), &refusal));
    is_number(refusal.code, 452, "too many");
    session_post_free(&p);
    loop_turn(w.loop, 0);
    close_world();
}

TEST(content_that_is_refused)
{
    static char large[1100000];
    struct outcome refusal;
    memset(large, 'x', sizeof(large));
    for (size_t i = 70; i < sizeof(large); i += 71)
        large[i] = '\n';
    open_world();
    struct session_post *p = begin();
    ok(session_post_mail(p, TEXT("app@x.example"), 0, false, 0, &refusal) && session_post_recipient(p, TEXT("a@example.org"), &refusal));
    (void)session_post_write(p, text_of(large, sizeof(large)));
    struct answer a = finish(&p, "");
    ok(a.refused);
    is_number(a.refusal.code, 552, "beyond the limit");
    p = begin();
    ok(session_post_mail(p, TEXT("app@x.example"), 0, false, 0, &refusal) && session_post_recipient(p, TEXT("a@example.org"), &refusal));
    for (int i = 0; i < 60; i++)
        ok_named(session_post_write(p, TEXT("Received: x\n")), "a hop");
    a = finish(&p, "");
    ok_named(a.refused && a.refusal.code == 554, "a loop");
    close_world();
}

/* The session's client may vanish at any moment. */
TEST(it_is_dropped)
{
    struct outcome refusal;
    struct answer a = {.count = 0};
    open_world();
    struct session_post *p = begin();
    ok(session_post_mail(p, TEXT("app@x.example"), 0, true, 0, &refusal));
    ok_named(session_post_recipient(p, TEXT("j\xc3\xb6@b.example"), &refusal), "with SMTPUTF8");
    (void)session_post_write(p, TEXT("Subject: x\r\n\r\n"));
    session_post_free(&p);
    p = begin();
    ok(session_post_mail(p, TEXT(""), 0, false, 0, &refusal));
    ok(session_post_recipient(p, TEXT("a@example.org"), &refusal));
    (void)session_post_write(p, TEXT("Subject: x\r\n\r\n"));
    session_post_end(p, TEXT(""), NULL, done_with, &a);
    session_post_free(&p);
    for (int i = 0; i < 20; i++)
        loop_turn(w.loop, TURN_MS);
    is_number(a.count, 0, "nobody is called");
    close_world();
}
