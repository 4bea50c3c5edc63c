/* Expansion of recipients: members, their senders, NOTIFY and ORCPT; whole envelopes of
 * injectors. */
#include "queue/manager/expansion.h"

#include "sched/route/route.h"
#include "t/support/aliases_whole.h"
#include "t/support/tap.h"

struct world {
    struct route_table *routes;
    struct aliases *aliases;
    struct srs *srs;
    struct expansion_rules rules;
};

static const char table[] = "root: alerts@far.test\n"
                            "ann: \\ann, ann@home.test\n"
                            "all: ann, bob, carl@far.test\n"
                            "list: carl@far.test, bob\n"
                            "owner-list: bob\n"
                            "exact: \\root\n";

static void
world_start(struct world *w)
{
    struct text secret = TEXT("0123456789abcdef");
    struct aliases_file file = {"a", text_from(table)};
    struct buffer errors;
    buffer_init(&errors, 4096);
    w->routes = route_new(&(struct route_settings){.routes = TEXT("* mx"),
                                                   .local = TEXT("maildir:/m/%u"),
                                                   .local_domains = TEXT("d.test")},
                          &errors);
    w->aliases = aliases_whole(
        &(struct aliases_settings){
            .files = &file, .file_count = 1, .has_local = true, .routes = w->routes},
        &errors);
    is_text(buffer_text(&errors), TEXT(""), "no errors");
    buffer_free(&errors);
    w->srs = srs_new(TEXT("d.test"), &secret, 1);
    w->rules = (struct expansion_rules){w->routes, w->aliases, w->srs, NULL};
}

static void
world_end(struct world *w)
{
    aliases_free(&w->aliases);
    route_free(&w->routes);
    srs_free(&w->srs);
}

static struct envelope *
envelope_to(const char *sender, const char *list, unsigned notify)
{
    struct envelope *e = envelope_new();
    struct text rest = text_from(list), one;
    e->sender = envelope_text(e, text_from(sender));
    while (text_word(&rest, " ", &one))
        if (!envelope_add(e, one, notify, TEXT("")))
            abort();
    return e;
}

static bool
was_delivered(void *context, struct text address)
{
    return text_equal(address, text_from(context));
}

/* "ADDRESS<ORIGIN(SENDER)[NOTIFY]ORCPT" of each; SRS stands for a sender of SRS. */
static void
becomes(struct world *w, const char *sender, const char *list, unsigned notify,
        char *delivered, const char *want)
{
    struct envelope *e = envelope_to(sender, list, notify);
    struct buffer got;
    buffer_init(&got, 8192);
    ok(expansion_apply(e, &w->rules, 1000, was_delivered, delivered) > 0);
    for (unsigned i = 0; i < e->count; i++) {
        const struct recipient *r = &e->recipients[i];
        struct text own = envelope_sender_of(e, r), origin = envelope_origin_of(r);
        (void)!buffer_format(&got, "%s%.*s", i > 0 ? " " : "", TEXT_ARGS(r->address));
        if (origin.length > 0)
            (void)!buffer_format(&got, "<%.*s", TEXT_ARGS(origin));
        if (envelope_is_srs(own))
            (void)!buffer_add(&got, TEXT("(SRS)"));
        else if (!text_equal(own, e->sender))
            (void)!buffer_format(&got, "(%.*s)", TEXT_ARGS(own));
        if (r->notify != 0)
            (void)!buffer_format(&got, "[%u]", r->notify);
        if (r->original.length > 0)
            (void)!buffer_format(&got, "%.*s", TEXT_ARGS(r->original));
        if (r->expanded)
            (void)!buffer_add(&got, TEXT("!"));
        if (r->refused != RECIPIENT_GOOD)
            (void)!buffer_format(&got, "?%d", (int)r->refused);
    }
    is_text(buffer_text(&got), text_from(want), list);
    buffer_free(&got);
    envelope_free(&e);
}

#define OF_ROOT "rfc822;root@d.test"
#define OF_ANN  "rfc822;ann@d.test"
#define OF_ALL  "rfc822;all@d.test"

