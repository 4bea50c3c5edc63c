/* Lives in words. */
#include "admin/view/trace_print.h"
#include "t/support/tap.h"

#include <time.h>

#define NOON "1795348800" /* 22 Nov 2026 12:00 UTC, s */

static void
prints(void (*print)(const json_t *life, FILE *out), const char *life, const char *want)
{
    char *said = NULL, *json = strdup(life);
    size_t size;
    FILE *out = open_memstream(&said, &size);
    for (char *c = json; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    json_t *object = json_loads(json, 0, NULL);
    ok_named(object != NULL, life);
    print(object, out);
    fclose(out);
    is_string(said, want, "in words");
    json_decref(object);
    free(json);
    free(said);
}

static void
print_event(const json_t *event, FILE *out)
{
    trace_print_event(event, "", out);
}

#define LIFE                                                                                                       \
    "{'id':'I','time_ms':" NOON "000,'sender':'s@x','message_id':'<m@x>','size':220,'recipients':4,'state':'partly'," \
    "'events':["                                                                                                   \
    "{'type':'accepted','time_ms':" NOON "184,'client':'192.0.2.7','helo':'app','user':'alice','tls':'TLSv1.3',"   \
    "'recipients':4},"                                                                                             \
    "{'type':'deferred','time_ms':" NOON "190,'recipient':'a@y','relay':'mx[192.0.2.9]:25','hint':'wait',"         \
    "'text':'host mx[192.0.2.9] said: 451 Greylisted'},"                                                           \
    "{'type':'delivered','time_ms':1795435200000,'recipient':'a@y','relay':'mx[192.0.2.9]:25','tls':'TLSv1.3',"    \
    "'text':'250 Ok'},"                                                                                            \
    "{'type':'bounced','time_ms':1795435200001,'recipient':'b@y','relay':'none','text':'no such domain'},"         \
    "{'type':'notified','time_ms':1795435200002,'recipient':'s@x','other':'N','text':'sender notified'},"          \
    "{'type':'lifetime','time_ms':1795435200002},"                                                                 \
    "{'type':'held','time_ms':1795435200002,'text':'held by bob'},"                                                \
    "{'type':'taken','time_ms':1795435200002,'sender':'relay1','was':'J'},"                                        \
    "{'type':'given','time_ms':1795435200002,'recipient':'relay2','as':'K'},"                                      \
    "{'type':'fragment','time_ms':1795435200002,'set':'k','status':'waiting','fragments':2},"                      \
    "{'type':'ended','time_ms':1795435200003}],'more':3}"

int
main(void)
{
    setenv("TZ", "UTC", 1);
    tzset();
    prints(trace_print_life, LIFE,
           "I  <s@x>  220 bytes  <m@x>\n"
           "  22 Nov 12:00:00.184  accepted from [192.0.2.7] (app), user alice, TLSv1.3, for 4 recipients\n"
           "         12:00:00.190  <a@y>: deferred by mx[192.0.2.9]:25: 451 Greylisted\n"
           "                       wait.\n"
           "  23 Nov 12:00:00.000  <a@y>: delivered to mx[192.0.2.9]:25, TLSv1.3: 250 Ok\n"
           "         12:00:00.001  <b@y>: bounced: no such domain\n"
           "         12:00:00.002  sender notified: N, to <s@x>\n"
           "         12:00:00.002  its lifetime is over\n"
           "         12:00:00.002  held by bob\n"
           "         12:00:00.002  taken from relay1, where it was J\n"
           "         12:00:00.002  given to relay2 as K\n"
           "         12:00:00.002  fragment, set k, status waiting, fragments 2\n"
           "         12:00:00.003  ended after 1d 0h\n"
           "                       and 3 events more\n");
    prints(trace_print_line, LIFE, "22 Nov 12:00:00  I                    partly    <s@x> -> <a@y>, <b@y> and 2 more\n");
    prints(trace_print_line, "{'id':'I','time_ms':" NOON "000,'state':'waiting','sender':'','recipients':1,'events':[]}",
           "22 Nov 12:00:00  I                    waiting   <> -> 1 recipient\n");
    prints(trace_print_line,
           "{'id':null,'time_ms':" NOON "000,'state':'refused','events':[{'type':'refused','time_ms':" NOON
           "000,'client':'2001:db8::1','helo':'x','code':554,'enhanced':'5.7.1','sender':'','recipient':'n@x',"
           "'text':'no','command':'RCPT'}]}",
           "22 Nov 12:00:00  -                    refused from [2001:db8::1] (x), sender <>, recipient <n@x>: 554 5.7.1 no "
           "(in reply to RCPT)\n");
    prints(print_event, "{'type':'submitted','time_ms':" NOON "000,'uid':1000,'recipients':1}",
           "22 Nov 12:00:00  -                    submitted by uid 1000, for 1 recipient\n");
    prints(print_event, "{'type':'ended','time_ms':" NOON "000}", "22 Nov 12:00:00  -                    ended\n");
    prints(print_event, "{'type':'made','time_ms':" NOON "000,'other':'I','text':'notification stored'}",
           "22 Nov 12:00:00  -                    notification stored, about I\n");
    static const struct {
        const char *ms, *span;
    } spans[] = {{"000", "0 ms"}, {"999", "999 ms"}, {"59000", "59 s"}, {"300000", "5m 0s"}, {"11100000", "3h 5m"}};
    for (size_t i = 0; i < sizeof(spans) / sizeof(*spans); i++) {
        char life[300], want[200];
        snprintf(life, sizeof(life), "{'id':'I','time_ms':1795348800000,'events':[{'type':'ended','time_ms':%lld}]}",
                 1795348800000LL + strtoll(spans[i].ms, NULL, 10));
        char *said = NULL;
        size_t size;
        for (char *c = life; *c != '\0'; c++)
            *c = *c == '\'' ? '"' : *c;
        json_t *object = json_loads(life, 0, NULL);
        FILE *out = open_memstream(&said, &size);
        trace_print_life(object, out);
        fclose(out);
        snprintf(want, sizeof(want), "ended after %s\n", spans[i].span);
        ok_named(strstr(said, want) != NULL, want);
        json_decref(object);
        free(said);
    }
    return done();
}
