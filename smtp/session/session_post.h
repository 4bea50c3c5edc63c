/* A message that a program gives without a connection of SMTP (admin/post/): a session whose
 * commands are made here. It has the machine, the checks, limits and quotas, and the way
 * into the queue, of a client that has logged in. */
#ifndef SMTP_SESSION_SESSION_POST_H
#define SMTP_SESSION_SESSION_POST_H

#include "smtp/session/session.h"

struct session_post;

enum { POST_USER_MAX = 100 };

/* Borrowed by session_post_new(), but for senders, which outlives the post. */
struct session_post_client {
    const struct net_address *peer;
    const char *user; /* to senders, quotas and events */
    const struct senders *senders;
    bool secure; /* it came by TLS */
};

/* How far ahead a message may be released (future_release). */
int64_t session_post_release_max_ms(const struct session_host *host);
/* NULL with the refusal: too many sessions. */
struct session_post *session_post_new(struct session_host *host,
                                      const struct session_post_client *client,
                                      struct outcome *refusal);
/* How many recipients the rates permit to the client in a moment; UINT32_MAX: any number. */
uint32_t session_post_recipients_max(const struct session_post *post);
/* Drops what is not stored; done is not called. */
void session_post_free(struct session_post **post);

/* First the sender ("": the null sender), then each recipient, in UTF-8. utf8: an address
 * of the message is not ASCII. size: of the content, 0: unknown. release_ms: to be delivered
 * then, in whole seconds; 0: now. False with the refusal; further recipients may be tried, to
 * hear about each. */
bool session_post_mail(struct session_post *post, struct text sender, int64_t size,
                       bool utf8, int64_t release_ms, struct outcome *refusal)
    __attribute__((warn_unused_result));
bool session_post_recipient(struct session_post *post, struct text address,
                            struct outcome *refusal)
    __attribute__((warn_unused_result));
/* The content, any cuts; a bare LF is a line end when the first one is. False: it is
 * refused already, and session_post_end() says why. */
bool session_post_write(struct session_post *post, struct text bytes);
/* The content is complete. mark: envelope.posted, or empty. stored (or NULL) comes as soon as
 * the message is durable, done when the client may hear of it, or with a refusal; both
 * later, at the end of a turn. */
typedef void session_post_stored(void *context, struct id id);
typedef void session_post_done(void *context, struct id id,
                               const struct outcome *refusal);
void session_post_end(struct session_post *post, struct text mark,
                      session_post_stored *stored, session_post_done *done,
                      void *context);

#endif
