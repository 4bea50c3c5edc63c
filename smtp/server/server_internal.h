/* What server.c, server_auth.c, server_command.c and server_end.c share; nobody else
 * includes it. */
#ifndef SMTP_SERVER_SERVER_INTERNAL_H
#define SMTP_SERVER_SERVER_INTERNAL_H

#include "smtp/server/server.h"
#include "smtp/server/transaction.h"

/* --- server_end.c ------------------------------------------------------------- */

/* The only one that sets the stage. */
void server_enter(struct server *s, enum server_stage stage);

/* The only end of a transaction, whatever became of it; there may be none. An open
 * draft becomes a wish to discard it. */
void server_end_transaction(struct server *s);

/* A reply that refuses: written, logged, and counted as an error of an untrusted
 * client, of others when the command is wrong (which may end the session). Always
 * SERVER_GO_ON. */
enum server_action server_refuse(struct server *s, const struct refusal *r);
void server_refuse_with(struct server *s, int code, const char *enhanced,
                        const char *text);

/* One recipient more than a message may have here: the client sends it the rest later
 * (RFC 5321 §4.5.3.1.10), so the first SERVER_EXCESS_RECIPIENTS of them since its last
 * message are no errors. */
enum server_action server_refuse_excess(struct server *s, const struct refusal *r);
/* A login failed. False: it was one too many, and the session is over. */
bool server_login_is_error(struct server *s);

/* The same with a text that is made now. */
void server_refuse_format(struct server *s, int code, const char *enhanced,
                          const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A command that brings no mail forward. False: there were too many of them, and the
 * session is over. */
bool server_idles(struct server *s);

/* The content is refused: as many replies as its end gets; ends the transaction. */
void server_refuse_content(struct server *s, int code, const char *enhanced,
                           const char *text);
/* How many that is: LMTP has one for each recipient. */
unsigned server_answers(const struct server *s);

/* A last word; ends transaction and session. */
void server_close_with(struct server *s, const struct refusal *r);

void server_log_accepted(struct server *s);
void server_log_refused(struct server *s, const struct refusal *r);

/* --- server_auth.c ------------------------------------------------------------ */

bool server_offers_auth(const struct server *s);
/* "PLAIN LOGIN ..." */
const char *server_mechanisms(const struct server *s);
/* The command AUTH. */
enum server_action server_auth(struct server *s, struct text args);
/* The input is AUTH, or a line of it: it may be long. */
bool server_is_login(const struct server *s, struct text input);
/* What the log may show of a command: of AUTH only the mechanism. */
struct text server_shown(struct text line);
/* A line of the client within AUTH. */
enum server_action server_login_line(struct server *s, struct text line);
/* The only end of AUTH, whatever became of it; there may be none. */
void server_end_login(struct server *s);
/* Who says to be, or is: "" when nobody has said so. mechanism may be NONE. */
const char *server_user(const struct server *s, enum sasl_mechanism *mechanism);

/* --- server_command.c --------------------------------------------------------- */

/* One line from the client, without its CRLF. */
enum server_action server_command(struct server *s, struct text line);

/* A chunk that is not taken: its bytes are skipped, never read as commands; what it
 * belonged to ends with it, for a hole in a message is worse than none. */
void server_refuse_chunk(struct server *s, uint64_t size, int code,
                         const char *enhanced, const char *text);

#endif
