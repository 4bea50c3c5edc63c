# A name server that is slow or lies: it passes questions on to an honest one, by UDP and TCP, and changes, delays or drops
# the answers. start($port_of_the_honest, MODE) returns its port; liar_mode() in a file changes the mode later.
package Liar;

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes qw(time);
use lib 't/e2e';
use Petrel;

# The end of the question in a message: its header and one name, type and class.
sub question { my ($m) = @_; my $at = 12; $at += 1 + ord substr $m, $at, 1 while ord substr $m, $at, 1; return substr $m, 12, $at + 5 - 12 }
sub type_of { my ($m) = @_; return unpack 'n', substr question($m), -4, 2 }
# An answer: flags (RCODE, and TC or AD), records as octets.
sub answer { my ($m, $flags, @records) = @_; return pack('n n n n n n', unpack('n', $m), 0x8180 | $flags, 1, scalar @records, 0, 0) . question($m) . join '', @records }
sub record { my ($type, $data) = @_; return pack 'n n n N n/a*', 0xc00c, $type, 1, 60, $data }
sub strings { my ($t) = @_; return join '', map { pack 'C/a*', $_ } unpack '(a255)*', $t }

my %TYPE = (A => 1, CNAME => 5, MX => 15, TXT => 16, AAAA => 28, PTR => 12);

# The answer to every question, in place of the honest one; undef: nothing. $tcp: it came by TCP.
my %lies = (
    honest => sub { return $_[1] },
    validated => sub { my ($q, $a) = @_; substr($a, 3, 1) |= "\x20"; return $a },
    silent => sub { return undef },
    servfail => sub { return answer($_[0], 2) },
    refused => sub { return answer($_[0], 5) },
    truncated => sub { return $_[2] ? undef : answer($_[0], 0x200) },
    wrong_id => sub { my ($q, $a) = @_; return pack('n', unpack('n', $a) ^ 1) . substr $a, 2 },
    short => sub { return substr $_[1], 0, 11 },
    garbage => sub { return substr($_[0], 0, 2) . "\x81\x80" . ("\xff" x 400) },
    pointers => sub { return pack('n n n n n n', unpack('n', $_[0]), 0x8180, 1, 1, 0, 0) . question($_[0]) . "\xc0" . chr(12 + length question($_[0])) . pack('n n N n', type_of($_[0]), 1, 60, 0) },
    nxdomain => sub { return answer($_[0], 3) },
    wildcard => sub {
        my ($q) = @_;
        my %data = ($TYPE{A} => "\xc0\0\2\x63", $TYPE{TXT} => strings('wild'), $TYPE{MX} => pack('n', 10) . "\xc0\x0c", $TYPE{PTR} => "\xc0\x0c");
        my $data = $data{ type_of($q) };
        return defined $data ? answer($q, 0, record(type_of($q), $data)) : answer($q, 0);
    },
    loop => sub { my ($q) = @_; return answer($q, 0, record($TYPE{CNAME}, "\xc0\x0c"), ) },
    huge => sub { my ($q, $a, $tcp) = @_; return type_of($q) != $TYPE{TXT} ? $a : $tcp ? answer($q, 0, record($TYPE{TXT}, strings('v=spf1 ' . 'ip4:192.0.2.9 ' x 4500))) : answer($q, 0x200) },
    many => sub { my ($q, $a, $tcp) = @_; return type_of($q) != $TYPE{MX} && type_of($q) != $TYPE{TXT} ? $a : !$tcp ? answer($q, 0x200)
            : answer($q, 0, map { type_of($q) == $TYPE{TXT} ? record($TYPE{TXT}, strings("t$_")) : record($TYPE{MX}, pack('n', $_ % 65536) . pack('C/a*', "m$_") . "\4test\0") } 1 .. 2000) },
);
sub modes { return sort keys %lies }

sub serve {
    my ($udp, $tcp, $honest, $file, $parent) = @_;
    my $select = IO::Select->new($udp, $tcp);
    my $ask = sub {
        my ($q) = @_;
        my $to = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $honest, Proto => 'tcp', Timeout => 5) or return '';
        syswrite $to, pack 'n/a*', $q;
        my $got = '';
        1 while (length $got < 2 || length $got < 2 + unpack 'n', $got) && sysread $to, $got, 70000, length $got;
        return substr $got, 2;
    };
    while (getppid() == $parent) {
        for my $ready ($select->can_read(0.2)) {
            my $mode = Petrel::slurp($file);
            my $lie = $lies{$mode} // die "no mode $mode";
            if ($ready == $udp) {
                my $from = recv $udp, my $q, 4096, 0;
                my $said = $lie->($q, $ask->($q), 0);
                $said = answer($q, 0x200) if defined $said && length $said > 1232;
                send $udp, $said, 0, $from if defined $said;
            }
            elsif ($ready == $tcp) { $select->add($tcp->accept) }
            elsif (!sysread $ready, my $q, 4096) { $select->remove($ready); close $ready }
            elsif (length $q > 14) {
                my $said = $lie->(substr($q, 2), $ask->(substr $q, 2), 1);
                syswrite $ready, pack 'n/a*', $said if defined $said && length $said < 65536;
            }
        }
    }
    return;
}

# Returns an object with {port}; say($mode) changes what it does.
sub start {
    my ($class, $honest, $file, $mode) = @_;
    Petrel::spit($file, $mode);
    my $port = Petrel::free_port();
    my $udp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'udp') or die "udp: $!";
    my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp', Listen => 64, ReuseAddr => 1) or die "tcp: $!";
    my $parent = $$;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        $SIG{PIPE} = 'IGNORE';
        serve($udp, $tcp, $honest, $file, $parent);
        POSIX::_exit(0);
    }
    push @Petrel::running, $pid;
    return bless {port => $port, file => $file}, $class;
}

sub says { my ($self, $mode) = @_; Petrel::spit($self->{file}, $mode); return $self }

1;
