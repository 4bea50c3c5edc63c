/* Fuzz target: replies of the next hop. Every recipient gets one verdict, and only CRLF
 * lines go out. */
#include "smtp/client/client.h"

#include "t/support/must.h"

#include <stdlib.h>
#include <string.h>

enum { RECIPIENTS = 3, MAILS = 3 };

static const struct reply_outcome_peer peer = {"mx[192.0.2.1]", "mx[192.0.2.1]:25", 25};

struct run {
    struct client *client;
    struct envelope *envelopes[MAILS];
    unsigned verdicts[RECIPIENTS];
    bool sent, over, secured;
    enum target_tls tls;
    bool early_wish, early; /* early: one is said behind the one under way */
    unsigned mails;
    unsigned options; /* what becomes of content that the host cannot take */
    char before;      /* the last byte that went out */
};

static void
take_output(struct run *r)
{
    struct buffer *output = client_output(r->client);
    for (size_t i = 0; i < output->length; i++) {
        must((output->at[i] == '\n') == (r->before == '\r'));
        must(output->at[i] != '\0');
        r->before = output->at[i];
    }
    buffer_clear(output);
}

/* A chunk goes as it is: any byte, and exactly as many as were told. */
static void
give_content(struct run *r)
{
    struct text content = TEXT("Subject: x\r\n\r\n.\r\nbare\nend\0");
    bool binary = r->envelopes[r->mails - 1]->binary;
    take_output(r);
    client_content(r->client, content);
    struct text said = buffer_text(client_output(r->client));
    if (binary && text_equal(said, content))
        buffer_clear(client_output(r->client));
    client_content_end(r->client);
}

/* A plain one, a binary one (with an address that cannot be sent), and one of UTF-8;
 * each with options of DSN. */
static void
make_mail(struct run *r, unsigned which)
{
    static const struct text thirds[MAILS] = {TEXT("c@x"), TEXT("c\rRSET@x"),
                                              TEXT("\xc3\xb8@x")};
    struct envelope *e = r->envelopes[which] = envelope_new();
    must(envelope_add(e, TEXT("a@x"), NOTIFY_NEVER, TEXT("")) &&
         envelope_add(e, TEXT("b@x"), NOTIFY_SUCCESS | NOTIFY_FAILURE,
                      TEXT("rfc822;b+2B@x")) &&
         envelope_add(e, thirds[which], 0, TEXT("utf-8;\xc3\xb8@x")));
    e->fragment.set_mark = TEXT("00112233445566778899aabbccddeeff"
                                "00112233445566778899aabbccddeeff;0;17");
    e->envelope_id = TEXT("id+2B");
    e->ret = which == 1 ? RETURN_FULL : RETURN_HEADERS;
    e->content_size = 26;
    e->eight_bit = true;
    e->binary = which == 1;
    e->utf8 = which == 2;
}

static bool
send_mail(struct run *r)
{
    static const unsigned indexes[RECIPIENTS] = {0, 1, 2};
    if (r->mails == MAILS)
        return false;
    struct client_mail mail = {
        .envelope = r->envelopes[r->mails++], .indexes = indexes, .count = RECIPIENTS};
    client_send(r->client, &mail);
    return true;
}

static void
all_settled(struct run *r, unsigned want)
{
    for (size_t i = 0; r->sent && i < RECIPIENTS; i++)
        must(r->verdicts[i] == want);
    r->sent = false;
}

static void
take_event(struct run *r, const struct client_event *event)
{
    must(!r->over);
    switch (event->kind) {
    case CLIENT_VERDICT:
    case CLIENT_LATER:
        must(event->kind != CLIENT_LATER ||
             event->outcome->verdict == VERDICT_DEFERRED);
        must(event->which < RECIPIENTS && event->outcome->enhanced[0] != '\0');
        must(strcmp(event->outcome->remote, peer.remote) == 0);
        must(r->verdicts[event->which]++ == 0);
        return;
    case CLIENT_CONTENT:
        must(r->sent);
        give_content(r);
        return;
    case CLIENT_PREPARE:
        must(r->sent);
        client_prepared(r->client, (enum downgrade_verdict)(r->options % 4), "no", 40,
                        0);
        return;
    case CLIENT_EARLY:
        r->early = r->early_wish && send_mail(r);
        return;
    case CLIENT_SECURE:
        must(!r->secured);
        r->secured = true;
        client_secured(r->client);
        return;
    case CLIENT_PROBED:
        return; /* it never probes */
    case CLIENT_OVER:
        must(event->outcome != NULL && event->outcome->text[0] != '\0');
        must(event->outcome->verdict == VERDICT_DEFERRED ||
             event->end == CLIENT_END_MAIL);
        must(r->sent || event->end != CLIENT_END_MAIL);
        all_settled(r, event->end == CLIENT_END_MAIL);
        r->over = true;
        return;
    case CLIENT_READY:
    case CLIENT_DONE:
        must(r->secured || r->tls < TARGET_TLS_ENCRYPT);
        all_settled(r, 1);
        memset(r->verdicts, 0, sizeof(r->verdicts));
        r->sent = r->early || send_mail(r);
        r->early = false;
        return;
    }
}

static void
pump(struct run *r, struct text *input)
{
    struct client_event event;
    for (bool again = true; again; client_work(r->client)) {
        while (client_next(r->client, input, &event)) {
            take_output(r);
            take_event(r, &event);
        }
        take_output(r);
        again = client_is_working(r->client);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses LMTP (with a login: one of our own hosts), a login, the demand
 * for TLS (the dialogue goes on as if there were none) and the size of the pieces; the
 * rest is the input from the peer.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct client_settings settings = {
        .hostname = "me.example",
        .peer = &peer,
        .lmtp = (data[0] & 0x11) == 1,
        .redirect_to = (data[0] & 0x11) == 0x11 ? "host1.example" : NULL,
        .timeout_scale = 1,
        .tls = (enum target_tls)(data[0] >> 5 & 3)};
    struct client_login login = {.credentials = {.user = TEXT("joe")},
                                 .allowed = ~0u,
                                 .may_be_clear = data[0] & 4,
                                 .remedy = "a file",
                                 .nonce = "a-nonce"};
    if (data[0] & 8)
        login.credentials.token = TEXT("a-token");
    else
        login.credentials.password = TEXT("a-password");
    if (data[0] & 16)
        settings.login = &login;
    struct run r = {.client = client_new(&settings)};
    r.early_wish = data[0] & 0x80;
    r.tls = settings.tls;
    r.options = data[0] >> 3;
    size_t piece = data[0] & 2 ? 1 + (data[0] >> 2) : size;
    for (unsigned i = 0; i < MAILS; i++)
        make_mail(&r, i);
    struct text all = text_of(data + 1, size - 1), left = text_before(all, 0);
    for (size_t given = 0; given < all.length; given += piece) {
        left.length += piece < all.length - given ? piece : all.length - given;
        pump(&r, &left);
    }
    client_lost(r.client);
    pump(&r, &left);
    must(r.over);
    for (unsigned i = 0; i < MAILS; i++)
        envelope_free(&r.envelopes[i]);
    client_free(&r.client);
    return 0;
}
