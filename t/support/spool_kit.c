/* A spool on the simulated disk, and the message that tests put into it. */
#include "t/support/spool_kit.h"

#include "base/crc.h"
#include "t/support/tap.h"

#include <stdlib.h>

const struct text spool_kit_content = TEXT("content\r\n");

void
spool_kit_open(struct spool *s, struct log *log)
{
    char error[300] = "";
    if (spool_open(s, "/spool", false, log, error, sizeof(error)) != 0)
        ok_named(false, error);
    s->is_local = spool_kit_is_local;
}

bool
spool_kit_is_local(void *context, const struct envelope *e, const struct recipient *r)
{
    (void)context;
    return (r - e->recipients) % 2 == 0;
}

struct id
spool_kit_id(unsigned char n)
{
    return id_make(1750000000000, (const unsigned char[]){n, 2, 3, 4, 5});
}

struct envelope *
spool_kit_envelope(unsigned char n)
{
    struct envelope *e = envelope_new();
    e->id = spool_kit_id(n);
    e->birth_ms = 5;
    e->sender = envelope_text(e, TEXT("s@x"));
    e->envelope_id = e->prefix = envelope_text(e, TEXT(""));
    e->content_size = (int64_t)spool_kit_content.length;
    e->content_crc = crc_add(0, spool_kit_content.at, spool_kit_content.length);
    if (!envelope_add(e, TEXT("a@x"), 0, TEXT("")) ||
        !envelope_add(e, TEXT("b@x"), 0, TEXT("")))
        abort();
    return e;
}
