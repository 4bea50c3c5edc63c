/* Accounts as `petrel status` has them: without an account, and with each state of one. */
/* link: t/sim/dns.c */
#include "admin/answer/questions.h"
#include "admin/view/status.h"

#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "smtp/oauth/tokens.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/net/net.h"
#include "base/dns/dns.h"
#include "t/support/folder.h"
#include "t/support/printed.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static const int64_t now = INT64_C(1700000000000);

static json_t *
account(const char *state, int port, int64_t until_ms, const char *reason)
{
    json_t *a = json_pack("{s:s,s:i,s:s,s:s}", "host", "h.test", "port", port, "user",
                          "joe", "state", state);
    if (until_ms > 0)
        json_object_set_new(a, "until_ms", json_integer(until_ms));
    if (reason)
        json_object_set_new(a, "reason", json_string(reason));
    return a;
}

TEST(lines)
{
    json_t *all = json_pack("[o,o,o,o]", account("ready", 0, now + 60000, NULL),
                            account("ready", 587, now + 60000, "status 503"),
                            account("asked", 0, 0, NULL),
                            account("failed", 0, 0, "nobody has logged in"));
    json_t *status = json_pack("{s:o}", "oauth", all);
    struct printed out;
    printed_begin(&out);
    status_print(status, now);
    ok(strstr(printed_end(&out),
              "oauth      joe at h.test: token until 22:14:20Z (in 1 min)\n"
              "oauth      joe at h.test:587: token until 22:14:20Z (in 1 min): status 503\n"
              "oauth      joe at h.test: the provider is being asked\n"
              "oauth      joe at h.test: no token: nobody has logged in\n") != NULL);
    json_decref(status);
}

TEST(json)
{
    char folder[64], why[OAUTH_REASON_MAX], error[200];
    struct oauth_account one;
    struct disk *spool;
    struct loop *loop = loop_new();
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR);
    struct net *net = net_new(loop);
    struct dns *dns = dns_new(loop, TEXT(""), error, sizeof(error));
    struct tls_client *tls = NULL;
    folder_make(folder, sizeof(folder), "accounts");
    if (disk_open(&spool, folder, true) != 0)
        abort();
    struct http_caller *http =
        http_caller_new(&(struct http_caller_settings){.loop = loop, .net = net, .dns = dns, .tls = &tls});
    struct tokens *tokens =
        tokens_new(&(struct tokens_settings){loop, log, spool, http, NULL, NULL});
    ok(oauth_parse_account(TEXT("h.test:25 joe google client=canary secret=canary"),
                           &one, why));
    tokens_set(tokens, &one, 1);
    json_t *all = questions_accounts(tokens);
    char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
    is_string(
        text,
        "[{\"host\":\"h.test\",\"port\":25,\"state\":\"asked\",\"user\":\"joe\"}]",
        "an account, without secrets");
    free(text);
    json_decref(all);
    all = questions_accounts(NULL);
    is_number((long)json_array_size(all), 0, "no accounts");
    json_decref(all);
    tokens_free(&tokens);
    http_caller_free(&http);
    dns_free(&dns);
    net_free(&net);
    disk_close(&spool);
    log_free(&log);
    loop_turn(loop, 0);
    loop_free(&loop);
    folder_remove(folder);
}
