# Enough hosts fit, but services to be apart from, capacity or groups leave too few.
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
    capacity = 1;
  };
  services.apart = {
    replicas = 3;
    port = 1;
    placement.apart = [ "wiki" ];
  };
  services.far = {
    replicas = 2;
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
    placement = {
      group = "eu";
      spread = "one-per-group";
    };
  };
  roles.reader.services = [
    "apart"
    "far"
    "large"
    "spread"
    "wiki"
  ];
}
