/* Users and passwords of the run: of clients at the host, and of the host at hops. */
#ifndef T_ROOF_LOGIN_H
#define T_ROOF_LOGIN_H

#include <stdbool.h>

#define LOGIN_USERS     "/etc/petrel/users"
#define LOGIN_PASSWORDS "/etc/petrel/passwords"

enum { LOGIN_CLIENTS = 3, LOGIN_WORD_MAX = 80 };

/* For runs in processes of their own: what all of them compute. */
void login_prepare(void);
/* Writes both files. hops: their addresses; the host is user h0 at the first one. */
void login_begin(const char *const *hops, unsigned count);

/* A word of AUTH, in Base64. who: 'c' of a client, 'h' at a hop. */
enum login_part { LOGIN_PLAIN, LOGIN_USER, LOGIN_PASSWORD };
void login_word(char who, unsigned number, enum login_part part, bool is_right,
                char out[LOGIN_WORD_MAX]);

#endif
