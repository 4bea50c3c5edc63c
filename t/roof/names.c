/* The file of aliases, in many forms. */
#include "t/roof/names.h"

#include "t/roof/host.h"
#include "t/roof/plan.h"
#include "t/roof/roof.h"

#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 1 << 20, MEMBERS = 8, CONTENT = 2000 };

void
names_address(const struct model_message *m, char out[MODEL_ADDRESS_MAX])
{
    snprintf(out, MODEL_ADDRESS_MAX, "g%u@here.test", m->number);
}

static void
put(struct buffer *b, const char *text)
{
    if (!buffer_add(b, text_from(text)))
        abort();
}

/* Members from that one on are in names of their own, or twice. */
static void
write_name(struct buffer *b, const struct model_message *m, unsigned from,
           unsigned depth)
{
    char address[MODEL_ADDRESS_MAX];
    unsigned i = from;
    if (!buffer_format(b, depth == 0 ? "g%u:" : "g%u-%u:", m->number, depth))
        abort();
    for (; i < m->rcpt_count && (i == from || depth == 5 || roof_chance(600)); i++) {
        model_rcpt_address(&m->rcpts[i], address);
        put(b, i == from ? " " : roof_chance(500) ? ", " : ",\n  ");
        put(b, address);
        if (roof_chance(200)) {
            put(b, ", ");
            put(b, address);
        }
    }
    bool has_rest = i < m->rcpt_count;
    if (has_rest && !buffer_format(b, ", g%u-%u", m->number, depth + 1))
        abort();
    put(b, "\n");
    if (has_rest)
        write_name(b, m, i, depth + 1);
}

void
names_edit(void)
{
    struct buffer b;
    unsigned count = model_count(), first = roof_below(count);
    buffer_init(&b, FILE_MAX);
    roof_note("aliases: edited");
    for (unsigned i = 0; i < count; i++) {
        const struct model_message *m = model_at((first + i) % count);
        if (m->is_aliased)
            write_name(&b, m, 0, 0);
    }
    host_write_file(&host, HOST_FOLDER, "aliases", buffer_text(&b));
    buffer_free(&b);
}

void
names_begin(unsigned permille)
{
    for (unsigned i = 0; i < model_count(); i++) {
        struct model_message *m = model_at(i);
        plan_enter("alias", i);
        m->is_aliased = roof_chance(permille) && plan_takes("alias", i);
        if (m->is_aliased) {
            size_t content = roof_below(CONTENT);
            model_draw(m, 1 + roof_below(MEMBERS), content);
        }
        plan_leave();
    }
    names_edit();
}
