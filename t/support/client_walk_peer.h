/* A mail host on random walks: it mostly keeps to the protocol, and watches that the
 * client does. */
#ifndef T_SUPPORT_CLIENT_WALK_PEER_H
#define T_SUPPORT_CLIENT_WALK_PEER_H

#include "smtp/client/client.h"

#include "base/crypto/base64.h"
#include "t/support/tap.h"

enum { PEER_BYTES_MAX = 8 * 1024 * 1024, PEER_LINE_MAX = 2048 };

/* Found in no word of ours: wherever they are, a secret is. */
#define WALK_PASSWORD "open sesame Zw9xQ-rest"
#define WALK_TOKEN    "ya29-Zw9xQ-rest-of-it"

enum offer {
    OFFERS_PIPELINING = 1,
    OFFERS_8BITMIME = 2,
    OFFERS_SMTPUTF8 = 4,
    OFFERS_SIZE = 8,
    OFFERS_DSN = 16,
    OFFERS_CHUNKING = 32,
    OFFERS_BINARYMIME = 64,
    OFFERS_LIMITS = 128,
    OFFERS_STARTTLS = 256,
    OFFERS_AUTH = 512
};

struct peer {
    uint64_t random;
    unsigned naughty; /* percent of its replies */
    bool loud;        /* for people */
    const struct client_settings *settings;
    const char *secrets[6]; /* forms of what nobody may see, or NULL */

    bool secure, quit;
    unsigned offers; /* since TLS began */
    unsigned mails;  /* its MAILMAX */
    struct buffer heard, says;
    size_t given, taken; /* of says: what the client sees, what it has taken */
    size_t owed_end;     /* of says: where the last reply ends that was asked for */
    bool in_data, mailed, authenticating, auth_heard;
    unsigned auth_steps;
    uint64_t chunk_left;
    bool chunk_is_last;
    unsigned accepted;
    char last[PEER_LINE_MAX], mail[PEER_LINE_MAX];
};

void walk_must(bool good, const char *what, const char *detail);

unsigned peer_chance(struct peer *p, unsigned below);

bool peer_shows_secret(const struct peer *p, const char *text);

/* --- Output ----------------------------------------------------------------------- */

void peer_say(struct peer *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* --- AUTH ------------------------------------------------------------------------- */

/* --- Checks ----------------------------------------------------------------------- */

/* --- Input ------------------------------------------------------------------------ */

/* Takes all that the client has said. */
void peer_hear(struct peer *p, struct buffer *output);

#endif