TEST(members)
{
    char none[] = "";
    FIXTURE(world, w, world_start, world_end);
    ok(!expansion_is_idle(&w.rules));
    becomes(&w, "me@d.test", "x@far.test bob@d.test", 0, none, "x@far.test bob@d.test");
    becomes(&w, "me@d.test", "root@d.test", 0, none,
            "alerts@far.test<root@d.test" OF_ROOT);
    becomes(&w, "me@d.test", "ann@d.test", 0, none,
            "ann@d.test<ann@d.test" OF_ANN " ann@home.test<ann@d.test" OF_ANN);
    becomes(&w, "me@d.test", "carl@far.test all@d.test ann@d.test", 0, none,
            "carl@far.test ann@d.test<all@d.test" OF_ALL
            " ann@home.test<all@d.test" OF_ALL " bob@d.test<all@d.test" OF_ALL);
    becomes(&w, "me@d.test", "root@d.test exact@d.test root@d.test", 0, none,
            "alerts@far.test<root@d.test" OF_ROOT
            " root@d.test<exact@d.testrfc822;exact@d.test");
    /* Twice is as once, as in a spool without a journal. */
    struct envelope *e = envelope_to("me@d.test", "ann@d.test exact@d.test", 0);
    (void)expansion_apply(e, &w.rules, 1000, NULL, NULL);
    unsigned count = e->count;
    (void)expansion_apply(e, &w.rules, 1000, NULL, NULL);
    is_number(e->count, count, "members are not expanded again");
    envelope_free(&e);
}

TEST(senders)
{
    char none[] = "";
    FIXTURE(world, w, world_start, world_end);
    becomes(&w, "me@out.test", "root@d.test", 0, none,
            "alerts@far.test<root@d.test(SRS)" OF_ROOT);
    becomes(&w, "me@out.test", "ann@d.test", 0, none,
            "ann@d.test<ann@d.test" OF_ANN " ann@home.test<ann@d.test(SRS)" OF_ANN);
    becomes(&w, "", "root@d.test", 0, none, "alerts@far.test<root@d.test" OF_ROOT);
    becomes(&w, "me@out.test", "list@d.test", 0, none,
            "carl@far.test<list@d.test(owner-list@d.test) "
            "bob@d.test<list@d.test(owner-list@d.test)");
    becomes(&w, "", "list@d.test", 0, none,
            "carl@far.test<list@d.test bob@d.test<list@d.test");
    becomes(&w, "me@out.test", "SRS0=AAAAAA=AA=far.test=x@d.test", 0, none,
            "SRS0=AAAAAA=AA=far.test=x@d.test?1");
    char made[SRS_ADDRESS_MAX], want[600];
    ok(srs_forward(w.srs, TEXT("x@far.test"), 1000, made));
    snprintf(want, sizeof(want),
             "x@far.test<%srfc822;%.4s+3D%.6s+3DAA+3Dfar.test+3Dx@d.test", made, made,
             made + 5);
    becomes(&w, "", made, 0, none, want);
    w.rules.srs = NULL;
    becomes(&w, "me@out.test", "root@d.test", 0, none,
            "alerts@far.test<root@d.test" OF_ROOT);
}

/* The secret cannot be read: senders stay, and what comes back has no answer yet. */
TEST(blind)
{
    struct expansion x;
    char none[] = "", made[SRS_ADDRESS_MAX];
    FIXTURE(world, w, world_start, world_end);
    ok(srs_forward(w.srs, TEXT("x@far.test"), 1000, made));
    srs_free(&w.srs);
    w.rules.srs = w.srs = srs_new(TEXT("d.test"), NULL, 0);
    becomes(&w, "me@out.test", "root@d.test", 0, none,
            "alerts@far.test<root@d.test" OF_ROOT);
    struct expansion_question q = {
        .address = TEXT("root@d.test"), .sender = TEXT("me@out.test"), .now_ms = 1000};
    expansion_make(&x, &w.rules, &q);
    is_number(x.kind, EXPANSION_ONE, "an alias");
    is_number(x.long_senders, 0, "whose sender is not too long");
    expansion_free(&x);
    q.address = text_from(made);
    expansion_make(&x, &w.rules, &q);
    is_number(x.kind, EXPANSION_UNSURE, "an address of SRS");
    is_number(x.count, 0, "leads nowhere now");
    expansion_free(&x);
}

