/* Proves HTTPS calls against a server in the same process: each stage may fail, be slow
 * or be cancelled, and each call is answered once, with a response or a sentence. */
/* link: t/sim/clock.c */
/* link: t/sim/dns.c */
#include "base/http/http_call.h"

#include "t/sim/clock.h"
#include "t/support/http_world.h"

#define HEAD HTTP_WORLD_HEAD

struct heard {
    struct http_call *call;
    int times;
    bool tried, connected, refused, is_early;
    unsigned status, head_status;
    char error[HTTP_ERROR_MAX], body[200];
    size_t length;
};

static void
hear(void *context, const struct http_result *result)
{
    struct heard *h = context;
    h->times++;
    h->tried = result->tried;
    h->connected = result->connected;
    h->refused = result->refused;
    h->is_early = result->is_early;
    http_call_cancel(&h->call); /* without effect here */
    ok_named((result->error == NULL) == (result->response != NULL), "one of the two");
    h->head_status = result->head != NULL ? result->head->status : 0;
    if (result->error != NULL) {
        snprintf(h->error, sizeof(h->error), "%s", result->error);
        return;
    }
    struct text body = buffer_text(&result->response->body);
    h->status = result->response->status;
    h->length = body.length;
    text_copy(h->body, sizeof(h->body), body);
}

static void
call_with(struct calls *c, struct heard *h, const char *scheme, const char *host,
          const struct http_call_options *options)
{
    static const struct http_request get = {.method = {"GET", 3}};
    char url[300];
    memset(h, 0, sizeof(*h));
    snprintf(url, sizeof(url), "%s://%s:%u/path?q", scheme, host, c->port);
    h->call = http_call_start(c->caller, text_from(url), &get, options, hear, h);
    if (h->times > 0)
        ok_named(false, "answered before the start returned");
}

static void
call_start(struct calls *c, struct heard *h, const char *host)
{
    call_with(c, h, "https", host, &(struct http_call_options){0});
}

static struct heard
call(struct calls *c, const char *host)
{
    struct heard h;
    call_start(c, &h, host);
    until(c->world, h.times > 0);
    loop_turn(c->world->loop, 5);
    is_number(h.times, 1, "answered once");
    return h;
}

static void
test_good(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    struct heard h = call(c, "mail.example.net");
    char want[300];
    is_string(h.error, "", "a call over TLS");
    is_number(h.status, 200, "has its status");
    is_string(h.body, "ok", "and its body");
    ok(h.connected);
    snprintf(want, sizeof(want),
             "GET /path?q HTTP/1.1\r\nHost: mail.example.net:%u\r\n"
             "User-Agent: petrel\r\nAccept-Encoding: identity\r\n"
             "Connection: close\r\n\r\n",
             c->port);
    is_text(buffer_text(&c->got), text_from(want), "the request");
    h = call(c, "MAIL.example.net.");
    is_string(h.body, "ok", "in any spelling, and with a session that is resumed");
    h = call(c, "127.0.0.1");
    is_string(h.body, "ok", "an address that the certificate names");

    c->response = "HTTP/1.1 302 Found\r\nLocation: https://mail.example.net/\r\n"
                  "Content-Length: 0\r\n\r\n";
    int before = c->requests;
    h = call(c, "mail.example.net");
    is_number(h.status, 302, "a redirect is a response");
    is_number(c->requests, before + 1, "and is not followed");

    c->response = HEAD "\r\nup to the end";
    h = call(c, "mail.example.net");
    is_string(h.body, "up to the end", "a body that the end of TLS ends");
    c->response = "HTTP/1.1 100 Continue\r\n\r\n" HEAD
                  "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    c->manner = ANSWERS_AND_STAYS;
    h = call(c, "mail.example.net");
    is_string(h.body, "abc", "no end is awaited where it is known");

    struct http_request post = {TEXT("POST"), TEXT("text/plain"), TEXT("X-A: b\r\n"),
                                TEXT("canary=end"), 0};
    char url[] = "https://mail.example.net:00000/";
    snprintf(url, sizeof(url), "https://mail.example.net:%05u/", c->port);
    memset(&h, 0, sizeof(h));
    h.call = http_call_start(c->caller, text_from(url), &post,
                             &(struct http_call_options){0}, hear, &h);
    memset(url, 'x', sizeof(url) - 1); /* copied */
    until(c->world, h.times > 0);
    is_string(h.body, "abc", "POST");
    ok_named(text_ends_nocase(buffer_text(&c->got),
                              TEXT("X-A: b\r\nContent-Type: text/plain\r\n"
                                   "Content-Length: 10\r\n\r\ncanary=end")),
             "with its body and fields");
    calls_finish(c);
}

