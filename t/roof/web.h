/* Hosts of HTTPS, in every mood: policies and tokens come from them. */
#ifndef T_ROOF_WEB_H
#define T_ROOF_WEB_H

#include "base/buffer.h"

struct web;
/* A request that came whole. answer: into out, with its head. */
typedef void web_asked(void *context, struct text request, struct text body,
                       struct buffer *out);

/* At ip:port, up. name: in the trace. */
struct web *web_new(const char *name, const char *ip, unsigned port, web_asked *asked,
                    void *context);
/* Another mood: up, late, broken, with a certificate of nobody, or away. */
void web_act(struct web *w);
void web_become_good(struct web *w);
/* Its answers come whole and soon. */
bool web_is_up(const struct web *w);
/* For ever, whatever else happens. */
void web_leave(struct web *w);
/* A head and body. */
void web_answer(struct buffer *out, unsigned status, const char *type,
                struct text body);

#endif
