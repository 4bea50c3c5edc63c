#!/usr/bin/perl
# The reasons of deferred mail after a clean stop, after SIGKILL, without a daemon, and with a file that was not written by us:
# `queue ls`, `queue show`, `queue why`, mailq, and what they say in JSON.
use lib 't/e2e';
use E2E;

my $program = "$Petrel::root/$Petrel::build/t/bench/sink";
plan skip_all => "no $program" unless -x $program;

my $id_pattern = qr/[0-9A-Z]{10}-[0-9A-Z]{8}/;
my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'tcp') or die "no port: $!";
my $dead = $taken->sockport; # held, so that nobody else listens there
my $later = Sink->start('--fail-rcpt', 'later:450');
my $petrel = Petrel->new(
    routes => "dead.test smtp://127.0.0.1:$dead\n* smtp://127.0.0.1:$later->{port}",
    minimal_backoff_time => '1h')->start;
my $file = "$petrel->{dir}/spool/lock/reasons";

sub send_one {
    my ($id) = $petrel->send_mail('anna@here.test', [@_], "Subject: hi\n\nletter") =~ /queued as ($id_pattern)/ or die 'not accepted';
    ok $petrel->wait_log(qr/ $id: to=.*status=deferred/), "$_[0] is deferred";
    return $id;
}
sub said { return ($petrel->run(@_))[1] }

# Whether all that shows reasons shows this one.
sub shows {
    my ($id, $words, $when) = @_;
    # The start goes through its mail some at a time.
    ok(Petrel::wait_for(sub { said('queue', 'why', $id) =~ /^to: +<\S+> .*$words/m }), "$when: queue why") or diag said('queue', 'why', $id);
    like said('queue', 'show', $id), qr/^to: +<\S+> waiting \(.*$words.*\)$/m, "$when: queue show";
    like said('queue', 'ls'), qr/^$id deferred .*next attempt in .*\(.*$words.*\)$/m, "$when: queue ls";
    for my $verb (qw(why show)) {
        like decode_json(said('queue', $verb, '--json', $id))->{recipients}[0]{delay_reason}, qr/$words/, "$when: queue $verb --json";
    }
    my ($listed) = grep { $_->{queue_id} eq $id } map { decode_json($_) } split /\n/, said(qw(queue ls --json));
    like $listed->{recipients}[0]{delay_reason}, qr/$words/, "$when: queue ls --json";
    my ($code, $mailq) = $petrel->run('sendmail', '-bp');
    ok $code == 0 && $mailq =~ /^$id\b.*$words/m, "$when: mailq" or diag $mailq;
    return;
}
sub both_show {
    my ($told, $refused, $when) = @_;
    shows($told, '450', $when);
    shows($refused, 'refused', $when);
    return;
}

my $told = send_one('later@live.test');
my $refused = send_one('x@dead.test');
both_show($told, $refused, 'before');
my $text = said('queue', 'show', $told);
$petrel->stop;
ok -s $file, 'a clean stop leaves them beside what was learnt of sites';
is +(stat $file)[2] & 07777, 0600, 'for nobody else to read';
$petrel->start;
both_show($told, $refused, 'after a clean stop');
my ($before) = $text =~ /^(to:.*)/m;
like said('queue', 'show', $told), qr/^\Q$before\E$/m, 'in the same words';
is said('queue', 'why', '--json', $told) =~ /"attempts": ?1,/ ? 1 : 0, 1, 'no attempt was made for it';

$petrel->kill9;
$petrel->start;
both_show($told, $refused, 'after SIGKILL');

# Without a daemon.
$petrel->stop;
shows($told, '450', 'stopped');
shows($refused, 'refused', 'stopped');
like said('queue', 'why', $told), qr/^because:  no daemon runs; .*; the reasons below are those of its last run$/m, 'and since when';
ok !exists decode_json(said('queue', 'why', '--json', $told))->{why}, 'nobody has answered';
Petrel::spit($file, substr(my $whole = Petrel::slurp($file), 1));
my @two; # times in both go on: a second may end between them
for (1 .. 5) {
    @two = ([$petrel->run('queue', 'why', $told)], [0, said('queue', 'why', $told) =~ s/; the reasons below.*//r =~ s/^(to: +<\S+>).*/$1/mr]);
    last if $two[0][1] eq $two[1][1];
}
is_deeply @two, 'a damaged file tells nothing';
Petrel::spit($file, $whole);
$petrel->start;

is +($petrel->run('queue', 'rm', $told))[0], 0, 'one is removed';
$petrel->stop;
unlike Petrel::slurp($file), qr/$told/, 'it is not in the file any more';
like Petrel::slurp($file), qr/$refused/, 'the other is';

# --- A file that is not ours

for my $case (['one byte', sub { my $text = shift; substr($text, length($text) / 2, 1) ^= "\1"; return $text }],
              ['half of it', sub { return substr $_[0], 0, length($_[0]) / 2 }], ['nothing', sub { return '' }],
              ['20 MB', sub { return "x\n" x 10_000_000 }], ['a page', sub { return "<html>\e[2J\0\n" }]) {
    my ($name, $change) = @$case;
    my $good = Petrel::slurp($file);
    Petrel::spit($file, $change->($good));
    my $lines = Petrel::count($petrel->log, qr/warning: ignored lock\/reasons/);
    $petrel->start;
    ok Petrel::wait_for(sub { said('queue', 'ls') =~ /^$refused deferred .*next attempt in \w+$/m }), "$name: it waits, nobody knows why"
        or diag said('queue', 'ls');
    is Petrel::count($petrel->log, qr/warning: ignored lock\/reasons/), $lines + 1, "$name: one line says so";
    $petrel->kill9;
    Petrel::spit($file, $good);
}
$petrel->start;
shows($refused, 'refused', 'the file as it was');
is +($petrel->run('queue', 'rm', $refused))[0], 0, 'the last is removed';
$petrel->stop;
ok !-e $file, 'nothing waits: no file';
$later->stop;
done_testing;