/* A certificate that proves nothing ends the call before the request is sent. */
static void
test_certificates(struct secrets *secrets)
{
    static const struct {
        const char *certificate, *anchors, *host, *error;
    } rows[] = {
        {"stranger", "ca.pem", "mail.example.net", "TLS: "},
        {"self", "ca.pem", "mail.example.net", "TLS: "},
        {"expired", "ca.pem", "mail.example.net", "TLS: "},
        {"future", "ca.pem", "mail.example.net", "TLS: "},
        {"wild", "ca.pem", "mail.example.net", "TLS: "},
        {"common", "ca.pem", "common.example.net", "TLS: "},
        {"good", "other-ca.pem", "mail.example.net", "TLS: "},
        {"good", "ca.pem", "127.0.0.2", "TLS: "},
        {"good", NULL, "mail.example.net", "there are no trust anchors"},
        {"", "ca.pem", "mail.example.net", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct calls *c = calls_start(secrets, rows[i].certificate, rows[i].anchors);
        struct net_address two = address("127.0.0.2:0");
        struct net_listener *second;
        char error[200];
        two.port = (uint16_t)c->port;
        second = net_listen(c->world->net, &two, 0, calls_accepted, c, error,
                            sizeof(error));
        sim_dns_address(c->dns, "common.example.net", "127.0.0.1");
        if (rows[i].certificate[0] == '\0')
            c->manner = CLOSES;
        struct heard h;
        call_start(c, &h, rows[i].host);
        if (rows[i].certificate[0] == '\0') { /* a server without TLS says something */
            until(c->world, c->accepted > 0);
            net_send(c->peers[0].connection, TEXT("220 mail.example.net ESMTP\r\n"));
        }
        until(c->world, h.times > 0);
        printf("# %s\n", h.error);
        ok_named(h.error[0] != '\0' && strstr(h.error, rows[i].error) != NULL,
                 rows[i].certificate);
        ok_named(strncmp(h.error, rows[i].host, strlen(rows[i].host)) == 0,
                 "  the error names the host");
        is_number(c->requests, 0, "  and no request was sent");
        ok_named(h.connected, "  but the host was reached");
        net_listener_free(&second);
        calls_finish(c);
    }
}

static void
test_refusals(struct secrets *secrets)
{
    static const struct {
        const char *response, *error;
        unsigned status; /* that is known in spite of it */
    } rows[] = {
        {"garbage\n", "a bare LF in the header", 0},
        {"SSH-2.0-OpenSSH\r\n", "not HTTP/1.1 or HTTP/1.0", 0},
        {HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
         "Content-Length together with Transfer-Encoding", 200},
        {HEAD "Content-Length: 500\r\n\r\n", "the body is too large", 200},
        {"HTTP/1.1 100 x\r\n\r\nHTTP/1.1 410 x\r\nContent-Length: 500\r\n\r\n",
         "the body is too large", 410},
        {"HTTP/1.1 100 x\r\n\r\n", "the connection ended within the header", 0},
        {HEAD "Content-Length: 50\r\n\r\nhello", "the connection ended within the body", 200},
        {HEAD "Content-Le", "the connection ended within the header", 0},
        {"", "the connection ended within the header", 0},
        {HEAD "\r\n"
              "12345678901234567890123456789012345678901234567890"
              "12345678901234567890123456789012345678901234567890"
              "1",
         "the body is too large", 200},
        {HEAD "Content-Encoding: br\r\n\r\n", "a content coding that was not asked for", 200},
    };
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct heard h;
        char want[200];
        c->response = rows[i].response;
        call_with(c, &h, "https", "mail.example.net",
                  &(struct http_call_options){.body_max = 100});
        until(c->world, h.times > 0);
        snprintf(want, sizeof(want), "mail.example.net: %s", rows[i].error);
        is_string(h.error, want, "a response that is refused");
        is_number(h.head_status, rows[i].status, "its status");
    }
    c->manner = CLOSES;
    struct heard h = call(c, "mail.example.net");
    is_string(h.error, "mail.example.net: the connection ended within the header",
              "no response at all");
    calls_finish(c);
}

