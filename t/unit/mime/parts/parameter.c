/* Types and parameters in all their notations, and what is no such thing. */
#include "mime/parts/parameter.h"

#include "base/memory.h"

#include "t/support/tap.h"

/* clang-format off */
static const struct sample {
    const char *value, *read; /* "type/subtype name=value!twice&both ..." and ? when broken */
} samples[] = {
    {"text/plain", "text/plain"},
    {"TEXT/Plain; Charset=UTF-8", "text/plain charset=UTF-8"},
    {" text / html ;charset = \"us-ascii\" ; ; format=flowed;", "text/html charset=us-ascii format=flowed"},
    {"(a (nested \\) comment)) text(x)/(y)plain(z);(q)a(r)=(s)b(t);c=d", "text/plain a=b c=d"},
    {"text/plain;\r\n charset=\r\n\t\"utf\r\n -8\"", "text/plain charset=utf -8"},
    {"message/partial; number=2; id*1=\"host\"; id*0=\"abc@\"; total=(two) 2", "message/partial id=abc@host number=2 total=2"},
    {"x/y; a=\"q\\\"u\\\\o\\te\"", "x/y a=q\"u\\ote"},
    {"x/y; a=\"\"; b=\"; c=d\"", "x/y a= b=; c=d"},
    {"attachment; filename=\"a b\"", "attachment/ filename=a b"},
    {"attachment; filename*=utf-8'en'%e2%82%aC%20rates", "attachment/ filename=\xe2\x82\xac rates"},
    {"attachment; filename*=''%41", "attachment/ filename=A"},
    {"x/y; a*0*=iso-8859-1''%e9; a*1=%41; a*2*=%42'", "x/y a=\xe9%41B'"},
    {"x/y; a*2=c; a*0=a; a*1=b; b=1", "x/y a=abc b=1"},
    {"x/y; a*10=k; a*0=a; a*1=b; a*2=c; a*3=d; a*4=e; a*5=f; a*6=g; a*7=h; a*8=i; a*9=j", "x/y a=abcdefghijk"},
    {"x/y; a=1; A=1", "x/y a=1"},
    {"x/y; a=1; A=2", "x/y a=1! ?"},
    {"x/y; a*=''ext; a=plain; b=c", "x/y a=plain& b=c"},
    {"x/y; a*1=t; a*0*=utf-8''ex; a=plain", "x/y a=plain&"},
    {"x/y; a*0*=u''three; a*=v''two; a=one", "x/y a=one&"},
    {"x/y; a*1*=two; a=one; b*=''%4; b=2; c*=''x; c*=''y; c=3", "x/y a=one& b=2& c=3&"},
    {"x/y; a*0=1; a*0=2; a*1=3", "x/y a=13! ?"},
    /* Broken, and read as far as may be. */
    {"", "/ ?"},
    {";", "/ ?"},
    {"/", "/ ?"},
    {"text", "text/"},
    {"text/", "text/"},
    {"text plain; a=b", "text/ a=b ?"},
    {"text/plain charset=x; a=b", "text/plain a=b ?"},
    {"text/plain; charset", "text/plain ?"},
    {"text/plain; charset=", "text/plain charset= ?"},
    {"text/plain; =x; a=b", "text/plain a=b ?"},
    {"text/plain; a=b c; d=e", "text/plain a=b d=e ?"},
    {"text/plain; a=\"b", "text/plain a=b ?"},
    {"text/plain; a=\"b\\", "text/plain a=b\\ ?"},
    {"text/plain; a=b@c:d/e[f]?=g; h=i", "text/plain a=b@c:d/e[f]?=g h=i ?"},
    {"text/plain; a=<x@y>", "text/plain a=<x@y> ?"},
    {"text/plain (open; a=b", "text/plain"},
    {"x/y; a*0=1; a*2=3", "x/y a=1 ?"},
    {"x/y; a*1=1", "x/y a= ?"},
    {"x/y; a*00=1; b*01=2; c*x=3; d**=4; *=5; e*9999999999999999999=6; f=7", "x/y f=7 ?"},
    {"x/y; a*=no-quotes; b*=u'only%41", "x/y a=no-quotes b=u'onlyA ?"},
    {"x/y; a*=''%4; b*=''%zz%; c*=''100%", "x/y a=%4 b=%zz% c=100% ?"},
    {"x/y; a*=''%41%", "x/y a=A% ?"},
    {"\"text\"/plain; a=b", "/ a=b ?"},
    {"x/y; a=\xe9\xff; b=c", "x/y a=\xe9\xff b=c"},
};
/* clang-format on */

