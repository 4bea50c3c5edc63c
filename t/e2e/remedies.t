#!/usr/bin/perl
# Remedies run as they are written: every command that a finding, an error, a hint or the page names is in the table
# below, and is typed into a shell, with its holes filled as the program fills them. A command that is printed and not in the
# table fails the test, and so does one in the table that nobody prints.
use lib 't/e2e';
use E2E;
use PageBrowser;

# --- What is printed

# Not remedies: usage lines and examples (t/e2e/commands.t runs them), help of settings and metrics.
my $omitted = qr{^(?:admin/command/(?:command_table|complete)|admin/settings/options_rows|admin/metrics/metrics_families)\.c$};
my $shell = qr/(?:petrel|systemctl|journalctl|sudo|make|ss|chmod|chown)/;

# The sentences of a source: its string literals, joined.
sub sentences {
    my $source = shift;
    $source =~ s{/\*.*?\*/}{ }gs;
    my @all;
    while ($source =~ /((?:"(?:[^"\\]|\\.)*"\s*(?:PRI\w+\s*)?)+)/g) {
        my $literals = $1;
        push @all, join('', $literals =~ /"((?:[^"\\]|\\.)*)"/g) =~ s/\\n/\n/gr;
    }
    return @all;
}

# The commands in a sentence: in quotes, behind "run:", or on a line of their own; a command alone is the name of its
# program in front of an error.
sub commands {
    my $text = shift;
    return () if $text =~ /^\s*(?:usage:|petrel \S+ \[|petrel \w+(?:-\w+)?(?: \w+)?\z)|^ {7}petrel /m;
    my @found = $text =~ /[`']($shell [^`']+)[`']/g;
    push @found, $text =~ /\brun: ($shell [^\n;,`']+)/g, $text =~ /\n +($shell [^\n;,`']+)$/mg, $text =~ /\bsee (petrel \w+)/g;
    push @found, $text =~ /\A(systemctl [^\n]+)\z/;
    push @found, map { "petrel $_" } $text =~ /(?:^|\n) *%s ((?:init|oauth|queue|test)\b[^\n,;]*)/g;
    push @found, $text =~ /\b((?:chmod|chown) -?[\w+-]+(?: %s| [A-Z]+)*)/g;
    return map { s/%(?:\.\*|\.\d+)?s/%s/gr =~ s/%s%s/%s/gr =~ s/[ .]+\z//r } @found;
}

is_deeply [map { commands($_) } 'Look (`petrel frobnicate --now`), or', "it is gone; 'petrel find %.*s' says", 'x; run: petrel fetch %s', "Run this:\n    petrel make %s", "usage: petrel x", 'petrel queue', 'make it %s: chmod 600'],
    ['petrel frobnicate --now', 'petrel find %s', 'petrel fetch %s', 'petrel make %s', 'chmod 600'], 'commands are found in sentences';

my %printed;
for my $file (split /\n/, `cd $Petrel::root && find admin base defrag mime queue sched smtp mta.c -name '*.c'`) {
    next if $file =~ $omitted;
    $printed{$_}{$file} = 1 for map { commands($_) } sentences(Petrel::slurp("$Petrel::root/$file"));
}
$printed{$_}{'admin/page/page.js'} = 1 for Petrel::slurp("$Petrel::root/admin/page/page.js") =~ /h\('code', '($shell [^']+)'\)/g;
cmp_ok scalar(keys %printed), '>=', 40, 'the sources name commands';

# --- A daemon with something of each kind

my $base = tempdir('remedies-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $base;
my ($dead, $nowhere) = (Petrel::free_port(), Petrel::free_port());
my $sink = Sink->start('--fail-rcpt', 'nobody:550');
my $petrel = Petrel->new(suppress => 'yes', dns_servers => "127.0.0.1:$nowhere", http => '127.0.0.1:' . Petrel::free_port(), cluster => 'mail', cluster_host => 'here', cluster_redis => 'none', cluster_secret => 'remedies-remedies-remedies-remedies',
    oauth => "127.0.0.1 joe custom client=x device=https://127.0.0.1:$nowhere/d token=https://127.0.0.1:$nowhere/t scope=x",
    routes => "\n    dead.example smtp://127.0.0.1:$dead\n    held.example hold\n    * smtp://127.0.0.1:$sink->{port}")->start;
sub mail { my $to = shift; return $petrel->send_mail('a@b.example', $to, "Subject: x\r\n\r\nx\r\n") =~ /([0-9A-Z]{10}-[0-9A-Z]{8})/ ? $1 : '' }
mail($_) for qw(erin@dead.example frank@held.example gone@fine.example);
my ($deferred) = Petrel::wait_for(sub { ($petrel->run(qw(queue ls --queue deferred)))[1] =~ /([0-9A-Z]{10}-[0-9A-Z]{8})/ ? $1 : 0 });
my ($held) = ($petrel->run(qw(queue ls --queue hold)))[1] =~ /([0-9A-Z]{10}-[0-9A-Z]{8})/;
ok $deferred && $held, 'mail waits, and is held' or diag $petrel->log;
my ($site) = map { $_->{site} } grep { $_->{site} =~ /:$dead/ } @{ decode_json($petrel->status)->{sites} };
ok $site, 'a site is dead';

# What a shell finds: the program with these settings, and stand-ins for what would change the machine.
mkdir "$base/bin" or die;
my $own = $petrel->conf;
Petrel::spit("$base/bin/petrel", "#!/bin/sh\ncase \$1 in -c) exec $Petrel::binary \"\$@\";; esac\nexec $Petrel::binary -c $own \"\$@\"\n");
Petrel::spit("$base/bin/sudo", "#!/bin/sh\nexec \"\$@\"\n");
Petrel::spit("$base/bin/$_", "#!/bin/sh\necho $_ \"\$@\"\n") for qw(systemctl journalctl make);
Petrel::spit("$base/file", "x\n");
chmod 0755, glob "$base/bin/*";
# The unit that systemctl is asked about, and the target of make, are there.
like Petrel::slurp("$Petrel::root/Makefile"), qr/^install:/m, 'make install is one of ours';
ok -e "$Petrel::root/etc/systemd/petrel.service" || glob("$Petrel::root/etc/*/petrel.service*") || glob("$Petrel::root/etc/petrel.service*"), 'the unit is petrel';

# As printed; as typed, where it has holes; the exit codes that are right, 0 without. They run in this order.
my $asks = qr/an answer is missing, and standard input is not a terminal/; # init does so on a terminal
my @table = (
    ['petrel check'], ['petrel status --sites'], ['petrel status --site {SITE}', "petrel status --site '$site'"], ['petrel page'],
    ['petrel help oauth'], ['petrel doctor', undef, 0, 1], ['petrel doctor {DOMAIN}', 'petrel doctor example.org', 0, 1], ['petrel cluster'],
    ['petrel cluster forget {name}', 'petrel cluster forget relay9', 65, 69], ['petrel suppress export'], ['petrel key add', 'petrel key add app \'*@fine.example\'', 0, 64, 78], ['petrel suppress rm ADDRESS', 'petrel suppress add you@fine.example; petrel suppress rm you@fine.example'], ['petrel reload'], ['petrel test', 'petrel test you@fine.example'], ['petrel test %s', 'petrel test you@fine.example'],
    ['petrel trace %s', "petrel trace $deferred"], ['petrel trace -f %s', "timeout 1 petrel trace -f $deferred", 124], ['sudo petrel trace -f %s', "timeout 1 sudo petrel trace -f $deferred", 124],
    ['petrel trace {RECEIVER}', 'petrel trace 127.0.0.1'], ['petrel queue why {ID}', "petrel queue why $deferred"],
    ['petrel queue ls --queue corrupt'], ['petrel queue ls --queue hold'], ['petrel queue ls --older 1h'],
    ['petrel dkim-key DOMAIN', "cd $base && petrel dkim-key example.org"], ['petrel passwd USER', 'echo long enough for this | petrel passwd alice'],
    ['petrel oauth login {HOST USER}', 'petrel oauth login 127.0.0.1 joe', 69, 75, 78, 65], ['petrel oauth login %s %s', 'petrel oauth login 127.0.0.1 joe', 69, 75, 78, 65], ['petrel oauth login %s', 'petrel oauth login 127.0.0.1 joe', 69, 75, 78, 65],
    ['petrel import', undef, 64], ['petrel init', undef, 64, 73], ['petrel init --force', undef, 64, $asks], ['sudo petrel init', undef, 64, 73],
    ['petrel -c FILE init', "petrel -c $base/own.conf init", 64, $asks], ['petrel init --print', undef, 64, $asks],
    ['systemctl status petrel'], ['systemctl start petrel'], ['systemctl restart petrel'], ['systemctl enable petrel && systemctl restart petrel'], ['journalctl -u petrel -n 50'], ['make install'], ['ss -ltnp'],
    ['chmod 600 {FILE}', "chmod 600 $base/file"], ['chmod 600', "chmod 600 $base/file"], ['chmod g-w', "chmod g-w $base/file"], ['chmod o-w', "chmod o-w $base/file"], ['chown -R %s %s', "chown -R $> $base/file"],
    ['chown %s %s', "chown $> $base/file"], ['chmod o+x %s', "chmod o+x $base/bin"],
    ['petrel queue retry --all'], ['petrel queue retry --forget-limits {SITE}', "petrel queue retry --forget-limits '$site'"], ['petrel queue release --queue defrag', undef, 0, 65],
    ['petrel drain --cancel'], ['petrel queue release %s', "petrel queue release $held"], ['petrel queue release --queue hold', undef, 0, 65], ['petrel queue release --all'],
    ['petrel queue rm --queue corrupt', undef, 0, 65], ['petrel queue rm --queue hold', undef, 0, 65], ['petrel queue rm %s', "petrel queue rm $deferred"], ['petrel run', 'timeout 1 petrel run', 69, 75, 78],
);

my %known = map { $_->[0] => 1 } @table;
is join("\n", map { "$_: " . join ' ', sort keys %{ $printed{$_} } } grep { !$known{$_} } sort keys %printed), '', 'each command that is printed is run here';
is join("\n", grep { !$printed{$_} } sort keys %known), '', 'each that is run here is printed';
for (@table) {
    my ($printed, $typed, @codes) = @$_;
    my ($wanted) = grep { ref } @codes;
    @codes = grep { !ref } @codes;
    local $ENV{PATH} = "$base/bin:$ENV{PATH}";
    my ($code, $said) = Petrel::command('', 'sh', '-c', $typed // $printed);
    ok((grep { $_ == $code } @codes ? @codes : 0), $printed . ($typed ? ": $typed" : '')) or diag "exit code $code: $said";
    unlike $said, qr/command not found|unknown command/, '  is known' or diag $said;
    like $said, $wanted, '  but asks' if $wanted;
}
$petrel->stop;
done_testing;
