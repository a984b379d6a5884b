# lib → the few options of NixOS that the modules set.
lib:
let
  inherit (builtins) foldl' toFile toJSON;
  inherit (lib) mkOption types;

  any = type: default: mkOption { inherit type default; };
  strings = types.listOf types.str;
  lists = any (types.listOf types.port) [ ];
  sets = any (types.attrsOf types.anything) { };
  highest = types.int // {
    merge = _: foldl' (n: d: lib.max n d.value) 0;
  };
in
{ config, ... }: {
  options = {
    assertions = any (types.listOf types.anything) [ ];
    # The highest value wins; other options are set in one place only.
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
    programs.ssh.extraConfig = any types.lines "";
    services.openssh.extraConfig = any types.lines "";
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
    # Further values that a case shows.
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
    runtimeShell = "/bin/sh";
    writeScript = name: text: toFile name text;
    runCommand = name: _: command: {
      type = "derivation";
      inherit name;
      outPath = "/${name} (${command})";
    };
    linkFarm = name: links: {
      type = "derivation";
      name = toString ([ name ] ++ map (l: "${l.name} -> ${l.path}") links);
      outPath = "/${name}";
    };
  };
}
