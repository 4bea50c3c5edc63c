# Zones that are really signed: ldnsutils signs them, NSD serves them, Unbound validates.
package Unbound;

use strict;
use warnings;
use Cwd qw(getcwd);
use IO::Socket::INET;
use lib 't/e2e';
use Nsd;
use Petrel;

sub available { return Nsd->available && Petrel::have('unbound') && Petrel::have('ldns-signzone') && Petrel::have('ldns-keygen') }

sub run_in {
    my ($where, @command) = @_;
    my $here = getcwd();
    chdir $where or die "$where: $!";
    open my $out, '-|', @command or die "$command[0]: $!";
    my $said = do { local $/; <$out> } // '';
    close $out or die "@command: $?";
    chdir $here or die "$here: $!";
    return $said;
}

# The file of a zone, signed; its key is a trust anchor.
sub sign {
    my ($dir, $name, @options) = @_;
    my ($key) = run_in($dir, 'ldns-keygen', '-k', '-a', 'ECDSAP256SHA256', $name) =~ /(\S+)/;
    run_in($dir, 'ldns-signzone', @options, '-o', $name, '-f', "$name.signed", $name, $key);
    return ("$dir/$name.signed", "$dir/$key.key");
}

# start($dir, {zone => records}, {zone => 1 when it is signed}, {zone => sub that changes the signed text}).
# Options: sign => {zone => [options of ldns-signzone]}; lines => more of "server:"; address => an address where port 53 answers, too, for programs that
# know no other port. A zone without records fails (SERVFAIL). Returns an object with {port}, the validating name server,
# and {address}, if that could be had.
sub start {
    my ($class, $dir, $zones, $signed, $falsify, %options) = @_;
    my (%file, @anchors);
    for my $name (sort keys %$zones) {
        if (!defined $zones->{$name}) {
            $file{$name} = "$dir/$name.missing";
            next;
        }
        my $head = "\$ORIGIN $name.\n\$TTL 600\n\@ 3600 IN SOA ns hostmaster 1 7200 3600 86400 300\n\@ IN NS ns\nns IN A 127.0.0.1\n";
        $file{$name} = Petrel::spit("$dir/$name", $head . $zones->{$name});
        next unless $signed->{$name};
        ($file{$name}, my $anchor) = sign($dir, $name, @{ $options{sign}{$name} // [] });
        push @anchors, $anchor;
        Petrel::spit($file{$name}, $falsify->{$name}->(Petrel::slurp($file{$name}))) if $falsify->{$name};
    }
    my $nsd = Nsd->start($dir, %file);
    my $port = Petrel::free_port();
    my $address = $options{address};
    undef $address unless $address && IO::Socket::INET->new(LocalAddr => $address, LocalPort => 53, Proto => 'udp');
    Petrel::spit("$dir/unbound.conf", <<"END" . join '', map { "stub-zone:\n    name: $_\n    stub-addr: 127.0.0.1\@$nsd->{port}\n" } sort keys %file);
server:
    interface: 127.0.0.1\@$port
@{[$address ? "    interface: $address\@53\n" : '']}
    access-control: 127.0.0.0/8 allow
    username: ""
    chroot: ""
    directory: "$dir"
    pidfile: ""
    logfile: "$dir/unbound.log"
    use-syslog: no
    num-threads: 1
    do-not-query-localhost: no
    do-daemonize: no
    module-config: "validator iterator"
    root-hints: ""
@{[map { qq(    trust-anchor-file: "$_"\n) } @anchors]}@{[$options{lines} // '']}
remote-control:
    control-enable: no
END
    Petrel::spawn("$dir/unbound.out", Petrel::have('unbound'), '-d', '-c', "$dir/unbound.conf");
    Petrel::wait_for(sub { Nsd::is_up($port) }) or die Petrel::slurp("$dir/unbound.out") . Petrel::slurp("$dir/unbound.log");
    return bless {port => $port, nsd => $nsd, address => $address}, $class;
}

1;
