#!/usr/bin/perl
# redirect: all mail of a route goes to one address, but for an allow-list; each message names its recipient, and none
# reaches it, also mail that was accepted before.
use lib 't/e2e';
use E2E;

my $sink = Petrel::sink();
my $host = "smtp://127.0.0.1:$sink->{port}?tls=none";
my $petrel = Petrel->new(hostname => 'mail.example.org', relay_from => '127.0.0.1', control => undef, relay => undef);
# The way: a route of the address's own, before the redirect of all others.
$petrel->configure(routes => "dev.example $host\ngood.example $host\nlater.example hold\n* redirect:Test\@DEV.example?allow=good.example,.sub.example,ann\@net.example");
$petrel->start;
like $petrel->log, qr/warning: .*redirect/, 'the start says that mail is redirected' or diag $petrel->log;
sub send_to { return $petrel->send_mail('me@example.org', [@_], "From: me\@example.org\nTo: $_[0]\nSubject: x\n\nhello") =~ /queued as (\S+)/ ? $1 : undef }

send_to('real@customer.example', 'other@customer.example');
Petrel::wait_arrived($sink, 2);
my @mail = Petrel::arrived($sink);
is scalar @mail, 2, 'a message for each recipient' or diag $petrel->log;
is_deeply [sort map { join ',', @{ $_->{to} } } @mail], [('Test@dev.example') x 2], 'to one address';
is_deeply [sort map { $_->{content} =~ /^X-Original-To: (\S+)\r?$/m ? $1 : '' } @mail], ['other@customer.example', 'real@customer.example'], 'that says for whom';
ok $petrel->wait_log(qr/to=<real\@customer\.example>, relay=127\.0\.0\.1.*status=sent/), 'the log has the recipient';

send_to('you@good.example');
Petrel::wait_arrived($sink, 3);
my ($good) = grep { $_->{content} !~ /X-Original-To/ } Petrel::arrived($sink);
ok $good, 'an allowed domain has no such field';
is join(',', @{ $good->{to} }), 'you@good.example', 'and gets its mail';

# Mail that was accepted before a redirect.
my $held = send_to('real@later.example');
ok Petrel::wait_for(sub { ($petrel->run('queue', 'ls'))[1] =~ /hold/ }), 'held';
$petrel->configure(routes => "dev.example $host\n* redirect:test\@dev.example");
kill 'HUP', $petrel->{pid};
ok $petrel->wait_log(qr/reload/i), 'a reload';
$petrel->run('queue', 'release', $held);
Petrel::wait_arrived($sink, 4);
ok scalar(grep { $_->{content} =~ /^X-Original-To: real\@later\.example/m } Petrel::arrived($sink)), 'goes there, too';
ok $petrel->wait_empty, 'nothing is left';
is $petrel->stop, 0, 'stopped';

# Errors.
my $check = sub { $petrel->configure(@_); return ($petrel->run('check'))[1] };
like $check->(routes => '* redirect:nobody'), qr/write redirect: and an address/, 'no address';
like $check->(routes => '* redirect:a@b.example?deny=x'), qr/redirect has one option/, 'another option';
like $check->(routes => '* redirect:a@b.example?allow=x@'), qr/neither an address nor a domain/, 'a bad name';
like $check->(routes => "b.example hold\n* redirect:a\@b.example"), qr/no host gets mail for that address/, 'a way to nowhere';
like $check->(routes => '* mx', local => 'redirect:a@b.example'), qr/redirect is for routes and sender_routes alone/, 'another setting';
done_testing;
