# Facts of a host and a service change, one is added and one removed.
{ base, merge, ... }:
let
  before = merge base {
    hosts.beta.facts = {
      ssh-authorized = "ssh-ed25519 AAAA";
      metrics = 9100;
    };
    services.wiki.facts.names = [ "wiki.example.org" ];
  };
in
{
  inherit before;
  after = merge (before // { hosts = before.hosts // { beta = removeAttrs before.hosts.beta [ "facts" ]; }; }) {
    hosts.beta.facts = {
      ssh-authorized = "ssh-ed25519 BBBB";
      vpn = true;
    };
    services.wiki.facts.names = [
      "docs.example.org"
      "wiki.example.org"
    ];
  };
}
