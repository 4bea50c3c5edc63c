#!/usr/bin/perl
# The units for systemd, as its own tools see them.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use Petrel;
use Test::More;

my $analyze = Petrel::have('systemd-analyze') or plan skip_all => 'no systemd-analyze';
my $dir = tempdir('units-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $service = Petrel::slurp("$Petrel::root/etc/petrel.service") =~ s{/usr/local/sbin/petrel}{$Petrel::binary}gr;
Petrel::spit("$dir/petrel.socket", Petrel::slurp("$Petrel::root/etc/petrel.socket"));

# Its complaints; the manual is not installed here.
sub complaints {
    my ($unit) = @_;
    Petrel::spit("$dir/petrel.service", $unit);
    my ($code, $text) = Petrel::command(undef, $analyze, 'verify', "$dir/petrel.service", "$dir/petrel.socket");
    return join '', grep { !/Command 'man / && m{\Q$dir\E|petrel\.} } split /^/, $text;
}
sub exposure {
    my ($unit) = @_;
    Petrel::spit("$dir/petrel.service", $unit);
    my ($code, $text) = Petrel::command(undef, $analyze, qw(security --offline=true --no-pager), "$dir/petrel.service");
    return $text =~ /Overall exposure level for petrel\.service: ([\d.]+)/ ? $1 : undef;
}
is complaints($service), '', 'systemd finds nothing wrong in the units';
isnt complaints($service =~ s/^WatchdogSec=.*$/WatchdogSec=soon/mr), '', 'it would';
SKIP: {
    my $level = exposure($service) // skip 'systemd-analyze security does not work here', 2;
    cmp_ok $level, '<=', 1.6, 'what it leaves to the daemon is little';
    cmp_ok exposure($service =~ s/^(AmbientCapabilities|CapabilityBoundingSet)=.*$/$1=/mgr), '<', $level, 'and less with passed sockets, without the capability';
}
done_testing;
