/* The scheduler's state of accounts, at startup and after reloads. */
/* link: t/sim/dns.c */
#include "admin/startup/parts.h"

#include "base/disk/disk.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

/* --- Stand-ins for delivery, the manager and its queue ------------------------------------- */

static struct disk *spool;
static char told[1000];
static struct tokens *given;

struct tls_client *const *
delivery_tls(const struct delivery *delivery)
{
    (void)delivery;
    return NULL;
}

void
delivery_set_tokens(struct delivery *delivery, struct tokens *tokens)
{
    (void)delivery;
    given = tokens;
}

void
manager_set_token(struct manager *manager, const struct sched_login *login,
                  enum sched_token token, const char *why)
{
    size_t used = strlen(told);
    (void)manager;
    snprintf(told + used, sizeof(told) - used, "%.*s:%u %.*s %d %s\n",
             TEXT_ARGS(login->host), (unsigned)login->port, TEXT_ARGS(login->user),
             (int)token, why);
}

struct queue *
manager_queue(struct manager *manager)
{
    (void)manager;
    return NULL;
}

struct disk *
queue_disk(struct queue *queue)
{
    (void)queue;
    return spool;
}

/* --------------------------------------------------------------------------------- */

static struct accounts
accounts_of(const char *table)
{
    struct accounts accounts;
    struct options options = {.oauth = strdup(table)};
    struct buffer errors;
    buffer_init(&errors, 1000);
    ok(accounts_read(&options, &accounts, &errors));
    is_text(buffer_text(&errors), TEXT(""), "good accounts");
    buffer_free(&errors);
    free(options.oauth);
    return accounts;
}

static void
is_told(struct daemon *d, const char *table, const char *expected)
{
    struct configuration c = {.accounts = accounts_of(table)};
    told[0] = '\0';
    part_tokens_reload(d, &c);
    is_string(told, expected, "what the scheduler learns");
    accounts_free(&c.accounts);
}

int
main(void)
{
    char folder[64], error[OAUTH_REASON_MAX] = "";
    struct loop *loop = loop_new();
    struct daemon d = {.loop = loop,
                       .log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR),
                       .net = net_new(loop),
                       .dns = dns_new(loop, TEXT(""), error, sizeof(error))};
    folder_make(folder, sizeof(folder), "keeper");
    if (disk_open(&spool, folder, true) != 0)
        abort();
    is_told(&d, "", "");
    ok_named(d.tokens.tokens == NULL && d.tokens.http == NULL, "without an account nothing is made");
    is_told(&d, "h.test joe google client=x\nh.test:25 jim google client=x secret=y",
            "h.test:0 joe 2 waits for a token of joe from oauth2.googleapis.com\n"
            "h.test:25 jim 2 waits for a token of jim from oauth2.googleapis.com\n");
    ok_named(given == d.tokens.tokens && d.tokens.tokens != NULL, "delivery asks for them");
    loop_turn(loop, 0);
    ok_named(strstr(told, "h.test:0 joe 3 no token of joe from oauth2.googleapis.com: "
                          "nobody has logged in; run: petrel oauth login h.test joe\n"),
             "then it is known that nobody has logged in");
    is_told(&d, "h.test:25 jim google client=x",
            "h.test:0 joe 0 \n"
            "h.test:25 jim 2 waits for a token of jim from oauth2.googleapis.com\n");
    is_told(&d, "", "h.test:25 jim 0 \n");
    part_tokens_stop(&d);
    ok(d.tokens.tokens == NULL && d.tokens.http == NULL);
    part_tokens_stop(&d);
    dns_free(&d.dns);
    net_free(&d.net);
    disk_close(&spool);
    log_free(&d.log);
    loop_turn(loop, 0);
    loop_free(&loop);
    folder_remove(folder);
    return done();
}
