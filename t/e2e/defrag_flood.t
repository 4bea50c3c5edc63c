#!/usr/bin/perl
# Ids without end from one sender, from many senders of one client, and more bytes than may wait: memory and disk stay
# bounded, and all mail is accounted for: held + passed = received.
use lib 't/e2e';
use E2E;
use Fragments;


my $ids = 0;
my $many = 500; # several times the limits; nothing depends on the number
my $sink = Petrel::sink();
my $p = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d", defrag_max_sets_per_sender => 100,
    defrag_max_sets_per_client => 150, defrag_max_total => '200K')->start;

sub memory_kb { return Petrel::slurp("/proc/$p->{pid}/status") =~ /^VmRSS:\s+(\d+) kB/m ? $1 : 0 }
sub disk_kb { my ($code, $out) = Petrel::command('', 'du', '-sk', "$p->{dir}/spool"); return $out =~ /^(\d+)/ ? $1 : 0 }
sub fragments { my ($wait, $sets) = ($p->run('status'))[1] =~ /^fragments\s+(\d+) wait in (\d+) sets/m; return ($wait // -1, $sets // -1) }
# Each first part of its own set: pipelined over one connection, a batch at a time.
sub flood {
    my ($count, $from, $body) = @_;
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $p->{port}, Timeout => 10) or die "no connection: $!";
    Petrel::reply($s);
    print $s "EHLO client.test\r\n";
    Petrel::reply($s);
    my $taken = 0;
    for my $i (1 .. $count) {
        my $content = Fragments::part("id" . ++$ids, 1, 10, $body) =~ s/\r?\n/\r\n/gr;
        print $s 'MAIL FROM:<' . $from->($i) . ">\r\nRCPT TO:<b\@y.test>\r\nDATA\r\n";
        Petrel::reply($s) for 1 .. 3;
        print $s "$content\r\n.\r\n";
        $taken += Petrel::reply($s) =~ /^250/;
    }
    close $s;
    return $taken;
}
sub settled { my ($received) = @_; my @f; return Petrel::wait_for(sub { @f = glob "$sink->{dir}/*.eml"; return @f + (fragments())[0] == $received }) || diag(scalar(@f) . ' arrived, ' . (fragments())[0] . " wait of $received") && 0 }

my $received = flood(200, sub { 'one@x.test' }, 'x' x 100);
ok(settled($received), 'some');
my ($memory, $disk) = (memory_kb(), disk_kb());
$received += flood($many, sub { 'one@x.test' }, 'x' x 100);
ok(settled($received), "check 54: $many ids of one sender: held + passed = received");
is((fragments())[0], 100, 'check 54: as many as one sender may have wait');
cmp_ok(memory_kb() - $memory, '<', 8 * 1024, 'check 54: memory is bounded');
cmp_ok(disk_kb() - $disk, '<', 70 * 1024, 'check 54: disk is bounded');

$received += flood(300, sub { "s$_[0]\@x.test" }, 'x' x 100);
ok(settled($received), 'check 54: of many senders');
is((fragments())[0], 150, 'check 54: one client has its limit');
$p->configure(defrag_max_sets_per_client => 0);
kill 'HUP', $p->{pid};
$p->wait_log(qr/settings reloaded/);
$received += flood(150, sub { "t$_[0]\@x.test" }, 'x' x 5000);
ok(settled($received), 'check 54: of large ones');
cmp_ok((fragments())[0], '<=', 45 + 100, 'check 54: no more than may wait in all');
cmp_ok((fragments())[0], '>=', 30, 'but those that may');
is($p->stop, 0, 'a clean end');
done_testing();
