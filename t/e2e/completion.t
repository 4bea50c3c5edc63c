#!/usr/bin/perl
# Completion in real shells: every command in bash, zsh and fish, and in bash and zsh as typed on a terminal.
use lib 't/e2e';
use E2E;
use FindBin;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scripts = "$FindBin::Bin/../../etc/completion";
my $bin = tempdir('completion-XXXXXX', TMPDIR => 1, CLEANUP => 1);
symlink $Petrel::binary, "$bin/petrel" or die;
$ENV{PATH} = "$bin:$ENV{PATH}";
$ENV{HOME} = $bin;
chdir $bin or die;
Petrel::spit("$bin/a letter.eml", "x\n");

my ($code, $usage) = Petrel::command('', 'petrel', 'help');
my @commands = sort grep { $_ ne 'petrel' } $usage =~ /^  ([a-z][-a-z]*) +\S/mg;
cmp_ok scalar @commands, '>=', 20, 'the commands of the usage';

# The words that each shell offers behind a line.
my $quote = sub { my $text = shift; $text =~ s/'/'\\''/g; return "'$text'" };
my %shell = (
    bash => sub { my $line = shift; return ('bash', '--norc', '-c', "source $scripts/petrel.bash; compopt() { :; }; COMP_LINE=" . $quote->($line)
            . '; COMP_POINT=${#COMP_LINE}; COMP_WORDS=(x ""); COMP_CWORD=1; _petrel petrel; printf "%s\n" "${COMPREPLY[@]}"') },
    zsh => sub {
        my @words = split / /, shift, -1;
        my $last = pop @words;
        return ('zsh', '-f', '-c', "compadd() { print -r -- \${\@[-1]}; }; _files() { print -l -- *; }; _describe() { print -rl -- \${\${(P)2}%%:*}; }; words=("
            . join(' ', map { $quote->($_) } @words, '') . '); CURRENT=$#words; PREFIX=' . $quote->($last) . "; source $scripts/petrel.zsh; _petrel");
    },
    fish => sub { my $line = shift; return ('fish', '--no-config', '-c', "source $scripts/petrel.fish; complete -C " . $quote->($line)) },
);
sub words { my ($name, $line) = @_; my ($code, $said) = Petrel::command('', $shell{$name}->($line)); return [sort map { s/\t.*//r } grep { length } split /\n/, $said] }

for my $name (sort keys %shell) {
    is_deeply words($name, 'petrel '), \@commands, "$name: every command";
    is_deeply words($name, 'petrel sta'), ['status'], 'one that was begun';
    is_deeply words($name, 'petrel check --'), [qw(--changed --example --json)], 'flags';
    is_deeply words($name, 'petrel queue ls --queue d'), [qw(deferred defrag)], 'places';
    is_deeply words($name, 'petrel -c x -o smtp_po'), ['smtp_port='], 'settings';
    is_deeply words($name, 'petrel dkim-key --directory '), ['a letter.eml', 'petrel'], 'files';
    is_deeply words($name, 'petrel nonsense '), [], 'nothing of an unknown command';
}

# Ids come from the spool that the settings name.
my $petrel = Petrel->new(routes => '* hold')->start;
my ($id) = $petrel->send_mail('a@b.test', ['x@y.test'], "Subject: hi\n\nletter") =~ /queued as (\S+)/;
ok $petrel->wait_log(qr/$id: held/), 'a message';
is_deeply words($_, "petrel -c $petrel->{dir}/petrel.conf queue show "), [$id], "$_: its id" for sort keys %shell;

# As typed.
sub typed {
    my ($steps, @command) = @_;
    my ($path) = Petrel::command('', 'which', $command[0]) ? (Petrel::command('', 'which', shift @command))[1] : ();
    chomp $path;
    my ($code, $said) = Petrel::command(join('', map { "$_\n" } @$steps), 'python3', "$FindBin::Bin/terminal.py", $path, @command);
    return $said =~ /^not / ? diag($said) : grep { /^ok expect/ } split /\n/, $said;
}
sub keys_of { return 'send ' . join ' ', map { sprintf '%02x', ord } split //, shift }
@ENV{qw(PS1 TERM)} = ('$ ', 'dumb'); # no drawing between the letters
for ([bash => '--norc', '--noprofile', '-i'], [zsh => '-f', '-i']) {
    my ($name) = @$_;
    my $begin = $name eq 'zsh' ? 'autoload -U compinit; compinit -D -u; ' : '';
    my @said = typed([keys_of("${begin}source $scripts/petrel.$name; echo rea''dy\n"), 'expect ready', keys_of("petrel sta\t"), 'expect petrel status ', keys_of("--js\t"),
        'expect --json', keys_of("\x15echo done\n"), 'expect done', keys_of("exit\n")], @$_);
    is scalar @said, 4, "$name completes on a terminal";
}
done_testing;
