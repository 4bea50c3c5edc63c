#!/usr/bin/perl
# A large message is joined on the disk: the daemon's memory does not grow with it, and every byte of it arrives.
use lib 't/e2e';
use E2E;

my ($count, $mib) = (40, 1);
my $sink = Petrel::sink();
my $to = "smtp://127.0.0.1:$sink->{port}";
my $p = Petrel->new(routes => "y.test $to?defragment=yes\n* $to", defrag_max_size => '100M')->start;

sub load {
    my $domain = shift;
    my ($code, $out) = Petrel::command('', "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$p->{port}", '--messages', $count, '--partial', $count,
        '--size', $mib * 2**20, '--connections', 4, '--rcpt', "user\@$domain");
    return is($code, 0, "$domain: all fragments are accepted") || diag $out;
}
sub peak_mb { return Petrel::slurp("/proc/$p->{pid}/status") =~ /^VmHWM:\s+(\d+) kB/m ? $1 * 1024 / 1e6 : -1 }
sub body_of { my $content = shift; return substr $content, index($content, "\r\n\r\n") + 4 }
# The reported fact $_[0] of the bodies.
sub number_of { return $_[0] =~ /\nContent-Type: message\/partial; id="[^"]*"; number=(\d+);/ ? $1 : 0 }

# As they are: that is what receiving and sending takes.
load('z.test');
Petrel::wait_arrived($sink, $count);
my %body = map { number_of($_->{content}) => body_of($_->{content}) } Petrel::arrived($sink);
is_deeply([ sort { $a <=> $b } keys %body ], [ 1 .. $count ], 'they arrive as they are');
my $before = peak_mb();
cmp_ok($before, '>', 1, 'the system tells the peak of memory');

load('y.test');
my $whole = Petrel::wait_arrived($sink, $count + 1)->{content};
my $more = peak_mb() - $before;
cmp_ok($more, '<', 8, sprintf '%d MB are joined with %.1f MB of memory more', $count * $mib, $more);
ok(body_of($whole) eq body_of(join '', map { $body{$_} } 1 .. $count), 'every byte arrives');
cmp_ok(length $whole, '>', 0.99 * $count * $mib * 2**20, 'all of them');
ok($p->wait_empty, 'nothing is left');
is($p->stop, 0, 'a clean end');
unlike($p->log, qr/not reassembled|cannot be reassembled/, 'nothing failed');
done_testing();
