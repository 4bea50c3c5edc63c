#!/usr/bin/perl
# Slices of one machine share the limits of a next hop without Redis: one of them has the bank, the other asks it by a Unix socket.
# The limit and the mail while that slice hangs, is killed and comes back, and the harm by a client at the socket that says odd
# things.
use lib 't/e2e';
use E2E;
use Time::HiRes qw(stat time);

my $sink = Sink->start;
my $dir = File::Temp::tempdir('bank-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my @slices = map { mkdir "$dir/$_"; Petrel->new(dir => "$dir/$_", spool => "$dir/spool", slices => 2, slice => $_, routes => "* smtp://127.0.0.1:$sink->{port}?recipients=1&rate=10/s,burst=1", minimal_backoff_time => '1s', maximal_backoff_time => '2s') } 0, 1;

my $sent = 0;
# So many recipients at a slice, in one message: a transaction each.
sub submit {
    my ($slice, $count) = @_;
    my $client = Client->greeted($slices[$slice]{port}) or die 'no greeting';
    $client->send(from => 'a@x.test', to => [map { "$_\@y.test" } 1 .. $count], data => "Subject: m\r\n\r\nm\r\n") =~ /^250/ or die 'refused';
    $client->quit;
    $sent += $count;
}
sub group_of { my $slice = shift; return JSON::PP::decode_json($slices[$slice]->status)->{group} }
sub wait_bank { my ($slice, $state, $server) = @_; return Petrel::wait_for(sub { my $g = group_of($slice); $g->{bank} eq $state && (!$server || $g->{server} eq $server) }) }
sub all_came { return Petrel::wait_for(sub { $sink->count('messages') >= $sent }) }
# When they came, as the files of the sink say.
sub came { return sort { $a <=> $b } map { (stat $_)[9] } glob "$sink->{base}/*/*.eml" }
# Whether there were more since the beginning than the rate and so many permit. A slow machine lets them come later.
sub exceeds { my ($begun, $more) = @_; my ($count, @over) = (0); for (came()) { next if $_ < $begun; $count++; push @over, sprintf '%d in %.2f s', $count, $_ - $begun if $count > 10.2 * ($_ - $begun) + $more } return @over ? "$over[0], $over[-1]" : '' }

# --- Both share

$slices[0]->start;
ok $slices[0]->wait_log(qr/group: this slice has the bank of the 2 slices/), 'the first slice has the bank';
$slices[1]->start;
ok wait_bank($_, 'up', 'slice 0'), "slice $_ knows it" for 0, 1;
my ($code, $said) = $slices[1]->run('cluster');
like $said, qr/\Agroup  slices, egress shared\nhost   slice\.0  member\nhost   slice\.1  member, this one\nbank   up, slice 0\n/, 'cluster says where it is';
like +($slices[1]->run('status'))[1], qr/^group      slices: 2 hosts; bank up$/m, 'the status has a line';
is sprintf('%o', (stat "$dir/spool/lock/bank.sock.0000-0511")[2] & 07777), '600', 'the socket is ours alone';
is Petrel::slurp("$dir/spool/lock/bank"), "0000-0511\n", 'the file says whose it is';
my $begun = time;
submit($_, 75) for 0, 1;
ok all_came(), 'all mail of both comes';
is exceeds($begun, 1 + 2), '', 'at the rate of one';
cmp_ok Petrel::count($_->log, qr/status=sent/), '>=', 75, 'from both' for @slices;
cmp_ok group_of($_)->{asks}, '>', 0, 'both have asked' for 0, 1;
cmp_ok group_of($_)->{asks}, '>', group_of($_)->{failures}, 'and were answered' for 0, 1;

# --- Odd clients at the socket

my @odd = ("\n", "EHLO x\r\n", "{}\n", '{"ask":[1]}' . "\n", "\0\n", '[' x 70000, '{"ask":["' . 'x' x 70000);
for my $odd (@odd) {
    my $client = IO::Socket::UNIX->new(Peer => "$dir/spool/lock/bank.sock.0000-0511") or die "no socket: $!";
    my $at = 0;
    while ($at < length $odd) { my $wrote = syswrite $client, $odd, 1000, $at or last; $at += $wrote }
    ok(IO::Select->new($client)->can_read($Petrel::patience) && !sysread($client, my $answer, 1000), 'an odd client is cut off');
}
my $other = IO::Socket::UNIX->new(Peer => "$dir/spool/lock/bank.sock.0512-1023") or die "no socket: $!";
ok(IO::Select->new($other)->can_read($Petrel::patience) && !sysread($other, my $answer, 1000), "the slice without the bank hangs up");
submit(1, 5);
ok all_came(), 'mail goes on';
ok wait_bank(1, 'up', 'slice 0'), 'by the same bank';

# --- The slice with the bank hangs

kill 'STOP', $slices[0]{pid};
$begun = time;
submit(1, 20);
ok all_came(), 'it hangs: mail of the other one comes';
is exceeds($begun, 1 + 2), '', 'not above the rate';
ok wait_bank(1, 'away'), 'the bank is away';
like group_of(1)->{why}, qr/^no answer in time$/, 'and why';
ok $slices[1]->wait_log(qr/group: warning: bank away \(no answer in time\), \d+ sites at our part \(1\/2\)/), 'as the log says';
ok Petrel::wait_for(sub { grep { $_->{code} eq 'bank_away' && $_->{text} =~ /\(no answer in time\)/ } @{ JSON::PP::decode_json($slices[1]->status)->{findings} } }), 'as a finding';
kill 'CONT', $slices[0]{pid};
ok wait_bank(1, 'up', 'slice 0'), 'it goes on: the bank is back';

# --- It is killed

submit($_, 30) for 0, 1;
my $before = $sink->count('messages');
ok Petrel::wait_for(sub { $sink->count('messages') > $before + 5 }), 'mail flows';
my $killed = time;
$slices[0]->kill9;
ok $slices[1]->wait_log(qr/group: this slice has the bank of the 2 slices/), 'it is killed: the other one has the bank';
ok wait_bank(1, 'up', 'slice 1'), 'and asks itself';
$slices[0]->start;
ok wait_bank(0, 'up', 'slice 1'), 'who comes back asks it';
submit($_, 20) for 0, 1;
ok Petrel::wait_for(sub { $slices[0]->queued + $slices[1]->queued == 0 }), 'all mail comes';
cmp_ok $sink->count('messages'), '>=', $sent, 'as much as was sent';
is exceeds($killed, 1 + 2 + 10 * 5), '', 'an empty bank costs one period at most';
is $slices[1]->stop, 0, 'it stops';
ok wait_bank(0, 'up', 'slice 0'), 'and the other one has the bank';
ok !-e "$dir/spool/lock/bank.sock.0512-1023", 'its socket is gone';
is $slices[0]->stop, 0, 'that stops, too';
$sink->stop;
done_testing;
