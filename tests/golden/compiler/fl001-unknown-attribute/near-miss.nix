{ base, merge, ... }:
merge base {
  self = {
    anything = "goes in a flake";
  };
  hosts.alpha = {
    kind = "server";
    capabilities = [ "relay" ];
    tags = [ "rack-1" ];
  };
  services.wiki.sso.mode = "none";
}