/* Under TLS an end without close_notify may be an attacker's. */
static void
test_truncated(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    struct heard h;
    c->response = HEAD "\r\npart of the";
    c->manner = ANSWERS_AND_ABORTS;
    call_start(c, &h, "mail.example.net");
    until(c->world, c->requests > 0);
    loop_turn(c->world->loop, 5);
    net_abort(&c->peers[0].connection);
    until(c->world, h.times > 0);
    printf("# %s\n", h.error);
    ok_named(h.error[0] != '\0' && h.status == 0, "a cut body is an error");
    calls_finish(c);
}

static void
test_schemes(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "", NULL);
    struct heard h;
    call_with(c, &h, "http", "mail.example.net", &(struct http_call_options){0});
    until(c->world, h.times > 0);
    is_string(h.error,
              "mail.example.net: http:// is not permitted here, only https://",
              "http:// must be permitted");
    is_number(sim_dns_questions(c->dns), 0, "  nothing was looked up");
    call_with(c, &h, "http", "mail.example.net",
              &(struct http_call_options){.cleartext = true});
    until(c->world, h.times > 0);
    is_string(h.body, "ok", "where it is, no TLS is needed");
    call_with(c, &h, "http", "mail.example.net",
              &(struct http_call_options){.cleartext = true, .is_public = true});
    until(c->world, h.times > 0);
    is_string(h.error, "mail.example.net: it has no public address", "a URL of an untrusted origin leads to no host of ours");
    ok_named(!h.connected && !h.tried, "nothing is connected to");
    call_with(c, &h, "gopher", "mail.example.net",
              &(struct http_call_options){.cleartext = true});
    until(c->world, h.times > 0);
    is_string(h.error, "the URL does not begin with https://", "other schemes");
    ok(!h.connected);
    struct http_request large = {.method = TEXT("POST"), .type = TEXT("a/b")};
    large.body.length = HTTP_BODY_MAX + 2 * HTTP_HEAD_MAX;
    large.body.at = calloc(1, large.body.length);
    memset(&h, 0, sizeof(h));
    h.call = http_call_start(c->caller, TEXT("https://mail.example.net"), &large,
                             &(struct http_call_options){0}, hear, &h);
    until(c->world, h.times > 0);
    is_string(h.error, "the request is too large", "a request has its limit");
    free((char *)large.body.at);
    calls_finish(c);
}

/* The listener is at 127.0.0.1 alone: the other addresses refuse. */
static void
test_addresses(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    struct heard h;
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.3");
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.4");
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.5");
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.1");
    h = call(c, "mx.example.net");
    is_string(h.body, "ok", "the fourth address answers");
    sim_dns_address(c->dns, "one.example.org", "127.0.0.3");
    sim_dns_address(c->dns, "one.example.org", "127.0.0.4");
    sim_dns_address(c->dns, "one.example.org", "127.0.0.5");
    sim_dns_address(c->dns, "one.example.org", "127.0.0.6");
    sim_dns_address(c->dns, "one.example.org", "127.0.0.1");
    h = call(c, "one.example.org");
    char want[200];
    snprintf(want, sizeof(want),
             "one.example.org: cannot connect to 127.0.0.6:%u: Connection refused",
             c->port);
    is_string(h.error, want, "a fifth is not tried");
    ok_named(!h.connected && h.tried, "the host was not reached");
    h = call(c, "nowhere.example.net");
    is_string(h.error, "nowhere.example.net does not exist (NXDOMAIN)", "no such name");
    sim_dns_status(c->dns, "dead.example.net", DNS_TRY_AGAIN);
    h = call(c, "dead.example.net");
    is_string(h.error, "dead.example.net cannot be looked up now", "no name server");
    calls_finish(c);
}

/* A socket whose queue is full: connections to it neither fail nor succeed. */
static int
deaf_socket(uint32_t ip, unsigned port, int fillers[4])
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    name.sin_addr.s_addr = htonl(ip);
    if (bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0 || listen(fd, 0) != 0)
        abort();
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&name, sizeof(name));
    }
    usleep(20000);
    return fd;
}

/* Nothing else happens meanwhile. */
static void
pass_time(struct calls *c, int64_t ms)
{
    clock_turns(c->world->loop, 5); /* what is under way */
    clock_pass(ms);
    clock_turns(c->world->loop, 5);
}

