# One host that provides certificates to itself.
{ base, key, ... }: {
  inherit (base)
    name
    trustDomain
    trust
    serial
    rev
    serviceGroups
    ;
  roles = { inherit (base.roles) node operator; };
  hosts.alpha = {
    address = "192.0.2.1";
    sshHostKey = key "alpha";
  };
  providers.cert.hosts = [ "alpha" ];
}
