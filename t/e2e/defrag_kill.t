#!/usr/bin/perl
# Killed at random moments while sets are joined, twenty times: of each set exactly one whole arrives, and no part of it
# is lost. A client that has no answer sends its part again; a host that has no answer may get a message twice, as the same.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Fragments;
use IO::Select;
use IO::Socket::INET;
use Petrel;
use Test::More;
use Time::HiRes qw(sleep time);

my $rounds = 20;
my $seed = $ENV{SEED} // 20261121;
diag "SEED=$seed";
my $sink = Petrel::sink();
# Small records: some fragments are files of their own, and the ring of the journal turns.
my $p = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d", journal_message_max => '8K', journal_size => '1M',
    defrag_max_sets_per_sender => 0, defrag_max_sets_per_client => 0);
srand $seed; # not before: the names of temporary files are chance, too
my (%whole, @waiting, %accepted, $again);
my $next = 0;

sub new_set {
    my $id = 'set' . ++$next;
    my $total = 2 + int rand 4;
    my @bodies = ("Subject: whole $id\nMIME-Version: 1.0\nContent-Type: text/plain\n\n" . "$id first\n" x (1 + rand 300), map { "$id $_\n" x (1 + rand 1500) } 2 .. $total);
    $bodies[-1] .= 'end';
    $whole{$id} = join('', @bodies) =~ s/\n/\r\n/gr . "\r\n";
    my @parts = map { [ $id, $_, Fragments::part($id, $_, $total, $bodies[ $_ - 1 ]) =~ s/\n\z//r ] } 1 .. $total;
    return map { splice @parts, rand @parts, 1 } 1 .. $total;
}

# Sends until all are answered, or the daemon is killed at that time; what has no 250 is left in @waiting.
sub send_until {
    my ($end) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $p->{port}, Timeout => 10) or die "no connection: $!";
    my @sent;
    my $ask = sub {
        my ($text) = @_;
        return '' unless print $s $text;
        my $left = $end - time;
        return '' if $left < 0 || !IO::Select->new($s)->can_read($left);
        return Petrel::reply($s);
    };
    my @left = @waiting;
    $ask->('') and $ask->("EHLO client.test\r\n") or return;
    while (@left) {
        my ($id, $n, $content) = @{ $left[0] };
        my $data = $content =~ s/\r?\n/\r\n/gr;
        last if $ask->("MAIL FROM:<a\@x.test>\r\n") !~ /^250/ || $ask->("RCPT TO:<b\@y.test>\r\n") !~ /^250/ || $ask->("DATA\r\n") !~ /^354/;
        last if $ask->("$data\r\n.\r\n") !~ /^250/;
        $accepted{$id}{$n}++;
        shift @left;
    }
    $again += @left > 0;
    @waiting = @left;
    close $s;
}

for my $round (1 .. $rounds) {
    $p->start;
    push @waiting, map { new_set() } 1 .. 4;
    my $end = time + 0.02 + rand 0.2;
    send_until($end);
    sleep $end - time if $end > time;
    $p->kill9;
}
$p->start;
send_until(time + 10 * $Petrel::patience);
is(scalar @waiting, 0, 'all parts are accepted in the end');

# By Petrel's own name of the message: the same twice is what a lost 250 of ours makes.
sub arrived {
    my (%ids, @odd);
    for my $m (Petrel::arrived($sink)) {
        my ($own) = $m->{content} =~ /\AReceived: [^\n]*\n\s+id ([0-9A-Z-]+)/;
        my ($id) = $m->{content} =~ /^Subject: whole (\S+)\r$/m;
        push @odd, $m->{content} and next if !$id || $m->{content} =~ /message\/partial/;
        $ids{$id}{$own}++;
        my $body = $m->{content} =~ s/\A.*?(?=^Subject: whole)//msr;
        push @odd, "$id is not what it was" if $body ne $whole{$id};
    }
    return (\%ids, \@odd);
}
Petrel::wait_for(sub { my ($ids) = arrived(); return keys %$ids == $next }, 3 * $Petrel::patience);
my ($ids, $odd) = arrived();
is(scalar keys %$ids, $next, "check 45: $next sets, $rounds kills, $again times in the middle: each has arrived");
is_deeply([ grep { keys %{ $ids->{$_} } != 1 } keys %$ids ], [], 'check 45: as one message');
is_deeply($odd, [], 'check 45: whole, and nothing else');
# The rest may only be the repetition of a part whose answer was lost.
Petrel::wait_for(sub { ($p->run(qw(queue ls --json)))[1] !~ /"queue_name":"(?!defrag)/ });
cmp_ok($p->queued, '<=', $again, 'what is left are repetitions');
is($p->stop, 0, 'a clean end');
# A kill may count as one of the crashes that would put a message aside.
unlike($p->log, qr/corrupt|damaged|put aside/, 'nothing was damaged');
done_testing();
