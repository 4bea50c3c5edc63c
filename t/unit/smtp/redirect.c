/* smtp/redirect: the route that is cut off, the age, and what may go. */
#include "smtp/redirect.h"

#include "t/support/tap.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { OUT_MAX = 200 };
static const int64_t now_ms = 1700000000500, lifetime_ms = 5 * 24 * 3600 * 1000;

/* The rest; NULL: refused. */
static const char *
cut(const char *argument, const char *name)
{
    static char left[OUT_MAX + 1];
    struct buffer out;
    buffer_init(&out, OUT_MAX);
    bool good = buffer_add(&out, TEXT("old")) &&
                redirect_cut_route(text_from(argument), text_from(name), &out);
    text_copy(left, sizeof(left), buffer_text(&out));
    buffer_free(&out);
    return good ? left : NULL;
}

TEST(routes)
{
    static const struct {
        const char *argument, *left;
    } rows[] = {
        {"TO:<@h.example:u@d.example>",                 "TO:<u@d.example>"        },
        {"to:   <@H.EXAMPLE:u@d.example> NOTIFY=NEVER",
         "TO:<u@d.example> NOTIFY=NEVER"                                          },
        {"TO:<@h.example:\"a:b@c\"@d.example>",         "TO:<\"a:b@c\"@d.example>"},
        {"TO:<@h.example:postmaster>",                  "TO:<postmaster>"         },
        {"TO:<@h.example:>",                            "TO:<>"                   }, /* the parser's */
        {"TO:<@h.example:",                             "TO:<"                    },
        {"TO:<@h.example:@x.example:u@d.example>",      NULL                      },
        {"TO:<@h.example,@x.example:u@d.example>",      NULL                      },
        {"TO:<@x.example,@h.example:u@d.example>",      NULL                      },
        {"TO:<@h.example.net:u@d.example>",             NULL                      },
        {"TO:<@h.exampl:u@d.example>",                  NULL                      },
        {"TO:<@:u@d.example>",                          NULL                      },
        {"TO:<u@d.example>",                            NULL                      },
        {"TO:<h.example:u@d.example>",                  NULL                      },
        {"TO:@h.example:u@d.example",                   NULL                      },
        {"TO: ",                                        NULL                      },
        {"TO",                                          NULL                      },
        {"",                                            NULL                      },
        {"FROM:<@h.example:u@d.example>",               NULL                      },
        {" TO:<@h.example:u@d.example>",                NULL                      },
    };
    char lower[100];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *left = cut(rows[i].argument, "h.example");
        if (rows[i].left == NULL) {
            ok_named(left == NULL, rows[i].argument);
            continue;
        }
        snprintf(lower, sizeof(lower), "%s", left ? left : "");
        memcpy(lower, "TO:", 3); /* as it was written */
        is_string(lower, rows[i].left, rows[i].argument);
    }
}

TEST(route_limits)
{
    char argument[300];
    memset(argument, 'x', sizeof(argument));
    memcpy(argument, "TO:<@h:", 7);
    argument[7 + OUT_MAX - 4] = '\0';
    ok_named(cut(argument, "h") != NULL, "what fits");
    argument[7 + OUT_MAX - 4] = 'x';
    argument[7 + OUT_MAX - 3] = '\0';
    ok_named(cut(argument, "h") == NULL, "and what does not");
}

static int64_t
born(int64_t epoch_s, int64_t lifetime)
{
    char mark[100];
    struct envelope *e = envelope_new();
    snprintf(mark, sizeof(mark), KEY ";0;%lld", (long long)epoch_s);
    e->fragment.by_peer = true;
    e->fragment.set_mark = envelope_text(e, text_from(mark));
    redirect_date(e, now_ms, lifetime);
    int64_t birth_ms = e->birth_ms;
    envelope_free(&e);
    return birth_ms;
}

TEST(ages)
{
    is_number(born(1700000000, lifetime_ms), 1700000000000, "of this second");
    is_number(born(1699990000, lifetime_ms), 1699990000000, "of some time ago");
    is_number(born(1700000000 - 432000 + 1, lifetime_ms), 1699568001000,
              "as old as mail may be");
    is_number(born(1700000000 - 432000, lifetime_ms), 0, "older: another clock");
    is_number(born(0, lifetime_ms), 0, "no clock at all");
    is_number(born(1700000001, lifetime_ms), 0, "to come");
    is_number(born(999999999999, lifetime_ms), 0, "far away");
    is_number(born(1700000000, 0), 0, "no mail gets old here");
}

TEST(troubles)
{
    static const struct {
        bool offered, by_peer;
        const char *mark, *enhanced;
    } rows[] = {
        {true,  false, KEY ";0;1", NULL   },
        {false, false, KEY ";0;1", "5.7.1"},
        {true,  true,  KEY ";0;1", "5.4.6"},
        {true,  false, "",         "5.6.1"},
        {true,  false, KEY ";4;1", "5.6.1"},
        {false, true,  "",         "5.7.1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct envelope *e = envelope_new();
        const char *enhanced = "";
        e->fragment.by_peer = rows[i].by_peer;
        e->fragment.set_mark = envelope_text(e, text_from(rows[i].mark));
        const char *why = redirect_trouble(e, rows[i].offered, &enhanced);
        ok((why == NULL) == (rows[i].enhanced == NULL));
        if (why != NULL)
            is_string(enhanced, rows[i].enhanced, why);
        envelope_free(&e);
    }
}
