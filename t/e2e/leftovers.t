#!/usr/bin/perl
# Files that dead processes have left in a real spool: found at startup, each with one line. Old files cannot be made here
# (nobody sets a ctime), so new files of injectors stay.
use lib 't/e2e';
use E2E;

my $petrel = Petrel->new(routes => '* hold');
my $spool = "$petrel->{dir}/spool";
$petrel->start;
like $petrel->send_mail('a@x.test', 'b@y.test', "Subject: x\n\nx\n"), qr/^250/, 'a message that lives';
$petrel->kill9;

my $counter = 0;
sub plant {
    my @rooms = @_;
    my $id = sprintf '01JD3ZK5Q8-%08d', ++$counter;
    Petrel::spit("$spool/$_/$id", "x\n") for @rooms;
    return $id;
}
sub left { return grep { -e } map { glob "$spool/{pid,mess,intd,todo,info,local,remote,bounce,hold}/$_" } @_ }

my $left = 'removing files left by a finished message';
my @cases = (
    [[qw(remote)] => $left],
    [[qw(local)] => $left],
    [[qw(bounce)] => $left],
    [[qw(hold)] => $left],
    [[qw(intd)] => $left],
    [[qw(mess remote bounce)] => $left],
    [[qw(mess hold)] => $left],
    [[qw(intd local remote bounce hold)] => $left],
    [[qw(todo)] => 'quarantined in corrupt/'],
    [[qw(info remote)] => 'quarantined in corrupt/'],
    [[qw(todo info)] => 'quarantined in corrupt/'],
);
push @$_, plant(@{ $_->[0] }) for @cases;
my @young = map { plant(@$_) } [qw(mess)], [qw(mess intd)];
my @drafts = ('0000-1023.1700000000.0123456789abcdef.0', '1700000000.0123456789abcdef.1');
Petrel::spit("$spool/pid/$_", 'x') for @drafts;
Petrel::spit("$spool/info/README", 'x');
Petrel::spit("$spool/info/core", 'x');

my $before = length $petrel->log;
$petrel->start;
my $said = sub { return substr $petrel->log, $before };
for my $case (@cases) {
    my ($rooms, $words, $id) = @$case;
    ok Petrel::wait_for(sub { $said->() =~ /\Q$id: \E.*\Q$words\E/ }), "@$rooms: $words";
    is scalar(() = $said->() =~ /\Q$id\E/g), 1, "@$rooms: in one line";
    is scalar(left($id)), 0, "@$rooms: and gone";
}
for my $id (@young) {
    ok Petrel::wait_for(sub { $said->() =~ /\Q$id: \E.*left for its injector/ }), 'young: left for its injector';
    is scalar(() = $said->() =~ /\Q$id\E/g), 1, 'young: in one line';
}
is scalar(left(@young)), 3, 'young: with all files';
ok !-e "$spool/pid/$drafts[0]", 'a draft of a daemon that died has gone';
is scalar(() = $said->() =~ /draft \S*\Q$drafts[0]\E of a daemon that died: removed/g), 1, 'in one line';
ok -e "$spool/pid/$drafts[1]", 'a draft of an injector stays';
is scalar(() = $said->() =~ m{info/: 2 files that are not messages: ignored}g), 1, 'strange names: one line for all of a room';
ok -e "$spool/info/$_", "$_ stays" for qw(README core);
is $petrel->queued, 1, 'the message that lives is there';
is $petrel->stop, 0, 'Petrel ends well';

# Nothing is left to be told.
$before = length $petrel->log;
$petrel->start;
is (($petrel->run('status'))[0], 0, 'it runs');
is $petrel->stop, 0, 'once more';
unlike $said->(), qr/finished message|(?<!messages are )quarantined|died/, 'all was told';
done_testing;
