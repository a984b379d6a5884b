# Public names are added to a public service, an alias is removed and another added, and a new
# service has both.
{ base, merge, ... }:
let
  gate = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    services.wiki = {
      aliases = [
        "docs"
        "pages"
      ];
      visibility = "public";
      tlsName = "wiki.example.org";
    };
  };
in
{
  before = gate;
  after = merge gate {
    services.wiki = {
      aliases = [
        "*.wiki"
        "pages"
      ];
      tlsAliases = [
        "*.wiki.example.org"
        "docs.example.org"
      ];
    };
    services.shop = {
      host = "beta";
      port = 82;
      aliases = [ "store" ];
      visibility = "public";
      tlsName = "shop.example.org";
      tlsAliases = [ "store.example.org" ];
    };
    roles.reader.services = gate.roles.reader.services ++ [ "shop" ];
  };
}
