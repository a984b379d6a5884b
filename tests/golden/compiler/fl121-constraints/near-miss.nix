# One host fewer is wanted, or one more in another group is allowed.
{
  base,
  key,
  merge,
  ...
}:
merge base {
  hostGroups.eu = { };
  hosts.alpha.group = "eu";
  hosts.beta.group = "eu";
  hosts.gamma = {
    address = "192.0.2.3";
    sshHostKey = key "gamma";
    capacity = 5;
  };
  services.apart = {
    replicas = 2;
    port = 1;
    placement.apart = [ "wiki" ];
  };
  services.far = {
    replicas = 1;
    port = 2;
    placement.apartByGroup = [ "wiki" ];
  };
  services.large = {
    replicas = 3;
    port = 3;
    placement.size = 2;
  };
  services.spread = {
    replicas = 2;
    port = 4;
    placement.spread = "one-per-group";
  };
  roles.reader.services = [
    "apart"
    "far"
    "large"
    "spread"
    "wiki"
  ];
}
