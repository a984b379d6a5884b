# The units of a host, as data: name → { Unit; Service; Path; Timer; Install; },
# each a set of directives. A list is a directive given several times. The NixOS
# module and plain hosts use the same, rendered by the same function, so that
# there is nothing to keep in step. modules/README.md says why each is as it is.
let
  inherit (builtins)
    any
    attrNames
    concatLists
    concatMap
    concatStringsSep
    elemAt
    filter
    fromJSON
    isBool
    isList
    listToAttrs
    map
    mapAttrs
    match
    replaceStrings
    toJSON
    ;
  names = import ./names.nix;

  state = "/var/lib/florete";
  current = need: "${state}/needs/${need}/current";

  # One argument of a command line, as systemd reads it.
  word = v: toJSON (replaceStrings [ "%" "$" ] [ "%%" "$$" ] (if isBool v then (if v then "true" else "false") else toString v));
  flags = set: map (n: " --${n}=${word set.${n}}") (attrNames set);
  command = program: set: concatStringsSep "" ([ program ] ++ flags set);

  confined = import ./confined.nix;

  # Programs that wait for whatever they need, and are started again whatever ended them.
  service = confined // {
    NotifyAccess = "main";
    Restart = "on-failure";
    RestartSec = 5;
    Type = "notify";
  };

  # Of "host:port" addresses, does one need a privilege to listen?
  privileged = any (address: fromJSON (elemAt (match ".*:([0-9]+)" address) 0) < 1024);
  bind = needed: if needed then "CAP_NET_BIND_SERVICE" else "";

  activate = { documents, bin, settings }: {
    Unit = {
      Description = "Fetch what this host needs from its cluster's providers";
      After = [ "network.target" "nss-user-lookup.target" "sshd-keygen.service" ];
      StartLimitIntervalSec = 0;
      # Other documents are another unit: a deployment starts it again.
      X-Documents = names.sri (toJSON documents);
    };
    Service = service // {
      ExecStart = command "${bin}/flor activate" ({
        closure = "/etc/florete/documents";
        inherit state;
        owner = "florete";
      } // settings);
      # It may read every file, so it sees few.
      BindReadOnlyPaths = [ "/etc" "/run" "-/nix/store" "-/usr" bin ]
        ++ (if settings ? ssh-host-key then [ settings.ssh-host-key ] else [ ]);
      CapabilityBoundingSet = "CAP_CHOWN CAP_DAC_READ_SEARCH";
      Environment = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/dbus/system_bus_socket";
      MountAPIVFS = true;
      ProcSubset = "pid";
      RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
      RootDirectory = "/run/florete-activate";
      RuntimeDirectory = "florete-activate";
      StateDirectory = "florete";
      StateDirectoryMode = "0755";
      SuccessExitStatus = 2;
      SystemCallFilter = confined.SystemCallFilter ++ [ "@chown" ];
      UMask = "0022";
    };
    Install.WantedBy = [ "multi-user.target" ];
  };

  # Starts an activation that someone stopped, before certificates run out.
  refresh = {
    Unit.Description = "See that what this host needs is kept fulfilled";
    Timer = {
      OnCalendar = "hourly";
      RandomizedDelaySec = "30min";
      Unit = "florete-activate.service";
    };
    Install.WantedBy = [ "timers.target" ];
  };

  agent = { manifest, bin, settings }:
    let
      f = manifest.forwarder;
      listeners = map (r: r.listen) (f.reach ++ f.socks) ++ filter (l: l != "") [ (f.listen or "") ];
      # Documents from the network can bring any listener.
      capability = bind (privileged listeners || any (n: n.kind == "config") manifest.needs);
    in
    {
      Unit = {
        Description = "Carry connections between this host and its cluster";
        After = [ "network.target" "nss-user-lookup.target" "florete-need-cert-node.target" ];
        ConditionPathExists = current "cert-node";
        StartLimitIntervalSec = 0;
      };
      Service = service // {
        ExecStart = command "${bin}/flor agent run" ({ inherit state; socket = "/run/florete/agent.sock"; } // settings);
        User = "florete";
        Group = "florete";
        AmbientCapabilities = capability;
        CapabilityBoundingSet = capability;
        FileDescriptorStoreMax = 4096; # local listeners, for the next agent
        LimitNOFILE = 65536;
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_NETLINK AF_UNIX";
        RuntimeDirectory = "florete";
        TimeoutStopSec = 20;
        UMask = "0077";
        WatchdogSec = 30;
      };
      Install.WantedBy = [ "florete-need-cert-node.target" ];
    };

  provider = { policy, bin, settings, credentials }:
    let capability = bind (privileged [ policy.provider.address ]); in
    {
      Unit = {
        Description = "Answer what the hosts of the cluster need";
        After = [ "network.target" ];
        ConditionPathExists = "/etc/florete/provider.hujson";
        StartLimitIntervalSec = 0;
      } // (if settings == null then { } else { X-Settings = names.sri (toJSON settings); });
      Service = service // {
        ExecStart = command "${bin}/flor-provider run" { settings = "/etc/florete/provider.hujson"; };
        User = "florete-provider";
        DynamicUser = alone policy;
        AmbientCapabilities = capability;
        CapabilityBoundingSet = capability;
        LimitNOFILE = 65536;
        PrivateUsers = capability == "";
        RestrictAddressFamilies = "AF_INET AF_INET6 AF_UNIX";
        StateDirectory = "florete-provider";
        StateDirectoryMode = "0700";
        UMask = "0077";
      } // (if credentials == { } then { } else {
        LoadCredential = map (n: "${n}:${credentials.${n}}") (attrNames credentials);
      });
      Install.WantedBy = [ "multi-user.target" ];
    };

  # Answers about the host on a socket that the forwarder alone may use. It is there
  # where a service of the host publishes it.
  hostAPI = "/run/florete-host.sock";
  api = { bin }: {
    "florete-host.socket" = {
      Unit.Description = "The host's own API, for the forwarder";
      Socket = { ListenStream = hostAPI; SocketUser = "florete"; SocketMode = "0600"; };
      Install.WantedBy = [ "sockets.target" ];
    };
    "florete-host.service" = {
      Unit.Description = "Answer about this host";
      Service = service // {
        Type = "exec";
        NotifyAccess = "none";
        ExecStart = command "${bin}/flor host run" { inherit state; };
        DynamicUser = true;
        SupplementaryGroups = "florete systemd-journal";
        CapabilityBoundingSet = "";
        Environment = "PATH=/run/current-system/sw/bin:/usr/bin:/bin"; # of journalctl
        IPAddressDeny = "any";
        PrivateNetwork = true;
        PrivateUsers = true;
        RestrictAddressFamilies = "AF_UNIX";
        RuntimeDirectory = "florete-host";
        RuntimeDirectoryPreserve = true;
        UMask = "0022";
      };
    };
  };

  # Reached when a need is fulfilled for the first time, and at each boot after that.
  need = id: [
    {
      name = "florete-need-${id}.path";
      value = {
        Unit.Description = "Wait until the need ${id} is fulfilled";
        Path = { PathExists = current id; Unit = "florete-need-${id}.target"; };
        Install.WantedBy = [ "paths.target" ];
      };
    }
    { name = "florete-need-${id}.target"; value.Unit.Description = "The need ${id} is fulfilled"; }
  ];

  # Is nothing given to the provider's account by others: a certificate of another
  # provider, files that an operator keeps?
  alone = policy: policy.kinds ? cert && !policy.kinds ? file;

  accounts = policy: {
    florete = { description = "Florete's forwarder"; home = state; };
  } // (if policy == null || alone policy then { } else {
    florete-provider = { description = "Florete's provider"; home = "/var/lib/florete-provider"; };
  });

  value = v: if isBool v then (if v then "true" else "false") else toString v;
  directives = set: concatMap
    (n: map (v: "${n}=${value v}\n") (if isList set.${n} then set.${n} else [ set.${n} ]))
    (attrNames set);
  order = [ "Unit" "Service" "Path" "Timer" "Socket" "Install" ];
