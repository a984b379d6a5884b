# Which cluster, which host of it, and the units that the other modules define.
{
  florete,
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    attrNames
    concatStringsSep
    elem
    filter
    hasSuffix
    mapAttrs
    mkOption
    types
    ;
  inherit (florete) cfg;
  # systemd would run nothing for a misspelled unit, only for its directive.
  isWhole =
    name:
    if hasSuffix ".service" name then
      cfg.units.${name} ? Service.ExecStart
    else if hasSuffix ".target" name then
      cfg.units.${name} ? Unit
    else
      cfg.units.${name} ? ${section (lib.last (lib.splitString "." name))};
  section = ending: lib.toUpper (lib.substring 0 1 ending) + lib.substring 1 (-1) ending;
  whole = filter isWhole (attrNames cfg.units);
in
{
  options.services.${florete.prefix} = {
    cluster = mkOption {
      type = types.nullOr types.raw;
      default = null;
      example = lib.literalExpression "inputs.mycluster";
      description = "The flake whose output `florete.<name>` is this host's cluster, or what `mkCluster` returned.";
    };
    clusterName = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "demo";
      description = "Name of the cluster, when the flake has several.";
    };
    hostName = mkOption {
      type = types.str;
      default = config.networking.hostName;
      defaultText = lib.literalExpression "config.networking.hostName";
      description = "Name of this host in the cluster.";
    };
    topology = mkOption {
      type = types.raw;
      readOnly = true;
      default = if florete.known then florete.topology else { };
      defaultText = lib.literalExpression "as in the cluster";
      example = lib.literalExpression ''{ facts.metrics.hosts.forge = 9100; hosts.forge.services = [ "wiki" ]; }'';
      description = ''
        The cluster with every reference followed: who runs where, and under `facts` what hosts
        and services let others read. `nix/schema/topology.schema.json` has all that is in it.
      '';
    };
    runs = mkOption {
      type = types.lazyAttrsOf types.bool;
      readOnly = true;
      # A module of several hosts can be imported on a host that is in no cluster. A wrong
      # configuration is an error instead, because the services of the host would be missing.
      default =
        if cfg.cluster == null then
          { }
        else if florete.known then
          florete.runs
        else
          throw florete.fault;
      defaultText = lib.literalExpression "as in the cluster";
      example = lib.literalExpression "{ search = true; wiki = false; }";
      description = ''
        Whether each service of the cluster is on this host, as the topology names it or as
        the compiler placed it: `lib.mkIf config.${florete.option}.runs.wiki`. A name that is
        no service's is an error. Empty without a cluster.
      '';
    };
    units = mkOption {
      type = types.attrsOf (
        types.attrsOf (
          types.attrsOf (
            types.oneOf [
              types.str
              types.int
              types.bool
              (types.listOf types.str)
            ]
          )
        )
      );
      default = { };
      example = lib.literalExpression ''{ "${florete.unit "agent.service"}".Service.LimitNOFILE = 100000; }'';
      description = ''
        Directives of Florete's units, by unit, section and directive. A directive here replaces that of the
        unit. A list sets the directive several times.
      '';
    };
  };

  config = {
    assertions = [
      {
        assertion = cfg.cluster == null || florete.known;
        message = toString florete.fault;
      }
      {
        assertion =
          !florete.known
          || elem florete.system [
            null
            pkgs.stdenv.hostPlatform.system
          ];
        message = "the cluster says hosts.${cfg.hostName}.system = ${builtins.toJSON florete.system}, this configuration is for ${pkgs.stdenv.hostPlatform.system}: correct one of the two";
      }
    ]
    ++ map (name: {
      assertion = false;
      message = "${florete.option}.units.${builtins.toJSON name}: Florete has no such unit here, want one of ${concatStringsSep ", " whole}";
    }) (filter (name: !elem name whole) (attrNames cfg.units));
    systemd.units = mapAttrs (_: unit: {
      text = florete.render unit;
      wantedBy = unit.Install.WantedBy or [ ];
    }) cfg.units;
  };
}
