#!/usr/bin/perl
# Writes etc/first-code.ld (make first-code): the code that a relay runs, from its start until a message is delivered and it is
# idle again, as callgrind sees it. The linker puts that code before the rest, so that the kernel, which maps 64 KiB around
# each byte that is used, maps little that is not.
use strict;
use warnings;
use File::Temp qw(tempdir);
use lib 't/e2e';
use Client;
use Petrel;
use Sink;

my ($program, $out) = @ARGV;
my $work = tempdir('first-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# The sections of code in the map of the linker: [address, size, name, archive:member or ''], in the order of addresses.
sub code {
    my @all;
    my $text = Petrel::slurp("$program.map") =~ s/\A.*^Linker script and memory map$//msr;
    while ($text =~ /^ (\.text\S*)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$/mg) {
        my ($name, $address, $size, $file) = ($1, hex $2, hex $3, $4);
        my $member = $file =~ m{([^/]+\.a)\(([^()]+)\)$} ? "$1:$2" : $file =~ m{([^/]*crt1\.o)$} ? $1 : '';
        push @all, [$address, $size, $name, $member] if $address && $size;
    }
    return sort { $a->[0] <=> $b->[0] } @all;
}

# The addresses of instructions that were run.
sub addresses {
    my (%object, %seen, $ours);
    my $last = 0;
    open my $h, '<', shift or die $!;
    while (<$h>) {
        if (/^ob=\((\d+)\)(?: (.*))?/) {
            my $number = $1;
            $object{$number} = $2 if defined $2;
            $ours = ($object{$number} // '') =~ /\Q$program\E$/;
        } elsif (/^(0x[0-9a-f]+|[+-]\d+|\*) /) {
            my $moved = $1; # within the file of the last line, or the same
            $last = $moved =~ /^0x/ ? hex $moved : $last + $moved if $moved ne '*';
            $seen{$last} = 1 if $ours;
        }
    }
    return sort { $a <=> $b } keys %seen;
}

my $sink = Sink->start;
my $petrel = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$sink->{port}", sandbox => 'yes');
my $log = "$work/log";
my $pid = Petrel::spawn($log, qw(valgrind --tool=callgrind --dump-instr=yes), "--callgrind-out-file=$work/run", "$Petrel::root/$program", '-c', $petrel->conf, 'run');
Petrel::wait_for(sub { Petrel::slurp($log) =~ /listening on/ }) or die Petrel::slurp($log);
Client->greeted($petrel->{port})->send(from => 'a@example.org', to => 'b@example.net', data => "Subject: x\r\n\r\nhello\r\n") =~ /^250 / or die 'not accepted';
$sink->wait_for('b@example.net') or die 'not delivered';
sleep 3; # what its timers do
Petrel::reap($pid, 'TERM');

my @code = code();
# Functions that valgrind keeps from the program, or runs in its place.
my %member = map { $_ => 1 } qw(libseccomp.a:* libc.a:getpid.lo);
my %section = ('.text.sandbox_*' => 1);
if ($ENV{KEEP}) { # what is there: of the libraries of another release
    my $kept = Petrel::slurp($out);
    $member{$1} = 1 while $kept =~ /^ +\*(\S+)\(\.text \.text\.\*\)$/mg;
    $section{$1} = 1 while $kept =~ /(?<=[ (])(\.text\.[a-z_]\w*(?:\.?\*)?)(?=[ )\n])/g;
    delete @section{ '.text.first', '.text.startup.main' };
}
my $at = 0;
for my $address (addresses("$work/run")) {
    $at++ while $at < $#code && $address >= $code[$at][0] + $code[$at][1];
    my ($start, undef, $name, $member) = @{ $code[$at] };
    next if $address < $start;
    # Functions have sections of their own; where a library has none a file is the smallest part.
    if ($member =~ /^lib|crt1/ && $name eq '.text') { $member{$member} = 1 unless $member =~ /^libseccomp/ }
    elsif ($name =~ /^(\.text\.(?!unlikely\.|startup\.)[a-z_]\w*)(\..*)?$/) {
        $section{$1} = 1;
        $section{"$1.*"} = 1 if defined $2;
    }
}
keys %section > 99 or die 'valgrind has not seen the program';
my $lines = '        *(.text.startup.main';
for my $section (sort keys %section) { # of 100 columns
    $lines .= "\n           " if length($lines =~ s/.*\n//sr) + length $section > 98;
    $lines .= " $section";
}
Petrel::spit($out, "/* Made by `make first-code`: the code that runs at startup and for each message. */\nSECTIONS\n{\n    .text.first :\n    {\n"
        . join('', map { "        *$_(.text .text.*)\n" } sort keys %member)
        . "$lines)\n    }\n}\nINSERT BEFORE .text;\n");
printf "%d sections, %d files of libraries\n", scalar keys %section, scalar keys %member;
