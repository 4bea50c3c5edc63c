/* Where a fragment came from, by its envelope (envelope.trust), and the key of its set,
 * which depends on that (doc/defragment.md "Sets"). Pure. */
#ifndef DEFRAG_REASSEMBLY_ORIGIN_H
#define DEFRAG_REASSEMBLY_ORIGIN_H

#include "defrag/reassembly/fragment.h"

struct origin {
    enum fragment_trust trust;
    struct text login;   /* FRAGMENT_LOGIN: the user */
    struct text network; /* of the client, "192.0.2.0/24"; empty: a local client */
    struct text sender;  /* without the prefix of BATV */
};

/* trust and sender as the envelope has them; borrowed. */
void origin_read(struct text trust, struct text sender, struct origin *out);
/* The client's network, as a hash for its quota; without one SET_NOBODY. */
uint64_t origin_client(const struct origin *origin);

/* Properties that fragments with the same id must share to belong together. */
enum origin_keying {
    ORIGIN_BY_SENDER, /* the same sender and trust: fragment_key() */
    ORIGIN_STRICT,    /* as BY_SENDER, and the same network */
    ORIGIN_BY_ID      /* nothing else */
};
/* Keys of different kinds are never equal. */
void origin_key(enum origin_keying keying, const struct origin *origin, struct text id,
                unsigned char key[DIGEST_SIZE]);

#endif