static void
test_slow(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    int fillers[4], deaf = deaf_socket(0x7f000007, c->port, fillers);
    struct heard h;
    char want[200];
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.7");
    sim_dns_address(c->dns, "mx.example.net", "127.0.0.1");
    sim_dns_address(c->dns, "deaf.example.net", "127.0.0.7");
    clock_stop();
    loop_turn(c->world->loop, 0); /* from now on timers know the time */
    call_start(c, &h, "mx.example.net");
    clock_turns(c->world->loop, 30); /* the name server's delay */
    pass_time(c, HTTP_CONNECT_MS - 100);
    is_number(c->accepted, 0, "a deaf address has 5 s");
    pass_time(c, 100);
    for (int i = 0; i < 60000 && h.times == 0; i++)
        clock_turn(c->world->loop);
    is_string(h.body, "ok", "then the next one answers");

    call_start(c, &h, "deaf.example.net");
    clock_turns(c->world->loop, 30);
    pass_time(c, HTTP_CONNECT_MS);
    snprintf(want, sizeof(want),
             "deaf.example.net: cannot connect to 127.0.0.7:%u: no answer in 5 s",
             c->port);
    is_string(h.error, want, "none is left");

    c->manner = SILENT;
    call_start(c, &h, "mail.example.net");
    for (int i = 0; i < 60000 && c->requests < 2; i++)
        clock_turn(c->world->loop);
    pass_time(c, HTTP_DEADLINE_MS - 5000);
    is_number(h.times, 0, "a silent server has 30 s");
    is_number(c->requests, 2, "  with the request");
    pass_time(c, 5000);
    is_string(h.error, "mail.example.net: no complete response in 30 s", "no more");
    ok(h.connected);

    call_with(c, &h, "https", "mail.example.net",
              &(struct http_call_options){.deadline_ms = 10000});
    for (int i = 0; i < 60000 && c->requests < 3; i++)
        clock_turn(c->world->loop);
    net_send(c->peers[(c->accepted - 1) % PEERS_MAX].connection, TEXT(HEAD "\r\n"));
    for (int i = 0; i < 200 && h.times == 0; i++) { /* a byte now and then */
        net_send(c->peers[(c->accepted - 1) % PEERS_MAX].connection, TEXT("x"));
        pass_time(c, 100);
    }
    is_string(h.error, "mail.example.net: no complete response in 10 s",
              "bytes do not move the deadline");

    c->shakes = false;
    call_start(c, &h, "mail.example.net");
    pass_time(c, HTTP_DEADLINE_MS);
    is_string(h.error, "mail.example.net: no complete response in 30 s",
              "nor does a handshake that does not end");
    sim_dns_delay(c->dns, 100000);
    call_start(c, &h, "mail.example.net");
    pass_time(c, HTTP_DEADLINE_MS);
    is_string(h.error, "mail.example.net: no complete response in 30 s",
              "nor a name server that is slow");
    clock_go();
    close(deaf);
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
    calls_finish(c);
}

/* Where a call may be when it is cancelled, or the caller freed. */
static const char *const stages[] = {"refused",   "in line",    "looked up", "connecting",
                                     "handshake", "no response", "half a response"};

static void
reach_stage(struct calls *c, size_t stage, struct heard *h)
{
    struct loop *loop = c->world->loop;
    struct heard *others = calloc(HTTP_CALLS_MAX, sizeof(*others));
    c->manner = stage == 6 ? ANSWERS_AND_STAYS : SILENT;
    c->response = HEAD "Content-Length: 5\r\n\r\nhel";
    c->shakes = stage != 4;
    if (stage == 0) {
        call_with(c, h, "ftp", "mail.example.net", &(struct http_call_options){0});
    } else if (stage == 1) {
        for (int i = 0; i < HTTP_CALLS_MAX; i++)
            call_start(c, &others[i], i % 2 ? "mail.example.net" : "other.example.net");
        call_start(c, h, "third.example.net");
        is_number(sim_dns_questions(c->dns), HTTP_CALLS_MAX, "16 at a time");
        for (int i = 0; i < HTTP_CALLS_MAX; i++)
            http_call_cancel(&others[i].call);
        is_number(sim_dns_questions(c->dns), HTTP_CALLS_MAX + 1, "then the next");
    } else {
        call_start(c, h, "mail.example.net");
    }
    if (stage >= 3)
        loop_turn(loop, 30); /* the name server's delay */
    if (stage == 4)
        until(c->world, c->accepted > 0);
    if (stage >= 5)
        until(c->world, c->requests > 0);
    for (int i = 0; stage == 6 && i < 5; i++)
        loop_turn(loop, 2);
    is_number(h->times, 0, stages[stage]);
    free(others);
}