in
{
  # The units of the host with this manifest and, on provider hosts, this policy.
  #   documents     their exact bytes
  #   bin           directory of the commands
  #   settings      flags: .activate of flor activate, .agent of flor agent run;
  #                 .provider what its settings file says, if that is known
  #   credentials   secrets of the provider: name → file that root can read
  units = { manifest, policy ? null, documents, bin, settings ? { }, credentials ? { } }:
    {
      "florete-activate.service" = activate { inherit documents bin; settings = settings.activate or { }; };
      "florete-refresh.timer" = refresh;
      "florete-agent.service" = agent { inherit manifest bin; settings = settings.agent or { }; };
    }
    // (if policy == null then { } else {
      "florete-provider.service" = provider { inherit policy bin credentials; settings = settings.provider or null; };
    })
    // (if any (p: p.upstream == "unix:${hostAPI}") manifest.forwarder.publish then api { inherit bin; } else { })
    // listToAttrs (concatMap (n: need n.id) (filter (n: n.deliver.files != { }) manifest.needs));

  inherit accounts current;

  # A unit as the text of its file.
  render = unit: concatStringsSep "\n" (map
    (section: "[${section}]\n" + concatStringsSep "" (directives unit.${section}))
    (filter (section: unit ? ${section}) order));

  # Accounts as the text of a sysusers.d(5) file.
  sysusers = accounts: concatStringsSep "" (map
    (n: "u ${n} - ${toJSON accounts.${n}.description} ${accounts.${n}.home}\n")
    (attrNames accounts));
}
