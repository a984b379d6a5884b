# The units of a host, as data: name → { Unit; Service; Path; Timer; Socket; Install; }, each a set
# of directives. A list is a directive given several times. The NixOS module and other systems use
# the same data, rendered by the same function. docs/reference/units.md explains the exceptions.
#
# The argument is the instance of the host, or "" if the host is in one cluster.
# String -> AttrSet
instance:
let
  inherit (builtins)
    any
    filter
    foldl'
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
  recorder = import ./recorder.nix common;
  rollback = import ./rollback.nix common;
  store = import ./store.nix common;
  workload = import ./workload.nix common;

  sysctl = {
    "net.core.rmem_max" = 7500000;
    "net.core.wmem_max" = 7500000;
  };

  delivering = filter (n: n.deliver.files != { });

  # The optional units of a host.
  parts = manifest: policy: {
    certificates = policy.store or null != null;
    store = policy.store.member or null != null;
    credentials = any credential.ofService manifest.needs;
    ingress = any (n: n.kind == "tls") manifest.needs;
    # Recording may begin with documents from the network, which install no units.
    recorder = any recorder.recordable manifest.forwarder.publish;
    records = any (p: p ? record) manifest.forwarder.publish;
    workload = any (c: c.workload or false) manifest.forwarder.callers;
  };

  expected = import ./expected.nix {
    inherit
      activate
      agent
      credential
      delivering
      guard
      host
      hostsFile
      ingress
      parts
      recorder
      rollback
      store
      unit
      workload
      ;
  };
  texts = import ./texts.nix { inherit sysctl text; };
in
{
  # The units of a host with this manifest and, on provider hosts, this policy.
  #   documents     exact bytes of the documents
  #   bin           directory of the commands
  #   settings      flags: .activate of flor activate, .agent of flor agent run;
  #                 .ingress of flor ingress; .provider the settings file, if known
  #   credentials   secrets of the providers: kind → name → file that root can read
  #   etcd          path of etcd, for hosts with a member of the store
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
      // optionalAttrs has.recorder (recorder.units { inherit bin; })
      // optionalAttrs has.workload (workload { inherit bin; })
    ) (delivering manifest.needs);

  # The units that should run: name without prefix → whether the unit must be installed.
  inherit expected;

  # The accounts of the units: name → { description; home; }.
  accounts =
    policy:
    {
      ${prefix} = {
        description = "Florete's forwarder";
        home = state;
      };
    }
    // optionalAttrs (policy != null) (provider.accounts policy);

  # Runs before a switch to a NixOS system, and undoes it unless it is confirmed.
  inherit (rollback) arm;

  # The buffers that QUIC needs, in bytes; the default of the kernel is 208 KiB.
  inherit sysctl;

  # Units, accounts and kernel settings as the text of their files.
  inherit (texts) render sysusers sysctls;

  # Paths, and names of units.
  inherit
    current
    etc
    prefix
    run
    state
    unit
    ;
}
