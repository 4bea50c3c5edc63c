/* Lines of Dovecot's authentication server: every command, broken ones, and escapes both ways. */
#include "smtp/access/dovecot_line.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <string.h>

TEST(lines)
{
    static const struct {
        const char *line;
        enum dovecot_verb verb;
        unsigned number;
        const char *data, *user;
        bool temporary;
    } cases[] = {
        {"VERSION\t1\t2",                            DOVECOT_VERSION,  1,          "",      "",        false},
        {"VERSION",                                  DOVECOT_BROKEN,   0,          "",      "",        false},
        {"VERSION\t",                                DOVECOT_BROKEN,   0,          "",      "",        false},
        {"MECH\tPLAIN\tplaintext",                   DOVECOT_MECH,     0,          "PLAIN", "",        false},
        {"MECH",                                     DOVECOT_MECH,     0,          "",      "",        false},
        {"DONE",                                     DOVECOT_DONE,     0,          "",      "",        false},
        {"DONE\tx",                                  DOVECOT_DONE,     0,          "",      "",        false},
        {"DONEX",                                    DOVECOT_OTHER,    0,          "",      "",        false},
        {"SPID\t17",                                 DOVECOT_OTHER,    0,          "",      "",        false},
        {"",                                         DOVECOT_OTHER,    0,          "",      "",        false},
        {"\t",                                       DOVECOT_OTHER,    0,          "",      "",        false},
        {"OK\t7\tuser=joe\tmail=x",                  DOVECOT_OK,       7,          "",      "joe",     false},
        {"OK\t4294967295\tx\tuser=a\001" "1b",       DOVECOT_BROKEN,   4294967295, "",      "",        false},
        {"OK\t4294967296\tuser=joe",                 DOVECOT_BROKEN,   0,          "",      "",        false},
        {"OK\t-1\tuser=joe",                         DOVECOT_BROKEN,   0,          "",      "",        false},
        {"OK\t7",                                    DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=",                             DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=a\001tb",                      DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=a\001",                        DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=a\001x",                       DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=a\0010b",                      DOVECOT_BROKEN,   7,          "",      "",        false},
        {"OK\t7\tuser=joe\tuser=root\001n",          DOVECOT_BROKEN,   7,          "",      "",        false},
        {"CONT\t3\tYWJj",                            DOVECOT_CONTINUE, 3,          "YWJj",  "",        false},
        {"CONT\t3",                                  DOVECOT_CONTINUE, 3,          "",      "",        false},
        {"CONT\t3\tYWJj\tmore",                      DOVECOT_CONTINUE, 3,          "YWJj",  "",        false},
        {"FAIL\t9\tuser=joe\treason=no",             DOVECOT_FAIL,     9,          "",      "joe",     false},
        {"FAIL\t9\ttemp",                            DOVECOT_FAIL,     9,          "",      "",        true },
        {"FAIL\t9\tcode=temp_fail\tuser=j",          DOVECOT_FAIL,     9,          "",      "j",       true },
        {"FAIL\t9\ttemporarily",                     DOVECOT_FAIL,     9,          "",      "",        false},
        {"FAIL\t",                                   DOVECOT_BROKEN,   0,          "",      "",        false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct dovecot_line line;
        dovecot_line_read(text_from(cases[i].line), &line);
        is_number(line.verb, cases[i].verb, cases[i].line);
        is_number(line.number, cases[i].number, "its number");
        is_text(line.data, text_from(cases[i].data), "its data");
        is_string(line.user, cases[i].user, "its user");
        ok(line.temporary == cases[i].temporary);
    }
    char longest[300] = "OK\t7\tuser=";
    struct dovecot_line line;
    memset(longest + 10, 'a', SASL_NAME_MAX);
    dovecot_line_read(text_from(longest), &line);
    is_number(line.verb, DOVECOT_OK, "the longest name");
    longest[10 + SASL_NAME_MAX] = 'a';
    dovecot_line_read(text_from(longest), &line);
    is_number(line.verb, DOVECOT_BROKEN, "a longer one");
}

TEST(escapes)
{
    struct buffer line;
    buffer_init(&line, 40);
    ok(dovecot_line_add(&line, "a", text_of("x\ty\nz\r\0\1=", 9)));
    is_text(buffer_text(&line), TEXT("\ta=x\001ty\001nz\001r\0010\0011="), "no byte ends the field");
    ok_named(!dovecot_line_add(&line, "resp", TEXT("abcdefghijklmnopqrstuvwxyz")), "no space");
    buffer_free(&line);
}
