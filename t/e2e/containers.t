#!/usr/bin/perl
# The examples for containers (etc/container, etc/compose, etc/kubernetes), held against the program: each variable is a
# setting with a value that it takes, each port is listened on, each path answers, each command and flag exists; and the
# archive of image.sh is what OCI says, the same each time.
use lib 't/e2e';
use E2E;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $root = $Petrel::root;
my $scratch = tempdir('containers-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
Petrel::spit("$scratch/password", 'secret' x 6 . "\n");
chmod 0600, "$scratch/password";

# --- The Dockerfile

my $docker = Petrel::slurp("$root/etc/container/Dockerfile");
my %image = $docker =~ /^ENV (\w+)=(.*)$/mg;
is $docker =~ /^EXPOSE (.*)$/m ? $1 : '', '2525 8025', 'the ports of the image';
is_deeply [ map { join ' ', /:(\d+)/g } @image{qw(PETREL_LISTEN PETREL_HTTP)} ], [ '2525 2525', '8025 8025' ], 'are those that Petrel listens on';
like $docker, qr/^USER 65532:0$/m, 'a user without a name';
like $docker, qr/^HEALTHCHECK CMD \["\/petrel","health"\]$/m, 'health';
# Whether the program takes these settings, in the environment.
sub settings_are_right {
    my ($name, %variables) = @_;
    my %environment = (%image, %variables, PETREL_SPOOL => "$scratch/spool");
    $environment{$_} = "$scratch/password" for grep { /_FILE$/ } keys %environment;
    local @ENV{ keys %environment } = values %environment;
    my ($code, $said) = Petrel::command('', $Petrel::binary, '-c', '/dev/null', 'check');
    is $code, 0, "$name: petrel check" or diag $said;
    for my $key (map { lc s/^PETREL_//r =~ s/_FILE$//r } sort keys %environment) {
        like $said, qr/^$key = .*# environment/m, "$name: $key is a setting";
    }
    unlike $said, qr/unknown/i, "$name: and nothing is unknown";
    return %environment;
}
settings_are_right('Dockerfile');

# --- Compose and Kubernetes

my $python = '/usr/bin/python3';
SKIP: {
    skip 'python3-yaml is not installed', 1 unless (Petrel::command('', $python, '-c', 'import yaml'))[0] == 0;
    my $read = sub {
        my ($code, $said) = Petrel::command(Petrel::slurp("$root/$_[0]"), $python, '-c', 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))');
        is $code, 0, "$_[0] is YAML" or BAIL_OUT $said;
        return @{ decode_json($said) };
    };
    # "/petrel COMMAND --flag...": the command and each of its flags are in its help.
    my $is_command = sub {
        my ($name, $program, $command, @flags) = @_;
        is $program, '/petrel', "$name: the program of the image";
        my ($code, $help) = Petrel::command('', $Petrel::binary, 'help', $command);
        is $code, 0, "$name: petrel $command";
        like $help, qr/\Q$_\E\b/, "$name: $_" for grep { /^--/ } @flags;
    };
    my ($compose) = $read->('etc/compose/relay.yml');
    my $service = $compose->{services}{relay};
    settings_are_right('relay.yml', %{ $service->{environment} });
    is_deeply $service->{expose}, ['2525'], 'relay.yml: the port';
    is shift @{ $service->{healthcheck}{test} }, 'CMD', 'relay.yml: health without a shell';
    $is_command->('relay.yml', @{ $service->{healthcheck}{test} });
    is_deeply $service->{volumes}, ['spool:/spool'], 'relay.yml: the spool';
    is $service->{environment}{PETREL_RELAY_PASSWORD_FILE}, '/run/secrets/' . $service->{secrets}[0], 'relay.yml: the secret';
    is $compose->{networks}{mail}{ipam}{config}[0]{subnet}, $service->{environment}{PETREL_RELAY_FROM}, 'relay.yml: its network may relay';
    ok $compose->{secrets}{relay_password} && exists $compose->{volumes}{spool}, 'relay.yml: both are declared';

    # A fleet with copies in Redis: each relay has a name, an address and a volume of its own.
    my ($together) = $read->('etc/compose/fleet.yml');
    my %relays = map { $_ => $together->{services}{$_} } grep { /^relay/ } keys %{ $together->{services} };
    cmp_ok scalar keys %relays, '>', 1, 'fleet.yml: relays';
    for my $name (sort keys %relays) {
        my $one = $relays{$name};
        my %used = settings_are_right("fleet.yml: $name", %{ $one->{environment} });
        is $used{PETREL_CLUSTER_HOST}, $name, "fleet.yml: $name has its name";
        is $used{PETREL_CLUSTER_ADDRESS}, "$name:" . ($used{PETREL_LISTEN} =~ /:(\d+)\?peer/ ? $1 : ''), "fleet.yml: $name is found";
        is $used{PETREL_RELAY_FROM}, $together->{networks}{mail}{ipam}{config}[0]{subnet}, "fleet.yml: $name relays for the network";
        my ($spool) = map { m{^(\w+):/spool$} } @{ $one->{volumes} };
        ok exists $together->{volumes}{ $spool // '' }, "fleet.yml: $name has a spool";
        is_deeply [grep { !$together->{secrets}{$_} } @{ $one->{secrets} }, map { m{^/run/secrets/(\w+)$} } values %{ $one->{environment} }], [], "fleet.yml: $name has its secrets";
        my ($server) = $used{PETREL_COPIES} =~ m{^redis://(\w+)$};
        like "@{ $together->{services}{$server}{command} }", qr/--appendonly yes --appendfsync always --maxmemory-policy noeviction/, "fleet.yml: the server of $name keeps copies";
        cmp_ok scalar(grep { "@{ $_->{command} // [] }" =~ /--appendfsync always --replicaof \Q$server\E / } values %{ $together->{services} }), '>=', $used{PETREL_COPIES_REPLICAS}, "fleet.yml: it has the replicas";
    }
    is scalar(keys %{ { map { ("@{ $_->{volumes} }" => 1) } values %relays } }), scalar keys %relays, 'fleet.yml: no spool has two relays';

    my %http; # paths that probes ask
    my %of_pod = ('metadata.name' => 'relay-7d4b9', 'status.podIP' => '10.0.0.9');
    for my $file (qw(relay fleet sidecar)) {
        my @documents = $read->("etc/kubernetes/$file.yaml");
        my ($set) = grep { $_->{kind} =~ /^(?:StatefulSet|Deployment)$/ } @documents;
        my $pod = $set->{spec}{template}{spec};
        my ($container) = grep { $_->{name} eq 'petrel' } @{ $pod->{containers} }, @{ $pod->{initContainers} // [] };
        my %used = settings_are_right("$file.yaml", map { $_->{name} => $_->{value} // $of_pod{ $_->{valueFrom}{fieldRef}{fieldPath} } } @{ $container->{env} });
        my %port = map { $_->{name} => $_->{containerPort} } @{ $container->{ports} };
        is $port{smtp} // 2525, $used{PETREL_LISTEN} =~ /:(\d+)/ && $1, "$file.yaml: the port of mail";
        is $port{http}, $used{PETREL_HTTP} =~ /:(\d+)/ && $1, "$file.yaml: that of probes";
        for my $probe (grep { /Probe$/ } sort keys %$container) {
            ok $port{ $container->{$probe}{httpGet}{port} }, "$file.yaml: $probe has a port";
            $http{ $container->{$probe}{httpGet}{path} } = 1;
        }
        is $port{peer}, $used{PETREL_LISTEN} =~ /:(\d+)\?peer/ ? $1 : undef, "$file.yaml: the peer door";
        cmp_ok $pod->{terminationGracePeriodSeconds}, '>', 100, "$file.yaml: more time than a hand-over takes" if ($used{PETREL_STOP} // '') eq 'hand_over';
        ok grep({ /^livenessProbe$/ } keys %$container), "$file.yaml: liveness";
        $is_command->("$file.yaml", @{ $container->{lifecycle}{preStop}{exec}{command} }) if $container->{lifecycle};
        # The restricted pod standard.
        my ($all, $own) = ($pod->{securityContext}, $container->{securityContext});
        ok $all->{runAsNonRoot} && $all->{runAsUser} == 65532 && $all->{runAsGroup} == 0, "$file.yaml: the user";
        is $all->{seccompProfile}{type}, 'RuntimeDefault', "$file.yaml: seccomp";
        ok !$own->{allowPrivilegeEscalation} && $own->{readOnlyRootFilesystem}, "$file.yaml: no privileges, a read-only root";
        is_deeply $own->{capabilities}, { drop => ['ALL'] }, "$file.yaml: no capabilities";
        my %volume = map { $_->{name} => 1 } @{ $pod->{volumes} }, map { $_->{metadata} } @{ $set->{spec}{volumeClaimTemplates} // [] };
        is_deeply [ grep { !$volume{ $_->{name} } } @{ $container->{volumeMounts} } ], [], "$file.yaml: each volume exists";
        is_deeply [ map { $_->{mountPath} } grep { $_->{name} eq 'spool' } @{ $container->{volumeMounts} } ], ['/spool'], "$file.yaml: the spool";
        is_deeply $set->{spec}{selector}{matchLabels}, $set->{spec}{template}{metadata}{labels}, "$file.yaml: its own pods";
    }
    is_deeply [ sort keys %http ], [qw(/livez /readyz)], 'what probes ask';

    # --- The guide has the same names

    my $yaml = sub { return @{ decode_json((Petrel::command($_[0], $python, '-c', 'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))'))[1]) } };
    my $env = sub { return map { $_->{name} => $_->{value} } @{ $_[0]{env} } };
    # Each block of the page is as in the file; the page may show less.
    my $agrees = sub {
        my ($name, $shown, $whole) = @_;
        for my $key (sort keys %$shown) {
            is_deeply $shown->{$key}, $whole->{$key}, "$name: $key";
        }
    };
    my %guide = map { $_ => Petrel::slurp("$root/doc/$_.md") } qw(container kubernetes);
    for my $page (sort keys %guide) {
        ok -e "$root/$_", "$page.md: $_ exists" for sort keys %{ { map { $_ => 1 } $guide{$page} =~ m{(?<![/\w])(etc/[\w/.]*\w)}g } };
        like $guide{$page}, qr{(?:exec \S+ --|exec \S+) /petrel }, "$page.md: the program of the image";
        is_deeply [ grep { $_ ne '/petrel' } $guide{$page} =~ m{(?:docker exec \S+|kubectl exec \S+ --) (\S+)}g ], [], "$page.md: and no other";
    }
    like $guide{container}, qr/listens\s+on\s+port\s+2525\s+for\s+mail\s+and\s+on\s+8025\s.*\suser\s+65532\s.*\sin\s+\/spool/s, 'container.md: the ports, user and spool of the image';
    my ($run) = $guide{container} =~ /^(docker run (?:.*\\\n)*.*)$/m;
    my ($name) = $run =~ /--name (\S+)/;
    is_deeply [ grep { $_ ne $name } $guide{container} =~ /docker (?:exec|logs|stop) ([a-z]\S*) /g ], [], 'container.md: the name of the container';
    like $run, qr{ -v \S+:/spool .*-p 127\.0\.0\.1:2525:2525 .* petrel\z}s, 'container.md: spool, port and image';
    like $docker, qr/ docker build -t petrel /, 'the image has that name';
    my %set = $run =~ /-e PETREL_(\w+)=(\S+)/g;
    like $run, qr/-v \.\/relay_password:\Q$set{RELAY_PASSWORD_FILE}\E:ro/, 'container.md: the password is where the setting says';
    my ($composed) = $yaml->($guide{container} =~ /^```yaml\n(.*?)^```$/ms);
    my ($app, $relay) = @{ $composed->{services} }{qw(app relay)};
    is $app->{environment}{SMTP_HOST} . ':' . $app->{environment}{SMTP_PORT}, "relay:$service->{expose}[0]", 'container.md: the application finds it';
    $agrees->('container.md', { map { $_ => $relay->{$_} } grep { $_ ne 'environment' } keys %$relay }, $service);
    my %described = %{ $relay->{environment} };
    delete $described{PETREL_RELAY_FROM}; # the network of the file is its own
    $agrees->('container.md', \%described, $service->{environment});
    $agrees->('container.md', $composed->{secrets}, $compose->{secrets});

    my @blocks = map { $yaml->($_) } $guide{kubernetes} =~ /^```yaml\n(.*?)^```$/msg;
    my ($stateful) = grep { $_->{kind} eq 'StatefulSet' } $read->('etc/kubernetes/relay.yaml');
    my ($deployment) = grep { $_->{kind} eq 'Deployment' } $read->('etc/kubernetes/sidecar.yaml');
    my $pod_agrees = sub {
        my ($title, $shown, $whole, $containers) = @_;
        my ($mine) = grep { $_->{name} eq 'petrel' } @{ $shown->{$containers} };
        my ($its) = grep { $_->{name} eq 'petrel' } @{ $whole->{$containers} };
        $agrees->($title, { $env->($mine) }, { $env->($its) });
        $agrees->($title, { map { $_ => $mine->{$_} } grep { !/^env$|Probe$/ } keys %$mine }, $its);
        is $mine->{$_}{httpGet}{path}, $its->{$_}{httpGet}{path}, "$title: $_" for grep { /Probe$/ } sort keys %$mine;
        $agrees->($title, $shown->{securityContext}, $whole->{securityContext});
        is $shown->{terminationGracePeriodSeconds} // 60, $whole->{terminationGracePeriodSeconds}, "$title: the time to stop";
        my %secret = map { $_->{name} => $_->{secret} } grep { $_->{secret} } @{ $whole->{volumes} };
        is_deeply { map { $_->{name} => $_->{secret} } grep { $_->{secret} } @{ $shown->{volumes} } }, \%secret, "$title: the secrets";
        return;
    };
    is_deeply [ $blocks[0]{metadata}{name}, $blocks[0]{spec}{serviceName} ], [ $stateful->{metadata}{name}, $stateful->{spec}{serviceName} ], 'kubernetes.md: the name of the relay';
    is_deeply $blocks[0]{spec}{selector}, $stateful->{spec}{selector}, 'kubernetes.md: its label';
    $pod_agrees->('kubernetes.md: relay', $blocks[0]{spec}{template}{spec}, $stateful->{spec}{template}{spec}, 'containers');
    my ($fleet) = map { $_->{spec}{template}{spec}{containers}[0] } grep { $_->{kind} eq 'Deployment' } $read->('etc/kubernetes/fleet.yaml');
    my %entry = map { $_->{name} => $_ } @{ $fleet->{env} };
    $agrees->('kubernetes.md: fleet', { map { $_->{name} => $_ } @{ $blocks[1]{env} } }, \%entry);
    $pod_agrees->('kubernetes.md: sidecar', $blocks[2]{spec}, $deployment->{spec}{template}{spec}, 'initContainers');
    is_deeply [ grep { $_ ne "$stateful->{metadata}{name}-0" } $guide{kubernetes} =~ /kubectl (?:exec|port-forward|logs) (\S+)/g ], [], 'kubernetes.md: the pod of its commands';
    is_deeply [ $guide{kubernetes} =~ /kubectl port-forward \S+ (\d+):(\d+)/ ], [ 8025, 8025 ], 'kubernetes.md: the port of the page';
    my ($secret, $key) = $guide{kubernetes} =~ /kubectl create secret generic (\S+) --from-file=(\w+)=/;
    is $secret, $stateful->{spec}{template}{spec}{volumes}[0]{secret}{secretName}, 'kubernetes.md: the secret of its commands';
    is "/secrets/$key", { $env->($stateful->{spec}{template}{spec}{containers}[0]) }->{PETREL_RELAY_PASSWORD_FILE}, 'kubernetes.md: and the file in it';
    for my $file (qw(relay fleet sidecar)) {
        like Petrel::slurp("$root/etc/kubernetes/$file.yaml"), qr/^# .*kubectl create secret generic \Q$secret\E --from-file=\Q$key\E=/m, "$file.yaml: its own words say the same";
    }

    my $port = Petrel::free_port();
    my $petrel = Petrel->new(routes => '* hold', http => "127.0.0.1:$port")->start;
    for my $path (sort keys %http) {
        my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 60) or die;
        print $client "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        like scalar <$client>, qr{^HTTP/1\.1 200 }, "$path answers";
    }
    $petrel->stop;
}

# --- The archive, of a root that only looks like ours

mkdir "$scratch/root" and mkdir "$scratch/root/etc" and mkdir "$scratch/root/spool" or die;
Petrel::spit("$scratch/root/petrel", "program\n");
Petrel::spit("$scratch/root/etc/passwd", "petrel:x:65532:0:Petrel:/spool:/petrel\n");
chmod 0755, "$scratch/root/petrel";
local $ENV{SOURCE_DATE_EPOCH} = 1_700_000_000;
for my $name (qw(1 2)) {
    my ($code, $said) = Petrel::command('', 'sh', '-c', "umask 0@{[ $name == 1 ? 22 : 77 ]}; $root/etc/container/image.sh $scratch/root $scratch/$name.tar x86_64 0.1");
    is $code, 0, 'image.sh' or diag $said;
    utime 1_600_000_000, 1_600_000_000, "$scratch/root/petrel", "$scratch/root/etc";
}
is Petrel::slurp("$scratch/2.tar"), Petrel::slurp("$scratch/1.tar"), 'another time, the same bytes';
mkdir "$scratch/layout" or die;
is system('tar', '-xf', "$scratch/1.tar", '-C', "$scratch/layout"), 0, 'it is an archive';
# The content of a blob, whose name, digest and size must be those.
sub blob {
    my $about = shift;
    my $file = "$scratch/layout/blobs/" . $about->{digest} =~ s/:/\//r;
    is -s $file, $about->{size}, "$about->{mediaType}: the size";
    like `sha256sum $file`, qr/^@{[ $about->{digest} =~ s{.*:}{}r ]} /, 'the digest';
    return $file;
}
is_deeply decode_json(Petrel::slurp("$scratch/layout/oci-layout")), { imageLayoutVersion => '1.0.0' }, 'the layout';
my ($entry) = @{ decode_json(Petrel::slurp("$scratch/layout/index.json"))->{manifests} };
# The name under which the commands of the pages find it: of podman and containerd, and of Docker without containerd's images.
my @pages = map { "$root/$_" } qw(doc/container.md doc/install.md etc/compose/relay.yml etc/compose/fleet.yml);
for my $page (@pages) {
    my $text = Petrel::slurp($page);
    my ($used) = $text =~ /^docker run (?:.*\\\n)*.* (\S+)$/m ? $1 : $text =~ /^ +image: (petrel\S*)$/m;
    my ($name, $tag) = split /:/, $used;
    is $entry->{annotations}{'io.containerd.image.name'}, "docker.io/library/$name:" . ($tag // 'latest'), "$page: the image that it loads has the name that it runs";
    like $text, qr/docker load -i \S*petrel\S*\.oci\.tar/, 'and is loaded before';
}
{   # A release: one archive of several processors has the same name, and for older Docker a tag for each.
    my ($code, $said) = Petrel::command('', 'sh', '-c', "$root/etc/container/image.sh $scratch/root $scratch/arm.tar aarch64-linux-gnu 0.1 && $root/etc/release/index.py $scratch/all.tar $scratch/1.tar $scratch/arm.tar");
    is $code, 0, 'index.py' or diag $said;
    my $read = sub { return decode_json(`tar -xOf $scratch/all.tar $_[0]`) };
    is_deeply $read->('index.json')->{manifests}[0]{annotations}, $entry->{annotations}, 'the name is the same';
    is_deeply [map { $_->{RepoTags} } @{ $read->('manifest.json') }], [[qw(petrel:amd64 petrel:latest)], ['petrel:arm64']], 'and each processor has a tag';
}
is_deeply $entry->{platform}, { architecture => 'amd64', os => 'linux' }, 'the platform';
my $manifest = decode_json(Petrel::slurp(blob($entry)));
my $config = decode_json(Petrel::slurp(blob($manifest->{config})));
is_deeply decode_json(Petrel::slurp("$scratch/layout/manifest.json")), [{ Config => 'blobs/sha256/' . $manifest->{config}{digest} =~ s/.*://r, RepoTags => ['petrel:latest'],
    Layers => ['blobs/sha256/' . $manifest->{layers}[0]{digest} =~ s/.*://r] }], 'Docker without them finds the same in a file of its own';
is $config->{created}, '2023-11-14T22:13:20Z', 'the time of the release';
is_deeply $config->{config}, {
    User => '65532:0', ExposedPorts => { '2525/tcp' => {}, '8025/tcp' => {} }, Env => [ map { "$_=$image{$_}" } qw(PETREL_SPOOL PETREL_LISTEN PETREL_HTTP) ],
    Entrypoint => ['/petrel'], Volumes => { '/spool' => {} }, Healthcheck => { Test => [qw(CMD /petrel health)] },
}, 'what the Dockerfile says';
my $layer = blob($manifest->{layers}[0]);
like `gzip -dc $layer | sha256sum`, qr/^@{[ $config->{rootfs}{diff_ids}[0] =~ s{.*:}{}r ]} /, 'the digest of what is packed';
is join('', map { s/ +/ /gr =~ s/^(\S+ \S+) \d+ (\S+ \S+)/$1 $2/r } `TZ=UTC tar -tvzf $layer`), <<'END', 'what is in it';
-rwxr-xr-x 0/0 2023-11-14 22:13 petrel
drwxr-xr-x 0/0 2023-11-14 22:13 etc/
-rw-r--r-- 0/0 2023-11-14 22:13 etc/passwd
drwxrwx--- 65532/0 2023-11-14 22:13 spool/
END
done_testing;
