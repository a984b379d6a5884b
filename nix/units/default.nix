# The units of a host, as data: name → { Unit; Service; Path; Timer; Socket; Install; },
# each a set of directives. A list is a directive given several times. The NixOS
# module and plain hosts use the same, rendered by the same function, so that
# there is nothing to keep in step. modules/README.md says why each is as it is.
#
# The argument names the instance of the host that they are for, "" where the host
# is a member of one cluster.
# String -> AttrSet
instance:
let
  inherit (builtins)
    any
    attrNames
    concatMap
    concatStringsSep
    elem
    filter
    foldl'
    isList
    listToAttrs
    mapAttrs
    stringLength
    substring
    toJSON
    ;
  inherit (import ../lib) optionalAttrs;
  common = import ./common.nix instance;
  inherit (common)
    current
    etc
    prefix
    run
    state
    text
    unit
    ;
  activate = import ./activate.nix common;
  agent = import ./agent.nix common;
  guard = import ./guard.nix common;
  credential = import ./credentials.nix common;
  host = import ./host.nix common;
  hostsFile = import ./hosts-file.nix common;
  ingress = import ./ingress.nix common;
  need = import ./need.nix common;
  provider = import ./provider.nix common;
  rollback = import ./rollback.nix common;
  store = import ./store.nix common;
  workload = import ./workload.nix common;

  sysctl = {
    "net.core.rmem_max" = 7500000;
    "net.core.wmem_max" = 7500000;
  };

  directives =
    set:
    concatMap (n: map (v: "${n}=${text v}\n") (if isList set.${n} then set.${n} else [ set.${n} ])) (
      attrNames set
    );
  delivering = filter (n: n.deliver.files != { });

  # Which parts a host has besides what every host has.
  parts = manifest: policy: {
    certificates = policy.store or null != null;
    store = policy.store.member or null != null;
    credentials = any credential.ofService manifest.needs;
    ingress = any (n: n.kind == "tls") manifest.needs;
    workload = any (c: c.workload or false) manifest.forwarder.callers;
  };

  # Of units, those that start at boot: name without prefix → whether it must be installed.
  started =
    units:
    listToAttrs (
      map (
        full:
        let
          name = substring (stringLength (unit "")) (-1) full;
        in
        {
          inherit name;
          value = elem name required;
        }
      ) (filter (name: units.${name} ? Install) (attrNames units))
    );
  required = [
    "activate.service"
    "agent.service"
    "refresh.timer"
    "store.service"
    "workload.socket"
  ];

  # The same of parts, which are alike on all hosts that have them.
  starting =
    let
      bin = "";
      settings = { };
      manifest = null;
      policy = null;
      documents = null;
    in
    mapAttrs (_: started) {
      always =
        activate {
          inherit
            manifest
            documents
            bin
            settings
            ;
        }
        // agent {
          inherit
            manifest
            policy
            bin
            settings
            ;
        }
        // hostsFile { inherit bin; }
        // guard { inherit bin; }
        // rollback.units { inherit bin; };
      certificates = store.certificates { inherit bin; };
      store = store.units {
        member = null;
        etcd = "";
      };
      credentials = credential.units { inherit bin; };
      ingress = ingress { inherit bin settings; };
      workload = workload { inherit bin; };
    };
  ofPolicy =
    policy:
    let
      has = parts null policy;
    in
    listToAttrs (
      map (kind: {
        name = "provider-${kind}.service";
        value = true;
      }) (attrNames policy.provider)
    )
    // (if has.certificates then starting.certificates else { })
    // (if has.store then starting.store else { });

  order = [
    "Unit"
    "Service"
    "Path"
    "Timer"
    "Socket"
    "Install"
  ];
in
{
  # The units of the host with this manifest and, on provider hosts, this policy.
  #   documents     their exact bytes
  #   bin           directory of the commands
  #   settings      flags: .activate of flor activate, .agent of flor agent run;
  #                 .ingress of flor ingress; .provider what its settings file has, if that is known
  #   credentials   secrets of the providers: kind → name → file that root can read
  #   etcd          the program of that name, for hosts that keep a member of the store
  units =
    {
      manifest,
      policy ? null,
      documents,
      bin,
      settings ? { },
      credentials ? { },
      etcd ? "/usr/bin/etcd",
    }:
    let
      has = parts manifest policy;
    in
    foldl' (all: n: all // need n.id) (
      activate {
        inherit manifest documents bin;
        settings = settings.activate or { };
      }
      // agent {
        inherit manifest policy bin;
        settings = settings.agent or { };
      }
      // hostsFile { inherit bin; }
      // guard { inherit bin; }
      // host { inherit manifest bin; }
      // rollback.units { inherit bin; }
      // optionalAttrs (policy != null) (
        provider.units {
          inherit policy bin credentials;
          settings = settings.provider or null;
        }
      )
      // optionalAttrs has.certificates (store.certificates { inherit bin; })
      // optionalAttrs has.store (
        store.units {
          inherit (policy.store) member;
          inherit etcd;
        }
      )
      // optionalAttrs has.credentials (credential.units { inherit bin; })
      // optionalAttrs has.ingress (ingress {
        inherit bin;
        settings = settings.ingress or { };
      })
      // optionalAttrs has.workload (workload { inherit bin; })
    ) (delivering manifest.needs);

  # Those of them that should run: name without prefix → whether the unit must be installed. Without
  # the others a host does what its documents say, or they came over the network, which installs
  # nothing, or an option of the NixOS module leaves them out.
  expected =
    { manifest, policy }:
    let
      has = parts manifest policy;
    in
    starting.always
    // (if has.credentials then starting.credentials else { })
    // (if has.ingress then starting.ingress else { })
    // (if has.workload then starting.workload else { })
    // (if policy == null then { } else ofPolicy policy)
    // started (host {
      inherit manifest;
      bin = "";
    })
    // listToAttrs (
      map (n: {
        name = "need-${n.id}.path";
        value = false;
      }) (delivering manifest.needs)
    );

  # The accounts that they need: name → { description; home; }.
  accounts =
    policy:
    {
      ${prefix} = {
        description = "Florete's forwarder";
        home = state;
      };
    }
    // optionalAttrs (policy != null) (provider.accounts policy);

  # Before a switch to a NixOS system, which then goes back unless it is confirmed.
  inherit (rollback) arm;

  # What QUIC asks the kernel to buffer, in bytes; the kernel's own is 208 KiB.
  inherit sysctl;

  # Where things are, and how units are called.
  inherit
    current
    etc
    prefix
    run
    state
    unit
    ;

  # A unit as the text of its file.
  render =
    unit:
    concatStringsSep "\n" (
      map (section: "[${section}]\n" + concatStringsSep "" (directives unit.${section})) (
        filter (section: unit ? ${section}) order
      )
    );

  # Accounts as the text of a sysusers.d(5) file.
  sysusers =
    accounts:
    concatStringsSep "" (
      map (n: "u ${n} - ${toJSON accounts.${n}.description} ${accounts.${n}.home}\n") (attrNames accounts)
    );

  # The same as the text of a sysctl.d(5) file, with what NixOS sets anyway: each path
  # unit is one of the watches that root may have, 128 elsewhere. What the kernel does
  # not have here, as in a container, is no failure.
  sysctls =
    let
      settings = sysctl // {
        "fs.inotify.max_user_instances" = 524288;
      };
    in
    concatStringsSep "" (map (n: "-${n} = ${text settings.${n}}\n") (attrNames settings));
}
