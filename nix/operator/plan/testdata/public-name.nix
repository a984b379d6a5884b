# One public service changes its name, one gets its first, one is new, and a service outside the
# cluster gets another address.
{ base, merge, ... }:
let
  gate = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    services.wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
    };
    services.blog = {
      host = "beta";
      port = 81;
      visibility = "public";
    };
    services.printer = {
      host = "beta";
      port = 631;
      upstream = "192.0.2.77:631";
    };
    roles.reader.services = [
      "wiki"
      "blog"
      "printer"
    ];
  };
in
{
  before = gate;
  after = merge gate {
    services.wiki.tlsName = "docs.example.org";
    services.blog.tlsName = "blog.example.org";
    services.printer.upstream = "192.0.2.78:631";
    services.shop = {
      host = "beta";
      port = 82;
      visibility = "public";
      tlsName = "shop.example.org";
    };
    roles.reader.services = gate.roles.reader.services ++ [ "shop" ];
  };
}
