# A private Dovecot for the tests: LMTP on a Unix socket and on a port of loopback, its own users and files.
package Dovecot;

use strict;
use warnings;
use MIME::Base64 qw(encode_base64);
use Petrel;

# Why there can be none; empty when there can.
sub missing {
    return 'no dovecot' unless Petrel::have('dovecot');
    return 'no dovecot-lmtpd' unless -x '/usr/lib/dovecot/lmtp' || -x '/usr/libexec/dovecot/lmtp';
    return 'dovecot wants root' if $> != 0;
    return '';
}

# Differences between 2.3 and 2.4.
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

# Why it cannot verify tokens of OAuth2; empty when it can.
sub no_tokens {
    my ($version) = `dovecot --version` =~ /^(\d+\.\d+)/ or return 'no dovecot';
    return $version >= 2.4 ? 'the settings are written for dovecot 2.3' : '';
}

# Dovecot's SASL on a port, for Postfix: start_auth(DIRECTORY, USER => PASSWORD...). {port}, {log}. With `hmac =>
# KEY` it takes tokens (XOAUTH2, OAUTHBEARER) that are signed with that key, too. {socket} is the same at a path.
sub start_auth {
    my ($class, $directory, %users) = @_;
    my $hmac = delete $users{hmac};
    my $self = bless { directory => $directory, log => "$directory/dovecot.log", socket => "$directory/auth.sock", port => Petrel::free_port() }, $class;
    my ($first, $store) = flavour($directory);
    chmod 0755, $directory;
    mkdir "$directory/$_" for qw(run state);
    Petrel::spit("$directory/users", join '', map { "$_:{PLAIN}$users{$_}::::::\n" } sort keys %users);
    Petrel::spit("$directory/dovecot.conf", <<"END");
${first}base_dir = $directory/run
state_dir = $directory/state
log_path = $self->{log}
protocols =
listen = 127.0.0.1
ssl = no
auth_failure_delay = 0
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
auth_mechanisms = plain login scram-sha-256${\($hmac ? ' xoauth2 oauthbearer' : '')}
${\($hmac ? tokens($directory, $hmac) : '')}
$store
service auth {
  inet_listener auth {
    port = $self->{port}
  }
  unix_listener $self->{socket} {
    mode = 0666
  }
}
END
    $self->{pid} = Petrel::spawn("$directory/output", Petrel::have('dovecot'), '-F', '-c', "$directory/dovecot.conf");
    Petrel::wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}") })
        or die 'dovecot does not start: ' . Petrel::slurp("$directory/output") . Petrel::slurp($self->{log});
    return $self;
}

# The settings for tokens; the key is where Dovecot looks for one without a name.
sub tokens {
    my ($directory, $hmac) = @_;
    for my $folder (qw(keys keys/default keys/default/HS256)) { mkdir "$directory/$folder" }
    Petrel::spit("$directory/keys/default/HS256/default", encode_base64($hmac, ''));
    Petrel::spit("$directory/oauth2.conf", <<"END");
introspection_mode = local
local_validation_key_dict = fs:posix:prefix=$directory/keys/
username_attribute = sub
END
    return <<"END";
passdb {
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = $directory/oauth2.conf
}
END
}

# The messages that a user has, as they are in the files.
sub mail {
    my ($self, $user) = @_;
    return map { Petrel::slurp($_) } glob "$self->{directory}/home/$user/Maildir/new/*";
}

# As a crash: an orderly stop waits for its clients for half a minute.
sub kill9 {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    my @children = map { m{/(\d+)/} } grep { Petrel::slurp($_) =~ /\) \S $pid / } glob '/proc/[0-9]*/stat';
    kill 'KILL', $pid, @children;
    return Petrel::reap($pid, 'KILL');
}

sub stop {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    return Petrel::reap($pid, 'TERM');
}

1;
