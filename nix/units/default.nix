# The units of a host, as data: name → { Unit; Service; Path; Timer; Socket; Install; },
# each a set of directives. A list is a directive given several times. The NixOS
# module and plain hosts use the same, rendered by the same function, so that
# there is nothing to keep in step. docs/reference/units.md says why each is as it is.
#
# The argument names the instance of the host that they are for, "" where the host
# is a member of one cluster.
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
  rollback = import ./rollback.nix common;
  store = import ./store.nix common;
  workload = import ./workload.nix common;

  sysctl = {
    "net.core.rmem_max" = 7500000;
    "net.core.wmem_max" = 7500000;
  };

  delivering = filter (n: n.deliver.files != { });

  # Which parts a host has besides what every host has.
  parts = manifest: policy: {
    certificates = policy.store or null != null;
    store = policy.store.member or null != null;
    credentials = any credential.ofService manifest.needs;
    ingress = any (n: n.kind == "tls") manifest.needs;
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
      rollback
      store
      unit
      workload
      ;
  };
  texts = import ./texts.nix { inherit sysctl text; };
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

  # Those of them that should run: name without prefix → whether the unit must be installed.
  inherit expected;

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

  # A unit, accounts and settings of the kernel as the text of their files.
  inherit (texts) render sysusers sysctls;

  # Where things are, and how units are called.
  inherit
    current
    etc
    prefix
    run
    state
    unit
    ;
}
