#!/usr/bin/perl
# SIGKILL while a crowded journal moves mail to files: each start comes up, and knows all of it.
use strict;
use warnings;
use JSON::PP;
use List::Util qw(sum0);
use Test::More;
use lib 't/e2e';
use Petrel;
use Sink;

sub kill_it { my $petrel = shift; kill 'KILL', $petrel->{pid}; Petrel::reap(delete $petrel->{pid}, 0); return }

# The count of `status`, when it has the wanted value, or after a long time.
sub counted {
    my ($petrel, $wanted) = @_;
    my $count;
    Petrel::wait_for(sub {
        my ($code, $status) = $petrel->run('status', '--json');
        $count = $code == 0 ? sum0(values %{ decode_json($status)->{queue} }) : "exit code $code";
        return $count eq $wanted || $code != 0;
    }, 20);
    return $count;
}

# So many fill 4 MB, more than three quarters of it and more than it has.
for my $messages (3300, 5000) {
    my $sink = Sink->start('--delay', 'dot:3600000');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", journal_size => '4M')->start;
    my ($code, $said) = Petrel::command('', "$Petrel::root/$Petrel::build/t/bench/load", '--to', "127.0.0.1:$petrel->{port}",
        '--messages', $messages, '--connections', 40, '--size', 800, '--rcpt', 'u%d@there.test');
    is $code, 0, "$messages are taken" or diag $said;
    for my $life (1 .. 2) {
        kill_it($petrel);
        $petrel->start;
        is counted($petrel, $messages), $messages, "$messages: start $life knows all";
    }
    my ($listed, $list) = $petrel->run('queue', 'ls');
    is scalar(my @lines = $list =~ /^\w{10}-\w{8}/mg), $messages, "$messages: as does queue ls";
    kill_it($petrel);
}
done_testing;
