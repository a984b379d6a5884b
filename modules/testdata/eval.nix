# lib → every configuration in cases/ as the modules make it, with the few options
# of NixOS that they set.
lib:
let
  inherit (builtins)
    attrNames
    filter
    foldl'
    listToAttrs
    map
    mapAttrs
    match
    readDir
    seq
    toFile
    toJSON
    ;
  inherit (lib) mkOption types;
  inherit (import ../../nix) mkCluster;

  packages = _: {
    florete = {
      type = "derivation";
      name = "florete";
      outPath = "/usr/local";
    };
  };
  modules = import ../. packages "";
  instance = name: (import ../. packages name).default;

  # A flake as a user writes it.
  cluster = import ../../tests/cluster/cluster.nix;
  flake.florete.demo = mkCluster cluster;

  # Another cluster, which two of its hosts are members of too.
  blue = lib.recursiveUpdate cluster {
    name = "blue";
    trustDomain = "blue.flor";
    hosts = lib.genAttrs [ "drhorrible" "ursula" ] (_: {
      instance = "blue";
      forwarderPort = 4611;
      providerPort = 4601;
    });
    providers = {
      cert.hosts = [ "ursula" ];
      oidc.issuer = "http://auth.blue.flor.rete:5556";
    };
  };
  further = changes: { florete.blue = mkCluster (lib.recursiveUpdate blue changes); };

  any = type: default: mkOption { inherit type default; };
  strings = types.listOf types.str;
  lists = any (types.listOf types.port) [ ];
  sets = any (types.attrsOf types.anything) { };
  highest = types.int // {
    merge = _: foldl' (n: d: lib.max n d.value) 0;
  };
  nixos = { config, ... }: {
    options = {
      assertions = any (types.listOf types.anything) [ ];
      # The highest of these counts; the others are set in one place.
      boot.kernel.sysctl = any (types.submodule {
        freeformType = types.attrsOf (types.uniq types.int);
        options = lib.genAttrs [ "net.core.rmem_max" "net.core.wmem_max" ] (_: any highest 0);
      }) { };
      environment = {
        etc = sets;
        systemPackages = any (types.listOf types.package) [ ];
      };
      networking = {
        hostName = any types.str "nixos";
        hosts = any (types.attrsOf strings) { };
        firewall = {
          allowedTCPPorts = lists;
          allowedUDPPorts = lists;
        };
      };
      system.preSwitchChecks = any (types.attrsOf types.lines) { };
      systemd = {
        units = sets;
        services = any (types.attrsOf (types.attrsOf (types.either strings (types.attrsOf strings)))) { };
        tmpfiles.settings = sets;
      };
      users = {
        users = sets;
        groups = sets;
      };
      # What a case wants to see besides.
      seen = any types.anything null;
    };
    config._module.args.pkgs = {
      nftables = {
        type = "derivation";
        name = "nftables";
        outPath = "/nftables";
      };
      stdenv.hostPlatform.system = "x86_64-linux";
      formats.json = _: {
        type = types.attrsOf types.anything;
        generate = name: v: toFile name (toJSON v);
      };
      linkFarm = name: links: {
        type = "derivation";
        name = toString ([ name ] ++ map (l: "${l.name} -> ${l.path}") links);
        outPath = "/${name}";
      };
    };
  };

  result =
    file:
    let
      case = import file {
        inherit
          flake
          further
          lib
          instance
          mkCluster
          modules
          ;
      };
      config =
        (lib.evalModules {
          modules = [
            nixos
            case
          ];
        }).config;
      errors = map (a: a.message) (filter (a: !a.assertion) config.assertions);
    in
    if errors != [ ] then
      { inherit errors; }
    else
      {
        units = mapAttrs (_: u: u.text) config.systemd.units;
        config = {
          directives = mapAttrs (_: u: filter interesting (lib.splitString "\n" u.text)) config.systemd.units;
          wantedBy = mapAttrs (_: u: u.wantedBy) config.systemd.units;
          etc = mapAttrs (_: e: seq "${e.source}" true) config.environment.etc;
          users = config.users.users;
          groups = attrNames config.users.groups;
          packages = map (p: p.name) config.environment.systemPackages;
          inherit (config.networking) hosts firewall;
          inherit (config.systemd) services;
          sysctl = lib.filterAttrs (_: v: v > 0) config.boot.kernel.sysctl;
          tmpfiles = config.systemd.tmpfiles.settings;
          provider = config.services.florete.provider.settings or null;
          inherit (config) seen;
        }
        // lib.optionalAttrs (config.system.preSwitchChecks != { }) {
          inherit (config.system) preSwitchChecks;
        };
      };

  interesting =
    line: match "(BindReadOnlyPaths|ExecStart|LimitNOFILE|LoadCredential|PathExists.*)=.*" line != null;

  cases = filter (n: match ".*\\.nix" n != null) (attrNames (readDir ./cases));
in
{
  cases = listToAttrs (
    map (name: {
      inherit name;
      value = result (./cases + "/${name}");
    }) cases
  );
  plain = {
    demo = flake.florete.demo.units;
    blue = (further { }).florete.blue.units;
  };
  undocumented = map (o: o.name) (
    filter (o: lib.hasPrefix "services.florete" o.name && !o.internal && o.description or null == null)
      (
        lib.optionAttrSetToDocList
          (lib.evalModules {
            modules = [
              nixos
              modules.default
              (instance "blue")
            ];
          }).options
      )
  );
}
