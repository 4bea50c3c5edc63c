#!/usr/bin/perl
# The slices of a spool have one list of suppressed addresses, without Redis: a bounce and an operator at one of them, one that is
# killed, a list that is written anew, and another number of slices.
use lib 't/e2e';
use E2E;

my $remote = Petrel->new(suppress => 'yes', routes => '* smtp://127.0.0.1:9')->start; # which refuses with 5.1.1
$remote->run(qw(suppress add dead@away.test));
my $dir = File::Temp::tempdir('suppress-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub slices {
    my ($count) = @_;
    return map {
        mkdir "$dir/$count.$_";
        Petrel->new(dir => "$dir/$count.$_", spool => "$dir/spool", slices => $count, slice => $_, suppress => 'yes',
            routes => "away.test smtp://127.0.0.1:$remote->{port}\n * discard")->start
    } 0 .. $count - 1;
}
sub rcpt { my ($slice, $to) = @_; return ($slice->dialogue('EHLO c.test', 'MAIL FROM:<a@here.test>', "RCPT TO:<$to>", 'QUIT'))[3] }
sub known { my ($to, @at) = @_; return Petrel::wait_for(sub { @at == grep { rcpt($_, $to) =~ /^550 5\.1\.1 the address is suppressed/ } @at }) }
sub taken { my ($to, @at) = @_; return Petrel::wait_for(sub { @at == grep { rcpt($_, $to) =~ /^250/ } @at }) }
sub suppress { my ($slice, @words) = @_; my ($code, $said) = $slice->run('suppress', @words); is $code, 0, "suppress @words" or diag $said }

my @slices = slices(4);
like $slices[2]->send_mail('a@here.test', 'dead@away.test', "Subject: x\n\nx\n"), qr/^250/, 'mail to a dead address';
ok known('dead@away.test', @slices), 'one slice has tried it, and all know';
is scalar(grep { $_->log =~ /to=<dead\@away\.test>, relay=/ } @slices), 1, 'the others have not tried';
unlike $slices[0]->log, qr/has a list of its own/, 'and no warning says that they would';
suppress($slices[1], 'add', 'left@away.test', 'asked to');
ok known('left@away.test', @slices), 'an operator has said it to one';
suppress($slices[3], 'rm', 'left@away.test');
ok taken('left@away.test', @slices), 'and lifted it at another';

$slices[0]->kill9;
suppress($slices[0], 'add', 'x@away.test');
ok known('x@away.test', @slices[1 .. 3]), 'a command without a daemon reaches the others';
suppress($slices[1], 'add', 'y@away.test');
$slices[0]->start;
ok known('y@away.test', @slices), 'one that was killed knows what it has missed';

my $list = Petrel::spit("$dir/list", join '', map { "u$_\@far.test\n" } 1 .. 3000);
suppress($slices[0], 'import', $list);
suppress($slices[0], 'rm', map { "u$_\@far.test" } 1 .. 2999);
suppress($slices[0], 'add', 'z@away.test');
ok known('z@away.test', @slices), 'a file that was written anew is followed';
like +($slices[2]->run(qw(suppress ls far.test)))[1], qr/\Au3000\@far\.test  manual [^\n]*\n\z/, 'with all that it says';

for my $count (1, 2) {
    $_->stop for @slices;
    @slices = slices($count);
    ok known("$_\@away.test", @slices), "slices = $count: $_ is known" for qw(dead x y z);
    ok taken('left@away.test', @slices), 'what was lifted stays so';
    is scalar(() = glob "$dir/spool/lock/suppressed*"), $count, 'no old file is left';
}
$_->stop for @slices;
done_testing;
