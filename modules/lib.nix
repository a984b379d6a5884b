# Shared by the modules: this host's part of its cluster, and options of the same form.
{
  config,
  lib,
  instance,
}:
let
  inherit (lib)
    attrNames
    concatStringsSep
    head
    length
    literalExpression
    mapAttrsRecursive
    mkDefault
    mkOption
    types
    ;
  units = import ../nix/units instance;
  inherit (units) prefix;
  option = "services.${prefix}";
  cfg = config.services.${prefix};

  # The option `cluster` accepts a flake, with clusters in its output florete, or a cluster itself.
  clusters =
    if cfg.cluster ? documents then
      { ${cfg.cluster.name} = cfg.cluster; }
    else
      cfg.cluster.florete or { };
  names = attrNames clusters;
  chosen =
    if cfg.clusterName != null then
      cfg.clusterName
    else if length names == 1 then
      head names
    else
      null;
  cluster = clusters.${chosen};
  host = cfg.hostName;
  declared = cluster.topology.hosts.${host};
  known = fault == null;
  manifest = cluster.manifests.${host};
  policy = if known then cluster.policies.${host} or null else null;

  fault =
    if cfg.cluster == null then
      "${option}.cluster is not set: write ${option}.cluster = inputs.<flake of the cluster>;"
    else if names == [ ] then
      "${option}.cluster has no output florete.<name>: give a flake with florete.<name> = florete.lib.mkCluster { … };"
    else if chosen == null then
      "${option}.cluster has the clusters ${concatStringsSep ", " names}: choose one with ${option}.clusterName"
    else if !clusters ? ${chosen} then
      "${option}.clusterName: there is no cluster ${chosen}, the flake has ${concatStringsSep ", " names}"
    else if !cluster.topology.hosts ? ${host} then
      "cluster ${chosen} has no host ${builtins.toJSON host}, it has ${concatStringsSep ", " (attrNames cluster.topology.hosts)}: "
      + "declare it there, or name it with networking.hostName or ${option}.hostName"
    else if declared.instance != instance then
      "${option}.cluster: in cluster ${chosen}, ${elsewhere declared.instance}, or ${there}"
    else
      null;

  # Says where a host of another instance is configured, and how to make it this place.
  elsewhere =
    declared:
    if declared == "" then
      "hosts.${host}.instance is not written: write services.florete.cluster = …; here"
    else
      "hosts.${host}.instance is ${builtins.toJSON declared}: write imports = [ (florete.lib.instance ${builtins.toJSON declared}) ]; and services.florete_${declared}.cluster = …; here";
  there =
    if instance == "" then
      "leave it out there"
    else
      "hosts.${host}.instance = ${builtins.toJSON instance}; there";
in
{
  inherit
    cfg
    fault
    known
    manifest
    instance
    option
    policy
    prefix
    ;
  inherit (units)
    accounts
    arm
    current
    etc
    render
    run
    state
    sysctl
    unit
    ;
  inherit (cluster) topology;
  # For every service of the cluster, whether it runs on this host.
  runs =
    let
      here = lib.genAttrs cluster.topology.hosts.${host}.services (_: true);
    in
    builtins.mapAttrs (name: _: here ? ${name}) cluster.topology.services;
  directory = cluster.directory.${host};
  system = if known then declared.system else null;

  # The wanted units of this host, with each directive as a default.
  defaults =
    wanted:
    {
      package,
      settings ? { },
      credentials ? { },
      etcd ? "/usr/bin/etcd",
    }:
    mapAttrsRecursive (_: mkDefault) (
      lib.filterAttrs (name: _: wanted name) (
        units.units {
          inherit
            credentials
            etcd
            manifest
            policy
            settings
            ;
          documents = cluster.documents.${host};
          bin = "${package}/bin";
        }
      )
    );

  # "host:port" or ":port" → port
  port = address: lib.toInt (lib.last (lib.splitString ":" address));

  # Secrets in the Nix store are readable by everybody.
  inStore = file: lib.hasPrefix builtins.storeDir (toString file);
  refused = option: file: {
    assertion = false;
    message =
      "${option} is in the Nix store, which everybody can read: ${toString file}; "
      + "keep it in a file outside, written as a string, such as \"/run/keys/users\"";
  };

  # An option of another role, whose default is the value for activation.
  asHost =
    name: o:
    o
    // {
      default = cfg.host.${name};
      defaultText = literalExpression "config.${option}.host.${name}";
    };

  # An option for the flags of a program.
  flags =
    program: example:
    mkOption {
      type = types.attrsOf (
        types.oneOf [
          types.str
          types.int
          types.bool
        ]
      );
      default = { };
      inherit example;
      description = "Flags of `${program}`; its `--help` describes them.";
    };
}
