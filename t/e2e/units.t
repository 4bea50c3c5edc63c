#!/usr/bin/perl
# The units for systemd, as its own tools see them.
use lib 't/e2e';
use E2E;

# --- The template for slices has the settings of the service

# SECTION.KEY -> its values, in order.
sub settings {
    my ($file) = @_;
    my (%all, $section);
    for (split /\n/, Petrel::slurp("$Petrel::root/etc/$file")) {
        if (/^\[(\w+)\]$/) { $section = $1 }
        elsif (/^(\w+)=(.*)$/) { push @{ $all{"$section.$1"} }, $2 }
        elsif (!/^(?:#.*)?$/) { fail "$file: $_" }
    }
    return \%all;
}
my ($one, $slice) = map { settings($_) } qw(petrel.service petrel@.service);
cmp_ok scalar(keys %$one), '>', 50, 'the service has settings';
is_deeply delete $slice->{'Service.Environment'}, ['PETREL_SLICE=%i'], 'an instance is a slice';
is_deeply delete $slice->{'Service.RuntimeDirectory'}, [ "$one->{'Service.RuntimeDirectory'}[0]/%i" ], 'one that stops removes no directory of another';
is_deeply delete $slice->{'Unit.Description'}, [ "$one->{'Unit.Description'}[0], slice %i" ], 'its name';
delete @$one{qw(Service.RuntimeDirectory Unit.Description)};
is_deeply $slice, $one, 'all else is equal';

# --- What systemd says

my $analyze = Petrel::have('systemd-analyze');
unless ($analyze) { note 'no systemd-analyze'; done_testing; exit }
my $dir = tempdir('units-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub unit { return Petrel::slurp("$Petrel::root/etc/$_[0]") =~ s{/usr/local/sbin/petrel}{$Petrel::binary}gr }
my $service = unit('petrel.service');
Petrel::spit("$dir/petrel\@.service", unit('petrel@.service'));
Petrel::spit("$dir/petrel.socket", Petrel::slurp("$Petrel::root/etc/petrel.socket"));

# Its complaints; the manual is not installed here.
sub complaints {
    my ($unit) = @_;
    Petrel::spit("$dir/petrel.service", $unit);
    my ($code, $text) = Petrel::command(undef, $analyze, 'verify', "$dir/petrel.service", "$dir/petrel.socket", "$dir/petrel\@.service");
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
Petrel::spit("$dir/petrel\@.service", unit('petrel@.service') =~ s/^WatchdogSec=.*$/WatchdogSec=soon/mr);
isnt complaints($service), '', 'also in the template';
SKIP: {
    my $level = exposure($service) // skip 'systemd-analyze security does not work here', 2;
    cmp_ok $level, '<=', 1.6, 'what it leaves to the daemon is little';
    cmp_ok exposure($service =~ s/^(AmbientCapabilities|CapabilityBoundingSet)=.*$/$1=/mgr), '<', $level, 'and less with passed sockets, without the capability';
}
done_testing;
