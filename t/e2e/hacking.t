#!/usr/bin/perl
# doc/dev/hacking.md: every command in it does what the page says, and every file that it names is there.
use lib 't/e2e';
use E2E;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

my $patience = 1200; # seconds for one section: the fuzzer's compiles everything once
my $scratch = tempdir('hacking-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $group; # of the section that runs
END { my $code = $?; kill 'KILL', -$group if $group; $? = $code }

# The lines of prove about test files that pass, at any place.
# Whether a fuzzer can be linked.
my $fuzzes = system("echo 'int LLVMFuzzerTestOneInput(const char *a, unsigned long b) { return a && b ? 0 : 0; }' |"
    . ' clang -fsanitize=address,undefined,fuzzer -x c - -o /dev/null >/dev/null 2>&1') == 0;

sub tests { return map { qr{/$_\.t\b.*?^All tests successful\.$}ms } @_ }

# The output of each section, in addition to exit code 0; all sections with commands are here.
my %prints = (
    'Build' => [qr/^petrel \d+\.\d+/m],
    'Run one test' => [tests('marks'), qr{^build\S*/t/unit/queue/spool/spool\.t \.+ ok$}m, tests('relay')],
    'Repeat one seed of the crash run' =>
        [qr/^ok 1 - deferral, journal, seed 7: \d+ points/m, qr/^ok 1 - deferral, journal, seed 7: 1 points/m],
    'The roof: the whole MTA in virtual time' => [qr/^ok 1 - no law is broken$/m, qr/^# 5 runs, \d+ virtual seconds/m],
    'Repeat one seed of a simulation' => [qr/^0\.000000 open example\.com$/m],
    'Run one fuzz input' => [qr/^Executed \S+ in \d+ ms$/m],
    'Trace one message' => [qr/\(queued\)$/m, qr/: to=<you\@away\.example>.*status=deferred/, qr/^because: /m, qr{/spool/\S+/}],
    'Add a setting' => [tests('settings', 'options')],
    'Add a command of the operator' => [tests('command_table', 'complete')],
    'Add a part of the daemon' => [tests('daemon')],
    'Add an SMTP command' => [tests('server', 'session')],
    'Add a route option' => [tests('transport_params', 'route'), qr/option 'concurency=3' is unknown/],
);

# Each fenced block: [heading, tag, text].
sub blocks {
    my ($page, $heading, @blocks, $open) = (shift, '');
    for (split /^/, $page) {
        if (/^```(\w*)\n/ && !$open) { push @blocks, $open = [$heading, $1, ''] }
        elsif (/^```$/) { undef $open }
        elsif ($open) { $open->[2] .= $_ }
        elsif (/^## (.*)/) { $heading = $1 }
    }
    return @blocks;
}

# As it stands there, but for the directory of a build that is not `build`, another program under test, and fuzzing
# that takes as long as it is given.
sub moved {
    my $text = shift;
    $text =~ s{(?<![\w/-])build/}{$Petrel::build/}g;
    $text =~ s{(?<![\w/])\./petrel\b}{$Petrel::binary}g if $ENV{PETREL};
    $text =~ s{\bSECONDS_EACH=\d+}{SECONDS_EACH=1}g;
    return $text;
}

# Runs it in a process group of its own, of which nothing is left: (exit code, output).
sub run_section {
    my $script = Petrel::spit("$scratch/section.sh", "set -e\n" . shift);
    my $output = "$scratch/output";
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        setpgrp(0, 0);
        chdir $Petrel::root or POSIX::_exit(126);
        delete @ENV{ grep { /^(?:PETREL_|HARNESS_|PERL_TEST_HARNESS|MAKE|MFLAGS|CRASH_)/ } keys %ENV };
        @ENV{qw(TMPDIR BUILD)} = ($scratch, $Petrel::build);
        $SIG{PIPE} = 'DEFAULT';
        open STDIN, '<', '/dev/null' or POSIX::_exit(126);
        open STDOUT, '>', $output or POSIX::_exit(126);
        open STDERR, '>&', \*STDOUT;
        exec 'sh', $script or POSIX::_exit(127);
    }
    setpgrp($pid, $pid); # by the faster of the two
    $group = $pid;
    my ($end, $code) = (time + $patience, 124);
    while (time < $end) {
        if (waitpid($pid, WNOHANG) == $pid) { $code = $? & 127 ? 128 + ($? & 127) : $? >> 8; $end = 0 }
        else { sleep 0.05 }
    }
    kill 'KILL', -$group;
    waitpid $pid, 0 if $code == 124;
    undef $group;
    return ($code, Petrel::slurp($output));
}

my $page = Petrel::slurp("$Petrel::root/doc/dev/hacking.md");
my @blocks = blocks($page);
is_deeply [grep { !/^(?:sh|text)$/ } map { $_->[1] } @blocks], [], 'each block is tagged sh or text';
(my $prose = $page) =~ s/^```.*?^```$//msg;
unlike $prose, qr/^ {4}/m, 'and no commands stand outside of them';

my (%commands, @sections);
for (grep { $_->[1] eq 'sh' } @blocks) {
    push @sections, $_->[0] unless exists $commands{ $_->[0] };
    $commands{ $_->[0] } .= moved($_->[2]);
}
is_deeply [sort @sections], [sort keys %prints], 'all sections with commands are known';
for my $section (@sections) {
    SKIP: {
        # Compiles everything once more, with sanitizers.
        skip "$section: HACKING_FUZZ=1 builds the fuzzers, as CI does", 1 if $commands{$section} =~ /\bfuzzer-no-link\b/ && !$ENV{HACKING_FUZZ};
        skip "$section: clang is not installed", 1 if $commands{$section} =~ /\bCC=clang\b/ && !Petrel::have('clang');
        # Debian 13 has them in libclang-rt-dev, which clang only recommends.
        skip "$section: clang has no sanitizers here", 1 if $commands{$section} =~ /\bfuzzer-no-link\b/ && !$fuzzes;
        my ($code, $said) = run_section($commands{$section});
        is $code, 0, $section or diag $said;
        like $said, $_, '    as it says' for @{ $prints{$section} || [] };
    }
}

for my $name (qw(dev/hacking scheduler defragment)) {
    my $text = Petrel::slurp("$Petrel::root/doc/$name.md");
    my %named = map { $_ => 1 } $text =~ m{`((?:base|mime|queue|sched|smtp|defrag|admin|man|t|doc)/[\w./-]*\.\w+)`}g;
    ok keys %named > 10, "doc/$name.md names files";
    is_deeply [grep { !-e "$Petrel::root/$_" } sort keys %named], [], 'all of which exist';
}
done_testing;
