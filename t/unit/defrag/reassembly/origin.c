/* defrag/reassembly/origin.c: the origin of a fragment, and the keys of sets. */
#include "defrag/reassembly/origin.h"

#include "defrag/set/set.h"
#include "t/support/tap.h"

#include <string.h>

TEST(trust)
{
    static const struct {
        const char *trust;
        enum fragment_trust kind;
        const char *login, *network;
    } rows[] = {
        {"",                             FRAGMENT_EXTERNAL, "",        ""                 },
        {"ext",                          FRAGMENT_EXTERNAL, "",        ""                 },
        {"ext net:",                     FRAGMENT_EXTERNAL, "",        ""                 },
        {"ext net:192.0.2.0/24",         FRAGMENT_EXTERNAL, "",        "192.0.2.0/24"     },
        {"int",                          FRAGMENT_INTERNAL, "",        ""                 },
        {"int net:2001:db8:0:1::/64",    FRAGMENT_INTERNAL, "",        "2001:db8:0:1::/64"},
        {"auth:",                        FRAGMENT_LOGIN,    "",        ""                 },
        {"auth:a b",                     FRAGMENT_LOGIN,    "a b",     ""                 },
        {"auth:a b net:10.0.0.0/24",     FRAGMENT_LOGIN,    "a b",     "10.0.0.0/24"      },
        {"auth:a net:b net:10.0.0.0/24", FRAGMENT_LOGIN,    "a net:b", "10.0.0.0/24"      },
        {"auth:a net:b net:",            FRAGMENT_LOGIN,    "a net:b", ""                 },
        {"auth:ext",                     FRAGMENT_LOGIN,    "ext",     ""                 },
        {"net:10.0.0.0/24",              FRAGMENT_INTERNAL, "",        ""                 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct origin o;
        origin_read(text_from(rows[i].trust), TEXT("a@x"), &o);
        is_number(o.trust, rows[i].kind, rows[i].trust);
        is_text(o.login, text_from(rows[i].login), "login");
        is_text(o.network, text_from(rows[i].network), "network");
        is_text(o.sender, TEXT("a@x"), "sender");
        ok_named((origin_client(&o) == SET_NOBODY) == (rows[i].network[0] == '\0'),
                 "only a network has a quota");
    }
}

TEST(batv)
{
    static const struct {
        const char *sender, *kept;
    } rows[] = {
        {"prvs=0123abcDEF=a@x",   "a@x"                  },
        {"PRVS=0123abcdef=a=b@x", "a=b@x"                },
        {"prvs=0123abcdeg=a@x",   "prvs=0123abcdeg=a@x"  },
        {"prvs=0123abcde=a@x",    "prvs=0123abcde=a@x"   },
        {"prvs=0123abcdef=@x",    "prvs=0123abcdef=@x"   },
        {"prvs=0123abcdef=",      "prvs=0123abcdef="     },
        {"prvs=0123abcdef+a@x",   "prvs=0123abcdef+a@x"  },
        {"prvs=",                 "prvs="                },
        {"prv",                   "prv"                  },
        {"",                      ""                     },
        {"a+prvs=0123abcdef=b@x", "a+prvs=0123abcdef=b@x"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct origin o;
        origin_read(TEXT("ext"), text_from(rows[i].sender), &o);
        is_text(o.sender, text_from(rows[i].kept), rows[i].sender);
    }
}

static bool
same(enum origin_keying keying, const char *trust_a, const char *sender_a,
     const char *id_a, const char *trust_b, const char *sender_b, const char *id_b)
{
    unsigned char a[DIGEST_SIZE], b[DIGEST_SIZE];
    struct origin o;
    origin_read(text_from(trust_a), text_from(sender_a), &o);
    origin_key(keying, &o, text_from(id_a), a);
    origin_read(text_from(trust_b), text_from(sender_b), &o);
    origin_key(keying, &o, text_from(id_b), b);
    return memcmp(a, b, DIGEST_SIZE) == 0;
}

TEST(keys)
{
    static const char near[] = "ext net:192.0.2.0/24", far[] = "ext net:192.0.3.0/24",
                      own[] = "int net:192.0.2.0/24";
    for (enum origin_keying k = ORIGIN_BY_SENDER; k <= ORIGIN_BY_ID; k++) {
        bool all = k == ORIGIN_BY_ID;
        ok_named(same(k, near, "s@X", "i", near, "s@x", "i"), "the same");
        ok_named(!same(k, near, "s@x", "i", near, "s@x", "j"), "another id");
        ok_named(same(k, near, "s@x", "i", near, "t@x", "i") == all,
                 "check 36: another sender");
        ok_named(same(k, near, "s@x", "i", own, "s@x", "i") == all,
                 "check 37: another trust");
        ok_named(same(k, near, "s@x", "i", far, "s@x", "i") == (k != ORIGIN_STRICT),
                 "another network");
        ok_named(same(k, near, "prvs=0123abcdef=s@x", "i", near, "s@x", "i"),
                 "BATV's part changes nothing");
    }
    unsigned char keys[3][DIGEST_SIZE], plain[DIGEST_SIZE];
    struct origin o;
    origin_read(TEXT(""), TEXT("s@o.example"), &o);
    for (enum origin_keying k = ORIGIN_BY_SENDER; k <= ORIGIN_BY_ID; k++)
        origin_key(k, &o, TEXT("x@h"), keys[k]);
    fragment_key(FRAGMENT_EXTERNAL, TEXT(""), TEXT("s@o.example"), TEXT("x@h"), plain);
    ok_named(memcmp(keys[ORIGIN_BY_SENDER], plain, DIGEST_SIZE) == 0,
             "by sender it is the key that other hosts have");
    ok_named(memcmp(keys[0], keys[1], DIGEST_SIZE) != 0 &&
                 memcmp(keys[1], keys[2], DIGEST_SIZE) != 0 &&
                 memcmp(keys[0], keys[2], DIGEST_SIZE) != 0,
             "kinds never meet");
}
