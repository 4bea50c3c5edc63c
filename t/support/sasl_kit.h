/* For tests of AUTH: users, base64, RFC 7677's dialogue. */
#ifndef T_SASL_KIT_H
#define T_SASL_KIT_H

#include "base/crypto/base64.h"
#include "smtp/server/users.h"
#include "t/support/tap.h"

#define KIT_CLIENT_NONCE "rOprNGfwEbeRWgbNEkqO"
#define KIT_SERVER_NONCE "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
#define KIT_FIRST        "n,,n=user,r=" KIT_CLIENT_NONCE
#define KIT_CHALLENGE                                                                    \
    "r=" KIT_CLIENT_NONCE KIT_SERVER_NONCE ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
#define KIT_UNPROVEN "c=biws,r=" KIT_CLIENT_NONCE KIT_SERVER_NONCE
#define KIT_FINAL    KIT_UNPROVEN ",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
#define KIT_VERDICT  "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="

/* "pencil" */
#define KIT_KEYS                                                                         \
    "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"                                       \
    "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"                                      \
    "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static const unsigned char kit_secret[DIGEST_SIZE] = "thirty-two bytes of a secret...";

static inline struct users *
kit_users(const char *content)
{
    struct buffer mistakes;
    buffer_init(&mistakes, 4096);
    struct users *users = users_new(text_from(content), "users", kit_secret, &mistakes);
    is_text(buffer_text(&mistakes), TEXT(""), "users without mistake");
    buffer_free(&mistakes);
    return users;
}

/* In as many slices as it takes. */
static inline bool
kit_check(const struct users *users, struct text name, struct text password)
{
    struct users_check c;
    enum verifier_finding finding = users_check_start(users, name, password, &c);
    while (finding == VERIFIER_UNFINISHED)
        finding = users_check_go(&c);
    return finding == VERIFIER_RIGHT;
}

/* Static memory, one at a time. */
static inline struct text
kit_coded(struct text t)
{
    static char memory[16384];
    struct buffer out;
    buffer_init(&out, sizeof(memory) - 1);
    if (!base64_encode(t, &out))
        abort();
    memcpy(memory, out.at, out.length);
    struct text coded = text_of(memory, out.length);
    buffer_free(&out);
    return coded;
}

static inline struct text
kit_decoded(struct text t)
{
    static char memory[16384];
    size_t length;
    if (!base64_decode(t, memory, sizeof(memory), &length))
        abort();
    return text_of(memory, length);
}

#endif
