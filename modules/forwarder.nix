# The forwarder: connections between this host and its cluster.
{
  florete,
  package,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    concatMap
    elemAt
    filter
    groupBy
    head
    listToAttrs
    literalExpression
    mapAttrs
    match
    mkDefault
    mkEnableOption
    mkIf
    mkOption
    optional
    splitString
    types
    ;
  inherit (florete.manifest) forwarder;
  cfg = florete.cfg.forwarder;

  # The ports at which other hosts connect. A hidden host listens on loopback alone.
  opened =
    over:
    if forwarder.transport or over == over then
      lib.unique (map florete.port (filter (at: !lib.hasPrefix "127.0.0.1:" at) forwarder.listen))
    else
      [ ];
  entered =
    protocol:
    lib.unique (
      map (e: florete.port e.listen) (
        filter (e: e.protocol or "tcp" == protocol) (forwarder.entries or [ ])
      )
    );

  # "spiffe://<domain>/service/[<node>/]<name>" → "<name>.[<node>.]<domain>.rete"
  dialled =
    id:
    let
      part = match "spiffe://([^/]+)/service/(([^/]+)/)?([^/]+)" id;
    in
    elemAt part 3
    + (if elemAt part 2 == null then "" else "." + elemAt part 2)
    + ".${elemAt part 0}.rete";
in
{
  options.services.${florete.prefix} = {
    ingress = mkOption {
      type = types.attrsOf types.str;
      readOnly = true;
      default =
        if cfg.enable && florete.known then
          listToAttrs (
            concatMap (
              r:
              map (name: {
                inherit name;
                value = r.listen;
              }) ([ r.tlsName ] ++ r.tlsAliases or [ ])
            ) (filter (r: r ? tlsName && !r ? gate && !(r.ingress or { } ? from || r.ingress or { } ? paths)) forwarder.reach)
          )
        else
          { };
      defaultText = literalExpression "what the cluster says";
      example = {
        "wiki.example.org" = "127.105.3.4:80";
      };
      description = ''
        The public names that a reverse proxy on this host serves, each with the local listener to which the
        proxy forwards. They are the `tlsName` and `tlsAliases` of the services that the host reaches, if the
        host has the capability `ingress`. Names of services with rules for networks or paths, or with a sign-in at
        the ingress, are left out, because your proxy would not apply them.
      '';
    };

    forwarder = {
      enable = florete.asHost "enable" (
        mkEnableOption "carrying connections between this host and its cluster"
      );
      package = florete.asHost "package" package;
      settings = florete.flags "flor agent run" { metrics = "127.0.0.1:9464"; };
      openFirewall = florete.asHost "openFirewall" (mkOption {
        type = types.bool;
        description = ''
          Whether to open the UDP and TCP port on which other hosts reach the services of this host, and, on a
          host with an ingress, the public ports of services.
        '';
      });
      guard = mkOption {
        type = types.bool;
        default = true;
        description = ''
          Whether to restrict the upstreams of published services on loopback to the forwarder, root and the
          account of the service, with an nftables table of its own. Without it, every account of this host
          can connect to them past the forwarder. The table also records which account sends a datagram.
        '';
      };
      hosts = mkOption {
        type = types.bool;
        default = true;
        description = ''
          Whether to keep names of services, such as `wiki.demo.flor.rete`, in `/etc/hosts`, with the addresses
          of their local listeners, so that every program can connect by name.
        '';
      };
    };
  };

  config = mkIf (cfg.enable && florete.known) {
    services.${florete.prefix}.units =
      florete.defaults
        (name: name == florete.unit "agent.service" || cfg.guard && name == florete.unit "guard.service")
        {
          inherit (cfg) package;
          settings.agent = cfg.settings;
        };

    networking.hosts = mkIf cfg.hosts (
      mapAttrs (_: map (r: dialled r.id)) (groupBy (r: head (splitString ":" r.listen)) forwarder.reach)
    );
    networking.firewall = mkIf cfg.openFirewall {
      allowedUDPPorts = opened "quic" ++ entered "udp";
      allowedTCPPorts = opened "tcp" ++ entered "tcp";
    };

    environment.systemPackages = optional cfg.guard pkgs.nftables;
    boot.kernel.sysctl = mapAttrs (_: mkDefault) florete.sysctl;
  };
}
