#!/usr/bin/perl
# petrel status --site NAME: a site, and what was said in the last conversation with it that failed.
use lib 't/e2e';
use E2E;
use AuthServer;

plan skip_all => 'no python3' unless Petrel::have('python3');

$ENV{TZ} = 'UTC';
my $secret = 'the-secret-of-joe';
my $sink = Sink->start('--fail-rcpt', 'nobody:550');
my $host = AuthServer->start(mechanisms => 'PLAIN,LOGIN', users => { joe => 'another' });
my $petrel = Petrel->new(hostname => 'petrel.test', minimal_backoff_time => '1h', maximal_backoff_time => '2h',
    routes => "login.test smtp://joe\@127.0.0.1:$host->{port}, held.test hold, * smtp://127.0.0.1:$sink->{port}");
my $file = Petrel::spit("$petrel->{dir}/passwords", "127.0.0.1:$host->{port} joe $secret\n");
chmod 0600, $file;
$petrel->configure(auth_passwords => $file)->start;
my $name = "smtp:[127.0.0.1]:$sink->{port}";
my $body = "Subject: a subject of the content\n\nhello";
sub site { return $petrel->run('status', '--site', @_) }
sub lines { my $site = decode_json((site(shift, '--json'))[1]); return map { "$_->{from} $_->{text}" } @{ ($site->{failed} // {})->{lines} // [] } }

my ($code, $said) = site($name);
is $code, 65, 'a site that is not known';
is $said, "petrel status: $name: no such site; 'petrel status --sites' lists them\n", 'is said';
$petrel->send_mail('s@x.test', 'ok@y.test', $body);
ok Petrel::wait_for(sub { (site($name))[0] == 0 && $petrel->log =~ /status=sent/ }, 20), "mail goes there" or BAIL_OUT("no site: " . ($petrel->run("status", "--sites"))[1]);
($code, $said) = site($name);
like $said, qr/^  site +waiting .*\n  \Q$name\E .*\nno conversation with it has failed since startup\n\z/, 'nothing has failed yet';

$petrel->send_mail('s@x.test', ['nobody@y.test', 'ok@y.test'], $body);
ok Petrel::wait_for(sub { (site($name))[1] =~ /^last failed conversation/m }), 'a refusal';
($code, $said) = site(uc $name);
is $code, 0, 'in any case';
like $said, qr/^last failed conversation: \d\d \w{3} \d{4} \d\d:\d\d:\d\d, with 127\.0\.0\.1\[127\.0\.0\.1\]:$sink->{port}\n/m, 'when, with whom';
like $said, qr/^ +\d+ ms < 220 /m, 'the greeting, with its time';
like $said, qr/^ +\d+ ms > EHLO petrel\.test$/m, 'what we said';
like $said, qr/^ +\d+ ms > RCPT TO:<nobody\@y\.test>.*\n(?:.*\n)*? +\d+ ms < 550 /m, 'what it said';
like $said, qr/^ +\d+ ms - content sent$/m, 'that content was sent';
unlike $said, qr/subject of the content/, 'but not which';
my @said = lines($name);
is_deeply [@said[1, 3]], ['we EHLO petrel.test', 'we MAIL FROM:<s@x.test>' . ($said[3] =~ /( SIZE=\d+)$/ ? $1 : '')], 'as JSON';

# A login that is refused: neither the password nor what stands for it.
$petrel->send_mail('s@x.test', 'u@login.test', $body);
ok $petrel->wait_log(qr/refuses our user joe/), 'a login that is refused';
my ($found) = map { $_->{site} } grep { $_->{site} =~ /:$host->{port}$/ } @{ decode_json(($petrel->run('status', '--sites', '--json'))[1])->{sites} };
@said = lines($found);
ok scalar(grep { $_ eq 'we AUTH ...' } @said), 'only that we logged in' or diag "$found: @said";
ok scalar(grep { /^they 535 5\.7\.8 / } @said), 'and how it ended';
my $text = join "\n", @said;
unlike $text, qr/\Q$secret\E|am9l|AGpvZQ/, 'no password, in no form';
is scalar(grep { /^we (?:AUTH|[A-Za-z0-9+\/=]+$)/ && !/^we (?:QUIT|DATA|RSET)$/ } @said), scalar(grep { $_ eq 'we AUTH ...' } @said), 'and no answers to challenges';

# Two routes to one host: sites of one name, which their options tell apart.
{
    my $two = Petrel->new(routes => "slow.test smtp://127.0.0.1:$sink->{port}?rate=30/m, * smtp://127.0.0.1:$sink->{port}")->start;
    $two->send_mail('s@x.test', $_, $body) for 'a@slow.test', 'b@fast.test';
    ok Petrel::wait_for(sub { (() = $two->log =~ /status=sent/g) == 2 }), 'mail goes by both';
    my @rows = @{ decode_json(($two->run('status', '--sites', '--json'))[1])->{sites} };
    is_deeply [map { $_->{site} } @rows], [($name) x 2], 'which have one name';
    is_deeply [sort map { $_->{options} // '' } @rows], ['', 'rate=30/m'], 'and other options';
    my $table = ($two->run('status', '--sites'))[1];
    like $table, qr/^  \Q$name $_\E +0 /m, "the table has it: $_" for '(no options)', '(rate=30/m)';
    my ($code, $both) = $two->run('status', '--site', $name);
    is $code, 0, 'asked for by their name';
    like $both, qr/^  \Q$name $_\E +0 /m, "both are there: $_" for '(no options)', '(rate=30/m)';
    my $json = decode_json(($two->run('status', '--site', $name, '--json'))[1]);
    is_deeply [sort map { $_->{options} // '' } @{ $json->{sites} }], ['', 'rate=30/m'], 'as JSON';
    is_deeply $json->{site}, $json->{sites}[0], 'with the first of them';
    unlike +($petrel->run('status', '--sites'))[1], qr/options/, 'one name alone has none';
    $two->stop;
}

# Errors.
$sink->stop;
is +(site('--json'))[0], 65, 'a name is taken as it is';
is +($petrel->run(qw(status --site)))[0], 64, 'without a name';
$petrel->stop;
is +(site($name))[0], 69, 'without a daemon';
done_testing;
