/* Logins by host, port and user. */
#include "sched/token_table.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { KEY_MAX = TARGET_HOST_MAX + 8 + SECRETS_USER_MAX };

struct token_login {
    UT_hash_handle hh;
    enum sched_token token;
    char why[OUTCOME_TEXT_MAX];
    char key[KEY_MAX];
};

/* 0: too long for any target. */
static size_t
token_table_key(struct text host, uint16_t port, struct text user, char key[KEY_MAX])
{
    int length = snprintf(key, KEY_MAX, "%.*s:%u ", TEXT_ARGS(host), (unsigned)port);
    if (length < 0 || (size_t)length + user.length >= KEY_MAX)
        return 0;
    text_lower(key, (size_t)length);
    memcpy(key + length, user.at, user.length);
    return (size_t)length + user.length;
}

static struct token_login *
token_table_login(const struct token_table *table, struct text host, uint16_t port,
                  struct text user)
{
    char key[KEY_MAX];
    struct token_login *l = NULL;
    size_t length = token_table_key(host, port, user, key);
    if (length > 0)
        HASH_FIND(hh, table->by_login, key, length, l);
    return l;
}

static void
token_table_drop(struct token_table *table, struct token_login *l)
{
    HASH_DELETE(hh, table->by_login, l);
    free(l);
}

bool
token_table_set(struct token_table *table, const struct sched_login *login,
                enum sched_token token, const char *why)
{
    struct token_login *l =
        token_table_login(table, login->host, login->port, login->user);
    if (token == SCHED_TOKEN_NONE) {
        if (l != NULL)
            token_table_drop(table, l);
        return l != NULL;
    }
    if (l != NULL && l->token == token && strncmp(l->why, why, sizeof(l->why) - 1) == 0)
        return false;
    if (l == NULL) {
        l = memory_new(sizeof(*l));
        size_t length = token_table_key(login->host, login->port, login->user, l->key);
        if (length == 0) {
            free(l);
            return false;
        }
        HASH_ADD(hh, table->by_login, key, length, l);
    }
    l->token = token;
    (void)text_copy(l->why, sizeof(l->why), text_from(why));
    return true;
}

void
token_table_clear(struct token_table *table)
{
    struct token_login *l, *next;
    HASH_ITER (hh, table->by_login, l, next)
        token_table_drop(table, l);
}

/* A login for the port is more specific than one for all ports. */
enum sched_token
token_table_find(const struct token_table *table, const struct target *target,
                 const char **why)
{
    size_t hosts = target_host_count(target), failed = 0;
    enum sched_token token = SCHED_TOKEN_THERE;
    *why = "";
    if (table->by_login == NULL || target->kind != TARGET_SMTP)
        return token;
    for (size_t i = 0; i < hosts; i++) {
        struct target_host h = target_host(target, i);
        const struct token_login *l =
            h.user.length > 0 ? token_table_login(table, h.host, h.port, h.user) : NULL;
        if (l == NULL && h.user.length > 0)
            l = token_table_login(table, h.host, 0, h.user);
        if (l == NULL || l->token == SCHED_TOKEN_THERE)
            continue;
        if (l->token == SCHED_TOKEN_AWAITED || token == SCHED_TOKEN_THERE)
            *why = l->why;
        if (l->token == SCHED_TOKEN_AWAITED)
            return SCHED_TOKEN_AWAITED;
        token = SCHED_TOKEN_FAILED;
        failed++;
    }
    return failed == hosts ? token : SCHED_TOKEN_THERE;
}
