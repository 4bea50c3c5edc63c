/* For tests of AUTH: users, base64, RFC 7677's dialogue. */
#ifndef T_SUPPORT_SASL_KIT_H
#define T_SUPPORT_SASL_KIT_H

#include "base/crypto/base64.h"
#include "smtp/access/users.h"
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

extern const unsigned char kit_secret[DIGEST_SIZE];

struct users * kit_users(const char *content);

/* In as many slices as it takes. */
bool sasl_kit_check(const struct users *users, struct text name, struct text password);

/* Static memory, one at a time. */
struct text kit_coded(struct text t);

struct text kit_decoded(struct text t);

#endif
