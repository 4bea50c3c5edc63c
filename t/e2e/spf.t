#!/usr/bin/perl
# SPF: mime/auth/spf.c says what the RFC 7208 test suite wants, and what pyspf says of generated zones.
use lib 't/e2e';
use E2E;

plan skip_all => 'needs pyspf and PyYAML (python3-spf python3-yaml)' if system('/usr/bin/python3 -c "import spf, yaml" 2>/dev/null') != 0;
plan skip_all => 'no test suite in python3-spf' unless -e '/usr/share/doc/python3-spf/rfc7208-tests.yml.gz';
my $program = "$Petrel::build/t/unit/mime/auth/spf.t";
plan skip_all => "no $program" unless -x $program;

my $seed = $ENV{SEED} || time;
my $count = $ENV{ZONES} || 4000;
diag "SEED=$seed";
my $dir = tempdir('spf-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my ($code, $said) = Petrel::command('', '/usr/bin/python3', 't/e2e/spf_reference.py', $dir, $seed, $count);
is $code, 0, 'pyspf has judged them' or diag $said;
($code, $said) = Petrel::command('', $program, "$dir/cases");
is $code, 0, 'mime/auth/spf.c, too' or diag $said;
my @got = split /\n/, $said;
my @wanted = split /\n/, Petrel::slurp("$dir/wanted");
is scalar @got, scalar @wanted, 'as many answers as questions';
my ($suite, %wrong, %results) = (0);
for my $i (0 .. $#wanted) {
    my ($results, $name) = split /\t/, $wanted[$i];
    my ($result, $rest) = split /\t/, $got[$i], 2;
    $results{$result}++;
    $suite++ if $name !~ /^seed/;
    next if grep { $_ eq $result } split /\|/, $results;
    push @{ $wrong{ $name =~ /^seed/ ? 'generated' : 'suite' } }, "$name: $result ($rest), not $results";
}
ok $suite > 100, "$suite questions of the suite";
is_deeply $wrong{suite} || [], [], 'the suite is satisfied' or diag explain $wrong{suite};
is_deeply [map { $_ // () } (@{ $wrong{generated} || [] })[0 .. 9]], [], 'pyspf agrees on ' . (@wanted - $suite) . ' generated ones' or diag explain [map { $_ // () } (@{ $wrong{generated} || [] })[0 .. 9]];
ok(($results{$_} || 0) > 20, "$_: $results{$_} times") for qw(pass fail softfail neutral permerror temperror);
done_testing;
