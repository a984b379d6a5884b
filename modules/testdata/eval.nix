# lib → the result of the modules for every configuration in cases/, with the few options of NixOS
# that they set.
lib:
let
  inherit (builtins)
    attrNames
    filter
    listToAttrs
    mapAttrs
    match
    readDir
    seq
    ;
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

  # A flake as a user would write it.
  cluster = import ../../tests/cluster/cluster.nix;
  flake.florete.demo = mkCluster cluster;

  # A second cluster, with two hosts of the first.
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

  nixos = import ./nixos.nix lib;

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
        // lib.optionalAttrs (config.programs.ssh.extraConfig + config.services.openssh.extraConfig != "") {
          ssh = config.programs.ssh.extraConfig;
          sshd = config.services.openssh.extraConfig;
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
  # The options, as docs/reference/nixos-options.md describes them.
  options =
    let
      text = v: v.text or (if v == null then "" else toString v);
    in
    map
      (o: {
        inherit (o) name type readOnly;
        description = text (o.description or "");
        default = text (o.default or "");
        example = text (o.example or "");
      })
      (
        filter (o: lib.hasPrefix "services.florete." o.name && !o.internal && o.visible) (
          lib.optionAttrSetToDocList
            (lib.evalModules {
              modules = [
                nixos
                modules.default
              ];
            }).options
        )
      );
  # Options without a description, or without an example, default or type that shows how to write
  # them.
  undocumented =
    let
      nothing = [
        "null"
        "{ }"
        "[ ]"
        "\"\""
      ];
      shown =
        o: o ? example || o.readOnly || o ? default && !builtins.elem (o.default.text or "") nothing;
    in
    map (o: o.name) (
      filter
        (
          o:
          lib.hasPrefix "services.florete" o.name
          && !o.internal
          && (o.description or null == null || !shown o)
        )
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
