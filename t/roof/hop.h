/* Next hops: hosts that take mail by SMTP or LMTP, in every mood. */
#ifndef T_ROOF_HOP_H
#define T_ROOF_HOP_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* In a thousand, each time that it could happen. */
struct hop_mood {
    unsigned greeting;              /* 421 or 554 in place of the greeting */
    unsigned mail, rcpt, data, end; /* 4yz there */
    unsigned never;                 /* such a reply is 5yz */
    unsigned cut;                   /* the connection ends in place of a reply */
    unsigned cut_end;               /* stored, and ended in place of the reply */
    unsigned close;                 /* 421 in place of a reply */
    unsigned late;                  /* a reply comes after up to late_ms */
    int64_t late_ms;
    unsigned twice;    /* a reply comes twice */
    unsigned early;    /* the reply to content comes within it */
    unsigned idle_cut; /* ended soon after a transaction */
    /* at STARTTLS: 454; no TLS behind the 220; an end within the handshake; a certificate of
     * a stranger */
    unsigned tls_refused, tls_broken, tls_cut, tls_strange;
    unsigned ahead; /* 421 in the same packet as the reply to EHLO */
    /* at AUTH: 535, 454, 421 behind the 235, a line behind it */
    unsigned auth_refused, auth_later, auth_closed, auth_surplus;
    unsigned hang_up;   /* a plain end in place of the greeting */
    unsigned slow_down; /* 421 with these words in place of the reply to MAIL */
    unsigned null;      /* 501 to MAIL from nobody */
    unsigned most;      /* recipients of a transaction; then 452. 0: any number */
    int64_t grey_ms;    /* a recipient is deferred until it was known so long */
    int64_t reply_ms;   /* each reply takes so long */
};

struct hop;
/* At ip:port. It takes reports, too: of the domain MODEL_BACK. */
struct hop *hop_new(const char *name, const char *ip, unsigned port, bool lmtp,
                    bool pipelining, bool chunking);
/* One route alone leads to it, whose limits count. */
void hop_set_route(struct hop *h, unsigned route);
/* Hosts of a group share the limits of this site (law_group.h), which is this hop alone. */
void hop_set_shared(struct hop *h, unsigned site);
/* That are open there, and have not said QUIT. */
unsigned hops_shared_sessions(unsigned site);
/* This domain of one daemon alone leads to it, always by one site. */
void hop_judge_window(struct hop *h, unsigned domain);
/* Its routes have become others now, whose windows are new. */
void hops_forget_windows(void);
/* It takes NOTIFY and ORCPT (RFC 3461), and reports success itself. */
void hop_set_dsn(struct hop *h);
/* It takes mail from user h0 (or the like) alone, whose password must not come in cleartext
 * while the route of this domain has always demanded TLS. */
void hop_set_login(struct hop *h, unsigned user, unsigned domain, bool by_login);
/* The same, with tokens (token.h), as user t0. */
void hop_set_token(struct hop *h, unsigned domain);
/* Whether it offers STARTTLS. */
void hop_set_tls(struct hop *h, bool offers);
/* Whether it offers REQUIRETLS under TLS, in a thousand times. */
void hop_set_requires(struct hop *h, unsigned permille);
/* For connections and replies from now on. */
void hop_set_mood(struct hop *h, const struct hop_mood *mood);
enum hop_weather { HOP_UP, HOP_REFUSES, HOP_SILENT };
void hop_set_weather(struct hop *h, enum hop_weather weather);
/* Connections and transactions that are open, and the most there were. */
unsigned hops_open(void);
unsigned hops_most(void);
void hops_forget_most(void);
/* Connections since hops_forget_visits(), but for those with reports to senders. */
unsigned hops_visits(void);
void hops_forget_visits(void);
/* The largest number of recipients of a transaction since the last call. */
unsigned hops_take_most_rcpts(void);
/* The hop that this line of a log names has said replies twice, a moment ago: its client may take
 * one for the reply to a command that the hop never hears. */
bool hop_has_lied(struct text line);
/* Ends all connections: nothing is left of their moods. */
void hops_reset(void);

#endif
