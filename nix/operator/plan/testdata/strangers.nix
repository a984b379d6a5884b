# A path is opened to a further network, a rule that denied a path is removed, a path leads to
# another port, and a name that was limited to a network is open to anyone. A new name has rules from
# its beginning, another one is redirected, and a name is served at one ingress less.
{ base, merge, ... }:
let
  before = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    hosts.beta = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    services.wiki = {
      port = null;
      ports = {
        http = 8080;
        ws = 8081;
        push = 8082;
      };
      visibility = "public";
      tlsName = "wiki.example.org";
      ingress = {
        paths = {
          "/admin".from = [ "192.168.0.0/16" ];
          "/debug".deny = true;
          "/metrics".deny = true;
          "/ws".port = "ws";
        };
        hsts = 3600;
      };
    };
    services.home = {
      host = "beta";
      port = 8090;
      visibility = "public";
      tlsName = "home.example.org";
      ingress = {
        hosts = [ "alpha" ];
        from = [ "10.0.0.0/8" ];
        paths."/setup".from = [ "10.1.0.0/16" ];
      };
    };
    services.lab = {
      host = "beta";
      port = 8091;
      visibility = "public";
      tlsName = "lab.example.org";
      ingress.from = [
        "10.0.0.0/8"
        "192.168.0.0/16"
      ];
    };
    roles.reader.services = [
      "home"
      "lab"
      "wiki"
    ];
  };
  inherit (before.services) wiki;
  without = before // {
    services = before.services // {
      wiki = wiki // {
        ingress = wiki.ingress // {
          paths = removeAttrs wiki.ingress.paths [ "/metrics" ];
        };
      };
    };
  };
in
{
  inherit before;
  after = merge without {
    services.wiki.ingress.paths = {
      "/admin".from = [
        "192.168.7.0/24"
        "141.24.0.0/16"
      ];
      "/ws".port = "push";
    };
    services.wiki.ingress.hsts = 31536000;
    services.home.ingress.from = [ ];
    services.lab.ingress.from = [ "10.9.0.0/16" ];
    services.lab.ingress.hosts = [ "alpha" ];
    services.shop = {
      host = "beta";
      port = 8092;
      visibility = "public";
      tlsName = "shop.example.org";
      ingress = {
        hosts = [ "beta" ];
        from = [ "10.0.0.0/8" ];
        paths."/admin".deny = true;
      };
    };
    roles.reader.services = before.roles.reader.services ++ [ "shop" ];
    redirects."www.example.org" = "wiki.example.org";
  };
}
