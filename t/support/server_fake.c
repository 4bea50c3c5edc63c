/* A server machine with a pretended policy and queue around it. */
#include "t/support/server_fake.h"

void
fake_start(struct fake *f, const struct server_rules *rules, struct event_hub *events, bool lmtp,
           bool may_relay)
{
    memset(f, 0, sizeof(*f));
    buffer_init(&f->out, FAKE_BYTES_MAX);
    buffer_init(&f->held, FAKE_BYTES_MAX);
    buffer_init(&f->draft, FAKE_BYTES_MAX);
    server_start(&f->server, rules, events, &f->out, "[127.0.0.1]", lmtp, may_relay);
}

void
server_fake_end(struct fake *f)
{
    server_free(&f->server);
    for (size_t i = 0; i < f->count; i++) {
        envelope_free(&f->messages[i].envelope);
        buffer_free(&f->messages[i].content);
    }
    buffer_free(&f->out);
    buffer_free(&f->held);
    buffer_free(&f->draft);
}

static const struct outcome *
fake_answer(struct fake *f, bool begin)
{
    return f->answer == NULL ? NULL : f->answer(f->context, begin);
}

static void
fake_admit(struct fake *f)
{
    struct outcome full =
        outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 452, "4.3.1", "no room");
    bool fits = f->space == 0 || server_expected_size(&f->server) <= f->space;
    server_admitted(&f->server, fits ? NULL : &full);
}

/* The routes of t/unit/smtp/session/listener.c: *@refused.example and *@later.example. */
static void
fake_check(struct fake *f)
{
    struct outcome refusal;
    struct text domain = server_recipient(&f->server)->domain;
    if (text_equal_nocase(domain, TEXT("refused.example")))
        refusal = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 550, "5.7.1",
                               "refused by policy");
    else if (text_equal_nocase(domain, TEXT("later.example")))
        refusal =
            outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 450, "4.7.1", "come later");
    else
        refusal.code = 0;
    if (refusal.code == 0 && text_equal(domain, TEXT("joins.example")))
        server_recipient_joins(&f->server);
    server_recipient_checked(&f->server, refusal.code == 0 ? NULL : &refusal);
}

static void
fake_begin(struct fake *f)
{
    const struct outcome *refusal = fake_answer(f, true);
    assert(!f->draft_open);
    assert(server_expected_size(&f->server) >= 0);
    if (refusal == NULL) {
        f->draft_open = true;
        f->drafts++;
        buffer_clear(&f->draft);
    }
    server_begun(&f->server, refusal);
}

static void
fake_store(struct fake *f)
{
    const struct outcome *refusal = fake_answer(f, false);
    assert(f->draft_open);
    f->draft_open = false;
    struct envelope *e = server_envelope(&f->server);
    unsigned char digest[5] = {1, 2, 3, 4, (unsigned char)f->stored};
    e->id = id_make(1700000000000, digest);
    e = server_seal(&f->server, 1700000000000);
    struct id id = e->id;
    if (refusal == NULL && !f->forget && f->count < FAKE_MESSAGES_MAX) {
        struct fake_message *m = &f->messages[f->count++];
        m->envelope = e;
        buffer_init(&m->content, FAKE_BYTES_MAX);
        bool added = buffer_add(&m->content, buffer_text(&f->draft));
        assert(added);
    } else {
        envelope_free(&e);
    }
    f->stored += refusal == NULL;
    buffer_clear(&f->draft);
    if (refusal == NULL)
        server_tell_accepted(&f->server, id);
    server_stored(&f->server, refusal);
}

/* As smtp/session/auth_gate.c does, without its patience. */
static void
fake_login(struct fake *f)
{
    enum sasl_result result = server_login_step(&f->server, FAKE_NONCE);
    while (result == SASL_UNFINISHED)
        result = server_login_work(&f->server);
    f->checks += result == SASL_UNFINISHED;
    while (result == SASL_UNFINISHED)
        result = server_login_work(&f->server);
    f->failures += result == SASL_FAILED;
    server_login_answer(&f->server);
}

/* As smtp/session/session.c does. False: nothing more to do for now. */
static bool
fake_obey(struct fake *f, struct text *input)
{
    struct text before = *input;
    enum server_action action = server_step(&f->server, input);
    if (f->late &&
        (action == SERVER_ADMIT || action == SERVER_CHECK || action == SERVER_BEGIN ||
         action == SERVER_STORE || action == SERVER_FLUSH || action == SERVER_LOGIN)) {
        before = *input;
        enum server_action again = server_step(&f->server, input);
        assert(again == SERVER_WAIT && before.length == input->length);
        (void)again;
    }
    switch (action) {
    case SERVER_SECURE: /* what came in clear is gone */
        *input = text_after(*input, input->length);
        server_secured(&f->server, "TLSv1.2", "TLS_TEST");
        return true;
    case SERVER_LOGIN:
        fake_login(f);
        return true;
    case SERVER_READ:
        return false;
    case SERVER_GO_ON:
        return true;
    case SERVER_ADMIT:
        fake_admit(f);
        return true;
    case SERVER_CHECK:
        fake_check(f);
        return true;
    case SERVER_BEGIN:
        fake_begin(f);
        return true;
    case SERVER_WRITE: {
        assert(f->draft_open);
        bool added = buffer_add(&f->draft, server_content(&f->server));
        assert(added);
        return true;
    }
    case SERVER_STORE:
        fake_store(f);
        return true;
    case SERVER_DISCARD:
        assert(f->draft_open);
        f->draft_open = false;
        return true;
    case SERVER_FLUSH:
        server_flushed(&f->server,
                       dialog_flush(NULL, server_node(&f->server), f->server.client));
        return true;
    case SERVER_WAIT:
        abort(); /* everything has been answered */
    case SERVER_CLOSE:
        assert(!f->draft_open);
        f->closed = true;
        return false;
    }
    return false;
}

void
fake_feed(struct fake *f, struct text bytes)
{
    bool added = buffer_add(&f->held, bytes);
    assert(added);
    struct text input = buffer_text(&f->held);
    while (fake_obey(f, &input))
        ;
    buffer_take(&f->held, f->held.length - input.length);
}
