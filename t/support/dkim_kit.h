/* Keys as dkim_keys.h gives them, and a DKIM-Signature taken apart. */
#ifndef T_SUPPORT_DKIM_KIT_H
#define T_SUPPORT_DKIM_KIT_H

#include "smtp/trust/dkim_keys.h"

/* All parts of dkim_keys_begin() and its like. */
struct dkim_keys *dkim_kit_read(struct text setting, struct buffer *errors);
/* RSA keys of 1024 bits, of one domain and selector. */
struct dkim_keys *dkim_kit_keys(const char *domain, const char *selector, size_t count);
/* One RSA key if `rsa`, and one Ed25519 key behind it. NULL: built without Ed25519. */
struct dkim_keys *dkim_kit_ed25519(const char *domain, const char *selector, bool rsa);
/* From now on no key of these can sign: there are no random numbers any more. */
void dkim_kit_break(struct dkim_keys *keys);
/* Whether bh= of the first DKIM-Signature is that of the body of this message. */
bool dkim_kit_body_fits(struct text message);

#endif