static void
test_cancel(struct secrets *secrets)
{
    for (size_t stage = 0; stage < sizeof(stages) / sizeof(stages[0]); stage++)
        for (int frees = 0; frees < 2; frees++) {
            struct calls *c = calls_start(secrets, "good", "ca.pem");
            struct heard h;
            reach_stage(c, stage, &h);
            if (frees)
                http_caller_free(&c->caller);
            else
                http_call_cancel(&h.call);
            for (int i = 0; i < 10; i++)
                loop_turn(c->world->loop, 3);
            is_number(h.times, 0, "  cancelled, it is silent");
            is_number(net_connections(c->world->net), 0, "  and holds no connection");
            calls_finish(c);
        }
}

static void
test_crowd(struct secrets *secrets)
{
    enum { CROWD = 60 };
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    struct heard h[CROWD];
    int answered = 0, good = 0;
    for (int i = 0; i < CROWD; i++)
        call_start(c, &h[i], i % 7 == 6 ? "nowhere.example.net" : "mail.example.net");
    is_number(sim_dns_questions(c->dns), HTTP_CALLS_MAX, "16 begin, the others wait");
    http_call_cancel(&h[0].call);
    http_call_cancel(&h[50].call);
    for (int turns = 0; turns < 60000 && answered < CROWD - 2; turns++) {
        loop_turn(c->world->loop, 1);
        answered = good = 0;
        for (int i = 0; i < CROWD; i++) {
            answered += h[i].times;
            good += strcmp(h[i].body, "ok") == 0;
        }
    }
    is_number(answered, CROWD - 2, "all but the cancelled ones are answered");
    is_number(good, CROWD - 2 - CROWD / 7, "all that can be, well");
    calls_finish(c);

    c = calls_start(secrets, "", NULL);
    struct heard *many = calloc(HTTP_HOST_CALLS_MAX + HTTP_WAITING_MAX + 1, sizeof(*many));
    sim_dns_delay(c->dns, 100000);
    for (int i = 0; i <= HTTP_HOST_CALLS_MAX + HTTP_WAITING_MAX; i++)
        call_start(c, &many[i], "mail.example.net");
    loop_turn(c->world->loop, 0);
    loop_turn(c->world->loop, 0);
    is_string(many[HTTP_HOST_CALLS_MAX + HTTP_WAITING_MAX].error,
              "too many HTTPS calls wait", "the line has its limit");
    is_number(many[HTTP_HOST_CALLS_MAX + HTTP_WAITING_MAX - 1].times, 0, "and is as long");
    size_t questions = sim_dns_questions(c->dns);
    call_start(c, &h[0], "other.example.net");
    is_number(sim_dns_questions(c->dns), questions + 1, "another host needs no line");
    calls_finish(c);
    free(many);
}

/* A host that does not answer stalls its own calls. */
static void
test_fair(struct secrets *secrets)
{
    enum { CROWD = 100 };
    struct calls *c = calls_start(secrets, "", NULL);
    struct http_call_options options = {.cleartext = true};
    struct heard silent[CROWD], h;
    sim_dns_delay(c->dns, 100000);
    for (int i = 0; i < CROWD; i++)
        call_with(c, &silent[i], "http", "nowhere.example.net", &options);
    is_number(sim_dns_questions(c->dns), HTTP_HOST_CALLS_MAX, "8 begin");
    sim_dns_delay(c->dns, 1);
    call_with(c, &h, "http", "mail.example.net", &options);
    until(c->world, h.times > 0);
    is_string(h.body, "ok", "a call to another host does not wait for them");
    is_number(sim_dns_questions(c->dns), HTTP_HOST_CALLS_MAX + 1, "  nor do they go on");
    http_call_cancel(&silent[0].call);
    is_number(sim_dns_questions(c->dns), HTTP_HOST_CALLS_MAX + 2, "until one ends");
    calls_finish(c);
}

