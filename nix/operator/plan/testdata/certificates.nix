# Public names get certificates from an ACME server, then from another, and one from the cluster's
# own CA.
{ base, merge, ... }:
let
  before = merge base {
    hosts.alpha = {
      capabilities = [ "ingress" ];
      roles = [ "reader" ];
    };
    services.wiki = {
      visibility = "public";
      tlsName = "wiki.example.org";
    };
    roles.reader.services = [ "wiki" ];
    providers.tls.hosts = [ "alpha" ];
  };
in
{
  inherit before;
  after = merge before {
    services.blog = {
      host = "beta";
      port = 81;
      visibility = "public";
      tlsName = "blog.home.arpa";
      grpc = true;
    };
    roles.reader.services = [
      "wiki"
      "blog"
    ];
    providers.tls = {
      directory = "https://acme.example.org/directory";
      dns = "exec";
    };
  };
}
