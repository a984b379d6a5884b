# Values that kind tls refuses.
{ base, merge, ... }:
merge base {
  providers.tls = {
    hosts = [ "alpha" ];
    directory = "acme.example.org";
    contact = "nobody";
    dns = "route53";
    wildcards = [ "org" ];
    internal = [ "Internal" ];
  };
  services.wiki.grpc = true;
}
