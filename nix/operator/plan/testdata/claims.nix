# A client gets a renamed group, another claim and a scope of its own, and loses the groups of the
# issuer. Behind an ingress, a group is renamed for more people.
{ base, merge, ... }:
let
  before = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "ingress" ];
    };
    services.shop = {
      port = 8091;
      host = "beta";
      visibility = "public";
      tlsName = "shop.example.org";
      sso = {
        mode = "gate";
        groups.admin = [ "ops" ];
      };
    };
    roles.ingress.services = [ "shop" ];
    providers.tls = {
      hosts = [ "alpha" ];
      contact = "admin@example.org";
    };
  };
in
{
  inherit before;
  after = merge before {
    services.shop.sso.groups.admin = [
      "ops"
      "staff"
    ];
    services.wiki.sso = {
      scopes = [ "wiki" ];
      claims.roles = "groups";
      groups.editor = [ "writers" ];
    };
  };
}
