#!/usr/bin/perl
# Aliases that lead to each other, on one host and over two: the mail ends, its author hears of it once, and nobody else does.
use lib 't/e2e';
use E2E;

my $dir = tempdir('alias_loops-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my %port = map { $_ => Petrel::free_port() } qw(one two);

# A host that takes mail for NAME.test, and sends that of the other domain to the other host.
sub host {
    my ($name, $other, $aliases) = @_;
    Petrel::spit("$dir/$name", $aliases);
    my $host = Petrel->new(hostname => "$name.test", listen => "127.0.0.1:$port{$name}", aliases => "$dir/$name", check_helo => 'no', check_sender => 'no', relay_from => '192.0.2.0/24',
        routes => "$other.test smtp://127.0.0.1:$port{$other}\nfar.test smtp://127.0.0.1:$sink->{port}\nadmin.test smtp://127.0.0.1:$sink->{port}", minimal_backoff_time => '1s');
    $host->{port} = $port{$name};
    return $host->start;
}
my $one = host('one', 'two', <<'END');
a: a@two.test
b: b@two.test
wide: x@two.test
@one.test: catch@two.test
half: a@two.test, reader@far.test
list: b@two.test, reader@far.test
owner-list: owner@far.test
postmaster: admin@admin.test
END
my $two = host('two', 'one', <<'END');
a: a@one.test
b: c@one.test
x: wide@one.test
catch: anything@one.test
postmaster: admin@admin.test
END

# Mail may go to the host that was asked before.
sub all_empty { return Petrel::wait_for(sub { for my $host (($one, $two) x 2) { return 0 if $host->queued > 0 } return 1 }) }
sub got { my ($to, $subject) = @_; return grep { $_->{data} =~ /^Subject: \Q$subject\E\r?$/m } $sink->for_address($to) }
my $tries = 0;
sub goes {
    my ($from, $to, $host) = @_;
    my $subject = 'loop ' . ++$tries;
    like $host->send_mail($from, $to, "Subject: $subject\n\nx\n"), qr/^250/, "$to is taken";
    ok all_empty(), 'and comes to its end' or diag $one->log, $two->log;
    return $subject;
}
# The author has one bounce, which says why.
sub bounces_once {
    my ($to, $title, $expected) = @_;
    my $before = $sink->for_address('author@far.test');
    my $subject = goes('author@far.test', $to, $one);
    my @bounces = got('author@far.test', 'Undelivered Mail Returned to Sender');
    is scalar($sink->for_address('author@far.test')) - $before, 1, "$title: its author hears of it once" or diag map { $_->{data} } @bounces;
    my ($bounce) = ($sink->for_address('author@far.test'))[-1];
    like $bounce ? $bounce->{data} : '', $expected // qr/^Status: 5\.4\.6/m, "$title: and why";
    is $bounce ? $bounce->{from} : 'none', '', "$title: from nobody";
    return $subject;
}

bounces_once('a@one.test', 'there and back');
bounces_once('b@one.test', 'by another name, that a wildcard catches');
bounces_once('wide@one.test', 'over two names');
bounces_once('anything@one.test', 'a wildcard');
is scalar($sink->for_address('admin@admin.test')), 0, 'postmaster hears of none of them';

# Half of an alias loops: the other half is delivered, once.
my $subject = bounces_once('half@one.test', 'one member of two');
is scalar(got('reader@far.test', $subject)), 1, 'the other has it, once';
# A list: its owner hears of it, and the author does not.
my $before = $sink->for_address('author@far.test');
$subject = goes('author@far.test', 'list@one.test', $one);
is scalar(got('reader@far.test', $subject)), 1, 'a list: the other member has it';
ok $sink->wait_for('owner@far.test', 1), 'its owner has the bounce' or diag $one->log, $two->log;
is scalar($sink->for_address('author@far.test')), $before, 'and the author has none';

# The author is such an alias, too: what cannot be returned goes to postmaster, and ends there.
$before = $sink->for_address('author@far.test');
goes('a@one.test', 'a@one.test', $one);
my @double = $sink->for_address('admin@admin.test');
cmp_ok scalar(@double), '<=', 2, 'its bounce loops, too: postmaster hears of it' or diag map { $_->{data} } @double;
cmp_ok scalar(@double), '>=', 1, 'at least once';
is scalar($sink->for_address('author@far.test')), $before, 'and nobody else';
goes('', 'a@one.test', $one);
cmp_ok scalar($sink->for_address('admin@admin.test')), '<=', @double + 1, 'the null sender';
is scalar($sink->for_address('author@far.test')), $before, 'causes no bounce';
my $hops = () = ($one->log . $two->log) =~ /status=sent/g;
cmp_ok $hops, '<', 60, 'few deliveries in all';
unlike $one->log . $two->log, qr/Assertion|Sanitizer/, 'nothing else went wrong';
$_->stop for $one, $two;

# --- On one host ---------------------------------------------------------------------------------------------------

sub replies { my ($host, @lines) = @_; return map { /^(\d+ \S+)/ ? $1 : $_ } ($host->dialogue('EHLO x', 'MAIL FROM:<author@far.test>', @lines, 'QUIT'))[3 .. 2 + @lines] }
sub checked { my ($aliases, %more) = @_; Petrel::spit("$dir/self", $aliases); my ($code, $said) = Petrel->new(hostname => 'one.test', aliases => "$dir/self", %more)->run('check'); return "$code $said" }
like checked("a: b\nb: a\n"), qr{^78 .*aliases: \Q$dir\E/self:1: 'a' leads back to itself}s, 'two names: an error of the file';
like checked("a: b\@one.test\n\@one.test: a\n"), qr{^78 .*self:1: 'a' leads back to itself}s, 'over a wildcard, too';
like checked("root: ann\nann: root+x\n"), qr/^78 .*leads back/s, 'with a tag';
like checked("ann: bob\nbob: root\n", root => 'ann'), qr/^78 .*leads back/s, 'and over the setting root';
mkdir "$dir/mail";
mkdir "$dir/mail/$_" for qw(root self all);
Petrel::spit("$dir/self", "root: root\@one.test\nself: self, self\@one.test\n\@one.test: all\@one.test\n");
my $self = Petrel->new(hostname => 'one.test', aliases => "$dir/self", local => "maildir:$dir/mail/%u", root => 'root@one.test', relay_from => '192.0.2.0/24', check_helo => 'no', check_sender => 'no')->start;
is_deeply [replies($self, map { "RCPT TO:<$_\@one.test>" } qw(root self nobody all postmaster))], [('250 2.1.5') x 5], 'a name that lists itself is the user there';
like $self->send_mail('author@far.test', [map { "$_\@one.test" } qw(root self nobody postmaster)], "Subject: self\n\nx\n"), qr/^250/, 'taken';
ok $self->wait_empty, 'and delivered' or diag $self->log;
is scalar(() = glob "$dir/mail/$_/new/*"), 1, "$_: once" for qw(root self all);
$self->stop;
done_testing;
