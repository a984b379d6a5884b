# HTTP-01 shows one name: no CA issues for all below a domain by it.
{ base, merge, ... }:
merge base {
  providers.tls = {
    hosts = [ "alpha" ];
    wildcards = [ "example.org" ];
  };
}