/* Hosts in one network, under any names, leave space for others; calls of theirs wait without a deadline. */
static void
test_networks(struct secrets *secrets)
{
    enum { MAX = 6, NETWORK_MAX = 2, CROWD = 5 };
    struct calls *c = calls_start(secrets, "", NULL);
    struct http_call_options options = {.cleartext = true, .deadline_ms = 1000};
    struct heard near[CROWD], far;
    char error[200], name[40];
    struct net_address at = address("127.1.0.1:0");
    at.port = (uint16_t)c->port;
    struct net_listener *second =
        net_listen(c->world->net, &at, 0, calls_accepted, c, error, sizeof(error));
    http_caller_free(&c->caller);
    c->caller = http_caller_new(&(struct http_caller_settings){.loop = c->world->loop,
                                                               .net = c->world->net,
                                                               .dns = c->dns,
                                                               .tls = &c->client,
                                                               .calls_max = MAX,
                                                               .network_calls_max = NETWORK_MAX});
    c->manner = SILENT;
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "near%d.example.net", i);
        sim_dns_address(c->dns, name, "127.0.0.1");
        call_with(c, &near[i], "http", name, &options);
    }
    is_number(sim_dns_questions(c->dns), CROWD, "all are looked up");
    until(c->world, c->requests == NETWORK_MAX);
    for (int i = 0; i < 20; i++)
        loop_turn(c->world->loop, 2);
    is_number(c->accepted, NETWORK_MAX, "two of one network are connected");
    ok_named(!http_call_is_in_line(near[0].call) && http_call_is_in_line(near[CROWD - 1].call),
             "the others wait");
    c->manner = ANSWERS;
    sim_dns_address(c->dns, "far.example.net", "127.1.0.1");
    call_with(c, &far, "http", "far.example.net", &options);
    until(c->world, far.times > 0);
    is_string(far.body, "ok", "a host elsewhere is asked immediately");
    is_number(near[0].times, 0, "before any of them has ended");
    size_t questions = sim_dns_questions(c->dns);
    for (int i = 0; i < CROWD; i++)
        until(c->world, near[i].times > 0);
    is_string(near[0].error, "near0.example.net: no complete response in 1 s", "the first end by their deadline");
    is_string(near[CROWD - 1].body, "ok", "the last have theirs from their turn on");
    is_number(sim_dns_questions(c->dns), questions, "and are not looked up again");
    ok(!near[0].refused);
    net_listener_free(&second);
    calls_finish(c);
}

/* The line of the name servers is one, too: nothing is known of a host that is not looked up. */
static void
test_line_of_names(struct secrets *secrets)
{
    struct calls *c = calls_start(secrets, "", NULL);
    struct heard h;
    sim_dns_delay(c->dns, 100000);
    sim_dns_busy(c->dns, true);
    call_with(c, &h, "http", "mail.example.net", &(struct http_call_options){.cleartext = true, .deadline_ms = 100});
    ok_named(http_call_is_in_line(h.call), "in the line of the name servers");
    sim_dns_busy(c->dns, false);
    ok_named(!http_call_is_in_line(h.call), "asked for");
    sim_dns_busy(c->dns, true);
    until(c->world, h.times > 0);
    ok_named(h.refused && !h.tried, "it is refused at its deadline");
    calls_finish(c);
}

/* The line is as long for those that step back into it. */
static void
test_networks_full(struct secrets *secrets)
{
    enum { CROWD = HTTP_CALLS_MAX + HTTP_WAITING_MAX };
    struct calls *c = calls_start(secrets, "", NULL);
    struct http_call_options options = {.cleartext = true};
    struct heard *h = calloc(CROWD, sizeof(*h));
    char name[40];
    int answered = 0, refused = 0;
    http_caller_free(&c->caller);
    c->caller = http_caller_new(&(struct http_caller_settings){.loop = c->world->loop,
                                                               .net = c->world->net,
                                                               .dns = c->dns,
                                                               .tls = &c->client,
                                                               .network_calls_max = 1});
    c->manner = SILENT;
    sim_dns_delay(c->dns, 1);
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "n%d.example.net", i);
        sim_dns_address(c->dns, name, "127.0.0.1");
        call_with(c, &h[i], "http", name, &options);
    }
    until(c->world, sim_dns_questions(c->dns) == CROWD);
    for (int i = 0; i < 20; i++)
        loop_turn(c->world->loop, 2);
    for (int i = 0; i < CROWD; i++) {
        answered += h[i].times;
        refused += h[i].refused && strcmp(h[i].error, "too many HTTPS calls wait") == 0;
    }
    is_number(answered, HTTP_CALLS_MAX - 1, "those that find no space in line are answered");
    is_number(refused, HTTP_CALLS_MAX - 1, "which is no failure of theirs");
    calls_finish(c);
    free(h);
}

