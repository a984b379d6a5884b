# lib → keys → the VM tests, evaluated with the lib of nixpkgs and a stand-in for the rest of it:
# each test with its hosts and specialisations, or their errors. keys is a directory with the output
# of keys.nix.
lib: keys:
let
  inherit (builtins)
    attrNames
    deepSeq
    filter
    functionArgs
    intersectAttrs
    mapAttrs
    seq
    toFile
    toJSON
    ;
  inherit (lib) mkOption types;

  package = name: {
    type = "derivation";
    outPath = "/${name}";
    inherit name;
  };
  programs = lib.genAttrs [
    "curl"
    "etcd"
    "florete"
    "git"
    "iproute2"
    "nftables"
    "nix"
    "openssh"
    "openssl"
    "python3"
  ] package;
  pkgs = programs // {
    inherit lib;
    stdenv.hostPlatform.system = "x86_64-linux";
    runCommand =
      name: attrs: script:
      deepSeq [ attrs script ] (
        package name // (if name == "florete-test-keys" then { outPath = keys; } else { })
      );
    writeShellScriptBin = name: script: seq script (package name);
    callPackage = file: args: import file (intersectAttrs (functionArgs (import file)) pkgs // args);
    formats.json = _: {
      type = types.attrsOf types.anything;
      generate = name: v: toFile name (toJSON v);
    };
    linkFarm = name: links: deepSeq links (package name);
    testers.runNixOSTest = test: {
      inherit (test) name testScript;
      hosts = mapAttrs (host: module: system host [ module ]) test.nodes;
    };
  };

  modules = import ../. (_: programs) "";
  florete = {
    lib = import ../../nix;
    nixosModules = modules;
    packages.x86_64-linux = programs;
    outPath = "/florete";
  };

  any = type: default: mkOption { inherit type default; };
  anything = any types.anything { };
  sets = any (types.attrsOf types.anything) { };
  numbers = any (types.listOf types.port) [ ];
  strings = types.listOf (types.either types.str types.package);
  service = types.submodule {
    freeformType = types.lazyAttrsOf types.raw;
    options =
      lib.genAttrs [ "after" "before" "path" "requires" "wantedBy" "wants" ] (_: any strings [ ])
      // {
        unitConfig = any (types.attrsOf (types.either (types.listOf types.str) types.str)) { };
        serviceConfig = any (types.attrsOf (types.uniq types.anything)) { };
      };
  };
  # The options of NixOS that hosts and modules set.
  nixos = {
    options = {
      assertions = any (types.listOf types.anything) [ ];
      boot.kernel.sysctl = any (types.attrsOf (
        types.listOf types.int // { merge = _: map (d: d.value); }
      )) { };
      environment = {
        etc = sets;
        systemPackages = any (types.listOf types.package) [ ];
      };
      networking = {
        hostName = any types.str "nixos";
        hosts = any (types.attrsOf (types.listOf types.str)) { };
        interfaces = anything;
        firewall = {
          allowedTCPPorts = numbers;
          allowedUDPPorts = numbers;
        };
      };
      programs.ssh.extraConfig = any types.lines "";
      services.openssh.extraConfig = any types.lines "";
      services.timesyncd = anything;
      specialisation = any (types.attrsOf (
        types.submodule { options.configuration = any types.deferredModule { }; }
      )) { };
      system.preSwitchChecks = any (types.attrsOf types.lines) { };
      systemd = {
        units = sets;
        services = any (types.attrsOf service) { };
        tmpfiles = {
          rules = any (types.listOf types.str) [ ];
          settings = sets;
        };
      };
      users = {
        users = sets;
        groups = sets;
      };
    };
    config._module.args = { inherit pkgs; };
  };

  system =
    host: configuration:
    let
      evaluated = lib.evalModules {
        modules = [ nixos ] ++ configuration;
        specialArgs.name = host;
      };
      look = config: {
        errors = map (a: a.message) (filter (a: !a.assertion) config.assertions);
        units = attrNames config.systemd.units;
        services = mapAttrs (_: s: deepSeq s (attrNames s)) config.systemd.services;
        etc = attrNames (deepSeq config.environment.etc config.environment.etc);
        rules = config.systemd.tmpfiles.rules;
        packages = map (p: p.name) config.environment.systemPackages;
        interfaces = config.networking.interfaces;
      };
    in
    look evaluated.config
    // {
      specialisations = mapAttrs (
        _: s: look (evaluated.extendModules { modules = [ s.configuration ]; }).config
      ) evaluated.config.specialisation;
    };
in
import ../../tests/vm { inherit florete pkgs; }
