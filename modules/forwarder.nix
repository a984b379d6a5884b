# The forwarder: connections between this host and its cluster.
{ florete, config, lib, pkgs, packages, ... }:
let
  inherit (lib) elemAt filter groupBy listToAttrs literalExpression mapAttrs match mkDefault mkEnableOption mkIf mkOption mkPackageOption optional toInt types;
  inherit (florete.cfg) host;
  inherit (florete.manifest) forwarder;
  cfg = florete.cfg.forwarder;

  # "spiffe://<domain>/service/[<node>/]<name>" → "<name>.[<node>.]<domain>.rete"
  dialled = id:
    let part = match "spiffe://([^/]+)/service/(([^/]+)/)?([^/]+)" id; in
    elemAt part 3 + (if elemAt part 2 == null then "" else "." + elemAt part 2) + ".${elemAt part 0}.rete";
  split = match "(.*):([0-9]+)";
in
{
  options.services.${florete.prefix} = {
    ingress = mkOption {
      type = types.attrsOf types.str;
      readOnly = true;
      default = if cfg.enable && florete.known
        then listToAttrs (map (r: { name = r.tlsName; value = r.listen; }) (filter (r: r ? tlsName) forwarder.reach))
        else { };
      defaultText = literalExpression "what the cluster says";
      example = { "wiki.example.org" = "127.105.3.4:80"; };
      description = ''
        The public names that a reverse proxy on this host takes in strangers for, and the
        local listener that each leads to: `tlsName` of the services that the host reaches,
        where it has the capability `ingress`.
      '';
    };

    forwarder = {
      enable = mkEnableOption "carrying connections between this host and its cluster" // {
        default = host.enable;
        defaultText = lib.literalExpression "config.${florete.option}.host.enable";
      };
      package = mkPackageOption (packages pkgs.stdenv.hostPlatform.system) "florete" { pkgsText = "florete.packages.\${system}"; }
        // { default = host.package; defaultText = lib.literalExpression "config.${florete.option}.host.package"; };
      settings = florete.flags "flor agent run" { socket = "${florete.run}/agent/other.sock"; };
      openFirewall = mkOption {
        type = types.bool;
        default = host.openFirewall;
        defaultText = lib.literalExpression "config.${florete.option}.host.openFirewall";
        description = "Whether to open the UDP port on which other hosts reach the services of this one.";
      };
      hosts = mkOption {
        type = types.bool;
        default = true;
        description = ''
          Whether names of services, such as `wiki.demo.flor.rete`, lead to their local
          listeners, so that programs that know nothing of Florete just connect.
        '';
      };
    };
  };

  config = mkIf (cfg.enable && florete.known) {
    services.${florete.prefix}.units = florete.defaults (name: name == florete.unit "agent.service")
      { inherit (cfg) package; settings.agent = cfg.settings; };

    networking.hosts = mkIf cfg.hosts (mapAttrs (_: map (r: dialled r.id))
      (groupBy (r: elemAt (split r.listen) 0) forwarder.reach));
    networking.firewall.allowedUDPPorts = mkIf cfg.openFirewall
      (map (l: toInt (elemAt (split l) 1)) (optional (forwarder ? listen) forwarder.listen));

    boot.kernel.sysctl = mapAttrs (_: mkDefault) florete.sysctl;
  };
}
