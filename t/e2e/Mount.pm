package Mount;

# Small file systems to fill and to break, in a mount namespace of the test's own: nothing stays mounted in any case.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Handle;
use lib 't/e2e';
use Petrel;

my @mounted; # directories

END {
    my $code = $?;
    system('umount', '-l', $_) for reverse @mounted;
    $? = $code;
}

# Root of the machine, not of a name space made by somebody else.
sub is_root { return Petrel::slurp('/proc/self/uid_map') =~ /^\s*0\s+0\s/ }

# Runs the test anew where it may mount; false when that is not allowed. As root loop devices work, too.
sub namespace {
    return $ENV{PETREL_TEST_MAY_MOUNT} eq 'yes' if defined $ENV{PETREL_TEST_MAY_MOUNT};
    my @unshare = ('unshare', $> == 0 ? '-m' : '-rm');
    my $dir = tempdir('mount-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    my $may = system("@unshare mount -t tmpfs none $dir >/dev/null 2>&1") == 0;
    $ENV{PETREL_TEST_MAY_MOUNT} = $may ? 'yes' : 'no';
    return 0 unless $may;
    rmdir $dir; # the new program does not know of it
    exec @unshare, $^X, $0, @ARGV or die "unshare: $!";
}

# tmpfs(MEGABYTES, INODES), ext4(MEGABYTES, INODES, OPTIONS of mke2fs...): mounted, or undef where that is not to be
# had.
sub tmpfs {
    my ($class, $megabytes, $inodes) = @_;
    my $self = bless { kind => 'tmpfs', dir => tempdir('full-XXXXXX', TMPDIR => 1, CLEANUP => 1) }, $class;
    $self->{mount} = ['-t', 'tmpfs', '-o', "size=${megabytes}m,nr_inodes=$inodes,mode=755", 'none'];
    return $self->mount ? $self : undef;
}

sub ext4 {
    my ($class, $megabytes, $inodes, @options) = @_;
    my $image = tempdir('image-XXXXXX', TMPDIR => 1, CLEANUP => 1) . '/ext4';
    my $self = bless { kind => 'ext4', dir => tempdir('full-XXXXXX', TMPDIR => 1, CLEANUP => 1), image => $image }, $class;
    Petrel::spit($image, '');
    truncate $image, $megabytes << 20 or return;
    return if system('PATH=$PATH:/sbin:/usr/sbin ' . "mke2fs -q -F -t ext4 -b 4096 -m 0 -N $inodes @options $image >/dev/null 2>&1") != 0;
    $self->{mount} = ['-o', 'loop,errors=remount-ro', $image];
    return $self->mount ? $self : undef;
}

sub mount {
    my $self = shift;
    my ($code) = Petrel::command('', 'mount', @{ $self->{mount} }, $self->{dir});
    push @mounted, $self->{dir} if $code == 0;
    return $code == 0;
}

# remount('ro'), remount('rw'): true when it could be done; while files are open for writing it cannot.
sub remount { my ($self, $how) = @_; return (Petrel::command('', 'mount', '-o', "remount,$how", $self->{dir}))[0] == 0 }

sub unmount {
    my $self = shift;
    my ($code) = Petrel::command('', 'umount', $self->{dir});
    @mounted = grep { $_ ne $self->{dir} } @mounted if $code == 0;
    return $code == 0;
}

# Free bytes and inodes, as root sees them.
sub free {
    my $self = shift;
    my ($code, $out) = Petrel::command('', 'stat', '-f', '-c', '%a %S %d', $self->{dir});
    my ($blocks, $size, $inodes) = $out =~ /^(\d+) (\d+) (\d+)$/ or die "stat -f: $out";
    return ($blocks * $size, $inodes);
}

# A ballast that leaves so many bytes free; 0: up to the last byte.
sub leave_bytes {
    my ($self, $leave) = @_;
    open my $ballast, '>>:raw', "$self->{dir}/ballast" or die "ballast: $!";
    # Written data take their place when they are synced, or give some back.
    for (my $rest = 1; $rest > 0 && ($rest = ($self->free)[0] - $leave) > 0; $ballast->sync) {
        while ($rest > 0) {
            my $wrote = syswrite $ballast, "\0" x ($rest < 65536 ? $rest : 65536) or last;
            $rest -= $wrote;
        }
    }
    close $ballast;
    return;
}

# Empty files, until so many inodes are left.
sub leave_inodes {
    my ($self, $leave) = @_;
    mkdir "$self->{dir}/many";
    for (my $rest = ($self->free)[1] - $leave; $rest > 0; $rest--) {
        open my $file, '>', "$self->{dir}/many/" . ++$self->{files} or last;
    }
    return;
}

sub relieve {
    my $self = shift;
    system('rm', '-rf', "$self->{dir}/many", "$self->{dir}/ballast");
    return;
}

1;
