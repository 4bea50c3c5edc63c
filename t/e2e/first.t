#!/usr/bin/perl
# The first day of somebody who tries it as root: where it is started, what root has made, what is wrong in the file.
use strict;
use warnings;
use Cwd qw(getcwd);
use FindBin;
use lib $FindBin::Bin;
use File::Temp qw(tempdir);
use Petrel;
use Test::More;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $is_root = $> == 0;
my $scratch = tempdir('first-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $home = getcwd();

# --- In a directory that `user` cannot enter

SKIP: {
    skip 'only root can become somebody else', 1 unless $is_root;
    mkdir "$scratch/root", 0700 or die;
    chdir "$scratch/root" or die;
    my $petrel = Petrel->new(user => 'nobody', routes => '* discard');
    mkdir "$scratch/nobody" or die;
    chown 65534, 65534, "$scratch/nobody";
    $petrel->configure(listen => "127.0.0.1:$petrel->{port}, unix:$scratch/nobody/smtp");
    chmod 0755, $petrel->{dir};
    my @sockets = ("$petrel->{dir}/spool/control", "$scratch/nobody/smtp");
    is $petrel->start->stop, 0, 'from a directory of root alone it starts and stops';
    is_deeply [grep { -e } @sockets], [], 'and takes its sockets away';
    $petrel->start;
    $petrel->kill9;
    is_deeply [grep { -S } @sockets], \@sockets, 'SIGKILL leaves them';
    ok eval { $petrel->start }, 'the next start takes their place' or diag $petrel->log;
    is $petrel->stop, 0, 'and stops';
    is_deeply [grep { -e } @sockets], [], 'without them';
    chdir $home or die;
}

# --- Relative paths

{
    my $petrel = Petrel->new(routes => '* discard', spool => 'queue', control => 'socket');
    chdir $petrel->{dir} or die;
    my $conf = $petrel->conf;
    no warnings 'redefine';
    local *Petrel::conf = sub { 'petrel.conf' };
    for my $end (qw(TERM KILL TERM)) {
        ok eval { $petrel->start }, "settings, spool and control by relative paths, to the end by $end" or diag $petrel->log;
        is +($petrel->run('status'))[0], 0, 'it answers';
        my $size = length $petrel->log;
        kill 'HUP', $petrel->{pid};
        ok Petrel::wait_for(sub { substr($petrel->log, $size) =~ /settings reloaded/ }), 'SIGHUP finds the file' or diag $petrel->log;
        $end eq 'KILL' ? $petrel->kill9 : is $petrel->stop, 0, 'it stops';
        is !!-e "$petrel->{dir}/socket", $end eq 'KILL', 'its socket';
    }
    chdir $home or die;
}

done_testing;
