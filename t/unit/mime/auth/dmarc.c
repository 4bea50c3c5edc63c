/* DMARC records, and which domain is asked next. */
#include "mime/auth/dmarc.h"

#include "t/support/tap.h"

static const struct {
    const char *text;
    enum dmarc_found want;
    enum dmarc_policy policy, subdomains;
} records[] = {
    {"v=DMARC1; p=none",                     DMARC_FOUND,     DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=DMARC1;p=reject;",                   DMARC_FOUND,     DMARC_POLICY_REJECT, DMARC_POLICY_REJECT    },
    {" v = DMARC1 ; p = Reject ; sp = NONE", DMARC_FOUND,     DMARC_POLICY_REJECT, DMARC_POLICY_NONE      },
    {"v=DMARC1; sp=quarantine; p=none",      DMARC_FOUND,     DMARC_POLICY_NONE,   DMARC_POLICY_QUARANTINE},
    {"v=DMARC1; x=y; p=none; ;",             DMARC_FOUND,     DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=DMARC1",                             DMARC_MALFORMED, DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=DMARC1; p=all",                      DMARC_MALFORMED, DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=DMARC1; rua=mailto:a@b.test",        DMARC_MALFORMED, DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=dmarc1; p=none",                     DMARC_NONE,      DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"p=none; v=DMARC1",                     DMARC_NONE,      DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=DMARC12; p=none",                    DMARC_NONE,      DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"",                                     DMARC_NONE,      DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
    {"v=spf1 -all",                          DMARC_NONE,      DMARC_POLICY_NONE,   DMARC_POLICY_NONE      },
};

static const struct {
    const char *domain, *parent;
} parents[] = {
    {"example.org",       ""           },
    {"a.example.org",     "example.org"},
    {"a.b.example.org",   "b.example.org"},
    {"f.e.d.c.b.a.org",   "d.c.b.a.org"},
    {"e.d.c.b.a.org",     "d.c.b.a.org"},
    {"d.c.b.a.org",       "c.b.a.org"  },
    {"org",               ""           },
    {"",                  ""           },
};

int
main(void)
{
    struct dmarc_record r;
    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct text text = text_from(records[i].text);
        is_number(dmarc_read(&text, 1, &r), records[i].want, records[i].text);
        if (records[i].want == DMARC_FOUND)
            ok(r.policy == records[i].policy && r.subdomains == records[i].subdomains);
    }
    struct text two[] = {TEXT("v=DMARC1; p=none"), TEXT("other"), TEXT("v=DMARC1; p=none")};
    is_number(dmarc_read(two, 3, &r), DMARC_SEVERAL, "two records");
    is_number(dmarc_read(two, 2, &r), DMARC_FOUND, "another text does not matter");
    is_number(dmarc_read(two, 0, &r), DMARC_NONE, "no text");
    struct text strict = TEXT("v=DMARC1; p=none; adkim=s; aspf=S; rua=mailto:a@b.test");
    is_number(dmarc_read(&strict, 1, &r), DMARC_FOUND, "all tags");
    ok(r.strict_dkim);
    is_text(r.reports, TEXT("mailto:a@b.test"), "the address of reports");
    for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
        is_text(dmarc_parent(text_from(parents[i].domain)), text_from(parents[i].parent),
                parents[i].domain);
    is_string(dmarc_policy_word(DMARC_POLICY_QUARANTINE), "quarantine", "its word");
    return done();
}