/* 2 SUCCESS, 4 FAILURE, 1 NEVER */
TEST(notify)
{
    char none[] = "";
    FIXTURE(world, w, world_start, world_end);
    becomes(&w, "me@d.test", "root@d.test", 6, none,
            "alerts@far.test<root@d.test[6]" OF_ROOT);
    becomes(&w, "me@d.test", "ann@d.test", 4, none,
            "ann@d.test<ann@d.test[4]" OF_ANN " ann@home.test<ann@d.test[4]" OF_ANN);
    becomes(&w, "me@d.test", "ann@d.test", 6, none,
            "ann@d.test<ann@d.test[4]" OF_ANN " ann@home.test<ann@d.test[4]" OF_ANN
            " ann@d.test[2]!");
    becomes(&w, "me@d.test", "ann@d.test", 2, none,
            "ann@d.test<ann@d.test[1]" OF_ANN " ann@home.test<ann@d.test[1]" OF_ANN
            " ann@d.test[2]!");
    becomes(&w, "me@d.test", "list@d.test", 2, none,
            "carl@far.test<list@d.test(owner-list@d.test) "
            "bob@d.test<list@d.test(owner-list@d.test) "
            "list@d.test<list@d.test(owner-list@d.test)[2]!");
    becomes(&w, "", "ann@d.test", 2, none,
            "ann@d.test<ann@d.test[1]" OF_ANN " ann@home.test<ann@d.test[1]" OF_ANN);
}

TEST(refusals)
{
    char all[] = "all@d.test";
    FIXTURE(world, w, world_start, world_end);
    becomes(&w, "me@d.test", "all@d.test root@d.test", 0, all,
            "all@d.test?2 alerts@far.test<root@d.test" OF_ROOT);
    ok(expansion_is_idle(&(struct expansion_rules){.routes = NULL}));
}

/* Addresses to which reports come stay recipients, and nobody else's tag is one. */
TEST(returns)
{
    FIXTURE(world, w, world_start, world_end);
    struct text secret = TEXT("0123456789abcdef");
    struct verp *v = verp_new(TEXT("ann@d.test"), srs_new(TEXT(""), &secret, 1));
    char tagged[ADDRESS_MAX + 1];
    w.rules.verp = v;
    ok(verp_make(v, (struct id){.time_ms = 1, .hash = 1}, TEXT("x@y.test"), 0, tagged));
    becomes(&w, "", "ann@d.test", 0, NULL, "ann@d.test");
    becomes(&w, "", tagged, 0, NULL, tagged);
    becomes(&w, "", "ann+x@d.test", 0, NULL, "ann+x@d.test?1");
    ok(!expansion_is_idle(&(struct expansion_rules){.routes = w.routes, .verp = v}));
    w.rules.verp = NULL;
    verp_free(&v);
}

/* 60 lists of 999 members and owners: more than an envelope takes. */
TEST(limit)
{
    struct buffer file, errors;
    char to[2000] = "";
    FIXTURE(world, w, world_start, world_end);
    aliases_free(&w.aliases);
    buffer_init(&file, 8 * 1024 * 1024);
    buffer_init(&errors, 4096);
    for (unsigned i = 0; i < 60; i++) {
        (void)!buffer_format(&file, "l%u: x@far.test", i);
        for (unsigned j = 0; j < 998; j++)
            (void)!buffer_format(&file, ", m%u-%u@far.test", i, j);
        (void)!buffer_add(&file, TEXT("\n"));
        snprintf(to + strlen(to), sizeof(to) - strlen(to), "l%u@d.test ", i);
    }
    struct aliases_file one = {"a", buffer_text(&file)};
    w.rules.aliases = w.aliases = aliases_whole(
        &(struct aliases_settings){.files = &one, .file_count = 1, .routes = w.routes},
        &errors);
    struct envelope *e = envelope_to("me@d.test", to, 0);
    ok(expansion_apply(e, &w.rules, 0, NULL, NULL) > 50000);
    is_number(e->count, 60, "the recipients as they were given");
    is_number(e->recipients[59].refused, RECIPIENT_TOO_MANY, "are refused");
    envelope_free(&e);
    to[strlen("l0@d.test ") * 10] = '\0';
    e = envelope_to("me@d.test", to, 0);
    (void)expansion_apply(e, &w.rules, 0, NULL, NULL);
    is_number(e->count, 10 * 998 + 1, "one copy for the common member");
    is_number(e->ways->number, 10, "a way for each alias");
    envelope_free(&e);
    buffer_free(&file);
    buffer_free(&errors);
}
