#!/usr/bin/perl
# The static programs of a release (make check-release): each is for its processor, needs no loader, and takes, keeps and delivers a
# message, those of other processors under qemu.
use strict;
use warnings;
use lib 't/e2e';
use Client;
use Petrel;
use Sink;
use Test::More;

my $release = $ENV{RELEASE} || 'build-release';
$release = "$Petrel::root/$release" if $release !~ m{^/};
my @programs = glob "$release/petrel-*-linux-*";
@programs or plan skip_all => 'no release is built: make release';
chomp(my $here = `uname -m`);
my %machine = (x86_64 => 'X86-64', aarch64 => 'AArch64', armv7l => 'ARM', riscv64 => 'RISC-V');
my %emulator = (aarch64 => 'aarch64', armv7l => 'arm', riscv64 => 'riscv64', x86_64 => 'x86_64');
$Petrel::patience = 120;

for my $program (@programs) {
    my ($processor) = $program =~ /-linux-(\w+)$/;
    like `readelf -h $program`, qr/Machine: .*\Q$machine{$processor}\E/, "$processor: its processor";
    unlike `readelf -lW $program`, qr/INTERP/, 'no loader';
    cmp_ok -s $program, '<=', 3_200_000, 'its size'; # of aarch64; others are smaller
    SKIP: {
        my $qemu = "qemu-$emulator{$processor}-static";
        skip "$qemu is not installed", 1 if $processor ne $here && !Petrel::have($qemu);
        my $sink = Sink->start;
        my $petrel = Petrel->new(relay => "smtp://127.0.0.1:$sink->{port}", sandbox => 'yes');
        my $run = Petrel::spit("$petrel->{dir}/petrel", '#!/bin/sh' . "\nexec " . ($processor eq $here ? '' : "$qemu ") . "$program \"\$@\"\n");
        chmod 0755, $run;
        local $Petrel::binary = $run;
        like +(Petrel::command('', $run, 'version'))[1], qr/^libidn2.*^libsodium/ms, 'all libraries are in it';
        $petrel->start;
        like +Client->greeted($petrel->{port})->send(from => 'a@example.org', to => 'b@example.net', data => "Subject: x\r\n\r\nhello\r\n"), qr/^250 /, 'a message is accepted';
        ok $sink->wait_for('b@example.net'), 'and delivered' or diag $petrel->log;
        $petrel->stop;
    }
}
done_testing;
