# Rules for strangers at public names: networks, paths to other ports, and names that only one of
# two ingresses serves. Names are redirected to the names of a service, with certificates.
{ base, merge, ... }:
merge base {
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
    };
    visibility = "public";
    tlsName = "wiki.example.org";
    tlsAliases = [ "*.wiki.example.org" ];
    ingress = {
      hosts = [ "alpha" ];
      from = [
        "192.168.0.0/16"
        "2001:db8::7"
        "192.0.2.7"
      ];
      paths = {
        "/admin".from = [ "192.168.7.0/24" ];
        "/admin/health" = { };
        "/metrics".deny = true;
        "/ws".port = "ws";
      };
      hsts = 31536000;
      maxBody = 10;
      timeout = 3600;
    };
  };
  services.blog = {
    host = "beta";
    port = 8090;
    visibility = "public";
    tlsName = "example.org";
  };
  roles.reader.services = [
    "blog"
    "wiki"
  ];
  redirects = {
    "www.example.org" = "example.org";
    "old.example.org" = "docs.wiki.example.org";
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
    dns = "httpreq";
  };
}
