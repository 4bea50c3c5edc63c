#!/usr/bin/perl
# Quotas of those who send: what is over is refused with the time to come again, what was not sent is given back, and
# neither a reload nor a restart nor SIGKILL forgets what was used.
use lib 't/e2e';
use E2E;

my $sink = Petrel::sink();

# RCPT for each; the codes. The client stays in its transaction.
sub asks { my ($client, $from, @to) = @_; $client->say("MAIL FROM:<$from>") =~ /^250/ or die; return map { $client->say("RCPT TO:<$_\@there.test>") } @to }
# How many messages to one recipient pass of so many.
sub passes {
    my ($petrel, $from, $tries) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    my $passed = 0;
    for (1 .. $tries) { $passed += $client->send(from => $from, to => 'you@there.test', data => "Subject: q\r\n\r\nq\r\n") =~ /^250/; $client->say('RSET') }
    $client->quit;
    return $passed;
}

# --- Refusals, and what is given back

my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", log_style => 'json',
    quotas => "sender:a\@here.test 5/d\nsender:here.test 3/d,100/m\nsender:big.test 2/h\ndomain:whole.test 4/d\n")->start;
my $client = Client->greeted($petrel->{port});
like +(asks($client, 'a@here.test', 1 .. 4))[3], qr/^250/, 'four of five recipients';
like $client->say('RSET'), qr/^250/, 'are given up';
is passes($petrel, 'a@here.test', 8), 5, 'and given back: five messages pass';
my ($refused) = asks($client, 'A@HERE.test', 'x');
like $refused, qr/^450 4\.7\.1 Quota: 5 recipients a day of sender a\@here\.test are used; the next in 2[45]h \d+m\r\n\z/, 'the sixth is refused, with the time';
$client->say('RSET');
is passes($petrel, 'b@here.test', 5), 3, 'another address of the domain by itself';
is passes($petrel, 'c@whole.test', 3), 3, 'a domain';
is passes($petrel, 'd@whole.test', 3), 1, 'as a whole';
is passes($petrel, 'e@other.test', 7), 7, 'others have no quota';
my @replies = asks($client, 'x@big.test', 1 .. 3);
like $replies[1], qr/^250/, 'two in a message';
like $replies[2], qr/^550 5\.7\.1 Quota: more recipients than the 2 an hour of sender x\@big\.test\r\n\z/, 'the third can never pass with them';
$client->say('RSET');
@replies = asks($client, 'b2@here.test', 1, 1, 1, 2, 2, 3);
is scalar(grep { /^250/ } @replies), 6, 'a repeated recipient counts once';
$client->close;

