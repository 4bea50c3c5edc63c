# A private Dovecot for the tests: LMTP on a Unix socket and on a port of loopback, its own users and files.
package Dovecot;

use strict;
use warnings;
use Petrel;

# Why there can be none; empty when there can.
sub missing {
    return 'no dovecot' unless Petrel::have('dovecot');
    return 'no dovecot-lmtpd' unless -x '/usr/lib/dovecot/lmtp' || -x '/usr/libexec/dovecot/lmtp';
    return 'dovecot wants root' if $> != 0;
    return '';
}

# What differs between 2.3 and 2.4.
sub flavour {
    my ($directory) = @_;
    my ($version) = `dovecot --version` =~ /^(\d+\.\d+)/ or die 'no version of dovecot';
    return ("dovecot_config_version = $version.0\ndovecot_storage_version = $version.0\n", <<"END") if $version >= 2.4;
mail_driver = maildir
mail_path = ~/Maildir
passdb passwd-file {
  passwd_file_path = $directory/users
}
userdb passwd-file {
  passwd_file_path = $directory/users
}
END
    return ('', <<"END");
mail_location = maildir:~/Maildir
passdb {
  driver = passwd-file
  args = $directory/users
}
userdb {
  driver = passwd-file
  args = $directory/users
}
END
}

# start(DIRECTORY, USER@DOMAIN...): an empty directory becomes its own. An object with {port}, {socket}, {log}.
sub start {
    my ($class, $directory, @users) = @_;
    my ($uid, $gid) = (getpwnam 'nobody')[ 2, 3 ];
    my $self = bless { directory => $directory, socket => "$directory/lmtp.sock", log => "$directory/dovecot.log" }, $class;
    my ($first, $store) = flavour($directory);
    $self->{port} = Petrel::free_port();
    chmod 0755, $directory;
    mkdir "$directory/$_" or die "$directory/$_: $!" for qw(run state home);
    chown $uid, $gid, "$directory/home";
    Petrel::spit("$directory/users", join '', map { "$_\::$uid:$gid\::$directory/home/$_\::\n" } @users);
    Petrel::spit("$directory/dovecot.conf", <<"END");
${first}base_dir = $directory/run
state_dir = $directory/state
log_path = $self->{log}
protocols = lmtp
listen = 127.0.0.1
ssl = no
first_valid_uid = 1
$store
service lmtp {
  unix_listener $self->{socket} {
    mode = 0666
  }
  inet_listener lmtp {
    port = $self->{port}
  }
}
END
    $self->{pid} = Petrel::spawn("$directory/output", Petrel::have('dovecot'), '-F', '-c', "$directory/dovecot.conf");
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}") && -S $self->{socket} })
        or die 'dovecot does not start: ' . Petrel::slurp("$directory/output") . Petrel::slurp($self->{log});
    return $self;
}

# Dovecot's SASL on a port, for Postfix: start_auth(DIRECTORY, USER => PASSWORD...). {port}, {log}.
sub start_auth {
    my ($class, $directory, %users) = @_;
    my $self = bless { directory => $directory, log => "$directory/dovecot.log", port => Petrel::free_port() }, $class;
    my ($first, $store) = flavour($directory);
    chmod 0755, $directory;
    mkdir "$directory/$_" or die "$directory/$_: $!" for qw(run state);
    Petrel::spit("$directory/users", join '', map { "$_:{PLAIN}$users{$_}::::::\n" } sort keys %users);
    Petrel::spit("$directory/dovecot.conf", <<"END");
${first}base_dir = $directory/run
state_dir = $directory/state
log_path = $self->{log}
protocols =
listen = 127.0.0.1
ssl = no
auth_mechanisms = plain login scram-sha-256
$store
service auth {
  inet_listener auth {
    port = $self->{port}
  }
}
END
    $self->{pid} = Petrel::spawn("$directory/output", Petrel::have('dovecot'), '-F', '-c', "$directory/dovecot.conf");
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}") })
        or die 'dovecot does not start: ' . Petrel::slurp("$directory/output") . Petrel::slurp($self->{log});
    return $self;
}

# The messages that a user has, as they are in the files.
sub mail {
    my ($self, $user) = @_;
    return map { Petrel::slurp($_) } glob "$self->{directory}/home/$user/Maildir/new/*";
}

sub stop {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    return Petrel::reap($pid, 'TERM');
}

1;
