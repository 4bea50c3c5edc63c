#!/usr/bin/perl
# Connections that are kept for more mail give way to the mail of other sites: with a connection cache of
# an hour and few sessions all domains get their mail, and a domain with more mail keeps its connection.
use strict;
use warnings;
use FindBin;
BEGIN { chdir "$FindBin::Bin/../.." }
use lib 't/e2e';
use Petrel;
use Resolver;
use Sink;
use Test::More;

plan skip_all => 'no sink' unless -x "$Petrel::root/$Petrel::build/t/bench/sink";

my ($domains, $limit, $again) = (60, 4, 10);
my $sink = Sink->start;
my $resolver = Resolver->start({ map { ("d$_.test" => { MX => ["10 m$_.test"] }, "m$_.test" => { A => ['127.0.0.1'] }) } 1 .. $domains });
my $petrel = Petrel->new(
    dns_servers => "127.0.0.1:$resolver->{port}", smtp_port => $sink->{port}, smtp_bind => '127.0.0.1', smtp_family => 'ipv4', routes => '* mx',
    delivery_session_limit => $limit, smtp_connection_cache_time_limit => '1h',
)->start;

$petrel->send_mail('a@sender.test', "u\@d$_.test", "Subject: x\n\nx\n") for 1 .. $domains;
Petrel::wait_for(sub { $sink->count('messages') >= $domains });
is $sink->count('messages'), $domains, 'all domains get their mail, though every session is kept for an hour';
is $sink->count('connections'), $domains, 'by a connection each';
ok Petrel::wait_for(sub { $sink->count('sessions_open') <= 2 * $limit }), 'of which no more stay than twice the limit';
cmp_ok $sink->count('sessions_open'), '>', $limit, 'and more than may work at a time';

my $before = $sink->count('connections');
for (1 .. $again) {
    $petrel->send_mail('a@sender.test', "u\@d$domains.test", "Subject: x\n\nx\n");
    Petrel::wait_for(sub { $sink->count('messages') >= $domains + $_ });
}
is $sink->count('connections'), $before, 'the next mail of a domain finds its connection';
is $petrel->stop, 0, 'ends well';
$resolver->stop;
done_testing;
