/* Access tokens of OAuth2 accounts: kept on disk, fetched when they are needed.
 *
 * Each account has a state file, SPOOL/oauth/KEY, written whole and renamed. A refresh
 * token that the provider has exchanged is durable before the access token that came
 * with it is used: otherwise a crash would lose the account. A lock beside the file
 * lets one process at a time ask for an account; one that has waited reads the file
 * again. There is one request for an account at a time, for all that wait for it. */
#ifndef SMTP_OAUTH_TOKENS_H
#define SMTP_OAUTH_TOKENS_H

#include "smtp/oauth/oauth.h"

struct disk;
struct http_caller;
struct log;
struct loop;
struct tokens;

enum {
    TOKENS_ACCOUNTS_MAX = 1000,
    TOKENS_ASKING_MAX = 64,          /* of them; each has a file open for its lock */
    TOKENS_AHEAD_MS = 5 * 60 * 1000, /* asked for anew when less is left; or less
                                           * than half, of one that is short-lived */
    TOKENS_RENEWED_MS = 30 * 1000,   /* at least, between two that nobody asks for */
    TOKENS_RETRY_MS = 30 * 1000,     /* after trouble; doubled up to: */
    TOKENS_RETRY_MAX_MS = 15 * 60 * 1000, /* also after a refusal */
    TOKENS_HEEDED_MS = 60 * 60 * 1000,    /* of a provider's Retry-After */
    TOKENS_LOCKED_MS = 1000,              /* another process asks, or enough do */
    TOKENS_LOOK_MS = 5000 /* for a file that has changed, after a refusal */
};

enum tokens_status {
    TOKENS_NO_ACCOUNT, /* it logs in by other means */
    TOKENS_READY,
    TOKENS_ASKED, /* the provider is being asked */
    TOKENS_FAILED /* will be asked again; *why is a sentence */
};
struct tokens_view {
    const struct oauth_account *account;
    enum tokens_status status; /* NO_ACCOUNT: it is being removed */
    const char *why;           /* ASKED, FAILED: a sentence, without secrets; else "" */
    const char *trouble;       /* why the last request failed, or "" */
    bool refused;     /* and that was a refusal, which lasts until an operator acts */
    int64_t until_ms; /* READY: its end, wall clock; else 0 */
};
typedef void tokens_each_view(void *context, const struct tokens_view *view);

struct tokens_settings {
    struct loop *loop;
    struct log *log;
    struct disk *spool;
    struct http_caller *http;
    /* A token has come or ended, is asked for, or is refused. Not called from within
     * tokens_find() and tokens_refused(); from tokens_set() for accounts removed. */
    tokens_each_view *changed;
    void *context;
};
struct tokens *tokens_new(const struct tokens_settings *settings);
/* No request begins any more. done is called once, in a later turn: when those under way
 * have ended, whose answers may have the only valid refresh token, or after grace_ms. */
void tokens_drain(struct tokens *tokens, int64_t grace_ms, void (*done)(void *context),
                  void *context);
/* Ends requests under way. */
void tokens_free(struct tokens **tokens);

/* Replaces the accounts, copies of rows with their client secrets: at startup and reload.
 * Tokens and requests of accounts that stay are kept; each account without a good one
 * asks. */
void tokens_set(struct tokens *tokens, const struct oauth_account *accounts,
                size_t count);

/* The token of user at the host; asks for one if there is none, or soon will be.
 * token: borrowed until the loop's next turn. */
enum tokens_status tokens_find(struct tokens *tokens, struct text host, uint16_t port,
                               struct text user, struct text *token, const char **why);
/* The host has refused that token. True: it is not used again, and another one is
 * fetched, or there already. False: it is fresh, fetched after the last refusal, so that
 * it counts as a wrong password; when it is refused again, another one is fetched. */
bool tokens_refused(struct tokens *tokens, struct text host, uint16_t port,
                    struct text user, struct text token);
/* An operator has logged in or out, or wants trouble to be tried again: files are looked at,
 * and accounts in trouble ask their provider now. Those that ask already go on. */
void tokens_look(struct tokens *tokens);
/* All accounts, in the order of the settings. */
void tokens_each(const struct tokens *tokens, tokens_each_view *each, void *context);

#endif
