# A reverse proxy is told which public name leads where.
{ mkCluster, modules, lib, ... }:
let cluster = import ../../../tests/cluster/cluster.nix; in
{
  imports = [ modules.default ({ config, ... }: { seen = config.services.florete.ingress; }) ];
  services.florete.cluster = mkCluster (lib.recursiveUpdate cluster {
    hosts.raishan.capabilities = [ "ingress" ];
    services.outline = { visibility = "public"; tlsName = "outline.example.org"; };
    services.auth.visibility = "public";
    services.proxy = { host = "raishan"; port = 443; visibility = "host"; user = "nginx"; roles = [ "reader" ]; };
  });
  services.florete.hostName = "raishan";
}