my @events = grep { ($_->{event} // '') eq 'quota' } map { eval { decode_json($_) } || () } split /\n/, $petrel->log;
is join(' ', map { $_->{subject} } @events), 'sender:a@here.test sender:b@here.test domain:whole.test sender:x@big.test', 'one event for each window';
is $events[0]{level}, 'warning', 'a warning';
like $events[0]{text} // $events[0]{message}, qr/5 recipients a day of sender a\@here\.test are used/, 'that says what';
ok Petrel::wait_for(sub { passes($petrel, 'b2@here.test', 1) }), 'a client that has gone gives back what it had';

# --- Over reload, restart and SIGKILL

$petrel->configure(quotas => "sender:a\@here.test 7/d\ndomain:whole.test 4/d\n");
my ($code, $said) = $petrel->run('reload');
is $code, 0, 'reload' or diag $said;
is passes($petrel, 'a@here.test', 4), 2, 'reloaded: a new quota knows the past';
is passes($petrel, 'c@whole.test', 1), 0, 'and the old one';
$petrel->stop;
my $file = "$petrel->{dir}/spool/lock/quotas";
like Petrel::slurp($file), qr/\Apetrel quotas 1\n(?=.*^d \d+ \d[\d,]* sender:a\@here\.test$)(?=.*^d \d+ \d[\d,]* domain:whole\.test$)/ms, 'stopped: a file has it';
$petrel->start;
is passes($petrel, 'a@here.test', 2), 0, 'restarted: all are used still';
is passes($petrel, 'c@whole.test', 2), 0, 'of the domain, too';
$petrel->configure(quotas => "sender:a\@here.test 9/d\ndomain:whole.test 4/d\n")->stop;
unlink $file or die;
$petrel->start;
is passes($petrel, 'a@here.test', 4), 4, 'without the file nothing is known';
ok Petrel::wait_for(sub { -e $file }), 'soon it is written';
$petrel->kill9;
$petrel->start;
is passes($petrel, 'a@here.test', 9), 5, 'after SIGKILL: what was written counts';
$petrel->stop;
Petrel::spit($file, "nonsense\n");
$petrel->start;
ok $petrel->wait_log(qr/lock\/quotas: damaged, or not written by Petrel/), 'a damaged file is reported' or diag $petrel->log;
is passes($petrel, 'a@here.test', 1), 1, 'and mail goes on';
$petrel->stop;

# --- Next hops

sub send_some { my ($p, $count) = @_; my @ids; for (1 .. $count) { my $c = Client->greeted($p->{port}) or die; push @ids, $c->send(from => 's@here.test', to => 'you@there.test', data => "Subject: q\r\n\r\nq\r\n") =~ /queued as (\S+)/; $c->quit } return @ids }
sub arrived { return scalar @{ Petrel::arrived($_[0]) } }
my $hop = Petrel::sink();
my $route = "* smtp://127.0.0.1:$hop->{port}?quota=";
my $relay = Petrel->new(routes => $route . '3/d,3/h')->start;
my @ids = send_some($relay, 5);
ok Petrel::wait_for(sub { Petrel::count($relay->log, qr/status=sent/) == 3 }), 'next hop: three of five are sent';
my $why = sub { ($relay->run('queue', 'why', $_[0]))[1] };
ok Petrel::wait_for(sub { $why->($ids[4]) =~ /quota of 3 a day is used up; the next delivery may begin .* \(in 1 d \d+ h\)/ }), 'why says until when' or diag $why->($ids[4]);
unlike $relay->log, qr/status=deferred/, 'which is no attempt';
my ($site) = @{ decode_json($relay->status)->{sites} };
is "$site->{bound} $site->{quota} $site->{quota_period}", 'quota 3 day', 'so does the status';
ok Petrel::wait_for(sub { Petrel::slurp("$relay->{dir}/spool/lock/quotas") =~ /^d \d+ 3 relay smtp:\[127\.0\.0\.1\]:$hop->{port}$/m }), 'it is written';
$relay->kill9;
$relay->start;
send_some($relay, 1);
ok Petrel::wait_for(sub { $why->($ids[4]) =~ /quota of 3 a day is used up/ }), 'after SIGKILL it still is';
is Petrel::count($relay->log, qr/status=sent/), 3, 'and nothing is sent';
$relay->configure(routes => $route . '4/d')->run('reload');
ok Petrel::wait_for(sub { Petrel::count($relay->log, qr/status=sent/) == 4 }), 'a larger quota lets one more go';
$relay->stop;
$relay->configure(routes => $route . '1/s')->start;
ok $relay->wait_empty, 'what waits goes on by itself';
is Petrel::count($relay->log, qr/status=sent/), 6, 'once each';
$relay->stop;
($code, $said) = Petrel->new(routes => $route . '5/w')->run('check');
isnt $code, 0, 'a bad quota of a route';
like $said, qr/quota=5\/w/, 'is named' or diag $said;

# --- Settings

($code, $said) = Petrel->new(quotas => "user:* 5/d\nalice 7/d\nall 5\n")->run('check');
isnt $code, 0, 'bad entries';
like $said, qr/quotas: 'alice 7\/d': is not one of user:NAME/, 'the first';
like $said, qr/quotas: 'all 5': the limit is none of N\/s/, 'and the second';

done_testing;
