# Two hosts are an ingress: alpha for two names of its own, one of them for gRPC, and both for the
# wiki and for names below a wildcard, whose keys they share. One name is outside DNS.
{ base, merge, ... }:
merge base {
  hosts.alpha = {
    capabilities = [ "ingress" ];
    roles = [
      "reader"
      "alone"
    ];
  };
  hosts.beta = {
    capabilities = [ "ingress" ];
    roles = [ "reader" ];
  };
  providers.tls = {
    hosts = [ "alpha" ];
    contact = "admin@example.org";
    dns = "httpreq";
    wildcards = [ "apps.example.org" ];
  };
  services = {
    wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
    };
    one = {
      host = "beta";
      port = 8081;
      visibility = "public";
      tlsName = "one.apps.example.org";
    };
    two = {
      host = "beta";
      port = 8082;
      visibility = "public";
      tlsName = "two.apps.example.org";
    };
    git = {
      host = "beta";
      port = 8083;
      visibility = "public";
      tlsName = "git.example.org";
      grpc = true;
    };
    docs = {
      host = "beta";
      port = 8084;
      visibility = "public";
      tlsName = "docs.internal";
    };
  };
  roles.reader.services = [
    "wiki"
    "one"
    "two"
  ];
  roles.alone.services = [
    "git"
    "docs"
  ];
}
