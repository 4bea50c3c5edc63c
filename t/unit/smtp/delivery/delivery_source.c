/* link: t/sim/dns.c */
/* link: t/sim/clock.c */
/* link: t/sim/delivery_world.c */
/* The source address, the name in EHLO, and the families of a session: by the target, by
 * the settings, and when this host does not have the address. */
#include "smtp/delivery/delivery.h"

#include "base/memory.h"
#include "sched/route/target.h"
#include "t/sim/delivery_world.h"

#include <string.h>

static void
take_target(struct bed *b, const char *written)
{
    struct transport_params base;
    char problem[TARGET_PROBLEM_MAX];
    transport_params_default(&base);
    host_must(target_parse(text_from(written), b->settings.smtp_port, &base, &b->target,
                           problem));
}

static void
set(struct bed *b, const char *smtp_bind, enum target_family family)
{
    b->settings.smtp_bind = text_from(smtp_bind);
    b->settings.smtp_family = family;
    delivery_reload(b->delivery, &b->settings);
}

TEST(target)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    set(&b, "127.0.0.8", TARGET_FAMILY_UNSET);
    take_target(&b, "mx?bind=127.0.0.9,::1&helo=mail.d.test");
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.9", "bind= goes before smtp_bind");
    ok(has(&b.a.commands, "EHLO mail.d.test\n"));
    take_target(&b, "mx?bind=::1");
    add_mail(&b, "v@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "smtp_bind has the other family");
    ok(has(&b.a.commands, "EHLO me.test\n"));
}

/* Deferred as an error of the settings, with its reason, and nothing was tried. */
static void
is_missing(struct bed *b, const char *text)
{
    unsigned connections = b->a.connections;
    add_mail(b, "u@x.test");
    run(b, "x.test");
    is_string(b->manager.trouble.enhanced, "4.3.5", text);
    is_string(b->manager.trouble.text, text, "its text");
    is_number(b->a.connections, connections, "no connection");
}

TEST(missing)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    set(&b, "", TARGET_FAMILY_UNSET);
    take_target(&b, "mx?bind=192.0.2.77");
    is_missing(&b, "this host does not have the source address 192.0.2.77 of bind=");
    take_target(&b, "mx?bind=192.0.2.77,2001:db8::77");
    is_missing(&b, "this host does not have the source address 2001:db8::77 of bind=");
    take_target(&b, "mx");
    set(&b, "192.0.2.78", TARGET_FAMILY_UNSET);
    is_missing(&b,
               "this host does not have the source address 192.0.2.78 of smtp_bind");
    take_target(&b, "mx?bind=2001:db8::77&family=ipv4");
    set(&b, "127.0.0.8", TARGET_FAMILY_UNSET);
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "a family that is not used needs no address");
}

TEST(families)
{
    FIXTURE(bed, b, bed_start, bed_stop);
    set(&b, "127.0.0.8", TARGET_FAMILY_IPV6);
    take_target(&b, "mx");
    is_missing(&b,
               "no mail host of x.test has an IPv6 address, and the settings (family, "
               "source address) permit no other");
    take_target(&b, "mx?family=any");
    add_mail(&b, "u@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "a route goes before smtp_family");
    set(&b, "127.0.0.8", TARGET_FAMILY_ANY);
    take_target(&b, "mx?family=ipv6");
    is_missing(&b,
               "no mail host of x.test has an IPv6 address, and the settings (family, "
               "source address) permit no other");
    set(&b, "127.0.0.8 2001:db8::77", TARGET_FAMILY_ANY);
    take_target(&b, "mx");
    add_mail(&b, "v@x.test");
    run(&b, "x.test");
    is_string(host_came_from(&b.a), "127.0.0.8", "one source address that exists is enough");
}

int
main(void)
{
    spool.content = memory_new(CONTENT_MAX);
    tap_tests("");
    free(spool.content);
    return done();
}
