/* Finds user and secret for a host, and reads tokens. */
#include "smtp/delivery/credentials.h"

#include "base/disk/disk.h"
#include "smtp/oauth/tokens.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "sched/limits/reply_class.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_FILE_MAX = SASL_TOKEN_MAX + 16 };

struct credentials {
    struct client_login login; /* its texts point to: */
    char *user, *secret;
    size_t secret_length;
    struct tokens *tokens; /* of an account; else NULL */
    char host[TARGET_HOST_MAX];
    uint16_t port;
};

/* Without the path, since the sender of the mail may read it. */
static bool
credentials_fail(struct outcome *why, const struct target_host *host, const char *what)
{
    *why = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                        "cannot log in to the smarthost %.*s as %.*s: %s",
                        TEXT_ARGS(text_before(host->host, 100)),
                        TEXT_ARGS(text_before(host->user, 64)), what);
    return false;
}

static unsigned
mechanisms(const struct target *target)
{
    return target->auth[0] == '\0' ? ~0u : 1u << sasl_find(text_from(target->auth));
}

static bool
read_token(struct credentials *l, const struct secret *secret,
           const struct target_host *host, struct outcome *why)
{
    size_t length;
    char what[128] = "its token file: ";
    int error =
        disk_read_regular(secret->value.at, TOKEN_FILE_MAX, &l->secret, &length);
    if (error < 0) {
        strncat(what, disk_explain(error), sizeof(what) - strlen(what) - 1);
        return credentials_fail(why, host, what);
    }
    /* The length of the whole file: all of it is overwritten in the end. */
    l->secret_length = length;
    l->login.credentials.token = text_trim(text_of(l->secret, length));
    return true;
}

/* The keeper of tokens logs why there is none. */
static bool
credentials_take_token(struct credentials *l, struct tokens *tokens,
                       const struct target_host *host, struct outcome *why)
{
    struct text token = TEXT("");
    const char *trouble = "";
    enum tokens_status status = TOKENS_NO_ACCOUNT;
    if (tokens != NULL)
        status =
            tokens_find(tokens, host->host, host->port, host->user, &token, &trouble);
    if (status == TOKENS_NO_ACCOUNT)
        return credentials_fail(why, host, "its account is no longer in the settings");
    if (status != TOKENS_READY) {
        *why = outcome_make(
            VERDICT_DEFERRED, BLAME_SITE, 0, REPLY_CLASS_TOKEN_ENHANCED,
            "no token for %.*s at %.*s: %s", TEXT_ARGS(text_before(host->user, 64)),
            TEXT_ARGS(text_before(host->host, 100)),
            trouble[0] != '\0' ? trouble : "its provider is being asked");
        return false;
    }
    l->login.remedy = "oauth, and the rights of the account there";
    l->tokens = tokens;
    (void)text_copy(l->host, sizeof(l->host), host->host);
    l->port = host->port;
    l->secret = text_string(token);
    l->secret_length = token.length;
    l->login.credentials.token = text_of(l->secret, l->secret_length);
    return true;
}

static bool
take_secret(struct credentials *l, const struct secret *secret, struct tokens *tokens,
            const struct target_host *host, struct outcome *why)
{
    if (secret->is_account)
        return credentials_take_token(l, tokens, host, why);
    if (secret->is_token) {
        l->login.remedy = "the token file";
        return read_token(l, secret, host, why);
    }
    l->login.remedy = secret->from;
    l->secret = text_string(secret->value);
    l->secret_length = secret->value.length;
    l->login.credentials.password = text_of(l->secret, l->secret_length);
    return true;
}

bool
credentials_new(struct credentials **login, struct loop *loop,
                const struct secrets *secrets, struct tokens *tokens,
                const struct target *target, size_t at,
                const struct net_address *address, struct outcome *why)
{
    const struct target_host host = target_host(target, at);
    *login = NULL;
    if (host.user.length == 0)
        return true;
    const struct secret *secret =
        secrets_find(secrets, host.host, host.port, host.user);
    if (secret == NULL)
        return credentials_fail(why, &host,
                                "its password is no longer in the settings");
    struct credentials *l = memory_new(sizeof(*l));
    l->user = text_string(host.user);
    l->login.credentials.user = text_from(l->user);
    l->login.allowed = mechanisms(target);
    /* Nobody is on the path to this host itself. */
    l->login.may_be_clear = target->auth_clear || net_address_is_loopback(address);
    const uint64_t random[3] = {loop_random(loop), loop_random(loop),
                                loop_random(loop)};
    sasl_nonce(random, l->login.nonce);
    bool good = take_secret(l, secret, tokens, &host, why);
    const char *error = good ? sasl_client_check(&l->login.credentials) : NULL;
    if (error != NULL)
        good = credentials_fail(why, &host, error);
    *login = l;
    if (!good)
        credentials_free(login);
    return good;
}

bool
credentials_refused(const struct credentials *l)
{
    return l != NULL && l->tokens != NULL &&
           tokens_refused(l->tokens, text_from(l->host), l->port, text_from(l->user),
                          l->login.credentials.token);
}

void
credentials_free(struct credentials **login)
{
    struct credentials *l = *login;
    if (l == NULL)
        return;
    if (l->secret != NULL)
        digest_forget(l->secret, l->secret_length);
    free(l->secret);
    free(l->user);
    digest_forget(l, sizeof(*l));
    free(l);
    *login = NULL;
}

const struct client_login *
credentials_login(const struct credentials *login)
{
    return login != NULL ? &login->login : NULL;
}