/* A network that fills the line leaves it, from its end, for hosts that nobody has looked up yet. */
static void
test_networks_leave(struct secrets *secrets)
{
    enum { MAX = 64, CROWD = HTTP_WAITING_MAX + 2, OTHERS = MAX };
    struct calls *c = calls_start(secrets, "", NULL);
    struct http_call_options options = {.cleartext = true};
    struct heard *h = calloc(CROWD, sizeof(*h)), *others = calloc(OTHERS, sizeof(*others));
    char name[40];
    http_caller_free(&c->caller);
    c->caller = http_caller_new(&(struct http_caller_settings){.loop = c->world->loop,
                                                               .net = c->world->net,
                                                               .dns = c->dns,
                                                               .tls = &c->client,
                                                               .calls_max = MAX,
                                                               .network_calls_max = 2});
    c->manner = SILENT;
    sim_dns_delay(c->dns, 1);
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "n%d.example.net", i);
        sim_dns_address(c->dns, name, "127.0.0.1");
        call_with(c, &h[i], "http", name, &options);
    }
    until(c->world, sim_dns_questions(c->dns) == CROWD);
    for (int i = 0; i < 20; i++)
        loop_turn(c->world->loop, 2);
    is_number(h[CROWD - 1].times, 0, "two are connected, all others are in line");
    sim_dns_delay(c->dns, 100000);
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof(name), "other%d.example.net", i);
        call_with(c, &others[i], "http", name, &options);
    }
    for (int i = 0; i < 20; i++)
        loop_turn(c->world->loop, 2);
    int refused = 0;
    for (int i = 0; i < CROWD; i++)
        refused += h[i].refused;
    is_number(refused, 2, "two make space");
    ok_named(h[CROWD - 1].refused && !h[0].refused, "the last ones");
    for (int i = 0; i < OTHERS; i++)
        refused += others[i].times;
    is_number(refused, 2, "and none of the others");
    calls_finish(c);
    free(others);
    free(h);
}

/* --- A body that comes in pieces --- */

enum { STREAM = 3 * 1000 * 1000 };
struct stream {
    struct heard heard;
    struct world *world;
    int64_t given, broken_at;
    int ready;
    bool late; /* the owner answers in a later turn */
    bool pauses; /* it has nothing each other time */
};

static bool
stream_more(void *context, struct buffer *out)
{
    struct stream *s = context;
    int64_t left = STREAM - s->given;
    size_t size = left < HTTP_PIECE ? (size_t)left : HTTP_PIECE;
    if (s->broken_at > 0 && s->given >= s->broken_at)
        return false;
    s->pauses = !s->pauses;
    if (s->pauses)
        return true;
    memset(buffer_reserve(out, size), 'x', size);
    out->length += size;
    s->given += (int64_t)size;
    if (s->given == STREAM)
        memcpy(out->at + out->length - 4, "=end", 4);
    return true;
}

static void
stream_ready(void *context)
{
    struct stream *s = context;
    s->ready++;
}

/* When the owner has its request. */
static void
stream_send(struct stream *s)
{
    struct http_request request = {.method = TEXT("POST"), .type = TEXT("message/rfc822"),
                                   .fields = TEXT("X-Now: y\r\n"), .more = STREAM};
    http_call_send(s->heard.call, &request, &(struct http_source){stream_more, s}, 60 * 1000, 5 * 1000);
}

static void
stream_start(struct calls *c, struct stream *s)
{
    memset(&s->heard, 0, sizeof(s->heard));
    s->given = s->ready = 0;
    s->world = c->world;
    call_with(c, &s->heard, "https", "mail.example.net",
              &(struct http_call_options){.on_ready = stream_ready});
    until(c->world, s->ready > 0);
    for (int i = 0; i < 5; i++)
        loop_turn(c->world->loop, 5);
    is_number(c->requests, 0, "nothing is sent before the owner says so");
}

/* A response before the body is sent, whole or broken. */
static void
test_stream_early(struct secrets *secrets)
{
    struct stream s = {0};
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    stream_start(c, &s);
    net_send(c->peers[0].connection, text_from(c->response));
    until(c->world, s.heard.times > 0);
    ok(s.heard.status == 200 && s.heard.is_early);
    calls_finish(c);

    /* One that is malformed, at each turn in which the owner may send its request. */
    for (int turns = 0; turns < 8; turns++) {
        c = calls_start(secrets, "good", "ca.pem");
        stream_start(c, &s);
        net_send(c->peers[0].connection, TEXT(HEAD "Content-Encoding: gzip\r\n\r\n"));
        for (int i = 0; i < turns; i++)
            loop_turn(c->world->loop, 1);
        if (s.heard.times == 0)
            stream_send(&s);
        until(c->world, s.heard.times > 0);
        ok(s.heard.head_status == 200 && s.heard.error[0] != '\0');
        ok_named(s.heard.is_early, "no body was sent before it");
        calls_finish(c);
    }
}

