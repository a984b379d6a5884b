# All faults are reported at once, sorted by place.
{ base, merge, ... }:
merge base {
  hosts.beta.address = "192.0.2.1";
  hosts.beta.users = [ "anne" ];
  services.wiki = {
    host = "bata";
    prot = 443;
    port = "8080";
  };
  roles.writer.services = [ ];
  providers.cert.hosts = [ ];
}
