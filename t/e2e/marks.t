#!/usr/bin/perl
# Fragments that await others are known without a daemon, too: by marks in the spool, which may be lost.
use lib 't/e2e';
use E2E;

my $sink = Petrel::sink();
my $p = Petrel->new(routes => "y.test smtp://127.0.0.1:$sink->{port}?defragment=yes&notices=4d\n* smtp://127.0.0.1:$sink->{port}")->start;
my $count = 0;

# For one who waits and one who is served at once, so that it has files.
sub aside { my ($id, $n) = @_;
    my $said = $p->send_mail('a@x.test', ['b@y.test', 'c@z.test'],
        "Subject: part $n\nMIME-Version: 1.0\nContent-Type: message/partial; id=\"$id\"; number=$n; total=2\n\n" . ($n == 1 ? "Subject: $id\n\none" : 'two'));
    Petrel::wait_arrived($sink, ++$count);
    return $said =~ /queued as (\S+)/ ? $1 : BAIL_OUT($said) }
sub marks { my @names = map { m{([^/]+)\z} } glob "$p->{dir}/spool/defrag/*"; return \@names }
sub listed { my @filter = @_; return [($p->run(qw(queue ls --json), @filter))[1] =~ /"queue_id":\s*"([^"]+)"/g] }

my @ids = map { aside("set$_", 1) } 1 .. 4;
ok(Petrel::wait_for(sub { @{ marks() } == 4 }), 'four marks');
is_deeply(listed('--queue', 'defrag'), \@ids, 'a daemon tells what waits');
is_deeply(listed('--queue', 'deferred'), [], 'and what does not');
$p->stop;
is_deeply(listed('--queue', 'defrag'), \@ids, 'so do the marks');
is_deeply(listed('--queue', 'deferred'), [], 'nothing is listed twice');
like(($p->run('queue', 'show', $ids[0]))[1], qr/^queue: +defrag$/m, 'queue show');
unlink "$p->{dir}/spool/defrag/$ids[3]" or BAIL_OUT($!);
is_deeply(listed('--queue', 'deferred'), [$ids[3]], 'without its mark it is deferred mail');
is(($p->run('queue', 'hold', $ids[0]))[0], 0, 'hold');
is(($p->run('queue', 'rm', '--queue', 'defrag', '--from', 'nobody@x.test'))[0], 0, 'rm of none');
is(($p->run('queue', 'rm', $ids[1]))[0], 0, 'rm');
is_deeply(marks(), [$ids[2]], 'both leave no mark');
is_deeply(listed('--queue', 'hold'), [$ids[0]], 'held');
is(($p->run('queue', 'release', $ids[0]))[0], 0, 'released');
is(($p->run(qw(queue hold --queue defrag)))[0], 0, 'a filter');
is_deeply([marks(), listed('--queue', 'hold')], [[], [$ids[2]]], 'finds the last one');
is(($p->run('queue', 'release', $ids[2]))[0], 0, 'released');
Petrel::spit("$p->{dir}/spool/defrag/$ids[1]", '');
$p->start;
Petrel::wait_arrived($sink, $count += 2);
ok(Petrel::wait_for(sub { my $m = marks(); @$m == 1 && $m->[0] eq $ids[3] }), 'what was lost is marked again, a stray mark is gone');
aside('set4', 2);
Petrel::wait_arrived($sink, ++$count);
# In either order: the copy of the fragment, and the reassembled message.
my ($whole) = grep { $_->{content} =~ /set4\r\n\r\none/ } map { Petrel::wait_arrived($sink, $_) } $count - 1, $count;
like($whole->{content}, qr/Subject: set4\r\n\r\none\r\ntwo/, 'joined');
ok($p->wait_empty, 'and all is over');
is_deeply(marks(), [], 'without a mark');
done_testing;
