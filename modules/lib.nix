# What the modules share: this host's part of its cluster, and options alike.
{ config, lib }:
let
  inherit (lib) attrNames concatStringsSep head length mapAttrsRecursive mkDefault mkOption types;
  units = import ../nix/units "";
  cfg = config.services.florete;

  # A flake has its clusters below its output florete; a cluster is also taken as it is.
  clusters = if cfg.cluster ? documents then { ${cfg.cluster.name} = cfg.cluster; } else cfg.cluster.florete or { };
  names = attrNames clusters;
  chosen = if cfg.clusterName != null then cfg.clusterName else if length names == 1 then head names else null;
  cluster = clusters.${chosen};
  host = cfg.hostName;

  fault =
    if cfg.cluster == null then
      "services.florete.cluster is not set: write services.florete.cluster = inputs.<flake of the cluster>;"
    else if names == [ ] then
      "services.florete.cluster has no output florete.<name>: give a flake with florete.<name> = florete.lib.mkCluster { … };"
    else if chosen == null then
      "services.florete.cluster has the clusters ${concatStringsSep ", " names}: choose one with services.florete.clusterName"
    else if !clusters ? ${chosen} then
      "services.florete.clusterName: there is no cluster ${chosen}, the flake has ${concatStringsSep ", " names}"
    else if !cluster.topology.hosts ? ${host} then
      "cluster ${chosen} has no host ${builtins.toJSON host}, it has ${concatStringsSep ", " (attrNames cluster.topology.hosts)}: "
      + "declare it there, or name it with networking.hostName or services.florete.hostName"
    else null;
in
{
  inherit fault;
  known = fault == null;
  manifest = cluster.manifests.${host};
  policy = if fault == null then cluster.policies.${host} or null else null;
  directory = cluster.directory.${host};
  system = if fault == null then cluster.topology.hosts.${host}.system else null;
  inherit (units) accounts current render sysctl;

  # The named ones of this host's units, each directive as a default.
  defaults = wanted: { package, settings ? { }, credentials ? { } }:
    mapAttrsRecursive (_: mkDefault) (lib.filterAttrs (name: _: wanted name) (units.units {
      inherit settings credentials;
      manifest = cluster.manifests.${host};
      policy = cluster.policies.${host} or null;
      documents = cluster.documents.${host};
      bin = "${package}/bin";
    }));

  # Secrets that everybody could read.
  inStore = file: lib.hasPrefix builtins.storeDir (toString file);
  refused = option: file: {
    assertion = false;
    message = "${option} is in the Nix store, which everybody can read: ${toString file}; "
      + "keep it in a file outside, written as a string, such as \"/run/keys/users\"";
  };

  # The settings of a program are the flags it has.
  flags = program: example: mkOption {
    type = types.attrsOf (types.oneOf [ types.str types.int types.bool ]);
    default = { };
    inherit example;
    description = "Flags of `${program}`; its `--help` describes them.";
  };
}
