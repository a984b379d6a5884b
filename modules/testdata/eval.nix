# lib → every configuration in cases/ as the modules make it, with the few options
# of NixOS that they set.
lib:
let
  inherit (builtins) attrNames filter listToAttrs map mapAttrs match readDir seq toFile toJSON;
  inherit (lib) mkOption types;
  inherit (import ../../nix) mkCluster;

  packages = _: { florete = { type = "derivation"; name = "florete"; outPath = "/usr/local"; }; };
  modules = import ../. packages;

  # A flake as a user writes it.
  flake.florete.demo = mkCluster (import ../../tests/cluster/cluster.nix);

  any = type: default: mkOption { inherit type default; };
  lists = any (types.listOf types.port) [ ];
  sets = any (types.attrsOf types.anything) { };
  nixos = { config, ... }: {
    options = {
      assertions = any (types.listOf types.anything) [ ];
      boot.kernel.sysctl = sets;
      environment = { etc = sets; systemPackages = any (types.listOf types.package) [ ]; };
      networking = {
        hostName = any types.str "nixos";
        hosts = any (types.attrsOf (types.listOf types.str)) { };
        firewall = { allowedTCPPorts = lists; allowedUDPPorts = lists; };
      };
      systemd = { units = sets; services = any (types.attrsOf (types.attrsOf types.anything)) { }; tmpfiles.settings = sets; };
      users = { users = sets; groups = sets; };
      # What a case wants to see besides.
      seen = any types.anything null;
    };
    config._module.args.pkgs = {
      stdenv.hostPlatform.system = "x86_64-linux";
      formats.json = _: { type = types.attrsOf types.anything; generate = name: v: toFile name (toJSON v); };
    };
  };

  result = file:
    let
      case = import file { inherit flake mkCluster modules lib; };
      config = (lib.evalModules { modules = [ nixos case ]; }).config;
      florete = config.services.florete;
      errors = map (a: a.message) (filter (a: !a.assertion) config.assertions);
    in
    if errors != [ ] then { inherit errors; } else {
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
        inherit (config.boot.kernel) sysctl;
        tmpfiles = config.systemd.tmpfiles.settings;
        provider = florete.provider.settings or null;
        inherit (config) seen;
      };
    };

  interesting = line: match "(BindReadOnlyPaths|ExecStart|LimitNOFILE|LoadCredential|PathExists.*)=.*" line != null;

  cases = filter (n: match ".*\\.nix" n != null) (attrNames (readDir ./cases));
in
{
  cases = listToAttrs (map (name: { inherit name; value = result (./cases + "/${name}"); }) cases);
  plain = flake.florete.demo.units;
  undocumented = map (o: o.name) (filter
    (o: lib.hasPrefix "services.florete." o.name && !o.internal && o.description or null == null)
    (lib.optionAttrSetToDocList (lib.evalModules { modules = [ nixos modules.default ]; }).options));
}
