/* OAuth2 for logins at smarthosts: accounts, requests for tokens, and their answers
 * (RFC 6749, RFC 7636, RFC 8628). Pure: bytes in, bytes out.
 *
 * Tokens, codes and client secrets are in requests and answers alone: no sentence that
 * this module writes has one. */
#ifndef SMTP_OAUTH_OAUTH_H
#define SMTP_OAUTH_OAUTH_H

#include "base/buffer.h"
#include "base/http/http.h"

enum {
    OAUTH_TOKEN_MAX = 8192,   /* of access and refresh tokens */
    OAUTH_ANSWER_MAX = 65536, /* an answer's body */
    OAUTH_NAME_MAX = 256,     /* hosts, users, client ids, codes for users */
    OAUTH_SECRET_MAX = 1024,
    OAUTH_SCOPE_MAX = 512,
    OAUTH_REASON_MAX = 400,
    OAUTH_REQUEST_MAX = 32 * 1024,
    OAUTH_LIFETIME_DEFAULT_S = 3600,
    OAUTH_LIFETIME_MAX_S = 24 * 60 * 60,
    OAUTH_VERIFIER_SIZE = 43 + 1, /* with the final NUL */
    OAUTH_KEY_SIZE = 16 + 1
};

/* --- Accounts -------------------------------------------------------------------- */

enum oauth_provider { OAUTH_MICROSOFT, OAUTH_GOOGLE, OAUTH_CUSTOM };
enum oauth_grant {
    OAUTH_REFRESH, /* a user has logged in once; a refresh token stands for that */
    OAUTH_CLIENT   /* the application itself has the right */
};
struct oauth_account {
    char host[OAUTH_NAME_MAX]; /* lower case */
    uint16_t port;             /* 0: any */
    char user[OAUTH_NAME_MAX];
    enum oauth_provider provider;
    enum oauth_grant grant;
    char client[OAUTH_NAME_MAX], scope[OAUTH_SCOPE_MAX];
    char secret[OAUTH_SECRET_MAX];     /* "", the secret; "@/PATH" until it is read */
    char refresh[OAUTH_NAME_MAX];      /* "" or the path of a first refresh token */
    char token_url[HTTP_URL_MAX + 1];  /* https:// */
    char device_url[HTTP_URL_MAX + 1]; /* "" when there is none */
    char authorize_url[HTTP_URL_MAX + 1]; /* "" when there is none */
};
/* "HOST[:PORT] USER PROVIDER KEY=VALUE...". False, with one sentence in why, which does
 * not repeat a secret. */
bool oauth_parse_account(struct text row, struct oauth_account *out,
                         char why[OAUTH_REASON_MAX])
    __attribute__((warn_unused_result));
/* The name of its state: 16 hexadecimal digits. */
void oauth_account_key(const struct oauth_account *account, char out[OAUTH_KEY_SIZE]);

/* --- Requests -------------------------------------------------------------------- */

/* Bodies of POST requests, application/x-www-form-urlencoded. secret: the account's, as
 * read; "" when it has none. False: out's limit is reached. */
#define OAUTH_FORM "application/x-www-form-urlencoded"
bool oauth_write_token_request(struct buffer *out, const struct oauth_account *account,
                               struct text secret, struct text refresh)
    __attribute__((warn_unused_result));
bool oauth_write_code_request(struct buffer *out, const struct oauth_account *account,
                              struct text secret, struct text code,
                              struct text redirect, struct text verifier)
    __attribute__((warn_unused_result));
bool oauth_write_device_request(struct buffer *out, const struct oauth_account *account)
    __attribute__((warn_unused_result));
bool oauth_write_poll_request(struct buffer *out, const struct oauth_account *account,
                              struct text secret, struct text device_code)
    __attribute__((warn_unused_result));
/* The address that a user opens. */
bool oauth_write_authorize_url(struct buffer *out, const struct oauth_account *account,
                               struct text redirect, struct text state,
                               struct text verifier)
    __attribute__((warn_unused_result));
/* PKCE: 32 random octets as text. */
void oauth_make_verifier(const uint64_t random[4], char out[OAUTH_VERIFIER_SIZE]);
/* The code from the address that the browser was sent to; state: which it must have.
 * False with one sentence in why. */
bool oauth_read_redirect(struct text address, struct text state,
                         char code[OAUTH_SECRET_MAX], char why[OAUTH_REASON_MAX])
    __attribute__((warn_unused_result));

/* --- Answers --------------------------------------------------------------------- */

enum oauth_verdict {
    OAUTH_GRANTED,
    OAUTH_TRY_AGAIN, /* the provider has trouble, or its answer is not usable */
    OAUTH_REFUSED,   /* nothing changes until somebody does something */
    OAUTH_PENDING,   /* device flow: the user has not answered yet */
    OAUTH_SLOW_DOWN  /* the user has not answered, and we ask too often */
};
struct oauth_answer {
    enum oauth_verdict verdict;
    char reason[OAUTH_REASON_MAX]; /* one printable sentence unless GRANTED */
    struct buffer access;          /* GRANTED; overwritten by oauth_answer_free() */
    struct buffer refresh;         /* empty: the old one stays */
    int64_t lifetime_s;
};
/* To be freed, with any verdict. */
void oauth_read_token(unsigned status, struct text body, struct oauth_answer *out);
void oauth_answer_free(struct oauth_answer *answer);
/* Replaces the words of a reason that have a part of a secret, encoded or not: providers
 * repeat parts of the request. */
void oauth_hide(char reason[OAUTH_REASON_MAX], struct text secret);

struct oauth_device {
    enum oauth_verdict verdict; /* GRANTED, TRY_AGAIN or REFUSED */
    char reason[OAUTH_REASON_MAX];
    char device_code[OAUTH_SECRET_MAX * 2], user_code[OAUTH_NAME_MAX],
        url[HTTP_URL_MAX + 1];
    int64_t lifetime_s, interval_s;
};
void oauth_read_device(unsigned status, struct text body, struct oauth_device *out);

#endif
