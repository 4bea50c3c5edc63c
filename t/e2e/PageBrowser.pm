package PageBrowser;

# A script of t/e2e/page/ in Chromium: its checks become those of the test, what it asks is answered here.
use strict;
use warnings;
use FindBin;
use IO::Handle;
use IO::Socket::UNIX;
use IPC::Open2;
use JSON::PP qw(decode_json);
use Petrel;
use Test::More;

my ($chromium) = grep { defined } map { Petrel::have($_) } qw(chromium chromium-browser);

# Why there is no browser; undef: there is one.
sub missing {
    return !$chromium ? 'chromium is not installed' : !Petrel::have('node') ? 'node is not installed'
        : !-d "$FindBin::Bin/page/node_modules/axe-core" ? 'make deps-page has not been run' : undef;
}

# A key of the page, as `petrel page` gets it.
sub key {
    my ($petrel) = @_;
    my $control = IO::Socket::UNIX->new(Peer => "$petrel->{settings}{spool}/control") or die "control: $!";
    print $control qq({"command":"page"}\n);
    return decode_json(scalar <$control>)->{key};
}

# run(SECONDS, AT LEAST, {QUESTION => sub...}, SCRIPT, ARGUMENTS...): a line "ask QUESTION WORDS" is answered by what that
# sub makes of the words.
sub run {
    my ($seconds, $least, $answers, $script, @arguments) = @_;
    local $ENV{CHROMIUM} = $chromium;
    my $pid = open2(my $said, my $to, Petrel::have('node'), "$FindBin::Bin/page/$script", @arguments);
    push @Petrel::running, $pid;
    my $checks = 0;
    local $SIG{ALRM} = sub { kill 'KILL', $pid };
    alarm $seconds;
    while (my $line = <$said>) {
        chomp $line;
        if ($line =~ /^(ok|not ok) (.*)/) { $checks++; ok $1 eq 'ok', $2 }
        elsif ($line =~ /^ask (\w+) ?(.*)/ && $answers->{$1}) { print $to $answers->{$1}->($2), "\n"; $to->flush }
        else { diag $line }
    }
    alarm 0;
    waitpid $pid, 0;
    is $?, 0, 'the browser came to its end';
    return cmp_ok $checks, '>=', $least, 'and looked at everything';
}

1;
