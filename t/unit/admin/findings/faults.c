/* Lists of faults: what comes from zones is escaped, records are in the form of zone
 * files, and what is wrong stands first. */
#include "admin/findings/faults.h"

#include "t/support/printed.h"
#include "t/support/tap.h"

#define add(list, code, ...) ((list)->row = faults_row(code), faults_add((list), __VA_ARGS__))

TEST(escapes)
{
    struct faults list = {0};
    add(&list, "spf.record", FAULT_ERROR, "a\x1b[2J.test\n", "says \x9b%s",
                  "\x80\r");
    faults_remedy(&list, "Do\x07 this.\n%s", "\x1b]0;x");
    faults_detail(&list, "one\ntwo");
    faults_escape(&list);
    is_string(list.items[0].subject, "a\\x1b[2J.test\\x0a", "a subject");
    is_string(list.items[0].text, "says \\x9b\\x80\\x0d", "a text");
    is_string(list.items[0].remedy, "Do\\x07 this.\n\\x1b]0;x",
              "a remedy keeps its lines");
    is_string(list.items[0].detail, "one\\x0atwo", "a detail is one line");
    faults_free(&list);
    faults_remedy(&list, "nothing to add to");
    is_number(list.count, 0, "an empty list stays one");
}

TEST(records)
{
    struct faults list = {0};
    char value[600];
    memset(value, 'x', sizeof(value));
    add(&list, "dkim.key", FAULT_ERROR, "a.test", "x");
    faults_text_record(&list, "a.test", TEXT("a \"b\" \\ \x1b;\n"));
    is_string(list.items[0].remedy,
              "\n    a.test. 3600 IN TXT ( \"a \\\"b\\\" \\\\ \\027;\\010\" )",
              "quotes and controls as zone files have them");
    faults_cut(&list, 0);
    add(&list, "dkim.key", FAULT_ERROR, "a.test", "x");
    faults_text_record(&list, "a.test", text_of(value, 511));
    size_t strings = 0;
    for (const char *at = list.items[0].remedy; *at != '\0'; at++)
        strings += *at == '"';
    is_number(strings, 6, "strings of 255 octets");
    faults_record(&list, "b.test", "MX", "10 c.test.");
    ok(strstr(list.items[0].remedy, "\n    b.test. 3600 IN MX 10 c.test.") != NULL);
    faults_free(&list);
}

static void
fill(struct faults *list)
{
    add(list, "mx.record", FAULT_OK, "a.test", "good");
    add(list, "spf.record", FAULT_HINT, "b.test", "hm");
    add(list, "spf.record", FAULT_ERROR, "c.test", "bad");
    add(list, "dns.resolver", FAULT_ERROR, "servers", "silent");
    add(list, "spf.record", FAULT_ERROR, "a.test",
                  "bad, and a long sentence that goes on beyond the "
                  "width of a terminal of eighty columns, which is cut");
}

TEST(order)
{
    struct faults list = {0};
    struct printed p;
    fill(&list);
    is_number(faults_count(&list, FAULT_ERROR), 3, "errors are counted");
    faults_sort(&list);
    is_string(list.items[0].row->code, "dns.resolver", "what others depend on is first");
    is_string(list.items[1].subject, "a.test", "then by name");
    is_string(list.items[2].subject, "c.test", "of the same code");
    is_string(list.items[4].row->code, "mx.record", "what is good is last");
    printed_begin(&p);
    faults_print(&list, stdout);
    const char *text = printed_end(&p);
    ok(text_starts(text_from(text),
                   TEXT("error   dns.resolver      servers\n  silent\n\n")));
    ok(strstr(text, "ok      mx.record         a.test: good\n") != NULL);
    ok(strstr(text, "3 errors, 0 warnings, 1 hint; 1 check is ok\n") != NULL);
    bool wide = false;
    struct text rest = text_from(text), line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        wide |= line.length > 80;
    ok_named(!wide, "lines have 80 columns at most");
    json_t *all = faults_json(&list);
    is_number(json_array_size(json_object_get(all, "checks")), 5,
              "all of them as JSON");
    json_decref(all);
    faults_cut(&list, 1);
    is_number(list.count, 1, "cut");
    faults_free(&list);
}

TEST(limits)
{
    struct faults list = {0};
    static char huge[3 * FAULTS_TEXT_MAX];
    memset(huge, 7, sizeof(huge) - 1);
    add(&list, "spf.record", FAULT_ERROR, "a.test", "%s", huge);
    ok(strlen(list.items[0].text) < FAULTS_TEXT_MAX);
    for (int i = 0; i < 100; i++)
        faults_remedy(&list, "%s", huge);
    ok_named(strlen(list.items[0].remedy) < 4 * FAULTS_TEXT_MAX,
             "a remedy has a limit");
    for (int i = 0; i < FAULTS_MAX + 10; i++)
        add(&list, "spf.record", FAULT_OK, "a.test", "x");
    is_number(list.count, FAULTS_MAX, "so has the list");
    faults_free(&list);
}

/* A fault has one row, somebody who finds it, and a sentence that is its own or its judge's; what is
 * shown while the daemon runs has a remedy. */
TEST(table)
{
    const struct fault_row *row;
    unsigned all = 0;
    bool in_doctor = false;
    for (size_t i = 0; (row = faults_row_at(i)) != NULL; i++) {
        bool is_doctor = row->when == FAULT_DOCTOR;
        bool is_finding = (row->when & (FAULT_RUNNING | FAULT_BY_EVENT)) != 0;
        all |= row->when;
        ok_named(is_doctor || faults_row(row->code) == row, row->code);
        ok_named(!in_doctor || is_doctor, "those of doctor stand last, in the order of its output");
        ok_named((row->remedy != NULL) == is_finding, "a remedy");
        ok_named(row->judge != NULL || row->when == FAULT_BY_EVENT || row->when == FAULT_RUNNING || row->when == FAULT_READ,
                 "somebody finds it");
        ok_named(!is_doctor || faults_row_of(row->judge) == row, "a judge of doctor has one row");
        ok_named(row->severity != FAULT_OK || is_doctor, "all others are wrong");
        in_doctor = is_doctor;
    }
    is_number(all, FAULT_READ | FAULT_RUNNING | FAULT_BY_EVENT | FAULT_DOCTOR, "each reader has rows");
    ok(faults_row("no_such_code") == NULL);
    ok(faults_row("host.ptr") < faults_row("spf.record") && faults_row("spf.record") < faults_row("queue.health"));
}
