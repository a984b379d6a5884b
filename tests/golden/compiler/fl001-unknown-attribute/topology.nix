{ base, merge, ... }:
merge base {
  service = { };
  hosts.alpha.adress = "192.0.2.9";
  services.wiki.prot = 80;
  services.wiki.sso.redirectURLs = [ ];
  users.ann.role = "reader";
  roles.reader.users = [ "ann" ];
  providers.certs.hosts = [ "alpha" ];
  providers.cert.zzz = 1;
  trust."root certificates" = [ ];
}
