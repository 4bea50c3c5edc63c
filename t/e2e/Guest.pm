package Guest;

# A virtual machine with the kernel of a Debian package, for what the kernel of this machine lacks: the test that asks for
# it runs again in there, and its TAP comes out. The machine has one core, 512 MB, all in memory, and no network but its own.
# Nothing is installed: the image has the files that the test needs, and goes with it.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Find ();
use File::Temp qw(tempdir);
use lib 't/e2e';
use Petrel;

my $mark = 'TEST_IN_GUEST';
my $patience = 600; # seconds: a bound for machines without KVM, not a measure
my ($kernel) = sort glob '/opt/petrel-test-kernel/boot/vmlinuz-*';
my ($busybox) = grep { defined && -x } Petrel::have('busybox'), '/opt/petrel-test-busybox/bin/busybox';

sub is_inside { return $ENV{$mark} }

# Why there can be no such machine here; undef: there can be one.
sub missing {
    my @programs = @_;
    return if is_inside();
    return 'there is no kernel for x86-64 in /opt/petrel-test-kernel (t/e2e/get-peers.sh)' unless $kernel;
    return 'busybox is not installed' unless $busybox;
    for ('qemu-system-x86_64', 'ldd', 'xz', @programs) { return "$_ is not installed" unless m{/} ? -e : Petrel::have($_) }
    return;
}

# --- The image: an archive of cpio that the kernel unpacks into memory ---------------------------------------------

my ($image, %packed, $inode);

sub entry {
    my ($path, $mode, $content) = @_;
    return if $packed{$path}++;
    entry(dirname($path), 040755, '') if $path =~ m{/.*/}s || $path =~ m{^/[^/]+/?}s && dirname($path) ne '/';
    my $name = substr($path, 1) || '.';
    my $bytes = sprintf('070701' . '%08X' x 13, ++$inode, $mode, 0, 0, 1, 0, length $content, 0, 0, 0, 0, 1 + length $name, 0) . "$name\0";
    for ($bytes, my $copy = $content) { $_ .= "\0" x (-length($_) % 4); print $image $_ or die "image: $!" }
    return;
}

# A file of this machine, under its own path; links are followed.
sub add { my $path = shift; return entry($path, 0100000 | ((stat $path)[2] & 07777), Petrel::slurp($path)) }