static void
test_stream(struct secrets *secrets)
{
    struct stream s = {0};
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    buffer_free(&c->got);
    buffer_init(&c->got, STREAM + 10000);
    c->takes_all = true;
    stream_start(c, &s);
    stream_send(&s);
    until(c->world, s.heard.times > 0);
    is_string(s.heard.error, "", "a long body");
    is_number(s.heard.status, 200, "is answered");
    ok(s.given == STREAM && !s.heard.is_early);
    char length[100];
    snprintf(length, sizeof(length), "Content-Length: %d\r\n\r\n", STREAM);
    struct text head = text_before(buffer_text(&c->got), c->got.length - STREAM);
    ok(text_ends_nocase(head, text_from(length)));
    calls_finish(c);

    c = calls_start(secrets, "good", "ca.pem");
    s.broken_at = 100 * 1000;
    stream_start(c, &s);
    stream_send(&s);
    until(c->world, s.heard.times > 0);
    is_string(s.heard.error, "the body of the request cannot be read", "a body that breaks off");
    calls_finish(c);

    /* The connection fails while the owner prepares its request. */
    s.broken_at = 0;
    c = calls_start(secrets, "good", "ca.pem");
    stream_start(c, &s);
    net_abort(&c->peers[0].connection);
    until(c->world, s.heard.times > 0);
    ok(s.heard.connected && s.heard.error[0] != '\0');
    calls_finish(c);

    /* One that does not read it: stall_ms. */
    c = calls_start(secrets, "good", "ca.pem");
    stream_start(c, &s);
    net_want_input(c->peers[0].connection, false);
    clock_stop();
    loop_turn(c->world->loop, 0); /* from now on timers know the time */
    stream_send(&s);
    clock_turns(c->world->loop, 50);
    is_number(s.heard.times, 0, "a peer that does not read");
    pass_time(c, 6 * 1000);
    is_number(s.heard.times, 1, "has its time");
    clock_go();
    is_string(s.heard.error, "mail.example.net: no complete response in 5 s", "is given up");
    calls_finish(c);

    /* Cancelled by the owner, with and without a request. */
    for (int sent = 0; sent < 2; sent++) {
        c = calls_start(secrets, "good", "ca.pem");
        stream_start(c, &s);
        if (sent)
            stream_send(&s);
        http_call_cancel(&s.heard.call);
        loop_turn(c->world->loop, 5);
        is_number(s.heard.times, 0, "cancelled");
        calls_finish(c);
    }
}

struct again {
    struct calls *calls;
    struct heard next;
    int times;
};

static void
hear_again(void *context, const struct http_result *result)
{
    struct again *a = context;
    (void)result;
    if (++a->times == 1)
        call_start(a->calls, &a->next, "mail.example.net");
    else
        http_caller_free(&a->calls->caller);
}

/* A callback may start another call, and free the caller. */
static void
test_within(struct secrets *secrets)
{
    static const struct http_request get = {.method = {"GET", 3}};
    struct calls *c = calls_start(secrets, "good", "ca.pem");
    struct again a = {.calls = c};
    http_call_start(c->caller, TEXT("https://nowhere.example.net/"), &get,
                    &(struct http_call_options){0}, hear_again, &a);
    until(c->world, a.next.times > 0);
    is_string(a.next.body, "ok", "a call from within a callback");
    http_call_start(c->caller, TEXT("x"), &get, &(struct http_call_options){0},
                    hear_again, &a);
    until(c->world, a.times > 1);
    ok_named(c->caller == NULL, "and the end of all");
    calls_finish(c);
}

int
main(void)
{
    struct secrets secrets;
    make_secrets(&secrets);
    test_good(&secrets);
    test_certificates(&secrets);
    test_refusals(&secrets);
    test_truncated(&secrets);
    test_schemes(&secrets);
    test_addresses(&secrets);
    test_slow(&secrets);
    test_cancel(&secrets);
    test_crowd(&secrets);
    test_fair(&secrets);
    test_networks(&secrets);
    test_line_of_names(&secrets);
    test_networks_full(&secrets);
    test_networks_leave(&secrets);
    test_within(&secrets);
    test_stream(&secrets);
    test_stream_early(&secrets);
    drop_secrets(&secrets);
    return done();
}