static struct text
print(const struct parameters *p, char *to, size_t size)
{
    int length = snprintf(to, size, "%.*s/%.*s", TEXT_ARGS(p->type), TEXT_ARGS(p->subtype));
    for (size_t i = 0; i < p->count; i++) {
        const struct parameter *a = &p->list[i];
        length += snprintf(to + length, size - (size_t)length, " %.*s=%.*s", TEXT_ARGS(a->name),
                           TEXT_ARGS(a->value));
        length += snprintf(to + length, size - (size_t)length, "%s%s", a->twice ? "!" : "",
                           a->both ? "&" : "");
    }
    length += snprintf(to + length, size - (size_t)length, "%s", p->broken ? " ?" : "");
    return text_of(to, (size_t)length);
}

TEST(samples)
{
    struct parameters p = {.broken = false};
    char printed[1000];
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        parameters_read(&p, text_from(samples[i].value));
        is_text(print(&p, printed, sizeof(printed)), text_from(samples[i].read),
                "what is read of a value");
    }
    parameters_free(&p);
}

TEST(find)
{
    struct parameters p = {.broken = false};
    parameters_read(&p, TEXT("Text/HTML; b=1; a=2; a*=''3"));
    ok(parameters_is(&p, "text", "html"));
    ok(!parameters_is(&p, "text", "plain") && !parameters_is(&p, "html", "text"));
    is_text(parameters_find(&p, "b")->value, TEXT("1"), "one parameter");
    is_text(parameters_find(&p, "a")->value, TEXT("2"), "the plain one of two");
    ok(parameters_find(&p, "c") == NULL);
    parameters_read(&p, TEXT("x/y; a=\"b\0c\"; d*=''%00"));
    is_number(parameters_find(&p, "a")->value.length, 3, "a NUL is a byte");
    is_number(parameters_find(&p, "d")->value.length, 1, "also an encoded one");
    parameters_free(&p);
    ok(p.count == 0 && parameters_find(&p, "a") == NULL);
    parameters_free(&p);
}

TEST(token)
{
    struct text t = TEXT(" (c) base64 (d) x;");
    is_text(parameter_token(&t), TEXT("base64"), "the first word");
    is_text(parameter_token(&t), TEXT("x"), "the second");
    is_text(parameter_token(&t), TEXT(""), "no word");
    is_text(t, TEXT(";"), "what it stopped at");
}

/* A value of `count` parameters: before, the number, behind. */
static struct text
many(const char *before, const char *behind, size_t count)
{
    size_t size = 20 + count * 32;
    char *at = memory_new(size);
    int length = snprintf(at, size, "x/y");
    for (size_t i = 0; i < count; i++)
        length += snprintf(at + length, size - (size_t)length, "; %s%zu%s", before, i,
                           behind);
    return text_of(at, (size_t)length);
}

TEST(limits)
{
    static const struct {
        const char *before, *behind, *name;
        size_t count, length;
        bool broken;
    } rows[] = {
        {"a*", "=x", "as many continuations as may be", PARAMETER_MAX, 256, false},
        {"a*", "=x", "10,000 continuations", 10000, 256, true},
        {"n", "=x", "10,000 parameters", 10000, SIZE_MAX, true},
        {"a=", "", "10,000 times the same", 10000, 1, true},
    };
    struct parameters p = {.broken = false};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct text t = many(rows[i].before, rows[i].behind, rows[i].count);
        parameters_read(&p, t);
        ok_named(p.broken == rows[i].broken, rows[i].name);
        const struct parameter *a = parameters_find(&p, "a");
        ok_named(a == NULL ? rows[i].length == SIZE_MAX : a->value.length == rows[i].length,
                 "and what is read of them");
        ok(p.count <= PARAMETER_MAX);
        free((void *)(uintptr_t)t.at);
    }
    parameters_free(&p);
}

/* 1 MB of each byte that opens something; quadratic time would not end. */
TEST(bombs)
{
    struct parameters p = {.broken = false};
    enum { SIZE = 1 << 20 };
    char *at = memory_new(SIZE);
    static const char openers[] = "(\"\\;=*% /a\r\n'";
    static const char *const starts[] = {"", "x/y; a=", "x/y; a=\"", "x/y; a*0*='"};
    size_t read = 0;
    for (const char *c = openers; *c != '\0'; c++)
        for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
            memset(at, *c, SIZE);
            memcpy(at, starts[s], strlen(starts[s]));
            parameters_read(&p, text_of(at, SIZE));
            read += p.count <= 1;
        }
    is_number(read, 4 * (sizeof(openers) - 1), "a megabyte of one byte is read in time");
    memset(at, 'c', SIZE);
    memcpy(at, "x/y; boundary=\"", 15);
    at[SIZE - 1] = '"';
    parameters_read(&p, text_of(at, SIZE));
    is_number(parameters_find(&p, "boundary")->value.length, SIZE - 16, "a huge value");
    parameters_free(&p);
    free(at);
}
