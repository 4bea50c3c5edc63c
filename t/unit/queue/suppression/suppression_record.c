/* queue/suppression/suppression_record.c: lines of the file, and of lists that are imported. */
#include "queue/suppression/suppression_record.h"
#include "t/support/tap.h"

TEST(line)
{
    struct suppression_record r;
    struct buffer line;
    struct suppression_entry e = {.address = TEXT("\"a b+\"@c.example"),
                                  .domain = TEXT("d.example"),
                                  .reason = TEXT("550 5.1.1 no = user"),
                                  .at_s = 1750000000,
                                  .class = SUPPRESSION_DOUBTFUL,
                                  .strikes = 2};
    buffer_init(&line, SUPPRESSION_LINE_MAX);
    ok(suppression_record_write(&e, &line));
    struct text text = text_before(buffer_text(&line), line.length - 1);
    ok(suppression_record_read(text, &r));
    is_text(r.entry.address, e.address, "the address");
    is_text(r.entry.domain, e.domain, "the domain");
    is_text(r.entry.reason, e.reason, "the reason");
    is_number(r.entry.at_s, e.at_s, "the time");
    is_number(r.entry.class, e.class, "the class");
    is_number(r.entry.strikes, 2, "the strikes");
    unsigned taken = 0;
    for (size_t i = 0; i < line.length - 1; i++) {
        line.at[i] ^= 1;
        taken += suppression_record_read(text, &r);
        line.at[i] ^= 1;
        taken += suppression_record_read(text_before(text, i), &r);
    }
    is_number(taken, 0, "no line with another bit, nor one that is cut, is taken");
    buffer_free(&line);
}

TEST(longest_line_fits)
{
    struct suppression_record r;
    char address[SUPPRESSION_ADDRESS_MAX], domain[SUPPRESSION_DOMAIN_MAX], reason[SUPPRESSION_REASON_MAX];
    struct buffer line;
    memset(address, '+', sizeof(address));
    memset(domain, '=', sizeof(domain));
    memset(reason, ' ', sizeof(reason));
    struct suppression_entry e = {.address = text_of(address, sizeof(address)),
                                  .domain = text_of(domain, sizeof(domain)),
                                  .reason = text_of(reason, sizeof(reason)),
                                  .at_s = UINT32_MAX,
                                  .class = SUPPRESSION_COMPLAINT,
                                  .strikes = 255};
    buffer_init(&line, SUPPRESSION_LINE_MAX);
    ok(suppression_record_write(&e, &line));
    ok(suppression_record_read(text_before(buffer_text(&line), line.length - 1), &r));
    is_text(r.entry.address, e.address, "all of it");
    ok_named(!suppression_record_write(&e, &line), "beyond the limit nothing is added");
    buffer_free(&line);
}

static const struct {
    const char *line, *error, *address, *reason;
    enum suppression_class class;
    int64_t at_s;
    const char *domain;
} imports[] = {
    {"A@B.Example", "", "a@b.example", "", SUPPRESSION_MANUAL, 5000, ""},
    {"  a@b.example , gone ,2026-11-29", "", "a@b.example", "gone", SUPPRESSION_MANUAL, 1795910400, ""},
    {"\"a@b.example\",\"Spam Complaint, \"\"x\"\"\",1750000000\r", "", "a@b.example", "Spam Complaint, \"x\"",
     SUPPRESSION_COMPLAINT, 1750000000, ""},
    {"a@b.example,x,2025-06-15T15:06:40Z,hard,C.example", "", "a@b.example", "x", SUPPRESSION_HARD, 1750000000,
     "c.example"},
    {"a@b.example,x,2025-06-15 15:06:40 UTC", "", "a@b.example", "x", SUPPRESSION_MANUAL, 1750000000, ""},
    {"a@b.example,x,2025-06-15T17:06:40.5+02:00", "", "a@b.example", "x", SUPPRESSION_MANUAL, 1750000000, ""},
    {"a@b.example,x,9999-01-01", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,,,doubtful", "", "a@b.example", "", SUPPRESSION_DOUBTFUL, 5000, ""},
    {"", "", "", "", SUPPRESSION_NONE, 5000, ""},
    {"# a comment", "", "", "", SUPPRESSION_NONE, 5000, ""},
    {"email,reason,date", "not an address", "", "", 0, 0, ""},
    {"a@b.example,x,yesterday", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,x,2025-13-01", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,x,2025-06-15T25:00:00", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,x,2025-06-15T15", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,x,2025-06-155", "the date is not like 2026-11-29", "", "", 0, 0, ""},
    {"a@b.example,x,,soft", "the class is not one of doubtful, hard, complaint, manual", "", "", 0, 0, ""},
    {"a@b.example,x,,none", "the class is not one of doubtful, hard, complaint, manual", "", "", 0, 0, ""},
    {"a@b.example,x,,hard,-- --", "the sender's domain is not a domain", "", "", 0, 0, ""},
    {"a@b@c", "not an address", "", "", 0, 0, ""},
    {"a\tb@c.example", "not an address", "", "", 0, 0, ""},
};

TEST(import)
{
    for (size_t i = 0; i < sizeof(imports) / sizeof(imports[0]); i++) {
        struct suppression_record r;
        const char *why = suppression_import_line(text_from(imports[i].line), 5000, &r);
        is_string(why, imports[i].error, imports[i].line);
        if (imports[i].error[0] != '\0')
            continue;
        is_text(r.entry.address, text_from(imports[i].address), "its address");
        is_text(r.entry.reason, text_from(imports[i].reason), "its reason");
        is_text(r.entry.domain, text_from(imports[i].domain), "its domain");
        is_number(r.entry.class, imports[i].class, "its class");
        is_number(r.entry.at_s, imports[i].at_s, "its date");
    }
    char longer[SUPPRESSION_LINE_MAX + 1];
    struct suppression_record r;
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    is_string(suppression_import_line(text_from(longer), 0, &r), "the line is too long", "a long line");
}

TEST(export_is_import)
{
    struct suppression_record r;
    struct buffer line;
    struct suppression_entry e = {.address = TEXT("\"a,b\"@c.example"),
                                  .domain = TEXT("d.example"),
                                  .reason = TEXT("550 no, \"x\""),
                                  .at_s = 1795910461,
                                  .class = SUPPRESSION_COMPLAINT};
    buffer_init(&line, 1000);
    ok(suppression_export_line(&e, &line));
    is_text(buffer_text(&line),
            TEXT("\"\"\"a,b\"\"@c.example\",\"550 no, \"\"x\"\"\",2026-11-29T00:01:01Z,complaint,d.example\n"), "a line of CSV");
    is_string(suppression_import_line(buffer_text(&line), 0, &r), "", "can be read");
    is_text(r.entry.address, e.address, "has the address");
    is_text(r.entry.reason, e.reason, "the reason");
    is_number(r.entry.at_s, e.at_s, "the date");
    is_number(r.entry.class, e.class, "the class");
    is_text(r.entry.domain, e.domain, "and the domain");
    buffer_free(&line);
}
