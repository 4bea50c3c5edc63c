#!/usr/bin/perl
# The guide: every command block of its pages is run as it stands there, each page in a machine of its own that vanishes;
# every setting passes `petrel check`; every link leads somewhere. Guide.pm says what the fences mean.
use lib 't/e2e';
use E2E;
use FindBin;
use Guide;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scratch = tempdir('guide-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my @unshare = qw(unshare --mount --net --pid --fork --kill-child=KILL --mount-proc --propagation private);
my %known = map { $_ => 1 } Petrel::slurp("$Petrel::root/config.example") =~ /^#(\w+) =/mg;

# Why no machine can be had here; undef: it can.
sub why_not {
    return 'only root has machines of its own' if $> != 0;
    for (qw(unshare setpriv ip mount python3 useradd)) { return "$_ is not installed" unless Petrel::have($_) }
    return 'there are no authorities' unless -s '/etc/ssl/certs/ca-certificates.crt';
    mkdir "$scratch/try";
    mkdir "$scratch/try/$_" for qw(upper work);
    my $try = "mount -t tmpfs none $scratch/try && mkdir $scratch/try/u $scratch/try/w && mount -t overlay none -o lowerdir=/etc,upperdir=$scratch/try/u,workdir=$scratch/try/w /etc";
    return system("@unshare sh -c '$try' >/dev/null 2>&1") == 0 ? undef : 'this system allows no mounts';
}

# The checks of a block for another machine that are possible here.
sub check_elsewhere {
    my ($block, $name) = @_;
    my ($code, $said) = Petrel::command($block->{text}, 'sh', '-n');
    is $code, 0, "$name: its grammar" or diag $said;
    my %commands = map { $_ => 1 } $block->{text} =~ m{(?<!init\.d/)(?<![\w-])petrel ((?!-)[a-z][a-z-]+)\b}mg;
    for (sort keys %commands) { is +(Petrel::command('', $Petrel::binary, 'help', $_))[0], 0, "$name: petrel $_" }
}

sub check_yaml {
    my ($block, $name) = @_;
    SKIP: {
        skip 'python3-yaml is not installed', 1 if system('python3 -c "import yaml" 2>/dev/null') != 0;
        my ($code, $said) = Petrel::command($block->{text}, 'python3', '-c', 'import sys, yaml; assert list(yaml.safe_load_all(sys.stdin))');
        is $code, 0, "$name: YAML" or diag $said;
    }
    my @unknown = grep { !$known{ lc s/_FILE$//r } && !$known{lc $_} } $block->{text} =~ /\bPETREL_(\w+)/g;
    is_deeply \@unknown, [], "$name: its variables are settings";
}

sub check_result {
    my ($block, $name, $expected) = @_;
    my $good = $block->{code} == 0 || $block->{kind} eq 'sh reports' && $block->{code} == 1;
    ok $good, "$name ($block->{seconds} s)" or diag "exit code $block->{code}\n$block->{text}$block->{output}";
    return unless defined $expected;
    my $missing = Guide::matches($expected, $block->{output});
    ok !defined $missing, "$name: prints what the page says" or diag "missing: $missing\noutput: $block->{output}";
}

my $why = why_not();
diag "the commands of the guide are not run: $why" if $why;
if (!$why) {
    my $log = "$scratch/make.log";
    is system("make -s -C $Petrel::root install install-sendmail DESTDIR=$scratch/root >$log 2>&1"), 0, 'make install' or diag Petrel::slurp($log);
    # That of the smarthost signs itself, and this machine trusts it.
    mkdir "$scratch/certificates";
    is system("cd $scratch/certificates && $Petrel::binary cert --out . smtp.provider.example >$log 2>&1 && mv *.key good.key && mv *.pem good.pem"), 0, 'a certificate' or diag Petrel::slurp($log);
}

# All machines at the same time: most of it is waiting.
my %pid;
for my $page ($why ? () : @Guide::pages) {
    my $dir = "$scratch/$page";
    mkdir $_ for $dir, map { "$dir/$_" } qw(over spool);
    symlink "$scratch/$_", "$dir/$_" for qw(root certificates);
    $pid{$page} = Petrel::spawn("$dir/results", @unshare, $^X, "$FindBin::Bin/guide_machine.pl", $dir, "$Petrel::root/doc/$page.md");
}

for my $page (@Guide::pages) {
    my $file = "$Petrel::root/doc/$page.md";
    my ($blocks, $wrong) = Guide::blocks(Petrel::slurp($file));
    cmp_ok scalar @$blocks, '>=', 1, "$page.md: has blocks";
    is_deeply $wrong, [], "$page.md: each says what it is";
    my %expected; # by the line of the sh block before
    for my $i (0 .. $#$blocks) {
        my ($block, $name) = ($blocks->[$i], "$page.md:$blocks->[$i]{line}");
        check_elsewhere($block, $name) if $block->{kind} eq 'sh elsewhere';
        check_yaml($block, $name) if $block->{kind} eq 'yaml';
        next if $block->{kind} ne 'text';
        ok $i > 0 && $blocks->[$i - 1]{kind} =~ /^sh(?: reports)?$/, "$name: stands behind a command";
        $expected{ $blocks->[$i - 1]{line} } = $block->{text} if $i > 0;
    }
    next if $why;
    my $status = Petrel::reap($pid{$page}, 0, 300);
    my $said = Petrel::slurp("$scratch/$page/results");
    is $status, 0, "$page.md: its machine" or diag join "\n", grep { !/^\{/ } split /\n/, $said;
    my @results = map { decode_json($_) } grep { /^\{/ } split /\n/, $said;
    my $end = @results && $results[-1]{end} ? pop @results : undef;
    ok $end, "$page.md: to its end";
    is scalar @results, scalar(grep { $_->{kind} =~ /^(?:sh(?: reports)?|conf.*)$/ } @$blocks) + scalar(Guide::inline(Petrel::slurp($file))), "$page.md: all blocks";
    check_result($_, $_->{line} ? "$page.md:$_->{line}" : "$page.md: $_->{text}" =~ s/\n//r, $expected{ $_->{line} }) for @results;
    unlike $end->{log} // '', qr/sandbox: system call/, "$page.md: within the sandbox";
}

# --- Links

my $index = Petrel::slurp("$Petrel::root/doc/README.md");
for my $page (map { m{([^/]+)\.md$} } glob "$Petrel::root/doc/*.md") {
    ok $page eq 'README' || $index =~ m{\]\(\Q$page\E\.md\)}, "doc/README.md leads to $page";
    my @links = Petrel::slurp("$Petrel::root/doc/$page.md") =~ /\]\(([^)#:]+)(?:#[^)]*)?\)/g;
    is_deeply [grep { !-e "$Petrel::root/doc/$_" } @links], [], 'whose links lead somewhere';
}
is_deeply [grep { !-e "$Petrel::root/$_" } Petrel::slurp("$Petrel::root/README.md") =~ /\]\(([^)#:]+)\)/g], [], 'so do those of README.md';
SKIP: {
    skip 'nothing is installed', 1 if $why;
    is_deeply [grep { !-e "$scratch/root/usr/local/share/doc/petrel/$_.md" } @Guide::pages], [], 'the guide is installed';
}
done_testing;
