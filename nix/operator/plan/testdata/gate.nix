# An ingress no longer requires a sign-in for the wiki, requires one for the blog from now on, and
# lets people stay signed in for longer at the shop, which it also serves under a second name.
{ base, merge, ... }:
let
  service = port: sso: {
    inherit port sso;
    host = "beta";
    visibility = "public";
  };
  without = base // {
    services = base.services // {
      wiki = removeAttrs base.services.wiki [ "sso" ];
    };
  };
  gate = merge without {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "ingress" ];
    };
    services = {
      auth = {
        visibility = "public";
        tlsName = "auth.example.org";
      };
      wiki = {
        visibility = "public";
        tlsName = "wiki.example.org";
        sso.mode = "gate";
      };
      blog = service 8090 { } // {
        tlsName = "blog.example.org";
      };
      shop = service 8091 { mode = "gate"; } // {
        tlsName = "shop.example.org";
      };
    };
    roles.ingress.services = [
      "auth"
      "blog"
      "shop"
      "wiki"
    ];
    providers.tls = {
      hosts = [ "alpha" ];
      contact = "admin@example.org";
    };
  };
in
{
  before = gate;
  after = merge gate {
    services.wiki.sso.mode = "none";
    services.blog.sso = {
      mode = "gate";
      allowedGroups = [ "writers" ];
    };
    services.shop = {
      sso.session = 24;
      tlsAliases = [ "store.example.org" ];
    };
  };
}