# A program, with the libraries that it names.
sub add_program {
    my $path = shift;
    add($path);
    my (undef, $said) = Petrel::command('', 'ldd', $path);
    add($_) for $said =~ m{(?:=> |^\s*)(/\S+) \(}mg;
    return;
}

sub add_tree {
    my ($top, $unwanted) = @_;
    return File::Find::find({ no_chdir => 1, follow => 1, follow_skip => 2, wanted => sub { -d || !-r || $_ =~ $unwanted or add($_) } }, $top);
}

# A module of the kernel, after those that it needs. Returns their paths in the order in which they are loaded.
sub modules {
    my ($found, $name, $done) = @_;
    return if $done->{$name}++;
    my $path = $found->{$name} or return; # the kernel has it built in
    my $content = $path =~ /\.xz$/ ? (Petrel::command('', 'xz', '-dc', $path))[1] : Petrel::slurp($path);
    my ($needed) = $content =~ /\0depends=([^\0]*)/;
    my @before = map { modules($found, $_, $done) } split /,/, $needed // '';
    entry("/modules/$name.ko", 0100644, $content);
    return (@before, "/modules/$name.ko");
}

sub make_image {
    my ($file, %with) = @_;
    open $image, '>:raw', $file or die "$file: $!";
    my (%found, %done);
    File::Find::find({ no_chdir => 1, wanted => sub { $found{ $1 =~ tr/-/_/r } = $_ if m{/([^/]+)\.ko(?:\.xz)?$} } }, glob '/opt/petrel-test-kernel/lib/modules/*');
    my @modules = map { modules(\%found, $_, \%done) } @{ $with{modules} };
    add_program($_ =~ m{/} ? $_ : Petrel::have($_)) for @{ $with{programs} }, $Petrel::binary, "$Petrel::root/$Petrel::build/t/bench/sink", $busybox, $^X;
    # Perl, without its manuals and headers.
    for my $top (grep { m{^/usr/(?:lib|share)/} && -d } @INC) {
        next if $top eq '/usr/share/perl5' || $top =~ m{/perl5/};
        add_tree($top, qr{\.(?:pod|h|a|ix|ld)$|/(?:unicore/(?:Name|Blocks|UCD)|Unicode/Collate|CPAN|Pod|Encode/(?:JP|KR|CN|TW)|ExtUtils)});
    }
    add_program($_) for grep { /\.so$/ } keys %packed;
    add_tree("$Petrel::root/t/e2e", qr{/t/e2e/[^/]+/|\.(?:t|py|sh)$});
    add(Cwd::abs_path($0));
    entry($_, 040755, '') for qw(/proc /sys /dev /tmp /run /etc /var /mnt);
    entry('/etc/hosts', 0100644, "127.0.0.1 localhost\n");
    entry('/etc/passwd', 0100644, "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n");
    entry('/etc/group', 0100644, "root:x:0:\nnogroup:x:65534:\n");
    my $program = Cwd::abs_path($0);
    entry('/init', 0100755, <<"END");
#!$busybox sh
$busybox mkdir -p /bin /usr/bin /sbin
$busybox --install -s /bin
export PATH=/usr/sbin:/sbin:/usr/bin:/bin HOME=/ LANG=C BUILD='$Petrel::build' PETREL='$Petrel::binary' $mark=1 ${\ join ' ', map { "$_='$ENV{$_}'" } grep { defined $ENV{$_} } qw(SEED) }
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev; chmod 1777 /tmp
for module in @modules; do insmod \$module || echo "# \$module" >/dev/ttyS1; done
ip link set lo up
cd $Petrel::root
setsid $^X -It/e2e $program </dev/null >/dev/ttyS1 2>&1
echo "# guest ended: \$?" >/dev/ttyS1
poweroff -f
END
    entry('/TRAILER!!!', 0, '');
    return close $image || die "image: $!";
}

# --- The machine ---------------------------------------------------------------------------------------------------

# enter(modules => [...], programs => [...]): returns in the machine alone; here the test ends with what came out.
sub enter {
    my (%with) = @_;
    if (is_inside()) {
        no warnings 'redefine';
        *Schema::record = sub { }; # Python is not there
        return;
    }
    my $dir = tempdir('guest-XXXXXX', TMPDIR => 1, CLEANUP => 1);
    make_image("$dir/image", %with);
    my @accel = ('-accel', $ENV{ACCEL} || 'tcg');
    my $pid = open my $out, '-|', 'qemu-system-x86_64', '-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', @accel, '-cpu', 'max,arch-capabilities=off,cx16=off', '-m', 512, '-smp', 1,
        '-kernel', $kernel, '-initrd', "$dir/image", '-append', 'console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check random.trust_cpu=on', '-serial', "file:$dir/console", '-serial', 'stdio' or die "qemu: $!";
    push @Petrel::running, $pid;
    local $SIG{ALRM} = sub { print "Bail out! the machine has not ended\n# ", Petrel::slurp("$dir/console") =~ s/\n/\n# /gr, "\n"; exit 1 };
    alarm $patience;
    $| = 1;
    my ($lines, $failed) = (0, 0);
    while (my $line = <$out>) {
        $line =~ s/\r//g;
        $lines++;
        print $line;
        $failed = $1 if $line =~ /^# guest ended: (\d+)/;
    }
    alarm 0;
    close $out;
    @Petrel::running = grep { $_ != $pid } @Petrel::running;
    print '1..0 # SKIP the machine does not start: ', Petrel::slurp("$dir/console") =~ s/\s+/ /gr, "\n" if $lines == 0;
    print '# ', Petrel::slurp("$dir/console") =~ s/\n/\n# /gr, "\n" if $failed;
    exit $failed;
}

1;
