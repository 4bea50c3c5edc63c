/* Reads the route and sets the birth of fragments between our hosts. */
#include "smtp/redirect.h"

#include "queue/envelope/set_mark.h"

#include <assert.h>

static struct text
without_blanks(struct text t)
{
    while (text_starts(t, TEXT(" ")))
        t = text_after(t, 1);
    return t;
}

/* Moves prefix from the front of *rest to out. */
static bool
redirect_keep(struct text *rest, struct text prefix, struct buffer *out)
{
    if (!text_starts_nocase(*rest, prefix))
        return false;
    *rest = text_after(*rest, prefix.length);
    return buffer_add(out, prefix);
}

static bool
redirect_cut(struct text *rest, struct text prefix)
{
    bool there = text_starts_nocase(*rest, prefix);
    *rest = text_after(*rest, there ? prefix.length : 0);
    return there;
}

bool
redirect_cut_route(struct text argument, struct text name, struct buffer *out)
{
    struct text rest = argument;
    buffer_clear(out);
    if (!redirect_keep(&rest, TEXT("TO:"), out))
        return false;
    rest = without_blanks(rest);
    /* A second route is refused: the parser of addresses would drop it. */
    return redirect_keep(&rest, TEXT("<"), out) && redirect_cut(&rest, TEXT("@")) &&
           redirect_cut(&rest, name) && redirect_cut(&rest, TEXT(":")) &&
           !text_starts(rest, TEXT("@")) && buffer_add(out, rest);
}

void
redirect_date(struct envelope *e, int64_t now_ms, int64_t lifetime_ms)
{
    struct set_mark mark;
    assert(e->fragment.by_peer && e->birth_ms == 0);
    bool good = set_mark_read(e->fragment.set_mark, &mark);
    assert(good);
    int64_t birth_ms = mark.epoch_s * 1000;
    if (birth_ms <= now_ms && now_ms - birth_ms < lifetime_ms)
        e->birth_ms = birth_ms;
}

const char *
redirect_trouble(const struct envelope *e, bool offered, const char **enhanced)
{
    struct set_mark mark;
    *enhanced = "5.7.1";
    if (!offered)
        return "the host does not take fragments from us: its defrag_peers do not have "
               "the address that we come from";
    *enhanced = "5.4.6";
    if (e->fragment.by_peer)
        return "a fragment that one of our hosts has sent goes to no other";
    *enhanced = "5.6.1";
    bool is_fragment = !e->binary && set_mark_read(e->fragment.set_mark, &mark);
    return is_fragment ? NULL : "only a fragment whose set is known goes to that host";
}
