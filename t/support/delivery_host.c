/* A mail host for tests: a listener on the loop that answers commands by a table. */
#include "t/support/delivery_host.h"

void
host_must(bool good)
{
    if (!good)
        abort();
}

static const char *
host_reply(struct host_link *l, struct text line)
{
    static const struct host_rule presets[] = {
        {"EHLO", "250-host\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 0\r\n", 0, 0},
        {"LHLO", "250-host\r\n250 PIPELINING\r\n",                               0, 0},
        {"DATA", "354 go\r\n",                                                   0, 0},
        {"QUIT", NULL,                                                           0, 0},
        {".",    "250 2.0.0 taken\r\n",                                          0, 0},
        {"",     "250 2.1.0 ok\r\n",                                             0, 0}
    };
    const struct host_rule *tables[] = {l->host->rules, presets};
    for (size_t t = 0; t < 2; t++)
        for (const struct host_rule *r = tables[t]; r != NULL && r->start != NULL;
             r++) {
            if (l->number < r->from || (r->until != 0 && l->number >= r->until))
                continue;
            if (text_starts(line, text_from(r->start)))
                return r->reply;
            if (r->start[0] == '\0')
                break;
        }
    abort();
}

void
host_hang_up(struct host_link *l)
{
    if (l->connection == NULL)
        return;
    net_close(&l->connection);
    l->host->open--;
}

static void
host_line(struct host_link *l, struct text line)
{
    bool dot = text_equal(line, TEXT("."));
    if (l->in_data && !dot) {
        host_must(buffer_add(&l->host->content, line) &&
                  buffer_add(&l->host->content, TEXT("\r\n")));
        return;
    }
    if (!dot)
        host_must(buffer_add(&l->host->commands, line) &&
                  buffer_add_byte(&l->host->commands, '\n'));
    const char *reply = host_reply(l, line);
    if (text_starts(line, TEXT("MAIL")))
        l->rcpts = 0;
    if (text_starts(line, TEXT("RCPT")) && reply != NULL && reply[0] == '2' &&
        l->host->rcpt_max > 0 && ++l->rcpts > l->host->rcpt_max)
        reply = l->host->rcpt_beyond;
    if (dot && l->host->quiet_after > 0 && ++l->host->dots > l->host->quiet_after)
        l->host->quiet = true;
    if (l->host->quiet)
        reply = "";
    l->in_data = reply != NULL && text_starts(text_from(reply), TEXT("354"));
    bool go = reply != NULL && text_starts(text_from(reply), TEXT("220")) &&
              text_starts(line, TEXT("STARTTLS"));
    l->secure = go && l->host->tls != NULL;
    l->broken = go && l->host->tls_breaks;
    if (reply == NULL)
        host_hang_up(l);
    else
        net_send(l->connection, text_from(reply));
}

static void
host_secure(struct host_link *l)
{
    struct net_tls tls = {.server = l->host->tls};
    l->secure = false;
    net_start_tls(l->connection, &tls);
}

static void
host_happened(void *context, enum net_event event)
{
    struct host_link *l = context;
    if (event == NET_SECURED)
        host_must(buffer_add(&l->host->commands, TEXT("(tls)\n")));
    if (event == NET_ENDED || event == NET_FAILED)
        host_hang_up(l);
    if (event == NET_INPUT && l->broken)
        host_hang_up(l);
    if (event != NET_INPUT || l->connection == NULL)
        return;
    struct text input = net_input(l->connection);
    size_t before = input.length;
    for (size_t end;
         l->connection != NULL && (end = text_find(input, '\n')) != TEXT_NONE;) {
        struct text line = text_before(input, end);
        input = text_after(input, end + 1);
        host_must(line.length > 0 && line.at[line.length - 1] == '\r');
        line.length--;
        host_line(l, line);
    }
    if (l->connection != NULL) {
        net_consume(l->connection, before - input.length);
        net_want_input(l->connection, !(l->host->deaf && l->in_data));
    }
    if (l->connection != NULL && l->secure)
        host_secure(l);
}

static void
host_accepted(void *context, struct net_connection *connection)
{
    struct host *h = context;
    struct host_link *l = NULL;
    for (size_t i = 0; i < HOST_LINKS && l == NULL; i++)
        if (h->links[i].connection == NULL)
            l = &h->links[i];
    host_must(l != NULL);
    h->connections++;
    if (h->greeting == NULL) {
        net_abort(&connection);
        return;
    }
    h->open++;
    h->from = *net_peer(connection);
    *l = (struct host_link){
        .host = h, .connection = connection, .number = h->connections};
    net_attach(connection, host_happened, l);
    l->broken = h->tls_implicit && h->tls == NULL;
    if (h->tls_implicit && h->tls != NULL)
        host_secure(l);
    net_send(connection, text_from(h->greeting));
}

uint16_t
fake_host_start(struct host *h, struct net *net, const char *address, uint16_t port)
{
    char error[200];
    struct net_address a;
    host_must(net_address_parse(text_from(address), 1, &a));
    a.port = port;
    h->greeting = "220 host ESMTP\r\n";
    buffer_init(&h->commands, HOST_BYTES_MAX);
    buffer_init(&h->content, HOST_BYTES_MAX);
    h->listener = net_listen(net, &a, 0600, host_accepted, h, error, sizeof(error));
    host_must(h->listener != NULL);
    return net_listener_address(h->listener)->port;
}

void
host_shut(struct host *h)
{
    struct net_address at = *net_listener_address(h->listener);
    net_listener_free(&h->listener);
    h->kept = port_keep(at.family == NET_IPV6 ? AF_INET6 : AF_INET, at.ip, at.port);
}

void
fake_host_stop(struct host *h)
{
    port_give(&h->kept);
    for (size_t i = 0; i < HOST_LINKS; i++)
        if (h->links[i].connection != NULL)
            net_abort(&h->links[i].connection);
    net_listener_free(&h->listener);
    buffer_free(&h->commands);
    buffer_free(&h->content);
}

const char *
host_came_from(const struct host *h)
{
    static char ip[NET_ADDRESS_TEXT_MAX];
    net_address_ip(&h->from, ip);
    return ip;
}
