#!/usr/bin/perl
# Fragments whose time is over: released as they came, returned or held, also when the daemon was stopped meanwhile. The
# daemon lives at another time by libfaketime, for half of `notices` is two days.
use lib 't/e2e';
use E2E;
use Fragments;

my $clock = Fragments::clock() or plan skip_all => 'no libfaketime';
my $hour = 3600;
my $sink = Petrel::sink();
my $p = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d&concurrency=1");
my $count = 0;

# The daemon, that many seconds from now, after another boot: within one a step of the clock is no time that passes.
sub start_at {
    my ($seconds) = @_;
    $p->stop if $p->{pid};
    unlink "$p->{dir}/spool/lock/clock";
    local $ENV{LD_PRELOAD} = $clock;
    local $ENV{FAKETIME} = ($seconds < 0 ? '' : '+') . $seconds;
    local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
    $p->start;
}
my @bodies = ("Subject: whole\n\none\n", "two\n", 'three');
sub send_part {
    my ($id, $n, %o) = @_;
    my $part = Fragments::part($id, $n, 3, $bodies[ $n - 1 ], %o) =~ s/\n\z//r;
    my ($name) = ($p->send_mail($o{from} // 'a@x.test', 'b@y.test', $part) // '') =~ /queued as (\S+)/;
    return ($name, $part =~ s/\r?\n/\r\n/gr . "\r\n");
}
sub next_arrived { my ($n) = @_; Petrel::wait_arrived($sink, $count + $n); my @all = Petrel::arrived($sink); my @new = @all[ $count .. $#all ]; $count = @all; return @new }

# --- Released: two days after the first, whenever the others came and however often we were started.
start_at(0);
my (%sent, %name);
($name{3}, $sent{3}) = send_part('time@x', 3);
start_at(47 * $hour);
($name{1}, $sent{1}) = send_part('time@x', 1, header => "X-Odd:   kept \n\tas it is\n");
my ($code, $show) = $p->run('queue', 'show', $name{1});
like($show, qr/have 2 of 3; missing parts: 2;/, 'check 42: a start finds what waits');
start_at(48 * $hour - 120);
is($p->queued, 2, 'check 42: before its time it waits');
is(scalar Petrel::arrived($sink), 0, 'check 42: a later part changes nothing');
start_at(48 * $hour - 2);
my @released = next_arrived(2);
is(scalar @released, 2, 'check 42: two days after the first part all go');
my @numbers = map { $_->{content} =~ /number=(\d)/ } @released;
is("@numbers", '1 3', 'check 43: in the order of their numbers');
for my $m (@released) {
    my ($n) = $m->{content} =~ /number=(\d)/;
    is(Petrel::untraced($m->{content}), $sent{$n}, "check 43: part $n is what arrived, behind one line of trace");
    like($m->{content}, qr/\AReceived: from client\.test[^\n]*\n\s+id \Q$name{$n}\E/, "check 43: which was ours, part $n");
}
send_part('time@x', 2);
like((next_arrived(1))[0]{content}, qr/number=2/, 'check 40: a late part follows at once');
ok($p->wait_empty, 'nothing is left');
is(scalar(grep { $_->{from} eq '' } Petrel::arrived($sink)), 0, 'check 44: and nobody was told anything');

# The same when that time is over before a daemon runs again: the last part that came is not alone then.
start_at(0);
($name{3}, $sent{3}) = send_part('stopped@x', 3);
start_at(47 * $hour);
($name{1}, $sent{1}) = send_part('stopped@x', 1);
start_at(48 * $hour + 60);
is(join(' ', map { $_->{content} =~ /number=(\d)/ } next_arrived(2)), '1 3', 'a daemon that was stopped meanwhile releases all of the set');
ok($p->wait_empty, 'nothing is left');

# --- Returned, by a daemon that runs and by one that was stopped.
$p->configure(defrag_on_timeout => 'bounce');
for my $late (-2, 60) {
    my $id = "bounce$late\@x";
    start_at(0);
    send_part($id, 2, from => 'back@x.test');
    send_part($id, 3, from => 'back@x.test');
    start_at(48 * $hour + $late);
    my @bounces = next_arrived(2);
    is(scalar(grep { $_->{to}[0] eq 'back@x.test' && $_->{content} =~ /^Status: 5\.4\.7\r\n/m } @bounces), 2, "returned, $late s after their time");
    ok($p->wait_empty, 'and gone');
}

# --- Held.
$p->configure(defrag_on_timeout => 'hold');
for my $late (-2, 60) {
    my $id = "hold$late\@x";
    start_at(0);
    my ($name) = send_part($id, 2);
    start_at(48 * $hour + $late);
    ok(Petrel::wait_for(sub { ($p->run(qw(queue ls --queue hold)))[1] =~ /^\Q$name\E.*held by defrag_on_timeout/m }), "held, $late s after its time");
    is(scalar Petrel::arrived($sink), $count, 'and not sent');
    $p->run(qw(queue release), $name);
    like((next_arrived(1))[0]{content}, qr/number=2/, 'until an operator lets it go');
}
is($p->stop, 0, 'a clean end');
done_testing();
