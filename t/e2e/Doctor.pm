# A world for `petrel doctor`: NSD with a root zone of lines, a large receiver that says which address it sees, and what
# doctor says of them. Records that a remedy prints are pasted into the zone, as a reader would.
package Doctor;

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use lib 't/e2e';
use Nsd;
use Petrel;

# The right facts: this host, three receivers, and names that records may include.
our @base = (
    'ns. A 127.0.0.1',
    (map { ("$_. MX 10 mx.receiver.test.") } qw(gmail.com outlook.com yahoo.com)),
    'mx.receiver.test. A 127.0.0.1',
    'mail.example.org. A 192.0.2.10',
    'mail.example.org. MX 10 mail.example.org.',
    'mail.example.org. TXT "v=spf1 a -all"',
    'example.org. A 192.0.2.10',
    '_dmarc.example.org. TXT "v=DMARC1; p=none"',
    '10.2.0.192.in-addr.arpa. PTR mail.example.org.',
    'gone.test. TXT "something else"',
    'good.inc.test. TXT "v=spf1 ip4:198.51.100.0/24 -all"',
    (map { ("i$_.inc.test. TXT \"v=spf1 ip4:198.51.100.$_ -all\"") } 1 .. 12),
    'deep.inc.test. TXT "v=spf1 ' . join(' ', map { "include:i$_.inc.test" } 1 .. 10) . ' -all"',
    'bad.inc.test. TXT "v=spf1 nonsense -all"',
    'loop.inc.test. TXT "v=spf1 include:loop.inc.test -all"',
    'many.inc.test. A 198.51.100.1',
    (map { ("many.inc.test. MX 10 m$_.inc.test.", "m$_.inc.test. A 198.51.100.2") } 1 .. 11),
    '_spf.google.com. TXT "v=spf1 ip4:198.51.100.0/24 ~all"',
    'host.aliased.test. CNAME mail.example.org.',
    'nowhere.aliased.test. CNAME nothing.aliased.test.',
);

sub new {
    my ($class, $dir) = @_;
    my $self = bless {dir => $dir, lines => [@base]}, $class;
    $self->{receiver} = receiver('[192.0.2.10]');
    return $self;
}

# A mail host on loopback: it greets, and answers EHLO with these words. undef: it refuses.
sub receiver {
    my ($words) = @_;
    my $port = Petrel::free_port();
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 64, ReuseAddr => 1) or die "listen: $!";
    my $parent = $$;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        my $select = IO::Select->new($listener);
        while (getppid() == $parent) {
            for my $ready ($select->can_read(0.2)) {
                if ($ready == $listener) {
                    my $peer = $listener->accept or next;
                    syswrite $peer, defined $words ? "220 mx.receiver.test ESMTP\r\n" : "554 5.7.1 go away \e[31m\r\n";
                    $select->add($peer);
                }
                elsif (!sysread $ready, my $got, 4096) { $select->remove($ready) }
                elsif ($got =~ /^EHLO/) { syswrite $ready, "250-mx.receiver.test at your service, $words\r\n250 SIZE 1000\r\n" }
                else { syswrite $ready, "221 bye\r\n"; $select->remove($ready); close $ready }
            }
        }
        POSIX::_exit(0);
    }
    push @Petrel::running, $pid;
    return $port;
}

# A line of a zone: (name, type, value).
sub parts { my ($line) = @_; return $line =~ /^(\S+)\s+(?:\d+\s+)?(?:IN\s+)?([A-Z]+)\s+(.*)$/ ? ($1, $2, $3) : die "not a record: $line" }

sub serve {
    my ($self) = @_;
    my $text = "\$ORIGIN .\n\$TTL 60\n. 60 IN SOA ns. hostmaster. 1 7200 3600 86400 30\n. IN NS ns.\n" . join '', map { "$_\n" } @{ $self->{lines} };
    Petrel::spit("$self->{dir}/root.zone", $text);
    if ($self->{nsd}) { $self->{nsd}->stop; $self->{nsd}->again }
    else { $self->{nsd} = Nsd->start($self->{dir}, '.' => "$self->{dir}/root.zone") }
    my $log = Petrel::slurp("$self->{dir}/nsd.log");
    die $log if $log =~ m{error: }; # a record that is none
    return $self;
}

# Adds lines; "-NAME TYPE" removes those that are there.
sub change {
    my ($self, @lines) = @_;
    for my $line (@lines) {
        if ($line =~ /^-(\S+) (\S+)$/) {
            my ($name, $type) = ($1, $2);
            @{ $self->{lines} } = grep { my ($n, $t) = parts($_); lc $n ne lc $name || $t ne $type } @{ $self->{lines} };
        }
        else { push @{ $self->{lines} }, $line }
    }
    return;
}

# The records of a remedy, as a reader pastes them: each in place of those that it replaces.
sub paste {
    my ($self, $remedy) = @_;
    my (%fresh, $count);
    for my $line (grep { / IN / } map { s/^    //r } grep { /^    / } split /\n/, $remedy) {
        my ($name, $type, $value) = parts($line);
        my $kind = $value =~ /"(v=(?:spf1|DMARC1))/ ? $1 : '';
        @{ $self->{lines} } = grep {
            my ($n, $t, $v) = parts($_);
            my $same = lc $n eq lc $name && ($t eq $type || $t eq 'CNAME');
            !($same && ($kind eq '' || $t eq 'CNAME' || $v =~ /\Q$kind\E/i));
        } @{ $self->{lines} } unless $fresh{"$name $type"}++;
        push @{ $self->{lines} }, $line;
        $count++;
    }
    return $count // 0;
}

sub petrel {
    my ($self, %settings) = @_;
    return Petrel->new(hostname => 'mail.example.org', dns_servers => "127.0.0.1:$self->{nsd}{port}", smtp_port => $self->{receiver}, relay => '',
        local_domains => 'mail.example.org, example.org', mta_sts => 'no', smtp_connect_timeout => '1s', %settings);
}

# (exit code, checks).
sub run {
    my ($self, $petrel, @arguments) = @_;
    my ($code, $said) = $petrel->run('doctor', '--json', @arguments);
    my $all = eval { decode_json($said) } or die "doctor: $code: $said";
    return ($code, $all->{checks});
}

# The results of the code, and of the subject if it is named, that are not ok; hints count if asked for.
sub wrong {
    my ($checks, $code, $subject, $hints) = @_;
    return grep { $_->{code} eq $code && (!defined $subject || $_->{subject} =~ /(?:^|\.)\Q$subject\E$/) && $_->{severity} =~ ($hints ? qr/error|warning|hint/ : qr/error|warning/) } @$checks;
}

1;
